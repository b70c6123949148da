from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn import config_context

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import EnsembleMap, StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.rules import SolverRules
from nysplus._ridge.solvers import (
    SOLVERS,
    Direct,
    GramFirst,
    Iterative,
    cheapest_first,
    shortcuts,
    solve_ridge,
    solvers_to_try,
)
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus.kernels import RBF, FunctionKernel, Polynomial, make_kernel

NAMES = list(SOLVERS)
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=NAMES)


def labelled(N=600, d=5, classes=3, noise=1.0, seed=0):
    """Overlapping classes, float32 numbers."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, classes, N)
    X = noise * rng.randn(N, d) + 2 * rng.randn(classes, d)[y]
    return X.astype(np.float32), y


def problem_of(X, targets, Z, gamma=0.3, alphas=(1e-3,), approximation=None, seed=0, **weights):
    rng = np.random.RandomState(seed)
    feature_map = (approximation or StandardMap()).build(RBF(gamma), Z, rng)
    return RidgeProblem(Blocks(X, targets, **weights), feature_map, alphas, rng, "test")


def trying(*solvers, **rules):
    """Rules that try these solvers and no others."""
    return SolverRules(solvers=tuple(solver.name for solver in solvers), **rules)


def fit(blocks, Z, alphas, rules, kernel=None, approximation=None):
    return fit_expansion(
        blocks,
        Z,
        kernel or RBF(0.3),
        approximation or StandardMap(),
        alphas,
        np.random.RandomState(0),
        rules=rules,
    )


def gap_of(problem, found):
    """How far a solution is above the dense one, on the same features."""
    choice, left_out = found
    alpha, W, b = choice.alpha, left_out.W, left_out.b
    feature_map = problem.feature_map
    features = feature_map.features()(problem.blocks.X.astype(np.float64))
    Y = problem.blocks.targets.coded()
    weight = problem.blocks.block(slice(None)).weight

    def objective(W, b):
        return weight @ ((features @ W + b - Y) ** 2).sum(axis=1) + alpha * (W**2).sum()

    return objective(W, b) / objective(*reference.ridge(features, Y, alpha, weight)) - 1


# ---- every solver, the same solution -----------------------------------------------------------


@every_solver
@pytest.mark.parametrize("targets", ["classes", "two classes", "labels", "values"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_every_solver_reaches_the_dense_objective(solver, targets, alpha, rng):
    X, y = labelled()
    known = {
        "classes": ClassTargets(y, 3),
        "two classes": ClassTargets(y % 2, 2),
        "labels": IndicatorTargets(np.where(rng.rand(600, 4) < 0.3, 1.0, -1.0)),
        "values": ValueTargets(np.sin(X[:, :2].astype(np.float64)) + 0.1 * rng.randn(600, 2) + 7),
    }[targets]
    problem = problem_of(X, known, X[:40], alphas=(alpha,))
    found, _ = solver.solve(problem)
    assert found is not None
    assert -1e-9 <= gap_of(problem, found) <= 1e-6


@every_solver
@pytest.mark.parametrize("approximation", [StandardMap(10), EnsembleMap()], ids=repr)
def test_every_solver_takes_weights_and_every_map(solver, approximation, rng):
    X, y = labelled()
    weight, factors = rng.randint(0, 3, 600).astype(float), np.array([1.0, 4.0, 0.5])[y]
    problem = problem_of(
        X,
        ClassTargets(y, 3),
        X[:40],
        approximation=approximation,
        sample_weight=weight,
        class_weight=factors,
    )
    found, _ = solver.solve(problem)
    assert found is not None
    assert -1e-9 <= gap_of(problem, found) <= 1e-6


@every_solver
@pytest.mark.parametrize("alphas", [(1e-3,), (1e-5, 1e-3, 1e-1, 10.0)])
def test_every_solver_takes_a_weight_of_two_as_a_repeated_row(solver, alphas, rng):
    X, y = labelled()
    weight = rng.randint(1, 4, 600)
    rows = np.repeat(np.arange(600), weight)
    one, other = (
        fit(blocks, X[:40], alphas, trying(solver))
        for blocks in (
            Blocks(X, ClassTargets(y, 3), weight.astype(float)),
            Blocks(X[rows], ClassTargets(y[rows], 3)),
        )
    )
    if len(alphas) == 1 or not isinstance(solver, Iterative):  # which leaves other rows out
        assert one.alpha == other.alpha
        # iterations from another sketch stop at another point within the tolerance
        atol = 3e-3 if isinstance(solver, Iterative) else 1e-4
        np.testing.assert_allclose(one.expansion(X), other.expansion(X), atol=atol)
    assert one.solver == other.solver == solver.name


@pytest.mark.parametrize(
    "solver", [GramFirst(polished=False), Iterative(np.float64)], ids=lambda solver: solver.name
)
def test_blocks_change_nothing(solver):
    X, y = labelled()
    X = X.astype(np.float64)
    whole = solver.solve(problem_of(X, ClassTargets(y, 3), X[:40]))[0]
    with config_context(working_memory=0.1):
        cut = solver.solve(problem_of(X, ClassTargets(y, 3), X[:40]))[0]
    features = problem_of(X, ClassTargets(y, 3), X[:40]).feature_map.features()(X)
    atol = 3e-3 if isinstance(solver, Iterative) else 1e-6  # every block has a sketch of its own
    np.testing.assert_allclose(
        features @ cut[1].W + cut[1].b, features @ whole[1].W + whole[1].b, atol=atol
    )


def test_only_float64_is_sure():
    X, y = labelled()
    solvers = solvers_to_try(problem_of(X, ClassTargets(y, 3), X[:40]))
    assert solvers[-1] == Direct(np.float64)
    assert Direct(np.float64) not in solvers[:-1]
    assert Direct(np.float32) in solvers
    rows = X.astype(np.float64)
    wide = solvers_to_try(problem_of(rows, ClassTargets(y, 3), rows[:40]))
    assert all("float32" not in solver.name for solver in wide)


@pytest.mark.parametrize("seed", [293, 323, 990, 1417])
def test_wide_kernels_keep_their_digits(seed):
    """If K is nearly constant, its deviation from the mean has few digits in float32."""
    drawn = reference.random_problem(seed)
    rng = np.random.RandomState(0)
    kernel = make_kernel(drawn.kernel, gamma=drawn.gamma)
    feature_map = StandardMap().build(kernel, drawn.X[: drawn.n], rng)
    blocks = Blocks(drawn.X, ValueTargets(drawn.Y))
    problem = RidgeProblem(blocks, feature_map, (drawn.alpha,), rng, "test")
    solvers = [*shortcuts(problem), Direct(np.float64)]
    answers = {solver.name: solver.solve(problem)[0] for solver in solvers}
    # a shortcut may give up, but not be wrong
    gaps = {name: gap_of(problem, answer) for name, answer in answers.items() if answer is not None}
    assert len(answers) > 1
    assert "direct-float64" in gaps
    assert max(gaps.values()) <= 1e-6, gaps


@every_solver
def test_kernel_functions_may_return_read_only_arrays(solver):
    """As functions do that are written in JAX, or that look their values up."""
    X, y = labelled()
    X = X.astype(np.float64)

    def readonly(X, Z):
        K = RBF(0.3)(X, Z)
        K.setflags(write=False)
        return K

    blocks = Blocks(X, ClassTargets(y, 3))
    scores = [
        fit(blocks, X[:40], (1e-3,), trying(solver), kernel).expansion(X)
        for kernel in (RBF(0.3), FunctionKernel(readonly, vectorized=True))
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=3e-3)


# ---- checks and falling back -------------------------------------------------------------------


@every_solver
def test_a_shortcut_whose_check_fails_is_followed_by_the_sure_solver(solver):
    X, y = labelled()
    problem = problem_of(X, ClassTargets(y, 3), X[:40])
    rules = trying(solver, Direct(np.float64))
    assert solve_ridge(replace(problem, rules=rules)).solver == solver.name
    strict = replace(rules, tolerance=0.0, fine_tolerance=0.0)
    answer = solve_ridge(replace(problem, rules=strict))
    assert answer.solver == "direct-float64"
    assert gap_of(problem, (answer.choice, answer.left_out)) <= 1e-9
    if solver != Direct(np.float64):
        assert answer.n_rows >= 2 * 600  # what the shortcut has cost is counted as well


def test_fits_name_the_solver():
    X, y = labelled()
    blocks = Blocks(X, ClassTargets(y, 3))
    seen = {}
    for solver in SOLVERS.values():
        found = fit(blocks, X[:40], (1e-3,), trying(solver))
        seen[found.solver] = found.expansion(X)
    assert list(seen) == NAMES
    for scores in seen.values():
        np.testing.assert_allclose(scores, seen["direct-float64"], atol=3e-3)
    strict = trying(Direct(np.float32), Direct(np.float64), tolerance=0.0, fine_tolerance=0.0)
    assert fit(blocks, X[:40], (1e-3,), strict).solver == "direct-float64"


def test_estimators_name_the_solver():
    X, y = labelled()
    model = NystroemClassifier(40, gamma=0.3, alpha=1e-3, selection="uniform", random_state=0)
    assert model.fit(X, y).solver_ == "direct-float32"
    assert model.fit(X.astype(np.float64), y).solver_ == "gram-float64"


def test_a_float32_solution_without_a_certificate_is_polished():
    X, y = labelled()
    problem = problem_of(X, ClassTargets(y, 3), X[:40])
    certified, rows = Direct(np.float32).solve(problem)
    assert rows == 600
    uncertain = replace(problem, rules=SolverRules(tolerance=0.0))
    polished, rows = Direct(np.float32).solve(uncertain)
    assert rows > 600
    assert gap_of(problem, polished) <= 1e-8
    assert gap_of(problem, polished) <= gap_of(problem, certified)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("degree", [2, 3])
def test_float32_sums_of_features_of_different_sizes(degree, seed):
    """Rounding of the largest sums hides the smallest: a landmark at 0 is nearly constant."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((1000, 1)).astype(np.float32)
    Z = np.array([[-2e-3], [-2e-3], [-2e-3], [0.35]], dtype=np.float32)
    feature_map = StandardMap().build(Polynomial(degree=degree, gamma=1.0), Z, rng)
    targets = ValueTargets(rng.standard_normal((1000, 1)))
    problem = RidgeProblem(Blocks(X, targets), feature_map, (2.4e-8,), rng, "test")
    assert Direct(np.float32) in shortcuts(problem)
    found, _ = Direct(np.float32).solve(problem)
    assert found is None or gap_of(problem, found) <= 1e-6


