from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _load(name):
    """Make a module of this folder importable under its own name, as from a script here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_load("mutants")
