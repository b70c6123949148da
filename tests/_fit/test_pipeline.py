"""The last stages of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus import NystroemRegressor
from nysplus._fit import pipeline
from nysplus.encoding import TableEncoder


@pytest.mark.parametrize("table", [True, False])
def test_a_loss_by_rounding_is_no_reason_for_a_worse_model(table, monkeypatch):
    """The learned model of a table is replaced only if the unrefined one is better."""
    answers, compared = [True], pipeline._is_worse

    def is_worse(model, other):
        return answers.pop() if answers else compared(model, other)

    monkeypatch.setattr(pipeline, "_is_worse", is_worse)
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, (800, 3))
    y = np.sin(6.0 * X[:, 0]) * X[:, 1]
    encoder = TableEncoder(numbers="standard") if table else None
    model = NystroemRegressor(budget="1kB", encoder=encoder, refine=True, random_state=0)
    assert model.fit(X, y).refined_ == table
    assert not answers
