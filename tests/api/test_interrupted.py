"""A fit that is interrupted leaves the estimator as it was, whatever it was fitted to before."""

from __future__ import annotations

import numpy as np
import pytest
from factories import classes, values

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus.kernels import RBF


class Interrupting(RBF):
    """A kernel during whose evaluation Ctrl-C is pressed."""

    def evaluate(self, X, Z):
        raise KeyboardInterrupt


ROWS = {
    NystroemClassifier: classes,
    NystroemRegressor: values,
    Nystroem: classes,
}


def _state(estimator):
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


@pytest.mark.parametrize("kind", ROWS)
def test_an_interrupted_fit_changes_nothing(kind):
    estimator = kind(n_components=10, random_state=0).fit(*ROWS[kind](n_features=4))
    before = _state(estimator)
    with pytest.raises(KeyboardInterrupt):
        estimator.set_params(kernel=Interrupting(gamma=0.1)).fit(*ROWS[kind](n_features=7))
    after = _state(estimator)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert estimator.n_features_in_ == 4


def test_a_refused_partial_fit_keeps_its_sums():
    X, y = classes()
    model = NystroemClassifier(10, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    before, scores = _state(model), model.decision_function(X)
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, y + 5)
    assert _state(model) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)
    assert (model.partial_fit(X + 1, y).decision_function(X) != scores).any()
