"""Builders of rows, targets, problems and expansions, for tests that only need one of each.

The first part makes arrays, as a user would pass them to `fit`. The second part wraps arrays in the
records of the engine; a test below `tests/api` has no use for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import Problem

# ---- rows ---------------------------------------------------------------------------------------


def classes(n_rows=300, n_features=4, n_classes=3, *, noise=1.0, dtype=np.float64, seed=0):
    """Return X and class numbers y: one normal cloud for each class, which overlap."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, n_classes, n_rows)
    X = noise * rng.randn(n_rows, n_features) + 2 * rng.randn(n_classes, n_features)[y]
    return X.astype(dtype), y


def values(n_rows=300, n_features=4, n_outputs=1, *, noise=0.1, seed=0):
    """Return X and Y of shape (n_rows, n_outputs): sines of random directions, and noise."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, n_features)
    Y = np.sin(X @ rng.randn(n_features, n_outputs)) + noise * rng.randn(n_rows, n_outputs)
    return X, Y


def labels(n_rows=300, n_features=4, n_labels=3, *, seed=0):
    """Return X and label indicators of shape (n_rows, n_labels): zeros and ones."""
    X, Y = values(n_rows, n_features, n_labels, seed=seed)
    return X, (Y > 0).astype(int)


def weights(n_rows, seed=0):
    """Return sample weights, of which some are zero and some are fractions."""
    return np.random.RandomState(seed).choice([0.0, 0.5, 1.0, 3.0], n_rows)


def sparse(n_rows=300, n_features=30, density=0.2, *, n_classes=3, seed=0):
    """Return a CSR matrix and class numbers that depend on its first features."""
    rng = np.random.RandomState(seed)
    X = sp.random(n_rows, n_features, density, format="csr", random_state=rng)
    return X, X[:, :n_classes].toarray().argmax(axis=1)


def few_that_matter(n_rows=2000, n_features=20, *, seed=0):
    """Return X and two classes that depend on the first two features only, not linearly."""
    X = np.random.RandomState(seed).randn(n_rows, n_features)
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7).astype(int)


def checkerboard(n_rows, cells, rng):
    """Return rows of a unit square and the colours of a board: many cells need narrow kernels."""
    X = rng.rand(n_rows, 2)
    return X, (np.floor(cells * X).sum(axis=1) % 2).astype(int)


@dataclass(frozen=True)
class Table:
    """Rows with every kind of target that an estimator takes.

    Attributes
    ----------
    X : ndarray of shape (n_rows, d)
    targets : dict of str to ndarray
        "binary", "several", "text", "labels", "values" and "two-values".
    weight : ndarray of shape (n_rows,)
        Sample weights; some are zero.
    """

    X: Any
    targets: dict[str, Any]
    weight: Any


def table(n_rows=500, n_features=3, *, seed=0):
    """Return rows with targets of every kind: of products and sines of features, with noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_rows, n_features))
    score = X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n_rows)
    curve = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n_rows)
    several = np.searchsorted([-0.5, 0.5], score)
    targets = {
        "binary": (score > 0).astype(int),
        "several": several,
        "text": np.array(["low", "mid", "uppermost"])[several],
        "labels": np.c_[score > 0, X[:, 2] > 0, score < 1].astype(int),
        "values": curve,
        "two-values": np.c_[curve, score + 5],
    }
    return Table(X, targets, rng.choice([0.0, 0.5, 1.0, 3.0], n_rows))


# ---- records of the engine ----------------------------------------------------------------------


def as_targets(y, n_classes=None):
    """Return the targets record of an array, or `y` itself where it is None or a record.

    Integers of one axis are class numbers, integers of two axes label indicators (0 and 1), and
    floats are values.
    """
    if not isinstance(y, np.ndarray):
        return y
    if y.dtype.kind == "f":
        return ValueTargets(y.reshape(len(y), -1))
    if y.ndim == 2:
        return IndicatorTargets(np.where(y > 0, 1.0, -1.0))
    return ClassTargets(y, n_classes or int(y.max()) + 1)


def blocks(X, y=None, **more):
    """Return rows in memory with their targets; `more` are weights and the progress."""
    return Blocks(X, as_targets(y), **more)


def problem(X, y=None, kernel=None, *, alphas=(1e-2,), approximation=None, **more):
    """Return what a selector gets; the kernel is RBF(0.5) unless given."""
    rows = blocks(X, y, **more)
    return Problem(rows, kernel or RBF(0.5), approximation or StandardMap(), alphas)


def ridge_problem(
    X, y, Z, kernel=None, *, alphas=(1e-3,), approximation=None, seed=0, with_score=False, **more
):
    """Return the ridge problem of landmarks Z."""
    rng = np.random.RandomState(seed)
    feature_map = (approximation or StandardMap()).build(kernel or RBF(0.5), Z, rng)
    return RidgeProblem(blocks(X, y, **more), feature_map, alphas, rng, "test", with_score)


def fit(X, y, Z, kernel=None, *, alphas=(1e-5,), approximation=None, seed=0, **more):
    """Return the fit of landmarks Z."""
    rng = np.random.RandomState(seed)
    how = approximation or StandardMap()
    return fit_expansion(blocks(X, y, **more), Z, kernel or RBF(0.5), how, alphas, rng)


def expansion(Z, rng, kernel=None, *, n_outputs=3, dtype=np.float64, **more):
    """Return an expansion of landmarks Z with random coefficients and intercepts."""
    return KernelExpansion(
        kernel=kernel or RBF(0.5),
        landmarks=Z,
        dual_coef=rng.randn(Z.shape[0], n_outputs).astype(dtype),
        intercept=rng.randn(n_outputs).astype(dtype),
        **more,
    )


def alter(estimator, **changes):
    """Change entries of a fitted estimator's model, such as its expansion; return the estimator."""
    estimator._adopt(replace(estimator._model, **changes))
    return estimator
