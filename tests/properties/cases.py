"""Strategies of hypothesis for small fits, and a a dense solution with fifty digits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

from nysplus import NystroemClassifier, NystroemRegressor

# Kernels of differences x − z.
DIFFERENCES = ("rbf", "laplacian", "matern")
KERNELS = (*DIFFERENCES, "polynomial", "cosine", "linear")
# Entries of rows are multiples of this, so that adding a whole number to them is exact.
GRID = 2.0**-10


@dataclass(frozen=True)
class Case:
    """Rows, targets and an estimator.

    Attributes
    ----------
    X : ndarray of shape (rows, d)
        Multiples of `GRID`, which float32 and float16 hold exactly.
    y : ndarray
        Class numbers, a label indicator, or values.
    weight : ndarray or None
    params : dict
        Of the estimator.
    """

    X: Any
    y: Any
    weight: Any
    params: dict[str, Any]

    @property
    def discrete(self):
        return self.y.dtype.kind in "iu"

    def fit(self, X=None, y=None, **params):
        """Fit the estimator, by default to the case's own rows and targets."""
        make = NystroemClassifier if self.discrete else NystroemRegressor
        model = make(**{**self.params, **params})
        return model.fit(
            self.X if X is None else X, self.y if y is None else y, sample_weight=self.weight
        )

    def with_landmarks(self):
        """Return the case with the drawn landmarks given as an array."""
        rows = np.random.RandomState(0).permutation(len(self.X))[: self.params["n_components"]]
        return replace(self, params={**self.params, "selection": self.X[rows]})


def scores_of(model, X):
    """Return decision values or predicted values, one row of numbers for each row."""
    found = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    return np.asarray(found, dtype=np.float64).reshape(len(found), -1)


def assert_agree(got, expected, rtol=1e-6):
    """Compare scores with an error relative to the largest score, and to 1 at least."""
    assert got.shape == expected.shape
    assert np.isfinite(got).all()
    assert np.abs(got - expected).max() <= rtol * max(1.0, np.abs(expected).max())


@st.composite
def cases(draw, kernels=KERNELS, kinds=("classes", "labels", "values"), weighted=True):
    """Draw a case of 1 to 40 rows, 1 to 5 columns, and one landmark to one for every row."""
    kind = draw(st.sampled_from(kinds))
    n_rows = draw(st.integers(2 if kind == "classes" else 1, 40))
    d = draw(st.integers(1, 5))
    n = draw(st.one_of(st.just(1), st.just(n_rows), st.integers(1, n_rows)))
    rng = np.random.RandomState(draw(st.integers(0, 2**31 - 1)))
    X = np.round(rng.randn(n_rows, d) / GRID / 8) * GRID * 8
    if draw(st.booleans()):  # repeated rows
        X[n_rows // 2 :] = X[: n_rows - n_rows // 2]
    y = _targets(kind, X, rng, draw)
    weight = None
    if weighted and kind != "classes" and draw(st.booleans()):
        weight = rng.choice([0.5, 1.0, 3.0], n_rows)
    params = {
        "n_components": n,
        "kernel": draw(st.sampled_from(kernels)),
        "gamma": draw(st.sampled_from(["scale", 0.25, 2.0])),
        "alpha": draw(st.sampled_from([1e-3, 0.1, 10.0])),
        "selection": "uniform",
        "random_state": 0,
    }
    return Case(X, y, weight, params)


def _targets(kind, X, rng, draw):
    n_rows = len(X)
    if kind == "classes":
        n_classes = draw(st.integers(2, min(4, n_rows)))
        return rng.permutation(np.arange(n_rows) % n_classes)
    if kind == "labels":
        return (rng.rand(n_rows, draw(st.integers(2, 3))) > 0.5).astype(int)
    Y = np.sin(X @ rng.randn(X.shape[1], draw(st.integers(1, 2)))) + 0.1 * rng.randn(n_rows, 1)
    return Y[:, 0] if Y.shape[1] == 1 else Y


def exact_scores(case, X):
    """Return the scores of a fit with the RBF kernel to `X`, computed with fifty digits."""
    with mpmath.workdps(50):
        X = _exact(X)
        chosen = np.random.RandomState(0).permutation(len(X))[: case.params["n_components"]]
        weight = _exact(np.ones(len(X)) if case.weight is None else case.weight)[:, None]
        total = weight.sum()
        gamma = case.params["gamma"]
        if gamma == "scale":
            mean = (weight * X).sum() / (total * X.shape[1])
            spread = (weight * (X - mean) ** 2).sum()
            gamma = total / spread if spread else mpmath.mpf(1)

        def kernel(rows):
            squares = ((rows[:, None] - X[chosen][None]) ** 2).sum(axis=2)
            return np.vectorize(mpmath.exp, otypes=[object])(-gamma * squares)

        K, Y = kernel(X), _exact(_coded(case.y) if case.discrete else case.y)
        Y = Y.reshape(len(X), -1)
        centred = K - (weight * K).sum(axis=0) / total
        mean = (weight * Y).sum(axis=0) / total
        M = (weight * centred).T @ centred + mpmath.mpf(case.params["alpha"]) * kernel(X[chosen])
        A = _solution(M, (weight * centred).T @ (Y - mean))
        return (centred @ A + mean).astype(np.float64)


def _exact(array):
    return np.vectorize(lambda entry: mpmath.mpf(float(entry)), otypes=[object])(array)


def _coded(y):
    if y.ndim == 2:
        return np.where(y > 0, 1.0, -1.0)
    coded = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    return coded[:, 1:] if coded.shape[1] == 2 else coded


def _solution(M, R):
    """Return a solution of a semidefinite system by pivoted elimination."""
    M, R, solution = M.copy(), R.copy(), 0 * R
    left, order = list(range(len(M))), []
    least = mpmath.mpf(10) ** -40 * max(np.diag(M))
    while left:
        pivot = max(left, key=lambda i: M[i, i])
        if M[pivot, pivot] <= least:  # what is left depends on what was eliminated
            break
        left.remove(pivot)
        order.append(pivot)
        factor = M[left, pivot] / M[pivot, pivot]
        M[left] -= factor[:, None] * M[pivot]
        R[left] -= factor[:, None] * R[pivot]
    for pivot in reversed(order):
        solution[pivot] = (R[pivot] - M[pivot] @ solution) / M[pivot, pivot]
    return solution
