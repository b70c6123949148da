from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import factories
import numpy as np
import pytest
import reference
from sklearn import config_context
from threadpoolctl import threadpool_limits

from nysplus._ridge.conjugate_gradients import (
    NormalEquations,
    conjugate_gradients,
    preconditioner,
    sketched_scatter,
)
from nysplus._ridge.feature_map import EnsembleMap, FeatureMap, RandomizedMap, StandardMap
from nysplus._ridge.solvers import Iterative
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus.kernels import RBF, Linear

# A few kB of temporaries: the rows of these tests come in many blocks.
SMALL = 0.05


@dataclass
class Dense:
    """The normal equations written out."""

    blocks: Blocks
    feature_map: FeatureMap
    features: Any
    Y: Any
    weight: Any

    @property
    def centred(self):
        return self.features - np.average(self.features, 0, self.weight)

    @property
    def scatter(self):
        return self.centred.T @ (self.weight[:, None] * self.centred)

    def equations(self, dtype=np.float64, keep=False):
        """The same without writing them out, with the mean that a solver would have set."""
        equations = NormalEquations(self.blocks, self.feature_map, dtype, "test", keep)
        equations.feature_mean = np.average(self.features, 0, self.weight)
        return equations

    def minimum(self, alpha):
        """The solution and its objective, by QR."""
        W, b = reference.ridge(self.features, self.Y, alpha, self.weight)
        return W, b, self.objective(W, b, alpha)

    def objective(self, W, b, alpha):
        squares = ((self.features @ W + b - self.Y) ** 2).sum(axis=1)
        return self.weight @ squares + alpha * (W**2).sum()


def problem(rng, targets="classes", weighted=True, landmarks=None, approximation=None, gamma=1.0):
    N, d, n = 600, 4, 20
    labels = rng.randint(0, 3, N)
    X = rng.randn(N, d) + labels[:, None]
    Z = X[:n] if landmarks is None else X[landmarks(X, labels)][:n]
    known = ClassTargets(labels, 3) if targets == "classes" else ValueTargets(np.sin(X[:, :2]) + 5)
    weight = rng.randint(0, 4, N).astype(float) if weighted else None
    factors = np.array([1.0, 2.0, 0.5])[labels] if weighted else None
    blocks = Blocks(X, known, weight, factors)
    feature_map = (approximation or StandardMap()).build(RBF(gamma), Z, rng)
    total = weight * factors if weighted else np.ones(N)
    return Dense(blocks, feature_map, feature_map.features()(X), known.coded(), total)


# ---- passes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", ["classes", "values"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("approximation", [StandardMap(), RandomizedMap(), EnsembleMap()], ids=repr)
def test_passes_equal_dense_algebra(targets, weighted, approximation, rng):
    dense = problem(rng, targets, weighted, approximation=approximation)
    equations = dense.equations()
    W = rng.randn(dense.feature_map.rank, dense.Y.shape[1])
    with config_context(working_memory=SMALL):
        product = equations.product(W)
        start = equations.start(W, 0.3)
    size = np.abs(dense.scatter).max()
    np.testing.assert_allclose(product, dense.scatter @ W, atol=1e-11 * size)
    b = np.average(dense.Y - dense.features @ W, 0, dense.weight)
    np.testing.assert_allclose(equations.intercept(W), b, rtol=1e-10, atol=1e-12)
    left = dense.Y - dense.features @ W - b
    expected = dense.centred.T @ (dense.weight[:, None] * left) - 0.3 * W
    np.testing.assert_allclose(start.R, expected, atol=1e-10 * size)
    assert start.objective == pytest.approx(dense.objective(W, b, 0.3), rel=1e-10)
    assert equations.evaluated == 2 * 600


def test_the_objective_is_that_of_the_best_intercept_whatever_the_mean_before(rng):
    dense = problem(rng)
    equations = dense.equations()
    W = rng.randn(dense.feature_map.rank, dense.Y.shape[1])
    b = np.average(dense.Y - dense.features @ W, 0, dense.weight)
    equations.feature_mean = rng.randn(dense.feature_map.rank)  # as of a pass with few digits
    start = equations.start(W, 0.3)
    assert start.objective == pytest.approx(dense.objective(W, b, 0.3), rel=1e-10)
    np.testing.assert_allclose(equations.intercept(W), b, rtol=1e-10, atol=1e-12)


