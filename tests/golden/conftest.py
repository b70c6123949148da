from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

# Each is imported by the ones after it, as it would be from a script in this folder.
MODULES = ("golden_rows", "golden_models", "golden_records")


def _load(name):
    """Make a module of this folder importable under its own name."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


for name in MODULES:
    _load(name)
