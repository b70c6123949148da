"""The last stages of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus import NystroemRegressor
from nysplus._fit import pipeline
from nysplus.encoding import TableEncoder


@pytest.mark.parametrize("table", [True, False])
def test_a_loss_by_rounding_refuses_a_model_that_was_not_trained_rounded(table, monkeypatch):
    """The learned model of a table was compared as it is stored."""
    monkeypatch.setattr(pipeline, "_is_worse", lambda *models: True)
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, (800, 3))
    y = np.sin(6.0 * X[:, 0]) * X[:, 1]
    encoder = TableEncoder(numbers="standard") if table else None
    model = NystroemRegressor(budget="1kB", encoder=encoder, refine=True, random_state=0)
    assert model.fit(X, y).refined_ == table
    assert model.model_bytes_ <= 1024
