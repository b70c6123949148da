"""Load the slow, literal implementations that the tests compare with."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from nysplus_experiments.harness.bench import ROOT, BenchError


@cache
def load_reference() -> Any:
    """Return the module ``tests/reference.py`` of the repository."""
    path = ROOT / "tests" / "reference.py"
    spec = spec_from_file_location("nysplus_reference", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise BenchError(f"{path} was not found. Run this step in a checkout of the repository.")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
