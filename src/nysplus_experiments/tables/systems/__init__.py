"""The systems that are compared: each file of this folder has one or several in ``SYSTEMS``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from nysplus_experiments.tables.system import System


def all_systems() -> dict[str, System]:
    """Return the systems of all files of this folder by name, in the order of the files."""
    found: dict[str, System] = {}
    for module in iter_modules(__path__):
        for system in import_module(f"{__name__}.{module.name}").SYSTEMS:
            if system.name in found:
                raise ValueError(f"Two systems have the name {system.name!r}. Rename one of them.")
            found[system.name] = system
    return found