def test_the_residual_vanishes_at_the_solution(rng):
    dense = problem(rng)
    W, _, best = dense.minimum(0.1)
    start = dense.equations().start(W, 0.1)
    np.testing.assert_allclose(start.R, 0, atol=1e-8)
    assert start.objective == pytest.approx(best, rel=1e-10)


def test_float32_passes_are_summed_in_float64(rng):
    dense = problem(rng, "values")
    W = rng.randn(dense.feature_map.rank, 2)
    product = dense.equations(np.float32).product(W)
    assert product.dtype == np.float64
    np.testing.assert_allclose(product, dense.scatter @ W, rtol=1e-3, atol=1e-2)


def test_kept_kernel_values_are_the_recomputed_ones(rng):
    dense = problem(rng)
    W = rng.randn(dense.feature_map.rank, 3)
    calls = []
    kept, fresh = dense.equations(keep=True), dense.equations()
    for equations in (kept, fresh):
        columns = equations._columns
        equations._columns = lambda X, columns=columns: (calls.append(len(X)), columns(X))[1]
    with config_context(working_memory=SMALL):
        for _ in range(3):
            np.testing.assert_array_equal(kept.product(W), fresh.product(W))
            np.testing.assert_array_equal(kept.start(W, 0.1).R, fresh.start(W, 0.1).R)
        np.testing.assert_array_equal(
            kept.sketch(np.random.RandomState(0)), fresh.sketch(np.random.RandomState(0))
        )
    assert sum(calls) == 600 * (1 + 7)  # once, and once for each pass


@pytest.mark.parametrize("keep", [False, True])
def test_other_weights_for_the_same_rows(keep, rng):
    dense = problem(rng)
    equations = dense.equations(keep=keep)
    W = rng.randn(dense.feature_map.rank, 3)
    equations.product(W)
    left_out = np.arange(0, 600, 7)
    other = replace(dense, blocks=dense.blocks.without(left_out), weight=dense.weight.copy())
    other.weight[left_out] = 0.0
    training = equations.reweighted(other.blocks)
    start = training.start(W, 0.0)
    assert training.evaluated == (0 if keep else 600)
    mean = np.average(dense.features, 0, other.weight)
    np.testing.assert_allclose(training.feature_mean, mean, rtol=1e-9, atol=1e-11)
    assert training.weight == other.weight.sum()
    np.testing.assert_allclose(training.product(W), other.scatter @ W, rtol=1e-8, atol=1e-8)
    left = dense.Y - dense.features @ W - training.intercept(W)
    expected = other.centred.T @ (other.weight[:, None] * left)
    np.testing.assert_allclose(start.R, expected, rtol=1e-8, atol=1e-8)
    # the first ones still have theirs
    np.testing.assert_allclose(equations.product(W), dense.scatter @ W, rtol=1e-8, atol=1e-8)


# ---- the sketch --------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [SMALL, 1024])
def test_the_sketch_has_the_scatter_as_its_mean(memory, rng):
    dense = problem(rng)
    with config_context(working_memory=memory):
        equations = dense.equations(keep=True)
        sketches = [
            sketched_scatter(equations.sketch(np.random.RandomState(seed))) for seed in range(400)
        ]
    size = np.linalg.norm(dense.scatter)
    assert np.linalg.norm(sketches[0] - dense.scatter) > 0.1 * size  # a sketch, not the thing
    assert np.linalg.norm(np.mean(sketches, axis=0) - dense.scatter) < 0.04 * size
    mean = np.average(dense.features, 0, dense.weight)
    np.testing.assert_allclose(equations.feature_mean, mean, rtol=1e-9, atol=1e-11)


def test_the_sketch_is_small(rng):
    dense = problem(rng)
    G = dense.equations().sketch(rng)
    assert G.shape[1] == dense.feature_map.rank
    assert 2 * dense.feature_map.rank <= len(G) <= 600 / 10


