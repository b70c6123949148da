"""Turn links between files of the repository into links between pages of the site.

Pages are written for a code host as well: they link to files of the repository, such as
``../../CONTRIBUTING.md`` or ``../../examples/landmarks/plot_margins.py``. On the site these are
pages of their own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from myst_parser.sphinx_ import Parser as MarkdownParser

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
# Files outside docs that have a page on the site, which includes them.
PAGES = {
    "README.md": "index.rst",
    "CONTRIBUTING.md": "project/contributing.rst",
    "CHANGELOG.md": "project/changelog.rst",
    "SECURITY.md": "project/security.rst",
}
CODE = re.compile(r"(^```.*?^```)", flags=re.M | re.S)
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)]*)?\)"
)


def setup(app: Any) -> dict[str, bool]:
    """Register the event at which pages are read."""
    app.connect("source-read", _read_page)
    return {"parallel_read_safe": True}


def _read_page(app: Any, page: str, content: list[str]) -> None:
    path = Path(app.env.doc2path(page))
    if path.suffix == ".md":
        content[0] = on_the_site(content[0], path)


class Parser(MarkdownParser):  # type: ignore[misc]
    """Parser of Markdown that pages include from outside the documentation."""

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse a text, with links as on the site."""
        path = Path(os.path.abspath(document["source"]))
        super().parse(on_the_site(inputstring, path), document)


def on_the_site(text: str, path: Path) -> str:
    """Return a Markdown text whose links lead to pages and files as Sphinx finds them.

    Parameters
    ----------
    text : str
    path : Path
        The file of the text, from which its links start.
    """
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lambda link: _translated(link, path), part) for part in parts[::2]]
    return "".join(parts)


def _translated(link: re.Match[str], path: Path) -> str:
    """Return a link that starts from the folder of the documentation."""
    target = Path(os.path.normpath(path.parent / link["target"]))
    if target.is_relative_to(DOCS):
        to = target.relative_to(DOCS).as_posix()
    else:
        to = target.relative_to(ROOT).as_posix()
        if to in PAGES:
            to = PAGES[to]
        elif to.startswith("examples/") and target.name.startswith("plot_"):
            to = f"gallery/{to.removeprefix('examples/').removesuffix('.py')}.rst"
        elif target.is_dir():
            return link["text"]
        else:
            to = f"../{to}"
    return f"{link['image']}[{link['text']}](/{to}{link['anchor'] or ''})"