def _estimated_gap(problem, alpha):
    """Return the gap that float32 may leave, from dense float64 features, and the objective."""
    blocks, feature_map = problem.blocks, problem.feature_map
    features = feature_map.features(np.float64)(blocks.X.astype(np.float64))
    Y = blocks.targets.coded()
    centred, residue = features - features.mean(axis=0), Y - Y.mean(axis=0)
    H = centred.T @ centred + alpha * np.eye(feature_map.rank)
    W = np.linalg.solve(H, centred.T @ residue)
    objective = ((centred @ W - residue) ** 2).sum() + alpha * (W**2).sum()
    error = feature_map.float32_noise * feature_map.scale
    D = (centred**2).sum(axis=0)
    size = (D @ W**2).sum() + (residue**2).sum()
    rounding = np.finfo(np.float32).eps ** 2 * size * (D @ np.diag(np.linalg.inv(H)))
    return (error**2 * (W**2).sum() / np.linalg.eigvalsh(H)[0] + rounding) / objective


@pytest.mark.parametrize(("estimate", "certified"), [(2e-9, True), (5e-8, False)])
def test_an_estimated_gap_a_hundredth_of_the_tolerance_is_a_certificate(estimate, certified):
    X, y = labelled()
    problem = problem_of(X, ClassTargets(y, 3), X[:40], gamma=0.01)
    low, high = -8.0, 2.0
    for _ in range(40):  # the estimate falls with the ridge
        middle = (low + high) / 2
        found = _estimated_gap(problem, 10.0**middle)
        low, high = (middle, high) if found > estimate else (low, middle)
    assert found == pytest.approx(estimate, rel=1e-3)
    _, rows = Direct(np.float32).solve(replace(problem, alphas=(10.0**middle,)))
    assert (rows == 600) == certified


