"""The site: it builds without warnings, its pages work in a browser, and its examples run."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from browser import Browser, needs_chromium

import nysplus

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "api" / "index.rst"
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
# Programs of more than three seconds; `make docs` and `make test-all` run them.
LONG = {"plot_accuracy_against_bytes", "plot_from_svc", "plot_refinement"}
PUBLIC = ("nysplus", "nysplus.encoding", "nysplus.export", "nysplus.kernels", "nysplus.landmarks")
MAIN_PAGES = [
    "index.html",
    "README.html",
    "api/generated/nysplus.NystroemClassifier.html",
    "api/index.html",
    "background/architecture.html",
    "draw_a_digit.html",
    "gallery/index.html",
    "gallery/landmarks/plot_margins.html",
    "guide/from_other_libraries.html",
    "guide/index.html",
    "guide/start.html",
    "project/contributing.html",
    "results/kilobytes.html",
]
# Missing pictures of a page, the pixels by which it is wider than the window, and texts that the
# edge of the window cuts off. Tables and code have scroll bars of their own.
FAULTS = """
const parts = "article :is(h1, h2, p, dt, dd, img, iframe), .prev-next-area p";
Promise.all([...document.images].map((image) => {
    image.loading = "eager";
    return image.decode().then(() => [], () => [image.src]);
})).then((missing) => ({
    missing: missing.flat(),
    sideways: document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
    cut: [...document.querySelectorAll(parts)]
        .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
        .filter((part) => part.getClientRects().length && !part.closest("pre, table, dialog"))
        .map((part) => part.textContent.slice(0, 60)),
}))
"""


def _example(path):
    marks = [pytest.mark.slow, *([pytest.mark.all_combinations] if path.stem in LONG else [])]
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", map(_example, EXAMPLES))
def test_examples_run_and_draw(path, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runpy.run_path(str(path))
    assert pyplot.get_fignums()


@pytest.mark.parametrize("module", [*PUBLIC, "nysplus.plots"])
def test_the_reference_has_all_public_names(module):
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", REFERENCE.read_text(), flags=re.M)[1:]
    listed = {
        name
        for at, text in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"^   ([A-Za-z]\w*)$", text, flags=re.M)
        # the package has some names of its modules as well
        if at == module or (module == "nysplus" and hasattr(nysplus, name))
    }
    public = importlib.import_module(module)
    documented = {name for name in public.__all__ if callable(getattr(public, name))}
    assert documented <= listed
    assert all(hasattr(public, name) or module == "nysplus" for name in listed)
    assert all(inspect.getdoc(getattr(public, name)) for name in documented)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, built from a copy and without running examples."""
    for needed in ("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx_gallery"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    pytest.importorskip("sphinx_copybutton", reason="sphinx_copybutton is not installed")
    copy = tmp_path_factory.mktemp("repository")
    made = shutil.ignore_patterns("__pycache__", "gallery", "generated")
    for folder in ("docs", "examples", "results", "src"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=made)
    for file in [*ROOT.glob("*.md"), ROOT / "CITATION.cff"]:
        shutil.copy(file, copy)
    built = copy / "build"
    options = ["-b", "html", "-W", "--keep-going", "-q", "-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *options, copy / "docs", built]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("page", MAIN_PAGES)
def test_pages_work_on_a_phone(page, site, browser):
    browser.open(site / page, width=400)
    found = browser.run(FAULTS)
    assert found["missing"] == []
    assert found["sideways"] <= 0
    assert found["cut"] == []
    assert [event for event in browser.complaints if event["params"].get("type") != "log"] == []


@pytest.mark.slow
@needs_chromium
def test_the_front_page_has_a_model_that_reads_digits(site, browser):
    browser.open(site / "index.html", width=1280)
    text = browser.run("document.querySelector('iframe.drawing').getAttribute('src')")
    browser.open(site / text, width=1280)
    shown = browser.run("document.body.innerText")
    assert re.search(r"\b1[0-6](\.\d)? kB|\b1[0-6],?\d{3} bytes", shown), shown


@pytest.mark.slow
def test_links_to_the_repository_become_links_to_pages(site):
    text = (site / "guide" / "shipping.html").read_text(encoding="utf-8")
    assert 'href="../gallery/shipping/plot_csv_to_c.html"' in text
    assert 'href="../project/security.html"' in text
    contributing = (site / "project" / "contributing.html").read_text(encoding="utf-8")
    assert 'href="../background/architecture.html"' in contributing
