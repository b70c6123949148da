"""The documentation: code blocks run, links lead somewhere, names and commands exist."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from nysplus.landmarks import Landmarks, LandmarkSelector, Problem

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    """Return the code blocks of a page in one language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def prose(page):
    """Return a page without its code blocks, where # starts a comment and not a heading."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page):
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page, program):
    """Return the first argument of each call of a program: in backticks, or in a console block."""
    quoted = re.findall(rf"`{program} ([a-z-]+)", prose(page))
    lines = "\n".join(blocks(page, "console"))
    return {*quoted, *re.findall(rf"^{program} ([a-z-]+)", lines, flags=re.M)}


def name(page):
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name)
each_page_with_code = pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=name
)


@pytest.mark.slow
@each_page_with_code
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # blocks may write files
    namespace: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), namespace)
    if page == README:
        model, X_test, y_test = (namespace[name] for name in ("model", "X_test", "y_test"))
        assert model.model_bytes_ <= 16 * 1024
        assert model.score(X_test, y_test) > 0.97


@each_page
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", prose(page)):
        if not target.startswith(("http:", "https:")):
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(found), f"{page.name}: {target}#{anchor}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*/*.md")), ids=name)
def test_the_index_lists_every_page(page):
    index = ROOT / "docs" / "README.md"
    assert f"({page.relative_to(index.parent).as_posix()}" in prose(index)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=name)
def test_modules_exist(page):
    """Dotted names such as `nysplus._ridge.solvers` are modules, or attributes of modules."""
    for dotted in re.findall(r"`(nysplus(?:\.\w+)+)", prose(page)):
        module, _, attribute = dotted.rpartition(".")
        if not hasattr(importlib.import_module(module), attribute):
            importlib.import_module(dotted)


@pytest.mark.parametrize("part", [LandmarkSelector, Problem, Landmarks])
def test_the_page_on_selectors_has_the_real_classes(part):
    (page,) = (page for page in PAGES if page.name == "own_selector.md")
    assert inspect.getsource(part) in page.read_text(encoding="utf-8")


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for page in PAGES:
        assert commands(page, "make") <= targets, page.name
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        assert set(re.findall(r"run: make ([a-z-]+)", workflow.read_text())) <= targets


def test_commands_exist():
    typer = pytest.importorskip("typer")
    from nysplus.cli import app

    known = set(typer.main.get_command(app).commands)
    for page in PAGES:
        assert commands(page, "nysplus") <= known, page.name


def test_long_files_have_a_reason():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.partition("## Files over 450 lines")[2]
    for path in (ROOT / "src").rglob("*.py"):
        if len(path.read_text(encoding="utf-8").splitlines()) > 450:
            assert path.name in section, f"CONTRIBUTING.md gives no reason for the length of {path}"