def test_gram_first_refuses_an_ill_conditioned_problem(rng):
    X, y = rng.rand(500, 3), rng.randint(0, 2, 500)
    flat = problem_of(X, ClassTargets(y, 2), X[:50], gamma=50.0, alphas=(1e-6,))
    steep = problem_of(X, ClassTargets(y, 2), X[:50], gamma=0.1, alphas=(1e-12,))
    ridged = problem_of(X, ClassTargets(y, 2), X[:50], gamma=1.0, alphas=(10.0,))
    assert GramFirst.where_allowed(flat) == [GramFirst(polished=False)]
    assert GramFirst.where_allowed(steep) == []
    assert GramFirst.where_allowed(ridged)  # the ridge is what counts then
    found, _ = GramFirst(polished=True).solve(steep)
    assert found is None  # its own check sees it too


def test_float32_is_not_tried_where_it_would_fail(rng):
    X = rng.rand(500, 3).astype(np.float32)
    y = rng.randint(0, 2, 500)
    steep = problem_of(X, ClassTargets(y, 2), X[:50], gamma=1.0, alphas=(1e-8,))
    flat = problem_of(X, ClassTargets(y, 2), X[:50], gamma=50.0, alphas=(1e-8,))
    of_steep, of_flat = ({solver.name for solver in shortcuts(each)} for each in (steep, flat))
    assert not {"direct-float32", "iterative-float32"} & of_steep
    assert {"direct-float32", "iterative-float32"} <= of_flat


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterations_that_do_not_converge_are_not_an_answer(dtype):
    X, y = labelled()
    rules = trying(Iterative(dtype), Direct(np.float64), max_iterations=2)
    problem = replace(problem_of(X, ClassTargets(y, 3), X[:40]), rules=rules)
    found, _ = Iterative(dtype).solve(problem)
    assert found is None
    assert solve_ridge(problem).solver == "direct-float64"


