"""Tables of the pages of results equal the committed measurements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nysplus_experiments.harness.bench import DOCS, RESULTS
from nysplus_experiments.harness.pages import PAGES, page, stale

pytest.importorskip("pandas", reason="tables need pandas")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DOCS / "results").is_dir() or not RESULTS.is_dir(),
        reason="an installed package has no pages",
    ),
]


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_results(name: str) -> None:
    assert stale(page(name)) == [], f"run `nysplus bench pages {name}`"


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_lead_to_files(name: str) -> None:
    path = DOCS / page(name).path
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_figures_of_a_page_can_be_drawn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    draw = page(name).figures
    if draw is None:
        pytest.skip("the page has no figures of its own")
    draw(RESULTS, tmp_path)
    drawn = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.png")}
    assert drawn
    assert drawn <= {path.relative_to(DOCS) for path in DOCS.rglob("*.png")}
