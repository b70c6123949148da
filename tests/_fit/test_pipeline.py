"""The last stages of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit import pipeline
from nysplus._learning.refine import Refined
from nysplus.encoding import TableEncoder


@pytest.mark.parametrize("encoder", [None, TableEncoder(numbers="standard")])
def test_a_learned_model_is_stored_as_it_was_trained(encoder):
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, (800, 3))
    y = np.sin(9.0 * X[:, 0] + X[:, 1])
    model = NystroemRegressor(budget="1kB", encoder=encoder, refine=True, random_state=0)
    assert model.fit(X, y).refined_
    assert model.model_bytes_ <= 1024
    assert model.expansion_.packed.landmarks.bits <= 8
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("encoder", [None, "auto"])
def test_a_model_that_stays_unrefined_is_that_of_the_whole_budget(encoder, monkeypatch):
    """Not the small one that refinement was compared with."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, (2000, 3))
    y = np.sin(6.0 * X[:, 0]) > X[:, 1]
    params = {"budget": "8kB", "encoder": encoder, "random_state": 0}
    plain = NystroemClassifier(**params).fit(X, y)
    monkeypatch.setattr(
        pipeline, "refine", lambda problem, given, selector, start, *_, **__: Refined(start)
    )
    model = NystroemClassifier(**params, refine=True).fit(X, y)
    assert not model.refined_
    assert model.model_bytes_ == plain.model_bytes_
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
