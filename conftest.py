"""For tests and doctests alike: figures open no windows and are closed after each test."""

from __future__ import annotations

import os
import sys

import pytest

os.environ["MPLBACKEND"] = "agg"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