# ---- what it costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterations_pay_above_the_crossover_only(dtype):
    few, many = (60_000, 300, 784), (60_000, 10_000, 784)
    assert Direct(dtype).cost(*few) < Iterative(dtype).cost(*few)
    assert Iterative(dtype).cost(*many) < Direct(dtype).cost(*many)


def test_gram_first_pays_where_landmarks_outnumber_features():
    assert GramFirst(polished=True).cost(60_000, 1000, 10) < Direct(np.float64).cost(
        60_000, 1000, 10
    )
    assert GramFirst(polished=True).cost(60_000, 300, 784) > Direct(np.float64).cost(
        60_000, 300, 784
    )


def test_the_cheapest_solver_that_is_allowed_comes_first():
    candidates = [Direct(np.float32), GramFirst(polished=False), Iterative(np.float32)]

    def names(*size):
        return [solver.name for solver in cheapest_first(candidates, *size)]

    # with few landmarks the iterative solver costs more than the sure one, and is left out
    assert names(60_000, 300, 784) == ["direct-float32", "gram-float64", "direct-float64"]
    assert names(60_000, 10_000, 784)[0] == "iterative-float32"
    assert names(60_000, 10_000, 784)[-1] == "direct-float64"
    assert names(60_000, 1000, 10)[0] == "gram-float64"
    # exponentials in float32 save more than whitening costs
    assert names(15_000, 250, 16)[0] == "direct-float32"


def test_costs_follow_the_rules():
    free = SolverRules(
        exponential_cost=0, stored_value_cost=0, sketched_value_cost=0, typical_iterations=0
    )
    first = cheapest_first([Iterative(np.float64), GramFirst(False)], 1200, 15, 3, free)[0]
    assert first == Iterative(np.float64)


def test_few_rows_are_not_sketched():
    X, y = labelled()
    many_rows = problem_of(X, ClassTargets(y, 3), X[:40])
    few_rows = problem_of(X[:100], ClassTargets(y[:100], 3), X[:40])
    assert any("iterative" in solver.name for solver in shortcuts(many_rows))
    assert all("iterative" not in solver.name for solver in shortcuts(few_rows))


