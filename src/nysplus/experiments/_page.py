"""HTML for the report: the page's frame and style, escaping, tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from string import Template

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
<h1>$title</h1>
$body
</main>
</body>
</html>
""")

_STYLE = """
:root { color-scheme: light; --line: #d8dce2; --soft: #f5f6f8; --text: #1c2128; --dim: #59636e; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
main { max-width: 1100px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-top: .5rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
a { color: #0550ae; }
pre, code { font: .9em/1.5 ui-monospace, "SF Mono", Consolas, monospace; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; overflow-x: auto; }
.summary { background: var(--soft); border-left: 4px solid #0072b2; padding: .8rem 1rem; }
.dim { color: var(--dim); font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { background: var(--soft); white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
tr.group th { background: #fff; padding-top: 1.1rem; font-size: .95rem; border-bottom-width: 2px; }
tr.group .dim { font-weight: normal; white-space: nowrap; }
.verdict { font-weight: 600; white-space: nowrap; }
.held { color: #00664b; } .not-held { color: #a83f00; } .undecided { color: #6b5200; }
.not-testable-here { color: var(--dim); }
sub { font-size: .75em; line-height: 0; }
.claims td:nth-child(1) { width: 16%; } .claims td:nth-child(2) { width: 18%; }
.missing td:nth-child(1) { width: 40%; }
.claims td:nth-child(3) { width: 40%; } .claims td:nth-child(4) { width: 26%; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; display: block; }
figcaption { color: var(--dim); font-size: .9rem; margin-top: .4rem; }
summary { cursor: pointer; font-weight: 600; margin: 1rem 0 .4rem; }
@media (max-width: 640px) {
  .stack thead { display: none; }
  .stack tr, .stack td:nth-child(n), .stack th { display: block; width: auto; border: 0;
    padding: .1rem 0; }
  .stack tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .stack td[data-label]:not([data-label=""])::before { content: attr(data-label) ": ";
    color: var(--dim); }
  .stack td:empty { display: none; }
  .stack tr.group { margin-top: 1rem; border-bottom-width: 2px; }
}
@media print {
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  nav { display: none; } a { color: inherit; text-decoration: none; }
  tr, figure { break-inside: avoid; } h2, h3, tr.group { break-after: avoid; }
  .scroll { overflow: visible; } table { font-size: 8pt; }
}
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML page; ``body`` is HTML, ``title`` is text."""
    return _PAGE.substitute(title=text(title), style=_STYLE, body=body)


def text(value: object) -> str:
    """Return a value as text that is safe inside HTML and in quoted attributes."""
    return html.escape(str(value))


def prose(value: object) -> str:
    """Return text for reading, with the paper's n_0 and n_f set with a subscript."""
    return re.sub(r"\bn_([0f])\b", r"n<sub>\1</sub>", text(value))


def section(name: str, title: str, *content: str) -> str:
    """Return a section with a heading that ``#name`` links to."""
    return f'<section id="{name}">\n<h2>{text(title)}</h2>\n' + "\n".join(content) + "\n</section>"


def paragraph(value: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{kind}">{prose(value)}</p>' if kind else f"<p>{prose(value)}</p>"


def bullets(items: Iterable[str]) -> str:
    """Return a list of plain sentences."""
    return "<ul>" + "".join(f"<li>{prose(item)}</li>" for item in items) + "</ul>"


def cell(value: str, label: str = "", kind: str = "") -> str:
    """Return a table cell of HTML; ``label`` is shown before it on narrow screens."""
    attribute = f' class="{kind}"' if kind else ""
    return f'<td{attribute} data-label="{text(label)}">{value}</td>'


def table(header: Sequence[str], rows: Iterable[str], kind: str = "", numbers: int = 0) -> str:
    """Return a table from rows of HTML; the last ``numbers`` columns are aligned right."""
    first = len(header) - numbers
    number = ' class="number"'
    heads = "".join(
        f"<th{number if i >= first else ''}>{prose(name)}</th>" for i, name in enumerate(header)
    )
    body = "\n".join(rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
