"""Fill the templates of pages, which share their style."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

PACKAGE = "nysplus.report"


def check_jinja2() -> None:
    """Raise if jinja2 is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        raise ImportError(
            "Reports need jinja2, which is not installed. Run "
            'pip install "nysplus[cli]", or leave the report out.'
        )


def environment(package: str = PACKAGE) -> Any:
    """Return jinja2's environment with the templates of a package, and of this one beside them."""
    check_jinja2()
    import jinja2

    packages = dict.fromkeys([package, PACKAGE])
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["breakable"] = breakable
    return made


def breakable(value: object) -> Any:
    """Return a name as HTML that lines may break at its signs; dates and numbers stay whole."""
    from markupsafe import Markup, escape  # comes with jinja2

    return Markup(re.sub(r"(_|[./-](?=[^\W\d]))(?=\w)", r"\1<wbr>", str(escape(value))))
