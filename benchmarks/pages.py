"""What the scripts that write a page of docs/ share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from measurement import RESULTS

from nysplus._runtime.atomic_file import write_whole

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write(page: Path, text: str) -> Path:
    """Write a page, whole or not at all; return it."""
    write_whole(page, text.encode())
    return page


def main(description: str, write_page: Callable[[Path, Path], Path]) -> None:
    """Read the command line and write the page from the results."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    options = parser.parse_args()
    print(f"Wrote {write_page(options.results, options.docs)}.")