def test_rows_without_weight_do_not_enter_the_sketch(rng):
    X, weight = rng.randn(400, 5), (rng.rand(400) < 0.5).astype(float)
    feature_map = StandardMap().build(Linear(), X[weight > 0][:5], rng)
    other = np.where(weight[:, None] > 0, X, 1e3 * rng.randn(400, 5))
    assert not np.array_equal(X, other)
    sketches = []
    for rows in (X, other):
        blocks = Blocks(rows, ValueTargets(np.ones((400, 1))), weight)
        equations = NormalEquations(blocks, feature_map, np.float64, "test")
        sketches.append(equations.sketch(np.random.RandomState(0)))
    np.testing.assert_allclose(sketches[0], sketches[1], rtol=1e-9, atol=1e-9)


def test_the_sketch_depends_on_the_seed_alone(rng):
    dense = problem(rng)
    sketches = []
    for threads in (1, 2):
        # each thread has the same memory, so that the blocks are the same
        with (
            threadpool_limits(threads, user_api="blas"),
            config_context(working_memory=threads * SMALL),
        ):
            sketches.append(dense.equations().sketch(np.random.RandomState(3)))
    np.testing.assert_array_equal(*sketches)
    other = dense.equations().sketch(np.random.RandomState(4))
    assert not np.array_equal(other, sketches[0])


def test_the_preconditioner_solves_or_says_that_it_cannot(rng):
    G = rng.randn(30, 8)
    R = rng.randn(8, 2)
    Z = preconditioner(G.T @ G, 0.3)(R)
    np.testing.assert_allclose(G.T @ G @ Z + 0.3 * Z, R, atol=1e-9)
    flat = np.outer(np.ones(8), np.ones(8))
    assert preconditioner(flat, 0.0) is None
    assert preconditioner(-np.eye(8), 0.1) is None
    assert np.isfinite(preconditioner(np.zeros((3, 3)), 1.0)(np.ones((3, 1)))).all()


# ---- conjugate gradients -----------------------------------------------------------------------


def descend(dense, alpha, dtype=np.float64, tolerance=1e-12, keep=True, seed=0):
    equations = NormalEquations(dense.blocks, dense.feature_map, dtype, "test", keep)
    scatter = sketched_scatter(equations.sketch(np.random.RandomState(seed)))
    start = equations.start(np.zeros((dense.feature_map.rank, dense.Y.shape[1])), alpha)
    R = start.R.copy()
    found = conjugate_gradients(equations, preconditioner(scatter, alpha), start, alpha, tolerance)
    assert not start.W.any()  # neither is changed in place
    np.testing.assert_array_equal(start.R, R)
    passes = 1 if keep else found.iterations + 2
    assert equations.evaluated == passes * dense.blocks.n_rows
    return found


@pytest.mark.parametrize("targets", ["classes", "values"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 100.0])
def test_conjugate_gradients_reach_the_dense_solution(targets, weighted, alpha, rng):
    dense = problem(rng, targets, weighted)
    W, b, best = dense.minimum(alpha)
    found = descend(dense, alpha)
    assert found.converged
    assert found.iterations <= 60
    value = dense.objective(found.W, found.b, alpha)
    assert value == pytest.approx(best, rel=1e-9)
    assert found.objective == pytest.approx(value, rel=1e-9)
    scores, expected = dense.features @ found.W + found.b, dense.features @ W + b
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_the_gap_tells_how_far_the_minimum_is(rng):
    dense = problem(rng)
    _, _, best = dense.minimum(1e-2)
    for tolerance in (1e-2, 1e-4, 1e-8):
        found = descend(dense, 1e-2, tolerance=tolerance)
        gap = dense.objective(found.W, found.b, 1e-2) / best - 1
        assert found.gap <= tolerance
        assert gap <= 5 * tolerance
    assert found.iterations > descend(dense, 1e-2, tolerance=1e-2).iterations


def test_a_start_at_the_solution_needs_no_iteration(rng):
    dense = problem(rng)
    W, b, best = dense.minimum(1e-2)
    equations = dense.equations()
    start = equations.start(W, 1e-2)
    found = conjugate_gradients(equations, preconditioner(dense.scatter, 1e-2), start, 1e-2, 1e-10)
    assert found.converged
    assert found.iterations == 0
    assert found.objective == pytest.approx(best, rel=1e-9)
    np.testing.assert_allclose(found.b, b, atol=1e-9)


