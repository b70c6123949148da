"""Refined models: better where learning helps, and never worse than the unrefined model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone

from nysplus._bytes.budget import Budget
from nysplus._learning.candidates import DEFAULT_RULES, SearchRules
from nysplus._learning.refine import refine
from nysplus._learning.refinement import Refinement, make_refinement
from nysplus._learning.setup import TrainingSetup
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets
from nysplus._runtime.progress import Progress
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, Laplacian, Matern
from nysplus.landmarks import ClassCentroids, GivenLandmarks

SHORT = Refinement(n_epochs=2)


def _problem(X, targets, **more):
    kernel = RBF("scale").resolve(Blocks(X, targets), None)
    return factories.problem(X, targets, kernel, alphas=(1e-3, 1e-1, 1e1), **more)


def _refined(problem, n=20, refinement=SHORT, seed=0, selector=None, rules=DEFAULT_RULES):
    """Return the unrefined model of a problem, and the result of its refinement."""
    rng = np.random.RandomState(seed)
    selector = selector or ClassCentroids()
    start = problem.fit(selector.select(problem, n, rng).points, rng).expansion
    return start, refine(problem, problem.blocks, selector, start, refinement, rng, rules=rules)


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
    assert refined.comparison.n_rows == 600  # every row was held out once
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
def test_a_model_that_has_not_learned_is_not_kept(few_rows, digits):
    X, y = digits
    problem, rules = _problem(X[:400], ClassTargets(y[:400], 10)), SearchRules(few_rows=few_rows)
    start, refined = _refined(problem, 20, SHORT, rules=rules)
    assert refined.comparison.errors < -2.0
    assert not refined.kept
    assert refined.expansion is start
    assert refined.scaling is None


def test_the_best_model_of_many_rows_continues_with_all_of_them():
    rules = SearchRules(few_rows=500, clean_errors=1.0, honest_ratio=10)
    lines = []
    problem = _problem(*_waves(1500, n_classes=2), progress=Progress(_Listener(lines)))
    start, refined = _refined(problem, 20, Refinement(), rules=rules)
    assert refined.kept
    assert refined.expansion.dual_coef.shape == (20, 1)
    assert refined.comparison.n_rows == 300  # clear enough after one fold
    X, targets = _waves(2000, seed=1, n_classes=2)
    assert _accuracy(refined.expansion, X, targets) > _accuracy(start, X, targets) + 0.05
    # a quick look, a long run, and a run on all rows
    assert [line for line in lines if line == "refine"] == ["refine"] * 3
    assert "the learned model is kept" in lines[-2]


def test_the_fit_says_why_bytes_stay_unused():
    rules = SearchRules(clean_errors_of_many=-1.0, rising=np.inf, needed_with_few_rows=-np.inf)
    lines = []
    problem = _problem(*_waves(600), progress=Progress(_Listener(lines)))
    rng, selector = np.random.RandomState(0), ClassCentroids()
    start = problem.fit(selector.select(problem, 20, rng).points, rng).expansion
    budget = Budget(8192)
    args = problem, problem.blocks, selector, start, SHORT, rng, budget
    assert refine(*args, rules=rules).expansion.landmarks.shape[0] == 50
    (line,) = (line for line in lines if "no better on held-out rows" in line)
    assert line.startswith("refine: 50 landmarks; more of the 300 that fit")


def test_where_it_is_uncertain_more_rows_are_held_out():
    rules = SearchRules(few_rows=100, uncertain=(-np.inf, np.inf))
    refined = _refined(_problem(*_waves(300)), 15, SHORT, rules=rules)[1]
    assert refined.comparison.n_rows == 180  # three fifths


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
        assert other.candidate_scores == first.candidate_scores
        assert other.comparison == first.comparison
        np.testing.assert_array_equal(other.expansion(X), first.expansion(X))
    assert _refined(problem, 10, seed=4)[1].candidate_scores != first.candidate_scores


def test_labels_are_learned():
    X, _ = _waves(400)
    Y = np.stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > X[:, 1], X[:, 1] > 0.5], axis=1)
    targets = IndicatorTargets(np.where(Y, 1.0, -1.0))
    refined = _refined(_problem(X, targets), 10, Refinement(n_epochs=30))[1]
    assert refined.kept
    assert refined.scaling.multilabel
    assert refined.expansion.dual_coef.shape == (10, 3)
    assert targets.hits(refined.expansion(X)).mean() > refined.comparison.before + 0.1


def test_sparse_rows_are_refined_as_dense_ones():
    X, targets = _waves(300)
    problem, selector = _problem(X, targets), GivenLandmarks(X[:15])
    dense, sparse = (
        _refined(replace(problem, blocks=Blocks(given, targets)), 15, SHORT, selector=selector)[1]
        for given in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(sparse.candidate_scores, dense.candidate_scores, atol=0.01)
    assert sparse.comparison.before == dense.comparison.before


@pytest.mark.slow
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
    """Models are compared by weighted accuracy, and the intercept follows the weights."""
    X, codes = moons
    factors = np.where(codes == 1, 20.0, 1.0)
    problem = _problem(
        X + 0.3 * np.random.RandomState(0).standard_normal(X.shape),
        ClassTargets(codes, 2),
        class_weight=factors,
    )
    rng = np.random.RandomState(0)
    setup = TrainingSetup.of(problem.blocks.gather(np.arange(300)), 2, rng)
    assert setup.b == pytest.approx([np.log(20.0)], abs=0.2)
    refined = _refined(problem, 10, Refinement(n_epochs=10))[1]
    predicted = refined.expansion(problem.blocks.X)[:, 0] > 0
    assert predicted[codes == 1].mean() > 0.95
    assert refined.comparison.before > 0.9  # unweighted, it would be below


def test_time_is_limited(moons):
    """With as many epochs as take hours."""
    X, codes = moons
    refinement = Refinement(n_epochs=10**6, max_seconds=0.5)
    refined = _refined(_problem(X, ClassTargets(codes, 2)), 10, refinement)[1]
    assert refined.comparison.n_rows % 60 == 0  # as many of the five folds as time allows


def test_too_few_rows_stay_as_they_are(moons):
    X, codes = moons
    lines = []
    targets = ClassTargets(codes[:30], 2)
    problem = _problem(X[:30], targets, progress=Progress(_Listener(lines)))
    start, refined = _refined(problem, 5)
    assert refined.expansion is start
    assert refined.comparison is None
    assert "30 rows are too few" in lines[-1]


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_are_learned_from_fit_in_the_memory(sparse, rng):
    X = rng.standard_normal((2000, 50)) * (rng.rand(2000, 50) < 0.1)
    rows = sp.csr_matrix(X) if sparse else X
    problem = _problem(rows, ClassTargets((X[:, 0] > 0).astype(np.intp), 2))
    start = KernelExpansion(problem.kernel, X[:5], np.ones((5, 1)), np.zeros(1))
    with config_context(working_memory=0.25):
        refined = refine(problem, problem.blocks, GivenLandmarks(X[:5]), start, SHORT, rng)
    # 128 KiB for 50 × 12 bytes, or for 5 entries of 12 bytes twice
    n_rows = refined.comparison.n_rows
    assert (900 < n_rows <= 1100) if sparse else n_rows == 218


# ---- parameters ---------------------------------------------------------------------------------


def test_recipes_follow_the_number_of_rows():
    options = [Refinement().recipes(n)[0].options for n in (500, 15_000, 100_000)]
    assert [each.batch_size for each in options] == [64, 256, 512]
    assert [each.n_steps for each in options] == [600, 1172, 1172]
    assert [each.beta2 for each in options] == [0.95] * 3
    first, wide, unsmoothed, decayed, gentle = Refinement().recipes(15_000)
    assert (first.width, wide.width, wide.options) == (0.15, 0.05, first.options)
    assert (unsmoothed.width, unsmoothed.options.label_smoothing) == (0.05, 0.0)
    assert (decayed.width, decayed.options.weight_decay) == (0.15, 0.05)
    assert gentle.options.n_steps == -(-first.options.n_steps // 2)
    assert Refinement(n_epochs=3, batch_size=100).recipes(250)[0].options.n_steps == 8
    values = Refinement().recipes(500, discrete=False)
    assert [recipe.width for recipe in values] == [1.5, 5.0, 5.0, 5.0]
    assert [recipe.options.weight_decay for recipe in values] == [0.0, 0.0, 0.1, 0.5]


def test_runs_may_become_longer_unless_their_epochs_are_given():
    assert Refinement().recipes(15_000)[0].max_length == 6.0
    assert Refinement(n_epochs=3).recipes(15_000)[0].max_length == 1.0


def test_without_a_search_there_is_one_recipe():
    assert len(Refinement(search=False).recipes(500)) == 1


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
