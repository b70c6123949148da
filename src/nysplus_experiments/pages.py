"""List the pages of results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nysplus_experiments.harness.pages import Page

#: Experiments with a page; each has ``PAGE`` in its module ``page``.
PAGES = ("paper", "speed", "scale", "formats", "selection", "kilobytes")


def page(name: str) -> Page:
    """Return the page of an experiment."""
    found: Page = import_module(f"nysplus_experiments.{name}.page").PAGE
    return found
