"""Let the test files of this folder import the helpers beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reader_checks import D, N  # the line above makes it importable


@pytest.fixture
def data(rng):
    """Rows, labels that are text, and weights."""
    X = rng.standard_normal((N, D))
    return X, np.array(["yes", "no"], dtype=object)[rng.randint(0, 2, N)], rng.uniform(0, 3, N)
