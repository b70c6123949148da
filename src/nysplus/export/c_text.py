"""Names, strings, comments and definitions of tables as text of C."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from importlib import resources
from string import Template
from typing import Any

# Characters that mean nothing in strings and comments of C, nor in templates of headers.
_PLAIN = r"[A-Za-z0-9 _.,:;+=<>()\[\]{}#&|~^!$%'-]"
# The longest name of a column or level that is written out, in a comment or as a part of a name.
MAX_SHOWN, MAX_NAME = 80, 40


def template(name: str) -> str:
    """Return the text of a template."""
    file = resources.files("nysplus.export") / "c_templates" / f"{name}.h"
    return file.read_text(encoding="ascii")


def filled(name: str, /, **values: Any) -> str:
    """Return a template with its words filled in."""
    return Template(template(name)).substitute(values)


def indented(statements: str, depth: int) -> str:
    """Return statements with more space before each line."""
    return textwrap.indent(statements, "    " * depth) + "\n" if statements else ""


def string(label: str) -> str:
    """Return a string literal of the UTF-8 bytes: plain characters, octal escapes for the rest."""
    parts = (bytes([byte]).decode("latin-1") for byte in label.encode())
    plain = re.compile(f"{_PLAIN}|[*/]")
    return '"' + "".join(p if plain.match(p) else f"\\{ord(p):03o}" for p in parts) + '"'


def shown(label: str) -> str:
    """Return a name for comments, in quotes, with escapes of JSON for all but plain characters."""
    cut = label if len(label) <= MAX_SHOWN else f"{label[:MAX_SHOWN]}..."
    escapes = (json.dumps(c)[1:-1] if ord(c) > 126 else f"\\u{ord(c):04x}" for c in cut)
    letters = (c if re.match(_PLAIN, c) else e for c, e in zip(cut, escapes, strict=True))
    return '"' + "".join(letters) + '"'


def identifier(name: str) -> str:
    """Return a valid C name: characters other than letters and digits become ``_``."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not allowed. Pass the first part of all C names.")
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean[0].isalpha() else f"model_{clean.lstrip('_')}"


class Names:
    """Names of constants, all different.

    Parameters
    ----------
    taken : iterable of str
        Names that are in use.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def name(self, *parts: str) -> str:
        """Return a new name in capitals, of some parts, and a number if others have the same."""
        clean = [re.sub(r"[^A-Z0-9_]", "_", part.upper())[:MAX_NAME] for part in parts]
        name = found = "_".join(["@@", *clean])
        number = 1
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found


def table(c_type: str, name: str, values: Iterable[str], size: int) -> str:
    """Return the definition of a table."""
    lines = textwrap.wrap(", ".join(values), 96, break_long_words=False, break_on_hyphens=False)
    body = "\n".join(f"    {line}" for line in lines)
    return f"static const {c_type} {name}[{size}] = {{\n{body}\n}};\n"
