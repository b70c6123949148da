"""The documents' Python blocks run, and what they say is in the repository is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from nysplus.landmarks import Landmarks, LandmarkSelector, Problem

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_python_blocks_run(page, capsys):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), namespace)
    if page.name == "README.md":
        assert blocks
        accuracy = float(capsys.readouterr().out.split()[0])
        assert accuracy > 0.97


@each_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("part", [LandmarkSelector, Problem, Landmarks])
def test_the_page_on_selectors_has_the_real_classes(part):
    (page,) = (page for page in PAGES if page.name == "own_selector.md")
    assert inspect.getsource(part) in page.read_text(encoding="utf-8")


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for page in [*PAGES, *workflows]:
        named = re.findall(r"(?:`|run: )make ([a-z-]+)", page.read_text(encoding="utf-8"))
        assert set(named) <= targets, page.name
