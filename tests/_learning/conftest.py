from __future__ import annotations

import numpy as np
import pytest

from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets


@pytest.fixture
def targets_of(rng):
    """Return random targets of a kind: "classes", "two" classes, "labels" or "values"."""

    def make(kind, n_rows):
        if kind == "labels":
            return IndicatorTargets(np.where(rng.rand(n_rows, 4) > 0.5, 1.0, -1.0))
        if kind == "values":
            return ValueTargets(rng.standard_normal((n_rows, 2)))
        n_classes = 2 if kind == "two" else 4
        return ClassTargets(rng.randint(n_classes, size=n_rows), n_classes)

    return make
