"""The transcript of docs/guide/command_line.md: its commands run, and print such lines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import invoke

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def shape(text):
    """Return the starts of the lines of an output, without numbers and what differs by machine.

    Where LightGBM is missing, a note says so in the place of its line.
    """
    lines = [line.strip() for line in text.splitlines() if "LightGBM" not in line]
    starts = [re.split(r"  +|: ", line)[0] for line in lines if line]
    return [re.sub(r"[\d,.]+", "#", start) for start in starts]


@pytest.mark.slow
@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
def test_the_transcript(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    exec(compile(block, PAGE.name, "exec"), {})
    pattern = r"^```console\n((?:nysplus [^\n]*\n)+)```\n```text\n(.*?)^```"
    parts = re.findall(pattern, text, flags=re.M | re.S)
    assert len(parts) == 5
    for commands, expected in parts:
        printed = ""
        for command in commands.splitlines():
            code, output, errors = invoke(*shlex.split(command)[1:], report=True)
            assert code == 0, errors
            printed += errors + output
        assert shape(printed) == shape(expected)
