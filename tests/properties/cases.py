"""Strategies of hypothesis for small fits, and their exact solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import extended
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


def exact_problem(case, X):
    """Return the fit of the case with the RBF kernel to `X` as a problem in extended precision."""
    chosen = np.random.RandomState(0).permutation(len(X))[: case.params["n_components"]]
    gamma = case.params["gamma"]
    if gamma == "scale":
        gamma = _scale(X, np.ones(len(X)) if case.weight is None else case.weight)
    y = case.y if case.discrete and case.y.ndim == 1 else _values(case)
    return extended.Problem(
        seed=0,
        kernel="rbf",
        params={"gamma": gamma},
        condition="",
        alpha=case.params["alpha"],
        X=X,
        Z=X[chosen],
        more=X[:0],
        y=y,
        weight=case.weight,
    )


def _values(case):
    """Return values, or the code of a label indicator, with a column for each output."""
    Y = np.where(case.y > 0, 1.0, -1.0) if case.discrete else case.y
    return Y.reshape(len(Y), -1)


def _scale(X, weight):
    """Return one over the variance of all entries times the number of features."""
    X, weight = extended.exact(X), extended.exact(weight)[:, None]
    mean = (weight * X).sum() / (weight.sum() * X.shape[1])
    spread = (weight * (X - mean) ** 2).sum()
    return weight.sum() / spread if spread else 1.0
