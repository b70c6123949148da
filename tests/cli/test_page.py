"""The transcript of docs/guide/command_line.md: its commands run, and print such lines."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import invoke

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def shape(text):
    """Return the lines of an output without numbers, and without what may differ by machine."""
    lines = [re.split(r"  +|: ", line.strip())[0] for line in text.splitlines()]
    return [re.sub(r"[\d,.]+", "#", line) for line in lines if line and "LightGBM" not in line]


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
            code, output, errors = invoke(*shlex.split(command)[1:])
            assert code == 0, errors
            printed += errors + output
        if find_spec("lightgbm") is None:  # a note says so, in the place of its line
            printed, expected = (_without("LightGBM", each) for each in (printed, expected))
        assert shape(printed) == shape(expected)


def _without(name, text):
    return "".join(line for line in text.splitlines(keepends=True) if name not in line)
