"""The documents' Python blocks run, and what they say is in the repository is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from nysplus.landmarks import Landmarks, LandmarkSelector, Problem

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), namespace)
    if page.name == "README.md":
        assert blocks
        accuracy = float(capsys.readouterr().out.split()[0])
        assert accuracy > 0.97


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("part", [LandmarkSelector, Problem, Landmarks])
def test_the_page_on_selectors_has_the_real_classes(part):
    assert inspect.getsource(part) in (ROOT / "docs" / "extend" / "own_selector.md").read_text()


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for page in PAGES:
        assert set(re.findall(r"`make ([a-z]+)", page.read_text())) <= targets
