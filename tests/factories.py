"""Builders of rows, targets, problems and expansions, for tests that only need one of each.

The first part makes arrays, as a user would pass them to `fit`. The second part wraps arrays in the
records of the engine; a test below `tests/api` has no use for it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit.model import Columns
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Power,
    Ramps,
    TableCode,
)
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import Problem

# ---- fitted models -----------------------------------------------------------------------------


def separable_model(seed):
    """Return a fitted model whose kernel is a product or sum over columns, rows and a background.

    One to twelve columns; classes, values or several of both; with and without a diagonal map, a
    linear term of a table, categories and gaps.
    """
    rng = np.random.RandomState(seed)
    d, N = rng.randint(1, 13), 60
    X = rng.rand(N, d) * 10.0 ** rng.randint(-2, 3)
    F = np.sin(3.0 * X @ rng.randn(d, 3) / X.max() / np.sqrt(d)) + 0.1 * rng.randn(N, 3)
    name = ["rbf", "laplacian", "chi2", "linear", "additive_chi2", "rbf"][seed % 6]
    params: dict[str, Any] = {"kernel": name, "alpha": 10.0 ** rng.uniform(-2, 0)}
    if seed % 6 == 5:
        params["metric"] = "diagonal"
    elif seed % 6 < 2 and seed % 4 < 2:
        params["encoder"] = "auto"
        X[rng.rand(N, d) < 0.1] = np.nan
        X[:, ::3] = rng.randint(0, 3, X[:, ::3].shape)
    n, kind = rng.randint(2, 15), rng.randint(4)
    y = [F[:, 0], F[:, :2], F[:, 0] > np.median(F[:, 0]), F[:, 0].argsort().argsort() % 3][kind]
    estimator = NystroemRegressor if kind < 2 else NystroemClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ill-conditioned fits and unscaled columns
        model = estimator(n, selection="uniform", random_state=seed, **params).fit(X, y)
    return model, X[:2], X[10 : 10 + rng.randint(1, 5)]


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


def mixed_table(n_rows=300, *, seed=0):
    """Return a pandas data frame with columns of every kind and gaps, and two classes."""
    import pandas as pd

    rng = np.random.RandomState(seed)
    size = np.where(rng.rand(n_rows) < 0.1, np.nan, rng.randn(n_rows))
    colour = rng.choice(["red", "blue", "green"], n_rows).astype(object)
    frame = pd.DataFrame(
        {
            "size": size,
            "income": np.exp(3 * rng.randn(n_rows)),
            "colour": np.where(rng.rand(n_rows) < 0.1, None, colour),
            "city": rng.choice([f"city {i}" for i in range(12)], n_rows),
            "member": rng.rand(n_rows) < 0.5,
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.randint(0, 10**8, n_rows), unit="s"),
        }
    )
    y = ((np.nan_to_num(size) > 0) ^ (frame["colour"] == "red").to_numpy()).astype(int)
    return frame, y


def frame_of_all_kinds(n_rows=600, *, seed=0):
    """Return a pandas data frame with columns of every kind, most of them with gaps, and classes.

    "id" numbers the rows, "constant" is constant, and "zip" has numbers that name something.
    """
    import pandas as pd

    rng = np.random.RandomState(seed)
    number = rng.standard_normal(n_rows)
    colour = rng.choice(["red", "green", "blue"], n_rows)
    code = rng.choice([101, 202, 303], n_rows)
    date = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(0, 9999, n_rows), unit="h")
    flag = rng.rand(n_rows) < 0.3
    score = number + (colour == "red") - flag + (code == 101) + 0.3 * rng.standard_normal(n_rows)

    def gaps():
        return rng.rand(n_rows) < 0.1

    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows),
            "number": np.where(gaps(), np.nan, number),
            "whole": pd.Series(rng.randint(0, 9, n_rows), dtype="Int64").mask(gaps()),
            "colour": pd.Series(colour, dtype="object").mask(gaps(), None),
            "street": [f"street {i}" for i in rng.randint(0, 30, n_rows)],
            "size": pd.Categorical(rng.choice(["small", "large", "huge"], n_rows)),
            "flag": flag,
            "date": pd.Series(date).mask(gaps()),
            "zip": code,
            "constant": 1.5,
        }
    )
    return frame, np.where(score > 0.5, "yes", "no")


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


# ---- codes of tables ----------------------------------------------------------------------------

# 2020, in seconds since 1970.
NEW_YEAR = 1_577_836_800.0


def table_schema():
    """Return the columns of a table with every kind of column; one column is left out."""
    return TableSchema(
        8,
        ("age", "income", "id", "since", "score", "height", "größe, in */ m", "city"),
        (
            TableColumn(0, "age", "number", gaps=True),
            TableColumn(1, "income", "number", refuses_gaps=True),
            TableColumn(3, "since", "date", gaps=True),
            TableColumn(4, "score", "number"),
            TableColumn(5, "height", "number"),
            TableColumn(6, "größe, in */ m", "category", ("a b", "a_b", "Ä", "*/ ?"), gaps=True),
            TableColumn(7, "city", "category", ("Rome", "Bonn", "Oslo"), refuses_others=True),
        ),
    )


def table_code():
    """Return a code with terms of every kind, and knots of every floating type."""
    knots = np.cumsum(np.random.RandomState(0).rand(9) + 0.1)
    dates = NEW_YEAR + 40.0 * np.arange(6)  # nearer to each other than numbers of float32
    table = np.random.RandomState(1).randn(5, 2)
    return TableCode(
        7,
        (
            Ramps(0, (10 * knots).astype(np.float16), 0.6, 4),
            Missing(0),
            Ramps(1, (1000 * knots).astype(np.float32), 0.5, 2),
            Ramps(2, dates, 0.7, 0),
            Circle(2, 86400.0, 3600.0, "hour"),
            Curve(3, knots.astype(np.float32), np.sin(knots).astype(np.float16), 3),
            Curve(3, knots, np.cos(knots).astype(np.float32), 0),
            Linear(4, 1.7, 5.0, 1.8),
            Power(4, 0.4, False, 0.2, 1.5, 0.9, 3.0, 1.6),
            Power(4, -0.5, True, 1.7, 4.0, 0.1, 0.8, 1.5),
            Missing(4, -0.3, 2.5),
            OneHot(5, 3, True),
            Lookup(5, table[:, :1].astype(np.float32)),
            OneHot(6, 3, False),
            Lookup(6, table.astype(np.float16)),
        ),
    )


def raw_numbers(n_rows=300, *, seed=0):
    """Return raw numbers of the columns of :func:`table_schema`, with gaps and other levels."""
    rng = np.random.RandomState(seed)
    X = np.column_stack(
        [
            rng.uniform(0, 70, n_rows),
            rng.uniform(0, 7000, n_rows),
            np.floor(NEW_YEAR + rng.uniform(-20, 220, n_rows)),
            rng.uniform(0, 7, n_rows),
            rng.uniform(1.0, 2.4, n_rows),
            rng.randint(-1, 4, n_rows),
            rng.randint(-1, 3, n_rows),
        ]
    )
    X[rng.rand(*X.shape) < 0.1] = np.nan
    return X


def encoded_model(estimator, y, dtype=np.float32):
    """Fit an estimator to the code of :func:`raw_numbers`, and give it the code and the schema.

    It has no novelty: that of the fit compares rows of the code.
    """
    code, schema = table_code(), table_schema()
    estimator.fit(code(raw_numbers(len(y)), dtype), y)
    columns = Columns(schema.n_features, np.array(schema.names, dtype=object), schema=schema)
    expansion = replace(estimator.expansion_, encoder=code)
    return alter(estimator, expansion=expansion, columns=columns, familiar=None)


def rounding_of_codes(model):
    """Return a bound for errors of decision values: kernel values of codes are float32."""
    return float(np.finfo(np.float32).eps * np.abs(model.dual_coef_).sum())


# ---- numbers in few bits -------------------------------------------------------------------------


def in_few_bits(array, bits, *, offset=False, scale_type=np.float32):
    """Return an array rounded to integers of `bits` bits, with a scale for each column.

    With `offset` the columns are rounded about the middle of their range.
    """
    numbers = np.asarray(array, dtype=np.float64)
    largest = 2 ** (bits - 1) - 1
    middle = (numbers.max(axis=0) + numbers.min(axis=0)) / 2 if offset else 0.0
    middle = np.asarray(middle, dtype=scale_type)
    left = numbers - middle.astype(np.float64)
    scale = np.asarray(np.abs(left).max(axis=0) / largest, dtype=scale_type)
    steps = left / np.where(scale > 0, scale, 1.0)
    values = np.rint(steps).clip(-largest, largest).astype(np.int8)
    return PackedArray(values, scale, bits, middle if offset else None)


def with_few_bits(expansion, bits, **options):
    """Return an expansion with some parts in few bits, and all its other numbers in float32.

    Parameters
    ----------
    expansion : KernelExpansion
        With dense landmarks.
    bits : dict of str to int
        The number of bits of "landmarks", "dual_coef", "projection" or "linear".
    **options
        Of :func:`in_few_bits`.
    """
    parts = {}
    for field in fields(PackedExpansion):
        array = getattr(expansion, field.name)
        if array is not None and field.name in bits:
            parts[field.name] = in_few_bits(array, bits[field.name], **options)
        elif array is not None:
            parts[field.name] = PackedArray(array.astype(np.float32))
    small = KernelExpansion.unpacked(expansion.kernel, PackedExpansion(**parts))
    return replace(small, encoder=expansion.encoder)
