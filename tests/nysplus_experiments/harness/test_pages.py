from __future__ import annotations

from pathlib import Path

import pytest

from nysplus_experiments.harness.pages import Page, PageError, fill, stale

TEXT = (
    "# Title\n\n<!-- begin a -->\nold\n<!-- end a -->\nby hand\n<!-- begin b -->\n<!-- end b -->\n"
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "page.md").write_text(TEXT)
    return tmp_path


def make_page(drawn=None, **parts: str) -> Page:
    return Page("page.md", lambda results: parts, drawn)


def test_marked_parts_are_filled_and_the_rest_is_left(docs: Path) -> None:
    page = make_page(a="| 1 |", b=r"\1 and \g<2>")
    assert stale(page, docs, docs) == ["a", "b"]
    assert fill(page, docs, docs) == docs / "page.md"
    text = (docs / "page.md").read_text()
    assert text == (
        "# Title\n\n<!-- begin a -->\n\n| 1 |\n\n<!-- end a -->\nby hand\n"
        "<!-- begin b -->\n\n\\1 and \\g<2>\n\n<!-- end b -->\n"
    )
    assert stale(page, docs, docs) == []
    fill(page, docs, docs)
    assert (docs / "page.md").read_text() == text
    assert stale(make_page(a="| 2 |", b=r"\1 and \g<2>"), docs, docs) == ["a"]


def test_figures_are_drawn(docs: Path) -> None:
    calls = []
    page = make_page(lambda results, folder: calls.append((results, folder)), a="", b="")
    fill(page, docs / "results", docs)
    assert calls == [(docs / "results", docs)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"a": ""}, "parts without markers: none; markers without parts: b"),
        ({"a": "", "b": "", "c": ""}, "parts without markers: c; markers without parts: none"),
    ],
)
def test_parts_and_markers_must_agree(docs: Path, parts: dict[str, str], message: str) -> None:
    for use in (fill, stale):
        with pytest.raises(PageError, match=message):
            use(make_page(**parts), docs, docs)
    assert (docs / "page.md").read_text() == TEXT
