"""Learning after selection: gradients, training, and the guard that never makes a model worse."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone

from nysplus._holdout import PairedComparison
from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Softmax, Squared, loss_of
from nysplus._learning.refine import Refinement, make_refinement, refine
from nysplus._learning.search import Clock, Trial
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import Recipe, TrainingRows, train
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus._runtime.progress import Progress
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, Laplacian, Matern
from nysplus.landmarks import ClassCentroids, GivenLandmarks, Problem, Uniform

ROWS, D, R, N = 17, 5, 3, 6
SHORT = Refinement(n_epochs=2)


def _targets(kind, n_rows, rng):
    if kind == "labels":
        return IndicatorTargets(np.where(rng.rand(n_rows, 4) > 0.5, 1.0, -1.0))
    if kind == "values":
        return ValueTargets(rng.standard_normal((n_rows, 2)))
    n_classes = 2 if kind == "two" else 4
    return ClassTargets(rng.randint(n_classes, size=n_rows), n_classes)


KINDS = ["classes", "two", "labels", "values"]
KERNELS = [RBF(1.0), Matern(1.0, nu=1.5), Matern(1.0, nu=2.5)]


# ---- gradients ----------------------------------------------------------------------------------


def _machine(kind, rng, shift=None, kernel=KERNELS[0]):
    targets = _targets(kind, ROWS, rng)
    L = targets.n_outputs
    p = Parameters.of(
        0.4 * rng.standard_normal((D, R)),
        0.5 * rng.standard_normal((N, R)),
        rng.standard_normal((N, L)),
        np.float64,
        kernel,
    )
    loss = loss_of(targets, np.float64)
    return p, Gradient(p, rng.standard_normal(L), ROWS, shift), loss


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_equals_finite_differences(kind, smoothing, sparse, kernel, rng):
    X, weight = rng.standard_normal((ROWS, D)), rng.rand(ROWS, 1)
    shift = rng.standard_normal(D) if sparse else None
    p, gradient, loss = _machine(kind, rng, shift, kernel)
    rows = sp.csr_matrix(X) if sparse else X
    got = gradient(rows, loss, weight, smoothing).flat.copy()

    def total():
        return float(weight[:, 0] @ loss.losses(gradient.scores(rows), smoothing))

    expected, step = np.empty_like(got), 1e-6
    for i, value in enumerate(p.flat):
        p.flat[i] = value + step
        above = total()
        p.flat[i] = value - step
        expected[i] = (above - total()) / (2 * step)
        p.flat[i] = value
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_scores_are_those_of_the_formula(kind, kernel, rng):
    X = rng.standard_normal((ROWS, D))
    p, gradient, _ = _machine(kind, rng, kernel=kernel)
    K = kernel(X @ p.P, p.Z)
    np.testing.assert_allclose(gradient.scores(X), K @ p.A + gradient.b, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("rank", range(1, 9))
def test_single_precision_changes_no_gradient(rank, kernel, rng):
    """Whatever the rank: products and columns of some widths take ways of their own."""
    X, Y = rng.standard_normal((ROWS, D)), rng.standard_normal((ROWS, 1))
    P, Z, A = (rng.standard_normal(shape) for shape in ((D, rank), (N, rank), (N, 1)))
    single, double = (
        Gradient(Parameters.of(0.3 * P, Z, A, dtype, kernel), np.zeros(1), ROWS)(
            X.astype(dtype), Squared(Y.astype(dtype)), 1.0, 0.0
        )
        for dtype in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.flat, double.flat, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_row_at_a_landmark_has_a_gradient(kernel, rng):
    X = rng.standard_normal((ROWS, D))
    p, gradient, loss = _machine("values", rng, kernel=kernel)
    p.Z[:] = X[:N] @ p.P
    assert np.isfinite(gradient(X, loss, 1.0, 0.0).flat).all()
    np.testing.assert_allclose(gradient._K[np.arange(N), np.arange(N)], 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_repeated_rows(kind, rng):
    X, counts = rng.standard_normal((ROWS, D)), rng.randint(4, size=ROWS)
    p, gradient, loss = _machine(kind, rng)
    weighted = gradient(X, loss, counts[:, None].astype(float), 0.1).flat.copy()
    repeated = np.repeat(np.arange(ROWS), counts)
    larger = Gradient(p, gradient.b, len(repeated))
    literal = larger(X[repeated], loss.take(repeated), 1.0, 0.1).flat
    np.testing.assert_allclose(weighted, literal, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_about_their_mean_equal_dense_ones(kind, rng):
    X = sp.random(ROWS, D, 0.5, format="csr", random_state=0)
    mean = np.asarray(X.mean(axis=0)).ravel()
    p, gradient, loss = _machine(kind, rng)
    dense = gradient(X.toarray() - mean, loss, 1.0, 0.1).flat
    sparse = Gradient(p, gradient.b, ROWS, mean)(X, loss, 1.0, 0.1).flat
    np.testing.assert_allclose(sparse, dense, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_smaller_batches_use_the_same_memory(kernel, rng):
    X = rng.standard_normal((ROWS, D))
    _, gradient, loss = _machine("classes", rng, kernel=kernel)
    some = np.arange(5)
    fresh = Gradient(gradient.parameters, gradient.b, 5)(X[:5], loss.take(some), 1.0, 0.0)
    gradient(X, loss, 1.0, 0.0)
    again = gradient(X[:5], loss.take(some), 1.0, 0.0)
    np.testing.assert_array_equal(again.flat, fresh.flat)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_far_rows_have_no_numbers_that_slow_processors_down(kernel, rng):
    p, gradient, loss = _machine("classes", rng, kernel=kernel)
    p.A[:] *= 1e3
    g = gradient(1e3 * rng.standard_normal((ROWS, D)), loss, 1.0, 0.0).flat.astype(np.float32)
    assert np.isfinite(g).all()
    sizes = np.abs(g[g != 0])
    assert (sizes > np.finfo(np.float32).tiny).all()


# ---- training -----------------------------------------------------------------------------------


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
    recipe = Recipe(600, 100, smoothing=0.0, decay=0.0)
    p = train(rows, np.arange(200), start, b, recipe, seed=0)
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
    recipe = Recipe(800, 100, rate=0.08, coef_rate=0.1, decay=0.0)
    p = train(rows, np.arange(400), start, np.zeros(1), recipe, seed=0)
    left = rows.loss.losses(Gradient(p, np.zeros(1), 400).scores(X), 0.0)
    assert left.mean() < 1e-4 * Y.var()


def test_training_looks_only_at_the_rows_it_may_use(rng):
    rows, start, _ = _two_points(rng)
    used = np.arange(0, 200, 2)
    spoiled = rows.X.copy()
    spoiled[1::2] = np.nan
    recipe = Recipe(20, 16)
    p = train(rows, used, start, np.zeros(3), recipe, seed=0)
    assert np.isfinite(p.flat).all()
    q = train(replace(rows, X=spoiled), used, start, np.zeros(3), recipe, seed=0)
    np.testing.assert_array_equal(q.flat, p.flat)


def test_training_ends_in_time(rng):
    rows, start, _ = _two_points(rng)
    begin = time.process_time()  # other processes do not count
    p = train(rows, np.arange(200), start, np.zeros(3), Recipe(10**8, 64), seed=0, seconds=0.2)
    assert time.process_time() - begin < 2.0
    assert np.isfinite(p.flat).all()


@pytest.mark.parametrize(("n_steps", "n_reports"), [(7, 7), (400, 20), (410, 20)])
def test_training_tells_how_far_it_is(n_steps, n_reports, rng):
    rows, start, _ = _two_points(rng)
    told, recipe = [], Recipe(n_steps, 16)
    train(rows, np.arange(200), start, np.zeros(3), recipe, seed=0, advance=told.append)
    assert len(told) == n_reports
    assert sum(told) == recipe.n_rows
    assert max(told) == told[0]


def test_training_that_ends_early_tells_of_all_rows(rng):
    rows, start, _ = _two_points(rng)
    told, recipe = [], Recipe(10**8, 64)
    train(rows, np.arange(200), start, np.zeros(3), recipe, 0, seconds=0.01, advance=told.append)
    assert told == [recipe.n_rows]


def test_a_recipe_is_scaled():
    recipe = Recipe(100, 64, rate=0.04, coef_rate=0.3).scaled(0.2, 0.5)
    assert (recipe.n_steps, recipe.n_rows) == (20, 1280)
    assert (recipe.rate, recipe.coef_rate) == (0.02, 0.15)
    assert Recipe(2, 64).scaled(0.1, 1.0).n_steps == 1


# ---- rows made ready, and the way back ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [R, D])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [RBF(7.0), Matern(7.0, nu=2.5)], ids=repr)
def test_the_expansion_is_what_was_trained(kind, rank, sparse, kernel, rng):
    X = rng.standard_normal((80, D)) * [1e-3, 1.0, 1.0, 50.0, 0.0] + [5.0, 0.0, 0.0, 100.0, 1.0]
    given = sp.csr_matrix(X) if sparse else X
    block = Block(given, np.arange(80), _targets(kind, 80, rng))
    learner = TrainingSetup.of(block, rank, rng, kernel)
    p = learner.first(given[:N], 0.15)
    p.A[:] += 0.1 * rng.standard_normal(p.A.shape)
    expansion = learner.expansion(p, np.dtype(np.float64), score_unit=2.0)
    expected = Gradient(p, learner.b, 80, learner.rows.shift).scores(learner.rows.X) / 2.0
    if kind == "values":
        expected = expected * block.Y.std(axis=0) + block.Y.mean(axis=0) / 2.0
    np.testing.assert_allclose(expansion(given), expected, rtol=2e-4, atol=2e-5)
    assert expansion.landmarks.shape == (N, rank)
    assert expansion.projection.shape == (D, rank)


def test_values_are_learned_in_their_own_units(rng):
    X, weight = rng.standard_normal((80, D)), rng.randint(1, 4, 80).astype(float)
    Y = np.stack([1e6 + 1e3 * rng.standard_normal(80), 1e-3 * rng.rand(80), np.full(80, 7.0)], 1)
    block = Block(X, np.arange(80), ValueTargets(Y), weight)
    learner = TrainingSetup.of(block, D, rng)
    scaled, share = learner.rows.loss.Y, weight / weight.sum()
    np.testing.assert_allclose(share @ scaled, 0.0, atol=1e-5)
    np.testing.assert_allclose(share @ scaled**2, [1.0, 1.0, 0.0], atol=1e-5)
    expansion = learner.expansion(learner.first(X[:N], 0.15), np.dtype(np.float64))
    # before training, and far from all landmarks ever after
    np.testing.assert_allclose(expansion(X), np.tile(share @ Y, (80, 1)), rtol=1e-12)


def test_the_intercept_is_the_share_of_the_classes(rng):
    X, weight = rng.standard_normal((100, 2)), np.repeat([1.0, 3.0], 50)
    codes = np.repeat([0, 1, 2, 0], [30, 20, 25, 25])
    learner = TrainingSetup.of(Block(X, np.arange(100), ClassTargets(codes, 3), weight), 2, rng)
    np.testing.assert_allclose(np.exp(learner.b), [105 / 200, 20 / 200, 75 / 200], atol=0.01)
    assert np.exp(learner.b).sum() == pytest.approx(1.0)
    two = TrainingSetup.of(Block(X, np.arange(100), ClassTargets(codes // 2, 2), weight), 2, rng)
    assert two.b == pytest.approx([np.log(75 / 125)], abs=0.02)


def test_the_first_width_is_in_units_of_the_nearest_landmarks(rng):
    X = rng.standard_normal((200, D))
    learner = TrainingSetup.of(Block(X, np.arange(200), _targets("classes", 200, rng)), D, rng)
    Z = X[:20]
    p = learner.first(Z, 0.15)
    D2 = ((learner.U[:, None] - (Z - learner.mean)) ** 2).sum(axis=2)
    typical = np.median(np.sort(D2, axis=1)[:, :3].mean(axis=1))
    scale = np.sqrt(0.15 / typical)
    np.testing.assert_allclose(p.Z, scale * (Z - learner.mean), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p.P, scale * np.diag(learner.unit), rtol=1e-5)


# ---- the verdict --------------------------------------------------------------------------------


def test_verdict_compares_row_by_row():
    before = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    after = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    weight = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    verdict = PairedComparison.of(before, after, weight, 1.0)
    assert verdict.n_rows == 7
    assert (verdict.before, verdict.after) == (0.4, 0.7)
    assert verdict.errors == pytest.approx(3.0 / np.sqrt(1 + 1 + 9 + 4))
    assert verdict.uncertain
    assert not verdict.better
    assert PairedComparison.of(before, after, weight, 0.5).better
    assert "40.00 % before, 70.00 % after on 7 held-out rows" in str(verdict)


def test_a_model_that_changes_nothing_is_not_better():
    same = np.array([1.0, 0.0])
    assert not PairedComparison.of(same, same, np.ones(2), 1.0).better


# ---- the whole ----------------------------------------------------------------------------------


def _problem(X, targets, progress=None, **weights):
    blocks = Blocks(X, targets, progress=progress or Progress(), **weights)
    return Problem(blocks, RBF("scale").resolve(blocks, None), StandardMap(), (1e-3, 1e-1, 1e1))


def _refined(problem, n=20, refinement=SHORT, seed=0, selector=None):
    rng = np.random.RandomState(seed)
    selector = selector or ClassCentroids()
    Z = selector.select(problem, n, rng).points
    start = fit_expansion(
        problem.blocks, Z, problem.kernel, problem.approximation, problem.alphas, rng
    ).expansion
    return start, refine(problem, selector, start, refinement, rng)


def _accuracy(expansion, X, targets):
    return targets.hits(expansion(X)).mean()


def _waves(n_rows, seed=0, n_classes=3):
    """Rows of six features, of which the classes depend on two."""
    X = np.random.RandomState(seed).uniform(-2, 2, (n_rows, 6))
    codes = (np.sin(2 * X[:, 0]) > X[:, 1]).astype(np.intp)
    if n_classes == 3:
        codes[X[:, 1] > 1] = 2
    return X, ClassTargets(codes, n_classes)


@pytest.fixture(scope="module")
def learned():
    """A refined model of 600 rows, and the model that it started from."""
    return _refined(_problem(*_waves(600)), 15, Refinement(rank=5))


def test_learning_finds_the_features_that_matter(learned):
    start, refined = learned
    assert refined.kept
    assert refined.verdict.n_rows == 600  # every row was held out once
    assert len(refined.row_scores) == 5
    X, targets = _waves(2000, seed=1)
    assert _accuracy(refined.expansion, X, targets) > _accuracy(start, X, targets) + 0.05
    sizes = np.linalg.norm(refined.expansion.projection, axis=1)
    assert sizes[:2].min() > 2.0 * sizes[2:].max()


def test_the_learned_model_has_the_form_of_every_model(learned):
    expansion = learned[1].expansion
    assert isinstance(expansion, KernelExpansion)
    assert expansion.landmarks.shape == (15, 5)
    assert expansion.projection.shape == (6, 5)
    assert expansion.dual_coef.shape == (15, 3)
    assert expansion.intercept.shape == (3,)
    for array in (expansion.landmarks, expansion.dual_coef, expansion.projection):
        assert array.dtype == np.float64
    # about as large as the scores of a ridge fitted to ±1
    assert 0.5 < np.abs(expansion(_waves(600)[0])).max() < 2.0


def test_probabilities_are_honest(learned):
    _, refined = learned
    X, targets = _waves(2000, seed=1)
    scores = refined.expansion(X)
    P = refined.scaling.probabilities(scores)
    assert abs(P.max(axis=1).mean() - targets.hits(scores).mean()) < 0.05


def test_rows_far_from_all_landmarks_get_the_shares_of_the_classes(learned):
    expansion = learned[1].expansion
    far = np.vstack([1e3 * np.ones(6), -1e6 * np.ones(6), 1e12 * np.eye(6)[0]])
    for model in (expansion, replace(expansion, dual_coef=expansion.dual_coef.astype(np.float32))):
        np.testing.assert_allclose(model(far), np.tile(expansion.intercept, (3, 1)), rtol=1e-6)
    shares = np.bincount(_waves(600)[1].codes)
    assert expansion.intercept.argmax() == shares.argmax()


@pytest.mark.parametrize("seed", range(3))
def test_noise_makes_no_model_worse(seed):
    rng = np.random.RandomState(seed)
    X, codes = rng.standard_normal((2300, 4)), (rng.rand(2300) < 0.2).astype(np.intp)
    problem = _problem(X[:300], ClassTargets(codes[:300], 2))
    start, refined = _refined(problem, 15, Refinement(n_epochs=20), seed)
    targets = ClassTargets(codes[300:], 2)
    before, after = (_accuracy(e, X[300:], targets) for e in (start, refined.expansion))
    assert after >= before - 0.01


@pytest.mark.parametrize("few_rows", [5000, 100])
def test_a_model_that_has_not_learned_is_not_kept(few_rows, digits, monkeypatch):
    monkeypatch.setattr("nysplus._learning.search.FEW_ROWS", few_rows)
    X, y = digits
    start, refined = _refined(_problem(X[:400], ClassTargets(y[:400], 10)), 20, SHORT)
    assert refined.verdict.errors < -2.0
    assert not refined.kept
    assert refined.expansion is start
    assert refined.scaling is None


def test_the_better_model_of_many_rows_goes_on_with_all_of_them(monkeypatch):
    monkeypatch.setattr("nysplus._learning.search.FEW_ROWS", 500)
    monkeypatch.setattr("nysplus._learning.search.TRIED_ROWS", 500)
    monkeypatch.setattr("nysplus._learning.search.TRIED_COST", 0.0)
    monkeypatch.setattr("nysplus._learning.search.HONEST_RATIO", 10)
    lines = []
    problem = _problem(*_waves(1500, n_classes=2), Progress(_Listener(lines)))
    start, refined = _refined(problem, 20, Refinement())
    assert refined.kept
    assert refined.expansion.dual_coef.shape == (20, 1)
    assert refined.verdict.n_rows == 300  # clear enough after one split
    X, targets = _waves(2000, seed=1, n_classes=2)
    assert _accuracy(refined.expansion, X, targets) > _accuracy(start, X, targets) + 0.05
    # candidates, the best of them in full, what was found, all rows
    assert [line for line in lines if line == "refine"] == ["refine"] * 3
    assert "the learned model is kept" in lines[-2]


def test_where_it_is_uncertain_more_rows_are_held_out(monkeypatch):
    monkeypatch.setattr("nysplus._learning.search.FEW_ROWS", 100)
    monkeypatch.setattr("nysplus._holdout.UNCERTAIN", (-np.inf, np.inf))
    refined = _refined(_problem(*_waves(300)), 15, SHORT)[1]
    assert refined.verdict.n_rows == 180  # three fifths


class _Listener:
    def __init__(self, lines):
        self.lines = lines

    def note(self, text):
        self.lines.append(text)

    def stage(self, name, n_rows, n_blocks):
        self.lines.append(name)
        return nullcontext(lambda rows: None)


def test_equal_seeds_give_equal_models(moons, monkeypatch):
    X, codes = moons
    problem = _problem(X, ClassTargets(codes, 2))
    first, second = (_refined(problem, 10, seed=3)[1] for _ in range(2))
    monkeypatch.setattr("nysplus._runtime.threads.thread_count", lambda: 2)
    third = _refined(problem, 10, seed=3)[1]
    for other in (second, third):
        assert other.row_scores == first.row_scores
        assert other.verdict == first.verdict
        np.testing.assert_array_equal(other.expansion(X), first.expansion(X))
    assert _refined(problem, 10, seed=4)[1].row_scores != first.row_scores


def test_labels_that_hold_or_not():
    X, _ = _waves(400)
    Y = np.stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > X[:, 1], X[:, 1] > 0.5], axis=1)
    targets = IndicatorTargets(np.where(Y, 1.0, -1.0))
    refined = _refined(_problem(X, targets), 10, Refinement(n_epochs=30))[1]
    assert refined.kept
    assert refined.scaling.multilabel
    assert refined.expansion.dual_coef.shape == (10, 3)
    assert targets.hits(refined.expansion(X)).mean() > refined.verdict.before + 0.1


def test_sparse_rows_learn_as_dense_ones_do():
    X, targets = _waves(300)
    problem, rows = _problem(X, targets), sp.csr_matrix(X)
    learners = [
        TrainingSetup.of(Block(given, np.arange(300), targets), 6, np.random.RandomState(0))
        for given in (X, rows)
    ]
    models = [
        one.expansion(
            train(one.rows, np.arange(300), one.first(X[:15], 0.15), one.b, Recipe(30, 32), seed=0),
            np.dtype(np.float64),
        )
        for one in learners
    ]
    np.testing.assert_allclose(models[1](rows), models[0](X), rtol=1e-2, atol=1e-3)
    selector = GivenLandmarks(X[:15])
    dense, sparse = (
        _refined(replace(problem, blocks=Blocks(given, targets)), 15, SHORT, selector=selector)[1]
        for given in (X, rows)
    )
    np.testing.assert_allclose(sparse.row_scores, dense.row_scores, atol=0.01)
    assert sparse.verdict.before == dense.verdict.before


def test_directions_of_sparse_rows():
    X, targets = _waves(600)
    rows = sp.csr_matrix(X)
    refined = _refined(_problem(rows, targets), 15, Refinement(rank=5, n_epochs=30))[1]
    assert refined.kept
    assert refined.expansion.landmarks.shape == (15, 5)
    assert refined.expansion(rows).shape == (600, 3)


def test_float32_rows_give_a_float32_model():
    X, targets = _waves(600)
    problem = _problem(X.astype(np.float32), targets)
    refined = _refined(problem, 15, Refinement(n_epochs=30))[1]
    assert refined.kept
    for array in (refined.expansion.landmarks, refined.expansion.dual_coef):
        assert array.dtype == np.float32


def test_weights_of_classes_count(moons):
    """What is judged is the weighted accuracy, and the intercept follows the weights."""
    X, codes = moons
    factors = np.where(codes == 1, 20.0, 1.0)
    problem = _problem(
        X + 0.3 * np.random.RandomState(0).standard_normal(X.shape),
        ClassTargets(codes, 2),
        class_weight=factors,
    )
    rng = np.random.RandomState(0)
    learner = TrainingSetup.of(problem.blocks.gather(np.arange(300)), 2, rng)
    assert learner.b == pytest.approx([np.log(20.0)], abs=0.2)
    refined = _refined(problem, 10, Refinement(n_epochs=10))[1]
    predicted = refined.expansion(problem.blocks.X)[:, 0] > 0
    assert predicted[codes == 1].mean() > 0.95
    assert refined.verdict.before > 0.9  # unweighted, it would be below


def test_the_unrefined_model_is_judged_without_the_rows_that_judge(moons):
    X, codes = moons
    problem = _problem(X, ClassTargets(codes, 2))
    start = fit_expansion(
        problem.blocks, X[:30], problem.kernel, StandardMap(), (1e-3,), np.random.RandomState(0)
    ).expansion
    rows = problem.blocks.gather(np.arange(300))
    learner = TrainingSetup.of(rows, 2, np.random.RandomState(0))
    trial = Trial(problem, Uniform(), start, rows, learner, 0, Clock(None))
    folds = trial.folds()
    assert sorted(np.concatenate(folds)) == list(range(300))
    for fold in folds:
        assert abs(codes[fold].mean() - codes.mean()) < 0.02
        split = trial.split(fold)
        held = {tuple(row) for row in X[fold]}
        assert not held & {tuple(row) for row in split.landmarks}
        assert set(split.others) == set(range(300)) - set(fold)
    # with many rows for each landmark it is judged as it is
    many = replace(trial, start=replace(start, landmarks=X[:2], dual_coef=start.dual_coef[:2]))
    np.testing.assert_array_equal(many.split(folds[0]).landmarks, X[:2])


def test_time_is_kept(moons):
    X, codes = moons
    refinement = Refinement(n_epochs=10**6, max_seconds=0.5)
    begin = time.process_time()  # other processes do not count
    _refined(_problem(X, ClassTargets(codes, 2)), 10, refinement)
    assert time.process_time() - begin < 5.0


def test_a_clock_without_a_limit_has_no_shares():
    assert Clock(None).share(0.5) is None
    assert 0 < Clock(10.0).share(0.5) <= 5.0
    assert Clock(1e-9).share(0.5) > 0


def test_too_few_rows_stay_as_they_are(moons):
    X, codes = moons
    lines = []
    problem = _problem(X[:30], ClassTargets(codes[:30], 2), Progress(_Listener(lines)))
    start, refined = _refined(problem, 5)
    assert refined.expansion is start
    assert refined.verdict is None
    assert "30 rows are too few" in lines[-1]


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_are_learned_from_fit_in_the_memory(sparse, rng):
    X = rng.standard_normal((2000, 50)) * (rng.rand(2000, 50) < 0.1)
    rows = sp.csr_matrix(X) if sparse else X
    problem = _problem(rows, ClassTargets((X[:, 0] > 0).astype(np.intp), 2))
    start = KernelExpansion(problem.kernel, X[:5], np.ones((5, 1)), np.zeros(1))
    with config_context(working_memory=0.25):
        refined = refine(problem, GivenLandmarks(X[:5]), start, SHORT, rng)
    # 128 KiB for 50 × 12 bytes, or for 5 entries of 12 bytes twice
    held = refined.verdict.n_rows
    assert (900 < held <= 1100) if sparse else held == 218


# ---- parameters ---------------------------------------------------------------------------------


def test_ways_follow_the_number_of_rows():
    steps = {n: Refinement().ways(n)[0].recipe for n in (500, 15_000, 100_000)}
    assert [recipe.batch for recipe in steps.values()] == [64, 256, 512]
    assert [recipe.n_steps for recipe in steps.values()] == [600, 2153, 2780]
    first, wide, bare, sharp, gentle = Refinement().ways(15_000)
    assert (first.width, wide.width, wide.recipe) == (0.15, 0.05, first.recipe)
    assert (bare.width, bare.recipe.smoothing, sharp.recipe.smoothing) == (0.05, 0.0, 0.0)
    # a longer run where the rows are many, but no more than 40 times through them
    assert first.longer == pytest.approx(40 / (4500 / np.sqrt(15_000)))
    assert Refinement().ways(10**6)[0].longer == 4.0
    assert Refinement(n_epochs=3).ways(10**6)[0].longer == 1.0
    assert [way.width for way in Refinement().ways(500, discrete=False)] == [1.5, 5.0, 5.0, 5.0]
    assert gentle.recipe.n_steps == -(-first.recipe.n_steps // 2)
    assert Refinement(n_epochs=3, batch_size=100).ways(250)[0].recipe.n_steps == 8


def test_ranks():
    assert [Refinement().rank_of(d) for d in (5, 32, 784)] == [5, 32, 32]
    assert Refinement(rank=7).rank_of(784) == 7


def test_what_refine_may_be():
    assert make_refinement(False) is None
    assert make_refinement(None) is None
    assert isinstance(make_refinement(True), Refinement)
    assert make_refinement(SHORT) is SHORT
    for wrong in ("yes", 1, 0.5):
        with pytest.raises(ValueError, match="False, True, or a Refinement object"):
            make_refinement(wrong)
    assert clone(Refinement(rank=3)).rank == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": 9}, "rank=9 exceeds the 4 features"),
        ({"rank": "full"}, "rank='full' is not known"),
        ({"rank": 0}, "rank=0 must be an integer of at least 1"),
        ({"n_epochs": 0}, "n_epochs=0 must be"),
        ({"batch_size": 1.5}, "batch_size=1.5 must be"),
        ({"max_rows": 10}, "max_rows=10 must be an integer of at least 40"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a finite number above 0"),
        ({"max_seconds": np.inf}, "max_seconds=inf must be"),
        ({"max_seconds": True}, "max_seconds=True must be"),
        ({"widths": ()}, "at least one positive number"),
        ({"widths": 0.1}, "at least one positive number"),
        ({"widths": (0.1, -1)}, "widths=-1 must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        Refinement(**parameters).check(RBF(), 4)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Matern(nu=0.5)], ids=repr)
def test_kernels_with_a_kink_are_named(kernel):
    with pytest.raises(ValueError, match="moves landmarks along the gradient"):
        Refinement().check(kernel, 4)
    Refinement().check(Matern(nu=2.5), 4)
