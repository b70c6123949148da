"""Fill the parts of Markdown pages between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from nysplus._runtime.atomic_file import write_whole
from nysplus_experiments.harness.bench import DOCS, RESULTS

_PART = re.compile(
    r"(<!-- begin (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end (?P=name) -->)", re.S
)


class PageError(ValueError):
    """The markers of a page and the parts made from results differ."""


@dataclass(frozen=True)
class Page:
    """A page below the folder of documentation with the functions that fill it.

    ``parts`` makes the marked parts from the folder of results; ``figures`` draws into the docs.
    """

    path: str
    parts: Callable[[Path], dict[str, str]]
    figures: Callable[[Path, Path], None] | None = None


def fill(page: Page, results: Path = RESULTS, docs: Path = DOCS) -> Path:
    """Write the marked parts and the figures of a page; return its path."""
    path = docs / page.path
    old = path.read_text(encoding="utf-8")
    new = _filled(path, old, page.parts(results))
    if new != old:
        write_whole(path, new.encode())
    if page.figures is not None:
        page.figures(results, docs)
    return path


def stale(page: Page, results: Path = RESULTS, docs: Path = DOCS) -> list[str]:
    """Return the names of the parts that differ from the results."""
    path = docs / page.path
    text, parts = path.read_text(encoding="utf-8"), page.parts(results)
    _filled(path, text, parts)  # the names must agree
    return [match["name"] for match in _PART.finditer(text) if match["text"] != _body(match, parts)]


def _filled(path: Path, text: str, parts: dict[str, str]) -> str:
    marked = {match["name"] for match in _PART.finditer(text)}
    if marked != set(parts):
        missing, unknown = sorted(set(parts) - marked), sorted(marked - set(parts))
        raise PageError(
            f"{path}: parts without markers: {', '.join(missing) or 'none'}; markers without "
            f"parts: {', '.join(unknown) or 'none'}. Put each part between <!-- begin NAME --> and "
            "<!-- end NAME -->."
        )
    return _PART.sub(lambda match: match[1] + _body(match, parts) + match[4], text)


def _body(match: re.Match[str], parts: dict[str, str]) -> str:
    # Markdown needs an empty line between a comment and a table.
    text = parts[match["name"]].strip("\n")
    return f"\n{text}\n\n"


#: Experiments with a page; each has ``PAGE`` in its module ``page``.
PAGES = (
    *("paper", "speed", "scale", "formats", "integers", "selection", "kilobytes", "tables"),
    *("numerics", "explain", "conformal", "distillation", "mechanism"),
)


def page(name: str) -> Page:
    """Return the page of an experiment."""
    return import_module(f"nysplus_experiments.{name}.page").PAGE
