"""Standard errors of accuracy and of R²."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from nysplus._fit.standard_error import accuracy_with_error, r2_with_error


def test_accuracy_is_weighted_and_its_error_binomial():
    hits = np.array([True, False, True])
    score, error = accuracy_with_error(hits, np.ones(3))
    assert score == pytest.approx(2 / 3)
    assert error == pytest.approx(np.sqrt(2 / 9 / 3))
    assert accuracy_with_error(hits, np.array([1.0, 2.0, 1.0]))[0] == 0.5


def test_standard_errors_of_r2_agree_with_the_bootstrap():
    rng = np.random.RandomState(0)
    Y = rng.standard_normal((500, 2)) * [1.0, 3.0]
    predicted = Y + rng.standard_normal((500, 2)) * [0.5, 2.0]
    score, error = r2_with_error(Y, predicted, np.ones(500))
    draws = [rng.randint(500, size=500) for _ in range(2000)]
    spread = np.std([r2_score(Y[rows], predicted[rows]) for rows in draws])
    assert score == r2_score(Y, predicted)
    assert error == pytest.approx(spread, rel=0.06)


def test_r2_of_values_that_do_not_vary():
    assert r2_with_error(np.ones((9, 1)), np.ones((9, 1)), np.ones(9)) == (1.0, 0.0)