def test_stored_kernel_values_follow_working_memory():
    stores = Iterative(np.float64)._stores_kernel
    assert stores(60_000, 2000)
    with config_context(working_memory=100):
        assert not stores(60_000, 2000)
        assert stores(10_000, 2000)  # no more than the direct solver's matrices
        assert Iterative(np.float32)._stores_kernel(60_000, 11_000) > stores(60_000, 9_000)


class Counting(RBF):
    """Counts the kernel values that it computes."""

    def bind(self, Z):
        bound = super().bind(Z)

        def counted(X):
            self.entries.append(X.shape[0] * Z.shape[0])
            return bound(X)

        return counted


@pytest.mark.parametrize("alphas", [(1.0,), (0.1, 1.0)], ids=["one", "two"])
@pytest.mark.parametrize("approximation", [StandardMap(), EnsembleMap()], ids=repr)
@pytest.mark.parametrize("memory", [1024, 0.02])
@pytest.mark.parametrize(
    "solver",
    [Direct(np.float64), GramFirst(polished=False), Iterative(np.float64)],
    ids=lambda solver: solver.name,
)
def test_kernel_evaluations_are_counted(solver, memory, approximation, alphas):
    X, y = labelled(200)
    X = X.astype(np.float64)
    kernel = Counting(0.3)
    kernel.entries = []
    blocks = Blocks(X, ClassTargets(y, 3))
    with config_context(working_memory=memory):
        got = fit(blocks, X[:20], alphas, trying(solver), kernel, approximation)
    assert got.solver == solver.name
    assert got.n_kernel_evaluations == sum(kernel.entries)


def test_kernel_evaluations_of_a_solver_that_failed_are_counted():
    X, y = labelled(200)
    kernel = Counting(0.3)
    kernel.entries = []
    X = X.astype(np.float64)
    rules = trying(Iterative(np.float64), Direct(np.float64), max_iterations=2)
    got = fit(Blocks(X, ClassTargets(y, 3)), X[:20], (1.0,), rules, kernel)
    assert got.solver == "direct-float64"
    assert got.n_kernel_evaluations == sum(kernel.entries)


# ---- the choice of the ridge -------------------------------------------------------------------

GRID = tuple(10.0**power for power in range(-6, 4))


@pytest.mark.parametrize("seed", range(4))
def test_leave_one_out_on_some_rows_chooses_nearly_the_same_ridge(seed):
    X, y = labelled(2000, noise=2.0, seed=seed)
    problem = problem_of(X, ClassTargets(y, 3), X[:60], alphas=GRID, seed=seed)
    (chosen, _), rows = Direct(np.float64).solve(problem)
    assert rows == 2 * 2000
    fewer = replace(problem, rules=SolverRules(validation_rows=1000))
    (other, _), rows = Direct(np.float64).solve(fewer)
    assert rows == 2000 + 1000
    assert abs(GRID.index(chosen.alpha) - GRID.index(other.alpha)) <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_left_out_rows_choose_a_ridge_for_classes(dtype, rng):
    """Labels of which a quarter are wrong: hardly any ridge means learning them by heart."""
    X, fresh = rng.randn(1500, 2).astype(np.float32), rng.randn(1500, 2)
    y, truth = ((rows**2).sum(axis=1) > 1.4 for rows in (X, fresh))
    noisy = np.where(rng.rand(1500) < 0.25, ~y, y).astype(int)
    problem = problem_of(X, ClassTargets(noisy, 2), X[:250], 10.0, GRID)
    chosen, _ = Iterative(dtype).solve(problem)
    features = problem.feature_map.features()(fresh)
    accuracy = {}
    for a in GRID:
        (_, found), _ = Direct(np.float64).solve(replace(problem, alphas=(a,)))
        accuracy[a] = (((features @ found.W + found.b)[:, 0] > 0) == truth).mean()
    best = max(accuracy.values())
    assert accuracy[chosen[0].alpha] > best - 0.03
    assert max(accuracy[GRID[0]], accuracy[GRID[-1]]) < best - 0.05  # there is a choice
    assert gap_of(problem, chosen) <= 1e-6