def from_zero(dense, solve, alpha, max_iterations=150):
    equations = dense.equations()
    start = equations.start(np.zeros((dense.feature_map.rank, 3)), alpha)
    return conjugate_gradients(equations, solve, start, alpha, 1e-12, max_iterations)


def test_the_exact_preconditioner_needs_one_iteration(rng):
    dense = problem(rng)
    found = from_zero(dense, preconditioner(dense.scatter, 1e-2), 1e-2)
    assert found.converged
    assert found.iterations == 1


def test_too_few_iterations_are_not_called_converged(rng):
    found = from_zero(problem(rng), lambda R: R / 1e3, 1e-6, max_iterations=3)
    assert not found.converged
    assert found.iterations == 3


def test_a_preconditioner_that_leads_nowhere_is_given_up(rng):
    dense = problem(rng)
    broken = from_zero(dense, lambda R: np.full_like(R, np.nan), 1e-6)
    assert not broken.converged
    assert broken.iterations == 0
    signs = np.random.RandomState(0)
    wrong = from_zero(dense, lambda R: R * signs.rand(len(R), 1), 1e-6)
    assert not wrong.converged
    assert wrong.iterations < 150


def test_a_start_of_more_digits_gives_a_solution_of_more_digits(rng):
    """What is solved in float32 is a correction only: the errors of two rounds multiply."""
    dense = problem(rng, "values")
    _, _, best = dense.minimum(1e-2)
    rough = descend(dense, 1e-2, np.float32, tolerance=1e-8)
    single, double = dense.equations(np.float32), dense.equations()
    solve = preconditioner(dense.scatter, 1e-2)
    start = double.start(rough.W, 1e-2)
    fine = conjugate_gradients(single, solve, start, 1e-2, 1e-13)
    gaps = [
        dense.objective(found.W, double.intercept(found.W), 1e-2) / best - 1
        for found in (rough, fine)
    ]
    assert abs(gaps[1]) < 1e-11
    assert gaps[0] > 10 * abs(gaps[1])


CORNERS = {
    "one class": lambda X, labels: np.flatnonzero(labels == 0),
    "one corner": lambda X, labels: np.argsort(X.sum(axis=1)),
    "outliers": lambda X, labels: np.argsort(-np.linalg.norm(X, axis=1)),
}


@pytest.mark.parametrize("corner", list(CORNERS))
@pytest.mark.parametrize("alpha", [1e-6, 1e-1])
def test_landmarks_that_are_not_typical_do_not_slow_it_down(corner, alpha, rng):
    dense = problem(rng, landmarks=CORNERS[corner], gamma=0.3)
    _, _, best = dense.minimum(alpha)
    found = descend(dense, alpha, tolerance=1e-10)
    assert found.converged
    assert found.iterations <= 60
    assert dense.objective(found.W, found.b, alpha) == pytest.approx(best, rel=1e-8)


def test_weights_equal_repeated_rows(rng):
    dense = problem(rng)
    rows = np.repeat(np.arange(600), dense.blocks.sample_weight.astype(int))
    labels = dense.blocks.targets.codes
    blocks = Blocks(
        dense.blocks.X[rows],
        ClassTargets(labels[rows], 3),
        None,
        dense.blocks.class_weight[rows],
    )
    repeated = replace(
        dense,
        blocks=blocks,
        features=dense.features[rows],
        Y=dense.Y[rows],
        weight=blocks.class_weight,
    )
    one, other = descend(dense, 1e-3), descend(repeated, 1e-3)
    np.testing.assert_allclose(
        dense.features @ one.W + one.b, dense.features @ other.W + other.b, atol=1e-5
    )
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_iterations_stop_far_below_the_tolerance():
    """At 3e-8 of the objective by their own estimate, which may be off by a factor of three."""
    for seed in range(4):
        X, Y = factories.values(600, 4, seed=seed)
        problem = factories.ridge_problem(X, Y, X[:40], RBF(0.3), alphas=(1e-3,), seed=seed)
        (_, found), _ = Iterative(np.float64).solve(problem)
        features = problem.feature_map.features(np.float64)(X)
        best = reference.objective(features, Y, *reference.ridge(features, Y, 1e-3), 1e-3)
        assert reference.objective(features, Y, found.W, found.b, 1e-3) / best - 1 < 1e-7
