from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn import config_context

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge import problem as tasks
from nysplus._ridge import solvers as solvers
from nysplus._ridge.feature_map import EnsembleMap, StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.solvers import Direct, GramFirst, Iterative, solve_ridge
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus.kernels import RBF, FunctionKernel, make_kernel

WAYS = [
    Direct(np.float32),
    Direct(np.float64),
    GramFirst(polished=False),
    Iterative(np.float32),
    Iterative(np.float64),
]
NAMES = [way.name for way in WAYS]


def labelled(N=600, d=5, classes=3, noise=1.0, seed=0):
    """Overlapping classes, float32 numbers."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, classes, N)
    X = noise * rng.randn(N, d) + 2 * rng.randn(classes, d)[y]
    return X.astype(np.float32), y


def task_of(X, targets, Z, gamma=0.3, alphas=(1e-3,), approximation=None, seed=0, **weights):
    rng = np.random.RandomState(seed)
    feature_map = (approximation or StandardMap()).build(RBF(gamma), Z, rng)
    return RidgeProblem(Blocks(X, targets, **weights), feature_map, alphas, rng, "test")


def gap_of(task, found):
    """How far a solution is above the dense one, on the same features."""
    choice, left_out = found
    alpha, W, b = choice.alpha, left_out.W, left_out.b
    feature_map = task.feature_map
    features = feature_map.features()(task.blocks.X.astype(np.float64))
    Y = task.blocks.targets.coded()
    weight = task.blocks.block(slice(None)).weight

    def objective(W, b):
        return weight @ ((features @ W + b - Y) ** 2).sum(axis=1) + alpha * (W**2).sum()

    return objective(W, b) / objective(*reference.ridge(features, Y, alpha, weight)) - 1


def force(monkeypatch, *ways):
    """Make every fit try these ways and no others."""
    monkeypatch.setattr(solvers, "_ways", lambda task: list(ways))


def allowed(task, monkeypatch):
    """Names of the shortcuts that their own rules allow, as if none of them cost anything."""
    monkeypatch.setattr(Direct, "cost", lambda way, *_: 1.0 * (way.dtype is np.float64))
    monkeypatch.setattr(GramFirst, "cost", lambda *_: 0.0)
    monkeypatch.setattr(Iterative, "cost", lambda *_: 0.0)
    return {way.name for way in solvers._ways(task)[:-1]}


# ---- every way to the same solution ------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
@pytest.mark.parametrize("targets", ["classes", "two classes", "labels", "values"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_every_way_reaches_the_dense_objective(way, targets, alpha, rng):
    X, y = labelled()
    known = {
        "classes": ClassTargets(y, 3),
        "two classes": ClassTargets(y % 2, 2),
        "labels": IndicatorTargets(np.where(rng.rand(600, 4) < 0.3, 1.0, -1.0)),
        "values": ValueTargets(np.sin(X[:, :2].astype(np.float64)) + 0.1 * rng.randn(600, 2) + 7),
    }[targets]
    task = task_of(X, known, X[:40], alphas=(alpha,))
    found, _ = way.solve(task)
    assert found is not None
    assert -1e-9 <= gap_of(task, found) <= 1e-6


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
@pytest.mark.parametrize("approximation", [StandardMap(10), EnsembleMap()], ids=repr)
def test_every_way_takes_weights_and_every_map(way, approximation, rng):
    X, y = labelled()
    weight, factors = rng.randint(0, 3, 600).astype(float), np.array([1.0, 4.0, 0.5])[y]
    task = task_of(
        X,
        ClassTargets(y, 3),
        X[:40],
        approximation=approximation,
        sample_weight=weight,
        class_weight=factors,
    )
    found, _ = way.solve(task)
    assert found is not None
    assert -1e-9 <= gap_of(task, found) <= 1e-6


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
@pytest.mark.parametrize("alphas", [(1e-3,), (1e-5, 1e-3, 1e-1, 10.0)])
def test_every_way_takes_a_weight_of_two_as_a_repeated_row(way, alphas, rng, monkeypatch):
    X, y = labelled()
    weight = rng.randint(1, 4, 600)
    rows = np.repeat(np.arange(600), weight)
    force(monkeypatch, way)
    kernel, approximation = RBF(0.3), StandardMap()
    one, other = (
        fit_expansion(blocks, X[:40], kernel, approximation, alphas, np.random.RandomState(0))
        for blocks in (
            Blocks(X, ClassTargets(y, 3), weight.astype(float)),
            Blocks(X[rows], ClassTargets(y[rows], 3)),
        )
    )
    if len(alphas) == 1 or not isinstance(way, Iterative):  # which leaves other rows out
        assert one.alpha == other.alpha
        # iterations from another sketch stop at another point within the tolerance
        atol = 3e-3 if isinstance(way, Iterative) else 1e-4
        np.testing.assert_allclose(one.expansion(X), other.expansion(X), atol=atol)
    assert one.solver == other.solver == way.name


@pytest.mark.parametrize(
    "way", [GramFirst(polished=False), Iterative(np.float64)], ids=lambda way: way.name
)
def test_blocks_change_nothing(way):
    X, y = labelled()
    X = X.astype(np.float64)
    whole = way.solve(task_of(X, ClassTargets(y, 3), X[:40]))[0]
    with config_context(working_memory=0.1):
        cut = way.solve(task_of(X, ClassTargets(y, 3), X[:40]))[0]
    features = task_of(X, ClassTargets(y, 3), X[:40]).feature_map.features()(X)
    atol = 3e-3 if isinstance(way, Iterative) else 1e-6  # every block has a sketch of its own
    np.testing.assert_allclose(
        features @ cut[1].W + cut[1].b, features @ whole[1].W + whole[1].b, atol=atol
    )


def test_only_float64_is_sure():
    X, y = labelled()
    ways = solvers._ways(task_of(X, ClassTargets(y, 3), X[:40]))
    assert ways[-1] == Direct(np.float64)
    assert Direct(np.float64) not in ways[:-1]
    assert Direct(np.float32) in ways
    rows = X.astype(np.float64)
    wide = solvers._ways(task_of(rows, ClassTargets(y, 3), rows[:40]))
    assert all("float32" not in way.name for way in wide)


@pytest.mark.parametrize("seed", [293, 323, 990, 1417])
def test_wide_kernels_keep_their_digits(seed, monkeypatch):
    """Where K is nearly constant, what is left about its mean has few digits in float32."""
    problem = reference.random_problem(seed)
    rng = np.random.RandomState(0)
    kernel = make_kernel(problem.kernel, gamma=problem.gamma)
    feature_map = StandardMap().build(kernel, problem.X[: problem.n], rng)
    blocks = Blocks(problem.X, ValueTargets(problem.Y))
    task = RidgeProblem(blocks, feature_map, (problem.alpha,), rng, "test")
    names = allowed(task, monkeypatch) | {"direct-float64"}
    answers = {way.name: way.solve(task)[0] for way in WAYS if way.name in names}
    # a shortcut may give up, but not be wrong
    gaps = {name: gap_of(task, answer) for name, answer in answers.items() if answer is not None}
    assert len(answers) > 1
    assert "direct-float64" in gaps
    assert max(gaps.values()) <= 1e-6, gaps


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_kernel_functions_may_return_arrays_that_are_not_theirs_to_change(way, monkeypatch):
    """As functions do that are written in JAX, or that look their values up."""
    X, y = labelled()
    X = X.astype(np.float64)

    def readonly(X, Z):
        K = RBF(0.3)(X, Z)
        K.setflags(write=False)
        return K

    force(monkeypatch, way)
    scores = [
        NystroemClassifier(40, kernel=kernel, alpha=1e-3, selection=X[:40], random_state=0)
        .fit(X, y)
        .decision_function(X)
        for kernel in (RBF(0.3), FunctionKernel(readonly, vectorized=True))
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=3e-3)


# ---- checks and falling back -------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_a_shortcut_whose_check_fails_is_followed_by_the_sure_way(way, monkeypatch):
    X, y = labelled()
    task = task_of(X, ClassTargets(y, 3), X[:40])
    force(monkeypatch, way, Direct(np.float64))
    assert solve_ridge(task).solver == way.name
    monkeypatch.setattr(solvers, "TOLERANCE", 0.0)
    monkeypatch.setattr(solvers, "FINE_TOLERANCE", 0.0)
    answer = solve_ridge(task)
    assert answer.solver == "direct-float64"
    assert gap_of(task, (answer.choice, answer.left_out)) <= 1e-9
    if way != Direct(np.float64):
        assert answer.n_rows >= 2 * 600  # what the shortcut has cost is counted as well


def test_estimators_say_which_way_was_taken(monkeypatch):
    X, y = labelled()
    model = NystroemClassifier(40, gamma=0.3, alpha=1e-3, selection="uniform", random_state=0)
    seen = {}
    for way in WAYS:
        force(monkeypatch, way)
        model.fit(X, y)
        seen[model.solver_] = model.decision_function(X)
    assert list(seen) == NAMES
    for scores in seen.values():
        np.testing.assert_allclose(scores, seen["direct-float64"], atol=3e-3)
    force(monkeypatch, Direct(np.float32), Direct(np.float64))
    monkeypatch.setattr(solvers, "TOLERANCE", 0.0)
    monkeypatch.setattr(solvers, "FINE_TOLERANCE", 0.0)
    assert model.fit(X, y).solver_ == "direct-float64"


def test_a_float32_solution_without_a_certificate_is_polished(monkeypatch):
    X, y = labelled()
    task = task_of(X, ClassTargets(y, 3), X[:40])
    certified, rows = Direct(np.float32).solve(task)
    assert rows == 600
    monkeypatch.setattr(solvers, "_certified", lambda error, found: False)
    polished, rows = Direct(np.float32).solve(task)
    assert rows > 600
    assert gap_of(task, polished) <= 1e-8
    assert gap_of(task, polished) <= gap_of(task, certified)


def test_gram_first_refuses_an_ill_conditioned_problem(rng):
    X, y = rng.rand(500, 3), rng.randint(0, 2, 500)
    flat = task_of(X, ClassTargets(y, 2), X[:50], gamma=50.0, alphas=(1e-6,))
    steep = task_of(X, ClassTargets(y, 2), X[:50], gamma=0.1, alphas=(1e-12,))
    ridged = task_of(X, ClassTargets(y, 2), X[:50], gamma=1.0, alphas=(10.0,))
    assert GramFirst.where_allowed(flat) == [GramFirst(polished=False)]
    assert GramFirst.where_allowed(steep) == []
    assert GramFirst.where_allowed(ridged)  # the ridge is what counts then
    found, _ = GramFirst(polished=True).solve(steep)
    assert found is None  # its own check sees it too


def test_float32_is_not_tried_where_it_would_fail(rng, monkeypatch):
    X = rng.rand(500, 3).astype(np.float32)
    y = rng.randint(0, 2, 500)
    steep = task_of(X, ClassTargets(y, 2), X[:50], gamma=1.0, alphas=(1e-8,))
    flat = task_of(X, ClassTargets(y, 2), X[:50], gamma=50.0, alphas=(1e-8,))
    assert not {"direct-float32", "iterative-float32"} & allowed(steep, monkeypatch)
    assert {"direct-float32", "iterative-float32"} <= allowed(flat, monkeypatch)


def nowhere(scatter, alpha):
    """A preconditioner that leads nowhere."""
    rng = np.random.RandomState(0)
    return lambda R: R * 10.0 ** rng.uniform(-3, 3, R.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterations_that_do_not_converge_are_not_an_answer(dtype, monkeypatch):
    X, y = labelled()
    task = task_of(X, ClassTargets(y, 3), X[:40])
    monkeypatch.setattr(solvers, "preconditioner", nowhere)
    found, _ = Iterative(dtype).solve(task)
    assert found is None
    force(monkeypatch, Iterative(dtype), Direct(np.float64))
    assert solve_ridge(task).solver == "direct-float64"


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


def test_the_cheapest_way_that_is_allowed_comes_first(monkeypatch, rng):
    X, y = labelled()
    task = task_of(X, ClassTargets(y, 3), X[:40])
    monkeypatch.setattr(Direct, "cost", lambda way, *_: 1.0 if way.dtype is np.float32 else 9.0)
    monkeypatch.setattr(GramFirst, "cost", lambda *_: 2.0)
    monkeypatch.setattr(Iterative, "cost", lambda *_: 3.0)
    expected = ["direct-float32", "gram-float64", "iterative-float32", "direct-float64"]
    assert [way.name for way in solvers._ways(task)] == expected
    monkeypatch.setattr(Iterative, "cost", lambda *_: 0.0)
    monkeypatch.setattr(GramFirst, "cost", lambda *_: 10.0)  # dearer than the sure way: no use
    expected = ["iterative-float32", "direct-float32", "direct-float64"]
    assert [way.name for way in solvers._ways(task)] == expected
    few_rows = task_of(X[:100], ClassTargets(y[:100], 3), X[:40])
    assert all("iterative" not in way.name for way in solvers._ways(few_rows))


def test_kept_kernel_values_follow_working_memory():
    keeps = Iterative(np.float64)._keeps
    assert keeps(60_000, 2000)
    with config_context(working_memory=100):
        assert not keeps(60_000, 2000)
        assert keeps(10_000, 2000)  # no more than the direct solver's matrices
        assert Iterative(np.float32)._keeps(60_000, 11_000) > keeps(60_000, 9_000)


class Counting(RBF):
    """Counts the kernel values that it fills, in whichever way it is asked for them."""

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
    "way",
    [Direct(np.float64), GramFirst(polished=False), Iterative(np.float64)],
    ids=lambda way: way.name,
)
def test_kernel_evaluations_are_counted(way, memory, approximation, alphas, monkeypatch):
    X, y = labelled(200)
    X = X.astype(np.float64)
    kernel = Counting(0.3)
    kernel.entries = []
    force(monkeypatch, way)
    with config_context(working_memory=memory):
        got = fit_expansion(
            Blocks(X, ClassTargets(y, 3)),
            X[:20],
            kernel,
            approximation,
            alphas,
            np.random.RandomState(0),
        )
    assert got.solver == way.name
    assert got.n_kernel_evaluations == sum(kernel.entries)


def test_kernel_evaluations_of_a_way_that_failed_are_counted(monkeypatch):
    X, y = labelled(200)
    kernel = Counting(0.3)
    kernel.entries = []
    X = X.astype(np.float64)
    force(monkeypatch, Iterative(np.float64), Direct(np.float64))
    monkeypatch.setattr(solvers, "preconditioner", nowhere)
    got = fit_expansion(
        Blocks(X, ClassTargets(y, 3)),
        X[:20],
        kernel,
        StandardMap(),
        (1.0,),
        np.random.RandomState(0),
    )
    assert got.solver == "direct-float64"
    assert got.n_kernel_evaluations == sum(kernel.entries)


# ---- the choice of the ridge -------------------------------------------------------------------

GRID = tuple(10.0**power for power in range(-6, 4))


@pytest.mark.parametrize("seed", range(4))
def test_leave_one_out_on_some_rows_chooses_nearly_the_same_ridge(seed, monkeypatch):
    X, y = labelled(2000, noise=2.0, seed=seed)
    task = task_of(X, ClassTargets(y, 3), X[:60], alphas=GRID, seed=seed)
    (chosen, _), rows = Direct(np.float64).solve(task)
    assert rows == 2 * 2000
    monkeypatch.setattr(tasks, "TRIAL_ROWS", 1000)
    task = replace(task)  # which has looked at no rows yet
    (other, _), rows = Direct(np.float64).solve(task)
    assert rows == 2000 + 1000
    assert abs(GRID.index(chosen.alpha) - GRID.index(other.alpha)) <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_left_out_rows_choose_a_ridge_for_classes(dtype, rng):
    """Labels of which a quarter are wrong: hardly any ridge means learning them by heart."""
    X, fresh = rng.randn(1500, 2).astype(np.float32), rng.randn(1500, 2)
    y, truth = ((rows**2).sum(axis=1) > 1.4 for rows in (X, fresh))
    noisy = np.where(rng.rand(1500) < 0.25, ~y, y).astype(int)
    task = task_of(X, ClassTargets(noisy, 2), X[:250], 10.0, GRID)
    chosen, _ = Iterative(dtype).solve(task)
    features = task.feature_map.features()(fresh)
    accuracy = {}
    for a in GRID:
        (_, found), _ = Direct(np.float64).solve(replace(task, alphas=(a,)))
        accuracy[a] = (((features @ found.W + found.b)[:, 0] > 0) == truth).mean()
    best = max(accuracy.values())
    assert accuracy[chosen[0].alpha] > best - 0.03
    assert max(accuracy[GRID[0]], accuracy[GRID[-1]]) < best - 0.05  # there is a choice
    assert gap_of(task, chosen) <= 1e-6


def test_left_out_rows_choose_a_ridge_for_values(rng):
    X = rng.rand(600, 1)
    clean = np.sin(6 * X)
    alphas = (1e-8, 1e-4, 1.0, 10.0)
    chosen = {}
    for name, Y in {"clean": clean, "noisy": clean + rng.randn(600, 1)}.items():
        found, _ = Iterative(np.float64).solve(task_of(X, ValueTargets(Y), X[:100], 50.0, alphas))
        assert found is not None
        chosen[name] = found[0].alpha
    assert chosen["clean"] <= 1e-4
    assert chosen["noisy"] >= 1.0


def test_left_out_rows_are_rows_with_weight(rng):
    """Rows that weigh nothing are no rows: neither fits nor the choice see them."""
    X, y = labelled(1000)
    weight = np.zeros(1000)
    weight[:150] = 1.0
    task = task_of(X, ClassTargets(y, 3), X[:20], alphas=GRID, sample_weight=weight)
    found, _ = Iterative(np.float64).solve(task)
    assert found is not None
    assert gap_of(task, found) <= 1e-6


# ---- random problems ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random_problems_are_solved_by_every_way_that_allows_them(seed, monkeypatch):
    """As benchmarks/sweep.py, which takes 200 of them."""
    problem = reference.random_problem(1000 + seed)
    estimator = NystroemClassifier if problem.discrete else NystroemRegressor
    model = estimator(
        problem.n,
        kernel=problem.kernel,
        gamma=problem.gamma,
        alpha=problem.alpha,
        selection="uniform",
        random_state=seed,
    ).fit(problem.X, problem.y)
    dense = problem.dense(model.landmarks_)
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
        np.testing.assert_allclose(model.expansion_(problem.X), dense.scores, atol=bound)
    rng = np.random.RandomState(seed)
    feature_map = StandardMap().build(model.expansion_.kernel, model.landmarks_, rng)
    task = RidgeProblem(
        Blocks(problem.X, ValueTargets(problem.Y)), feature_map, (problem.alpha,), rng, "test"
    )
    names = allowed(task, monkeypatch) | {"direct-float64"}
    for way in WAYS:
        found, _ = way.solve(task) if way.name in names else (None, 0)
        if found is not None:
            gaps[way.name] = dense.gap(feature_map.collapse(found[1].W), found[1].b)
    assert "direct-float64" in gaps
    for name, gap in gaps.items():
        assert gap <= slack, name
        assert gap >= -slack or not dense.full_rank, name