def test_left_out_rows_choose_a_ridge_for_values(rng):
    X = rng.rand(600, 1)
    clean = np.sin(6 * X)
    alphas = (1e-8, 1e-4, 1.0, 10.0)
    chosen = {}
    for name, Y in {"clean": clean, "noisy": clean + rng.randn(600, 1)}.items():
        found, _ = Iterative(np.float64).solve(
            problem_of(X, ValueTargets(Y), X[:100], 50.0, alphas)
        )
        assert found is not None
        chosen[name] = found[0].alpha
    assert chosen["clean"] <= 1e-4
    assert chosen["noisy"] >= 1.0


def test_left_out_rows_are_rows_with_weight(rng):
    """Rows that weigh nothing are no rows: neither fits nor the choice see them."""
    X, y = labelled(1000)
    weight = np.zeros(1000)
    weight[:150] = 1.0
    problem = problem_of(X, ClassTargets(y, 3), X[:20], alphas=GRID, sample_weight=weight)
    found, _ = Iterative(np.float64).solve(problem)
    assert found is not None
    assert gap_of(problem, found) <= 1e-6


def test_ridges_are_compared_on_rows_of_a_rare_class(rng):
    """Of 10 in 20,000 rows, the iterative solver holds out some and keeps some."""
    X, y = rng.standard_normal((20_000, 2)), np.zeros(20_000, dtype=int)
    y[:10] = 1
    X[:10] += 13.0
    Z = np.vstack([X[:5], X[10:40]])
    problem = problem_of(X, ClassTargets(y, 2), Z, alphas=(1e-3, 1.0, 1e3))
    (choice, left_out), _ = Iterative(np.float64).solve(problem)
    scores = problem.feature_map.features()(X[:10]) @ left_out.W + left_out.b
    assert choice.alpha < 1e3
    assert (scores > 0).mean() >= 0.5


# ---- random problems ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings("ignore:The model predicts")  # ridges of any size
def test_random_problems_are_solved_by_every_solver_that_allows_them(seed):
    """As benchmarks/sweep.py, which takes 200 of them."""
    drawn = reference.random_problem(1000 + seed)
    estimator = NystroemClassifier if drawn.discrete else NystroemRegressor
    model = estimator(
        drawn.n,
        kernel=drawn.kernel,
        gamma=drawn.gamma,
        alpha=drawn.alpha,
        selection="uniform",
        random_state=seed,
    ).fit(drawn.X, drawn.y)
    dense = drawn.dense(model.landmarks_)
    slack = 1e-6 + dense.error
    gaps = {"as fitted": dense.gap(model.dual_coef_, model.intercept_)}
    if model.dual_coef_.dtype == np.float32:
        # where rows are interpolated, what storing the model in float32 does to the scores
        # (1e-4 of the targets' spread at most) is visible in an objective of next to nothing
        gaps["as fitted"] -= 1e-8 * ((dense.Y - dense.Y.mean(0)) ** 2).sum() / dense.objective
        assert gaps["as fitted"] <= slack
        del gaps["as fitted"]
    if dense.well_posed:
        bound = np.sqrt(1e-6 * dense.objective) + 2e-4 * dense.Y.std()
        np.testing.assert_allclose(model.expansion_(drawn.X), dense.scores, atol=bound)
    rng = np.random.RandomState(seed)
    feature_map = StandardMap().build(model.expansion_.kernel, model.landmarks_, rng)
    problem = RidgeProblem(
        Blocks(drawn.X, ValueTargets(drawn.Y)), feature_map, (drawn.alpha,), rng, "test"
    )
    for solver in [*shortcuts(problem), Direct(np.float64)]:
        found, _ = solver.solve(problem)
        if found is not None:
            gaps[solver.name] = dense.gap(feature_map.collapse(found[1].W), found[1].b)
    assert "direct-float64" in gaps
    for name, gap in gaps.items():
        assert gap <= slack, name
        assert gap >= -slack or not dense.full_rank, name
