"""Training: known optima, time limits and progress reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Softmax, Squared
from nysplus._learning.training import TrainingOptions, TrainingRows, train
from nysplus.kernels import RBF, Matern

KERNELS = [RBF(1.0), Matern(1.0, nu=1.5), Matern(1.0, nu=2.5)]


def _two_points(rng):
    """Rows at two places, with classes in known shares: the least loss is their entropy."""
    codes = np.repeat([0, 1, 2, 0, 1, 2], [60, 30, 10, 10, 20, 70])
    X = np.where(np.arange(200) < 100, -3.0, 3.0)[:, None].astype(np.float32)
    shares = np.array([0.6, 0.3, 0.1])
    entropy = -(shares @ np.log(shares) + np.array([0.1, 0.2, 0.7]) @ np.log([0.1, 0.2, 0.7])) / 2
    rows = TrainingRows(X, None, Softmax(codes, 3), np.ones(200))
    Z, A = np.array([[-2.5], [2.5]]), rng.standard_normal((2, 3))
    return rows, Parameters.of(np.eye(1), Z, A, np.float32), entropy


def test_training_reaches_a_known_optimum(rng):
    rows, start, entropy = _two_points(rng)
    before, b = start.flat.copy(), np.zeros(3)
    options = TrainingOptions(600, 100, label_smoothing=0.0, weight_decay=0.0)
    p = train(rows, np.arange(200), start, b, options, seed=0)
    np.testing.assert_array_equal(start.flat, before)
    loss = rows.loss.losses(Gradient(p, b, 200).scores(rows.X), 0.0).mean()
    assert entropy - 1e-6 < loss < entropy + 1e-3


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_training_finds_a_function_of_the_form_it_has(kernel, rng):
    X = rng.standard_normal((400, 2)).astype(np.float32)
    P, Z = np.diag([1.0, 0.2]), np.array([[-1.5, 0.0], [0.0, 0.3], [1.5, -0.3]])
    Y = (kernel(X @ P, Z) @ [[2.0], [-1.0], [1.0]]).astype(np.float32)
    rows = TrainingRows(X, None, Squared(Y), np.ones(400))
    start = Parameters.of(np.eye(2), 0.7 * Z, np.zeros((3, 1)), np.float32, kernel)
    options = TrainingOptions(
        800, 100, learning_rate=0.08, coef_learning_rate=0.1, weight_decay=0.0
    )
    p = train(rows, np.arange(400), start, np.zeros(1), options, seed=0)
    left = rows.loss.losses(Gradient(p, np.zeros(1), 400).scores(X), 0.0)
    assert left.mean() < 1e-4 * Y.var()


def test_training_uses_only_the_given_rows(rng):
    rows, start, _ = _two_points(rng)
    used = np.arange(0, 200, 2)
    spoiled = rows.X.copy()
    spoiled[1::2] = np.nan
    options = TrainingOptions(20, 16)
    p = train(rows, used, start, np.zeros(3), options, seed=0)
    assert np.isfinite(p.flat).all()
    q = train(replace(rows, X=spoiled), used, start, np.zeros(3), options, seed=0)
    np.testing.assert_array_equal(q.flat, p.flat)


def test_training_ends_in_time(rng):
    """With as many steps as take hours."""
    rows, start, _ = _two_points(rng)
    options = TrainingOptions(10**9, 64)
    p = train(rows, np.arange(200), start, np.zeros(3), options, seed=0, seconds=0.2)
    assert np.isfinite(p.flat).all()
    assert not np.array_equal(p.flat, start.flat)


@pytest.mark.parametrize(("n_steps", "n_reports"), [(7, 7), (400, 20), (410, 20)])
def test_training_reports_progress(n_steps, n_reports, rng):
    rows, start, _ = _two_points(rng)
    reports, options = [], TrainingOptions(n_steps, 16)
    train(rows, np.arange(200), start, np.zeros(3), options, seed=0, advance=reports.append)
    assert len(reports) == n_reports
    assert sum(reports) == options.n_rows
    assert max(reports) == reports[0]


def test_training_that_ends_early_reports_all_rows(rng):
    rows, start, _ = _two_points(rng)
    reports, options = [], TrainingOptions(10**8, 64)
    train(
        rows, np.arange(200), start, np.zeros(3), options, 0, seconds=0.01, advance=reports.append
    )
    assert reports == [options.n_rows]


def test_options_are_scaled():
    full = TrainingOptions(100, 64, learning_rate=0.04, coef_learning_rate=0.3)
    options = full.scaled(0.2, 0.5)
    assert (options.n_steps, options.n_rows) == (20, 1280)
    assert (options.learning_rate, options.coef_learning_rate) == (0.02, 0.15)
    assert full.scaled(1.0) == full
    assert TrainingOptions(2, 64).scaled(0.1).n_steps == 1
    assert full.continued().n_steps == 20


def test_decay_makes_the_map_smaller(rng):
    rows, start, _ = _two_points(rng)
    options = TrainingOptions(50, 100)
    plain, decayed = (
        train(rows, np.arange(200), start, np.zeros(3), replace(options, map_decay=decay), seed=0)
        for decay in (0.0, 1.0)
    )
    assert np.abs(decayed.P).max() < 0.9 * np.abs(plain.P).max()


def test_the_memory_of_adam_is_an_option(rng):
    rows, start, _ = _two_points(rng)
    short, long = (
        train(rows, np.arange(200), start, np.zeros(3), TrainingOptions(5, 100, beta2=beta2), 0)
        for beta2 in (0.5, 0.99)
    )
    assert np.abs(short.flat - long.flat).max() > 1e-6
