"""Leave out of the reference what classes inherit from other libraries."""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register the choice of members."""
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None) or ""
    # None leaves the choice to autodoc
    return None if module.split(".")[0] == "nysplus" and not name.startswith("_") else True
