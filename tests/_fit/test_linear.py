"""Linear functions of a table's code, as models of few bytes."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from sklearn.utils.validation import check_array

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.budget import Budget, NoRoomError
from nysplus._fit.linear import (
    LINEAR_TYPES,
    LinearRules,
    linear_bytes,
    linear_candidate,
    only_linear,
)
from nysplus._fit.size import HeldOutScores
from nysplus._fit.table import Table
from nysplus._rows.opening import open_rows
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus.encoding import TableEncoder


def _table(X, y, encoder=None):
    """Return the table of a fit."""
    kind = NystroemRegressor if np.asarray(y).dtype.kind == "f" else NystroemClassifier
    estimator, encoder = copy(kind(encoder="auto")), encoder or TableEncoder()
    rows = open_rows(estimator, X, y, None, estimator._target_spec(), encoder=encoder)
    blocks, _ = rows.open(Progress(), Journal())
    return Table.of(encoder, estimator._schema, blocks)


def _additive(rng, n_rows=1500):
    """Return rows whose value is a sum of curves of the first columns; the last two are noise."""
    X = rng.uniform(-2, 2, (n_rows, 6))
    return X, 3 * np.abs(X[:, 0]) + 2 * X[:, 1] + np.sin(2 * X[:, 2]) + 0.2 * X[:, 3]


def _scores(model, X):
    return model.expansion(model.code(check_array(X)))


def test_curves_of_the_columns_are_followed(rng):
    X, y = _additive(rng)
    model = only_linear(_table(X[:1000], y[:1000]), Budget(2000), rng)
    error = _scores(model, X[1000:])[:, 0] - y[1000:]
    assert error.std() < 0.12 * y.std()
    assert model.expansion.landmarks.shape[0] == 0
    assert model.expansion.n_bytes + model.code.n_bytes <= 2000


def test_straight_lines_need_one_column_each(rng):
    X = rng.standard_normal((1500, 6))
    y = X @ rng.standard_normal(6)
    model = only_linear(_table(X, y), Budget(2000), rng)
    assert model.code.n_columns == 6
    assert (_scores(model, X)[:, 0] - y).std() < 1e-3 * y.std()


def test_columns_that_contribute_least_are_left_out(rng):
    X, y = _additive(rng)
    table = _table(X, y, TableEncoder(n_bins=8, numbers="thermometer"))
    for budget, used in ((100, {0, 1, 2}), (70, {0, 1}), (40, {1})):
        model = only_linear(table, Budget(budget), rng)
        assert {term.column for term in model.code.terms} == used
        n_bytes = model.expansion.n_bytes + model.code.n_bytes
        assert n_bytes <= budget
        assert n_bytes in {linear_bytes(model.code, 1, dtype) for dtype in LINEAR_TYPES}


def test_too_small_a_budget_says_what_is_needed(rng):
    table = _table(*_additive(rng))
    with pytest.raises(NoRoomError, match="no room for a linear function") as error:
        only_linear(table, Budget(10), rng)
    needed = int(str(error.value).split("takes ")[1].split(" bytes")[0])
    model = only_linear(table, Budget(needed), rng)
    assert model.expansion.n_bytes + model.code.n_bytes == needed
    with pytest.raises(NoRoomError, match="no room"):
        only_linear(table, Budget(needed - 1), rng)


def test_numbers_that_int8_would_spoil_are_stored_in_more_bytes(rng):
    X = rng.standard_normal((3000, 12))
    y = X @ np.array([1000.0, *[1.0] * 11])
    table = _table(X, y, TableEncoder(numbers="standard"))
    small, large = (only_linear(table, Budget(n), rng) for n in (94, 1000))
    assert small.expansion.packed.linear.values.dtype == np.int8
    assert large.expansion.packed.linear.values.dtype in (np.float16, np.float32)
    errors = [(_scores(model, X)[:, 0] - y).std() for model in (small, large)]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("numbers", ["standard", "rank_gauss", "thermometer"])
def test_the_users_code_is_kept(numbers, rng):
    X, y = _additive(rng)
    encoder = TableEncoder(numbers=numbers, n_bins=5)
    model = only_linear(_table(X, y, encoder), Budget(2000), rng)
    kinds = {"standard": "Linear", "rank_gauss": "Curve", "thermometer": "Ramps"}
    assert {type(term).__name__ for term in model.code.terms} == {kinds[numbers]}
    assert model.code.n_columns == (30 if numbers == "thermometer" else 6)


# ---- the choice ----------------------------------------------------------------------------------


def _rival(scores):
    return HeldOutScores(np.arange(300), scores, np.ones(300))


def test_the_better_model_is_kept(rng):
    X, y = _additive(rng)
    y += 0.1 * rng.standard_normal(len(y))
    table, noise = _table(X, y), rng.standard_normal(300)
    worse, better = -np.full(300, 0.5) + 0.1 * noise, -np.full(300, 1e-3) + 1e-4 * noise
    assert linear_candidate(table, Budget(2000), rng, _rival(worse)) is not None
    assert linear_candidate(table, Budget(2000), rng, _rival(better)) is None


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_values_may_have_any_unit(unit, rng):
    """Weights of the code columns may be beyond the range of float16."""
    X, y = _additive(rng)
    small, large = (only_linear(_table(X, y * u), Budget(2000), rng) for u in (1.0, unit))
    rows = small.code(X)
    expected = unit * small.expansion(rows)
    np.testing.assert_allclose(large.expansion(rows), expected, atol=0.05 * unit)


def test_of_equals_the_linear_function_is_kept(rng):
    """Classes that are far apart: all models get all rows right."""
    y = np.arange(1000) % 2
    X = rng.standard_normal((1000, 3)) + 20.0 * y[:, None]
    table = _table(X, y)
    assert linear_candidate(table, Budget(2000), rng, _rival(np.ones(300))) is not None


def test_a_rival_far_ahead_ends_the_search(rng):
    """Of one code only; the others are not even fitted."""
    X, y = rng.standard_normal((1000, 2)), None
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    table = _table(X, y)
    rules = LinearRules(codes=(("thermometer", 4), ("thermometer", 13)))
    rival = _rival(np.ones(300))
    assert linear_candidate(table, Budget(2000), rng, rival, rules) is None
    assert linear_candidate(table, Budget(10), rng, rival, rules) is None  # no room
