"""gamma="auto": the width by leave-one-out, on rows that made no landmark."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._fit.plan import AUTO_ALPHAS
from nysplus._holdout import split
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus._tuning import width as tuning
from nysplus.kernels import RBF, Laplacian, Linear, Polynomial
from nysplus.landmarks import Auto, GivenLandmarks, KMeans, NegativeMargin, Problem, Uniform


def checkerboard(rng, rows, cells):
    """Classes of a checkerboard with so many cells a side: narrow kernels for many cells."""
    X = rng.rand(rows, 2)
    return X, (np.floor(cells * X).sum(axis=1) % 2).astype(int)


@pytest.mark.parametrize("rule", [Auto(), KMeans(), Uniform(), NegativeMargin()], ids=repr)
def test_fast_changes_want_narrow_kernels(rule, rng):
    X = rng.rand(3000, 2)
    odds = 3 * np.sin(25 * X[:, 0]) * np.sin(25 * X[:, 1])
    y = (rng.rand(3000) < 1 / (1 + np.exp(-odds))).astype(int)
    scale, auto = (
        NystroemClassifier(60, gamma=gamma, selection=rule, random_state=0).fit(X[:2000], y[:2000])
        for gamma in ("scale", "auto")
    )
    assert auto.gamma_ >= 4 * scale.gamma_
    assert auto.score(X[2000:], y[2000:]) > scale.score(X[2000:], y[2000:])


def test_chosen_width_is_nearly_the_best(rng):
    X, y = checkerboard(rng, 6000, 4)
    train, test = slice(0, 4000), slice(4000, None)
    scale = 1 / (2 * X[train].var())
    scores = {}
    for octave in tuning.OCTAVES:
        model = NystroemClassifier(80, gamma=scale * 2.0**octave, random_state=0)
        scores[octave] = model.fit(X[train], y[train]).score(X[test], y[test])
    auto = NystroemClassifier(80, gamma="auto", random_state=0).fit(X[train], y[train])
    assert min(scores.values()) < max(scores.values()) - 0.1
    assert auto.score(X[test], y[test]) > max(scores.values()) - 0.02


def test_values_are_compared_by_their_error(rng):
    X = rng.rand(3000, 1)
    widths = [
        NystroemRegressor(50, gamma="auto", random_state=0).fit(X, np.sin(k * X[:, 0])).gamma_
        for k in (3, 60)
    ]
    assert widths[1] >= 4 * widths[0]


def test_no_validation_row_is_a_landmark(rng):
    X, y = checkerboard(rng, 500, 3)
    blocks = Blocks(X, ClassTargets(y, 2))
    validation, others = split(blocks, 100, 400, rng)
    problem = Problem(others, RBF(), StandardMap(), AUTO_ALPHAS)
    found = tuning.choose_width(validation, problem, Uniform(), 300, rng)
    landmarks, training, unseen = (
        {tuple(row) for row in rows} for rows in (found.landmarks, others.X, validation.X)
    )
    assert len(landmarks) == 300
    assert landmarks <= training
    assert not landmarks & unseen


def test_leave_one_out_is_that_of_fits_without_the_row(rng):
    X, y = checkerboard(rng, 40, 2)
    validation = Blocks(X, ClassTargets(y, 2)).gather(np.arange(40))
    Z, kernel, alphas = rng.rand(6, 2), RBF(3.0), (1e-3, 1.0)
    accuracies, errors = tuning._leave_one_out(validation, kernel, Z, alphas, rng)
    for number, alpha in enumerate(alphas):
        scores = np.empty(40)
        for i in range(40):
            rest = np.arange(40) != i
            model = NystroemClassifier(selection=Z, gamma=3.0, alpha=alpha).fit(X[rest], y[rest])
            scores[i] = model.decision_function(X[i : i + 1])[0]
        assert accuracies[number] == pytest.approx(np.mean((scores > 0) == y))
        squares = np.minimum(((2 * y - 1 - scores) / 2) ** 2, 1.0)
        assert errors[number] == pytest.approx(squares.mean(), rel=1e-6)


def test_errors_of_values_are_clipped_in_their_own_units(rng):
    X, y = rng.rand(50, 1), rng.randn(50, 2)
    Z = rng.rand(5, 1)

    def scored(Y):
        validation = Blocks(X, ValueTargets(Y)).gather(np.arange(50))
        return tuning._leave_one_out(validation, RBF(1.0), Z, (0.1,), rng)

    accuracies, errors = scored(y)
    assert accuracies is None
    assert scored(1e6 * y + 3)[1] == pytest.approx(errors, rel=1e-6)
    wild = y.copy()
    wild[0] = 1e9
    assert scored(wild)[1] < 2 * tuning.MAX_VARIANCES


@pytest.mark.parametrize(
    "kernel", ["laplacian", "matern", "polynomial", "sigmoid"], ids=lambda kernel: kernel
)
def test_every_kernel_with_a_width(kernel, rng):
    X, y = checkerboard(rng, 300, 2)
    model = NystroemClassifier(20, kernel=kernel, gamma="auto", random_state=0).fit(X, y)
    assert model.gamma_ > 0


def test_kernels_without_a_width_ignore_it(rng):
    X = rng.rand(100, 2)
    model = NystroemClassifier(10, kernel="linear", gamma="auto").fit(X, X[:, 0] > 0.5)
    assert model.gamma_ is None
    assert not Linear().is_tuned


@pytest.mark.parametrize("kernel", [RBF("auto"), Laplacian("auto"), Polynomial("auto")], ids=repr)
def test_kernel_objects_have_it_too(kernel, rng):
    X, y = checkerboard(rng, 200, 2)
    model = NystroemClassifier(10, kernel=kernel, random_state=0).fit(X, y)
    assert model.gamma_ > 0
    assert model.kernel.gamma == "auto"


def test_few_rows(rng):
    for rows in (2, 3, 5, 12):
        X, y = rng.rand(rows, 2), np.arange(rows) % 2
        model = NystroemClassifier(2, gamma="auto", random_state=0).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()


def test_given_landmarks_sparse_rows_and_weights(rng):
    X, y = checkerboard(rng, 400, 2)
    Z = X[:30]
    assert isinstance(GivenLandmarks(Z), GivenLandmarks)
    model = NystroemClassifier(selection=Z, gamma="auto", random_state=0)
    np.testing.assert_array_equal(model.fit(X, y).landmarks_, Z)
    sparse = NystroemClassifier(20, gamma="auto", random_state=0).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.landmarks_)
    weight = np.r_[np.ones(200), np.zeros(200)]
    half = NystroemClassifier(20, gamma="auto", random_state=0)
    assert half.fit(X, y, sample_weight=weight).gamma_ > 0


def test_same_seed_same_width(rng):
    X, y = checkerboard(rng, 500, 3)
    model = NystroemClassifier(20, gamma="auto", random_state=3)
    assert model.fit(X, y).gamma_ == clone(model).fit(X, y).gamma_


def test_the_transformer_goes_by_y(rng):
    X, y = checkerboard(rng, 500, 4)
    features = Nystroem(gamma="auto", n_components=40, random_state=0)
    assert features.fit(X, y).gamma_ > 0
    assert features.fit(X, X[:, 0]).gamma_ > 0  # values
    with pytest.raises(ValueError, match="gamma='auto' needs targets, and y is None"):
        features.fit(X)


@pytest.mark.slow
def test_grid_search_over_everything_new(rng):
    X, y = checkerboard(rng, 200, 2)
    grid = {
        "gamma": ["scale", "auto"],
        "selection": ["auto", "class-centroids", "rpcholesky"],
        "metric": [None, "diagonal", 1],
    }
    search = GridSearchCV(NystroemClassifier(10, alpha=1e-2, random_state=0), grid, cv=2)
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_nine_widths_about_scale(rng, monkeypatch):
    X, y = checkerboard(rng, 300, 2)
    validation, others = split(Blocks(X, ClassTargets(y, 2)), 100, 200, rng)
    middle = RBF("scale").resolve(others, rng)
    scored, gammas = tuning._scored, []
    monkeypatch.setattr(
        tuning, "_scored", lambda rows, k, *rest: gammas.append(k.gamma) or scored(rows, k, *rest)
    )
    problem = Problem(others, RBF(), StandardMap(), AUTO_ALPHAS)
    best = tuning.choose_width(validation, problem, Uniform(), 10, rng)
    np.testing.assert_allclose(np.sort(gammas) / middle.gamma, 2.0 ** np.arange(-4, 5))
    assert gammas[0] == middle.gamma  # of equals the first is chosen
    assert best.score <= best.accuracy
    assert StandardMap().build(best.kernel, best.landmarks, rng).rank > 0


@pytest.mark.parametrize("discrete", [True, False])
def test_stand_ins_are_rows_where_the_selector_takes_rows(discrete, rng):
    X = rng.randn(80, 2)
    targets = ClassTargets(rng.randint(0, 2, 80), 2) if discrete else ValueTargets(X[:, :1])
    problem = Problem(Blocks(X, targets), RBF(1.0), StandardMap(), (1e-2,))

    def are_rows(selector):
        points = tuning._landmarks(problem, selector, 10, np.random.RandomState(0))
        return bool((points[:, None] == X[None]).all(axis=2).any(axis=1).all())

    assert are_rows(Uniform())
    assert not are_rows(KMeans())
    assert not are_rows(Auto())


def test_the_best_of_several_kernels_is_tuned(rng):
    """Steps along the axes suit the ℓ1 distance, waves along any direction the Euclidean one."""
    X = rng.randn(1200, 3)
    for Y, kind in ((np.sign(X[:, :1] * X[:, 1:2]), Laplacian), (np.sin(X @ np.ones((3, 1))), RBF)):
        problem = Problem(Blocks(X, ValueTargets(Y)), RBF("auto"), StandardMap(), AUTO_ALPHAS)
        found = tuning.tune_kernel(problem, Uniform(), 100, rng, (Laplacian("auto"),))
        assert type(found) is kind


def test_a_kernel_is_scored_as_it_is(rng):
    X, y = checkerboard(rng, 600, 2)
    validation, others = split(Blocks(X, ClassTargets(y, 2)), 200, 400, rng)

    def scored(kernel):
        problem = Problem(others, kernel, StandardMap(), AUTO_ALPHAS)
        return tuning.score_kernel(validation, problem, Uniform(), 50, np.random.RandomState(0))

    scale = scored(RBF("scale"))
    assert scale.kernel.gamma == RBF("scale").resolve(others, rng).gamma
    assert scored(RBF(1e-6)).score < scale.score
