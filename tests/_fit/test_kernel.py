"""The code of a table and the kernel, chosen by leave-one-out."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit.kernel import choose_code
from nysplus._fit.table import Table
from nysplus._rows.opening import open_rows
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus.encoding import TableEncoder


def _fit(X, y, **params):
    """Return the plan and the table of a fit."""
    kind = NystroemRegressor if y.dtype.kind == "f" else NystroemClassifier
    estimator = kind(50, **{"encoder": "auto", **params})
    encoder = TableEncoder() if estimator.encoder == "auto" else estimator.encoder
    columns = copy(estimator)
    rows = open_rows(columns, X, y, None, estimator._target_spec(), encoder=encoder)
    blocks, _ = rows.open(Progress(), Journal())
    return estimator._plan(rows), Table.of(encoder, columns._schema, blocks)


def _kinds(chosen):
    return {type(term).__name__ for term in chosen.encoding.code.terms}


def _round(rng, n_rows=2000):
    """Return rows whose classes are inside and outside of rotated ellipses."""
    X = rng.standard_normal((n_rows, 6)) @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    return X, ((X @ rng.standard_normal((6, 2))) ** 2).sum(axis=1)


def _steps(rng, n_rows=2000):
    """Return rows of skewed columns whose values are sums of steps."""
    U = rng.rand(n_rows, 6)
    return np.exp(6 * U), (U > 0.5).sum(axis=1) + (U[:, 0] > 0.25).astype(float)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "auto"])
def test_skewed_columns_get_a_thermometer_code(kernel, rng):
    X, y = _steps(rng)
    assert _kinds(choose_code(*_fit(X, y, kernel=kernel))) == {"Ramps"}


@pytest.mark.parametrize("kernel", ["rbf", "auto"])
def test_smooth_functions_of_directions_get_standardised_columns(kernel, rng):
    X, y = _round(rng)
    chosen = choose_code(*_fit(X, y, kernel=kernel))
    assert _kinds(chosen) == {"Linear"}
    assert (chosen.kernel is not None) == (kernel == "auto")


def test_auto_chooses_the_width_as_well(rng):
    """A sine of some periods needs a narrower kernel than a part of one."""
    X = rng.uniform(-1, 1, (3000, 2))
    widths = []
    for periods in (0.1, 1.5):
        y = np.sin(2 * np.pi * periods * X[:, 0])
        fit = _fit(X, y, kernel="auto", encoder=TableEncoder(numbers="standard"))
        widths.append(choose_code(*fit).kernel.gamma)
    assert widths[1] > 2 * widths[0]


def test_the_users_code_and_kernels_without_distances_leave_no_choice(rng):
    X, y = _round(rng, 200)
    for params in (
        {"encoder": TableEncoder(numbers="thermometer")},
        {"kernel": "linear"},
    ):
        plan, table = _fit(X, y, **params)
        assert _kinds(choose_code(plan, table)) == {"Ramps"}


def test_codes_within_a_budget_have_their_own_numbers_of_landmarks(rng):
    """In a small budget only a code of few columns has enough landmarks."""
    X, y = _round(rng)
    X = np.exp(X / 2)
    plan, table = _fit(X, (y > 2).astype(int), budget=700)
    assert _kinds(choose_code(plan, table)) == {"Linear"}
    nothing = replace(plan, budget=replace(plan.budget, n_bytes=20))
    assert choose_code(nothing, table).kernel is None


@pytest.mark.parametrize("kernel", ["rbf", "auto"])
@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_few_rows_are_enough(n_rows, kernel, rng):
    X, y = _round(rng, n_rows)
    chosen = choose_code(*_fit(X, y, kernel=kernel))
    assert chosen.encoding.code.n_columns >= 6
    model = NystroemRegressor(n_rows, kernel=kernel, encoder="auto", random_state=0)
    assert np.isfinite(model.fit(X, y).predict(X)).all()
