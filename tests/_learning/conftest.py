from __future__ import annotations

import numpy as np
import pytest

from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus._rows.taught_targets import TaughtClasses


@pytest.fixture
def targets_of(rng):
    """Return random targets of a kind: "classes", "two" classes, "labels" or "values".

    "soft" and "soft two" are probabilities of classes.
    """

    def make(kind, n_rows):
        if kind == "labels":
            return IndicatorTargets(np.where(rng.rand(n_rows, 4) > 0.5, 1.0, -1.0))
        if kind == "values":
            return ValueTargets(rng.standard_normal((n_rows, 2)))
        n_classes = 2 if kind.endswith("two") else 4
        if kind.startswith("soft"):
            P, own = rng.dirichlet(np.ones(n_classes), n_rows), np.arange(n_rows)
            return TaughtClasses(P.argmax(axis=1), n_classes, P, np.column_stack([own, own]))
        return ClassTargets(rng.randint(n_classes, size=n_rows), n_classes)

    return make
