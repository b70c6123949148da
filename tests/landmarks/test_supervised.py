"""What the paper names as future work: dissimilar landmarks, outliers, rounds, regression."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.datasets import make_moons

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus.kernels import RBF, Sigmoid
from nysplus.landmarks import (
    CholeskyPicker,
    NegativeMargin,
    Picker,
    Problem,
    Residual,
    SupportCentroids,
)
from nysplus.landmarks.supervised import _agreement


@pytest.fixture
def mislabelled(rng):
    """Two classes far apart; ten rows here and there in one have the label of the other."""
    X, y = rng.randn(400, 2) + np.repeat([[-3, 0], [3, 0]], 200, axis=0), np.repeat([0, 1], 200)
    y[:200:20] = 1
    return X, y, set(range(0, 200, 20))


def select(rule, X, y, n=40, seed=0):
    problem = Problem(Blocks(X, ClassTargets(y, 2)), RBF(0.5), StandardMap(), (1e-2,))
    return rule.select(problem, n, np.random.RandomState(seed))


def test_the_plain_rule_takes_all_mislabelled_rows(mislabelled):
    X, y, wrong = mislabelled
    assert wrong <= {*select(NegativeMargin(n_initial=20), X, y).indices.tolist()}


@pytest.mark.parametrize(
    "rule",
    [
        NegativeMargin(n_initial=20, max_negative_margin=0.3),
        NegativeMargin(n_initial=20, max_quantile=0.95),
        NegativeMargin(n_initial=20, min_agreement=0.3),
        NegativeMargin(n_initial=20, min_agreement=0.3, picker="cholesky"),
        NegativeMargin(n_initial=20, max_negative_margin=0.3, picker="farthest"),
    ],
    ids=repr,
)
def test_outliers_are_left_out(rule, mislabelled):
    X, y, wrong = mislabelled
    got = select(rule, X, y)
    assert len({*got.indices.tolist()}) == 40
    np.testing.assert_array_equal(X[got.indices], got.points)
    assert len(wrong & {*got.indices.tolist()}) <= 1


def test_outliers_are_taken_when_nothing_else_is_left(mislabelled):
    X, y, wrong = mislabelled
    got = select(NegativeMargin(n_initial=20, max_negative_margin=0.3), X, y, n=399)
    assert len({*got.indices.tolist()}) == 399
    assert len(wrong & {*got.indices.tolist()}) >= 9


@pytest.mark.parametrize("picker", ["cholesky", "farthest", CholeskyPicker(greedy=True)], ids=repr)
def test_picked_landmarks_differ_from_each_other(picker, rng):
    X, y = make_moons(500, noise=0.25, random_state=0)
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)  # every row four times

    def closest(rule):
        points = select(rule, X, y).points
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        return np.sort(distances + 9 * np.eye(40), axis=1)[:, 0]

    assert (closest(NegativeMargin()) == 0).all()
    assert (closest(NegativeMargin(picker=picker, oversampling=12)) > 0).all()


def test_pool_is_the_rows_of_largest_margin(mislabelled):
    X, y, _ = mislabelled
    plain = select(NegativeMargin(n_initial=20), X, y, n=80).indices
    picked = select(NegativeMargin(n_initial=20, picker="farthest", oversampling=2), X, y).indices
    assert {*picked} <= {*plain}


class Recording(Picker):
    """Takes the first rows, and keeps the weights that it was given."""

    def pick(self, kernel, X, score, n, rng):
        self.X, self.weight = X, score
        return np.arange(n)


def test_pickers_get_the_scores_as_weights_and_outliers_hardly_any(mislabelled):
    X, y, wrong = mislabelled
    problem = Problem(Blocks(X, ClassTargets(y, 2)), RBF(0.5), StandardMap(), (1e-2,))
    for params in ({"max_negative_margin": 0.3}, {"min_agreement": 0.3}):
        picker = Recording()
        rule = NegativeMargin(n_initial=20, picker=picker, oversampling=4, **params)
        pilot = rule.pilot(problem, 100, np.random.RandomState(0))
        got = rule.choose(problem, pilot, 100, np.random.RandomState(0))
        np.testing.assert_array_equal(got.points, picker.X[:100])
        rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in picker.X]
        assert len(rows) == 400
        margin = (1 - 2 * y[rows]) * pilot.expansion(picker.X)[:, 0]
        expected = margin - margin.min() + 0.05 * np.ptp(margin)
        outlier = np.isin(rows, sorted(wrong))
        if "max_negative_margin" in params:
            outlier = margin > 0.3
        assert outlier.sum() >= 9
        ratio = picker.weight / expected
        np.testing.assert_allclose(ratio[~outlier & (ratio > 1e-3)], 1.0)
        np.testing.assert_allclose(ratio[outlier], 1e-9)


def test_neighbours_agree_without_the_row_itself(rng):
    """Four rows a side: one of them has the other label, and three neighbours that disagree."""
    X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2], [9.3]])
    y = np.array([1, 0, 0, 0, 1, 1, 1, 1])
    blocks = Blocks(X, ClassTargets(y, 2))
    problem = Problem(blocks, RBF(0.5), StandardMap(), (1e-2,))
    shares = _agreement(problem, blocks.gather(np.arange(8)), rng)  # all rows are neighbours
    np.testing.assert_allclose(shares, [4 / 7, *[2 / 7] * 3, *[4 / 7] * 4])
    values = Blocks(X, ValueTargets(np.r_[10.0, np.zeros(7)][:, None]))
    problem = Problem(values, RBF(0.5), StandardMap(), (1e-2,))
    shares = _agreement(problem, values.gather(np.arange(8)), rng)
    np.testing.assert_allclose(shares, [0.0, *[6 / 7] * 7])


@pytest.mark.parametrize("params", [{"max_quantile": 1}, {"min_agreement": 1.0}, {}], ids=repr)
def test_the_largest_share_is_allowed(params):
    NegativeMargin(**params).check(10, StandardMap())


def test_rounds_start_from_the_landmarks_before(mislabelled):
    X, y, _ = mislabelled
    problem = Problem(Blocks(X, ClassTargets(y, 2)), RBF(0.5), StandardMap(), (1e-2,))
    rule = NegativeMargin(n_initial=20)
    once = rule.select(problem, 30, np.random.RandomState(0))
    twice = NegativeMargin(n_initial=20, n_rounds=2).select(problem, 30, np.random.RandomState(0))
    pilot = rule._fit_pilot(problem, once.points, np.random.RandomState(1))
    expected = rule.choose(problem, pilot, 30, np.random.RandomState(1))
    np.testing.assert_array_equal(twice.indices, expected.indices)
    assert twice.n_kernel_evaluations == (
        once.n_kernel_evaluations + 30 * 30 + 2 * 400 * 30  # B, moments, scores
    )


@pytest.mark.parametrize("picker", [None, "cholesky", "farthest"])
def test_residuals_are_where_the_pilot_fails(picker, rng):
    X = rng.rand(1000, 1) * 10
    Y = np.where(X > 8, np.sin(20 * X), 0.0)
    problem = Problem(Blocks(X, ValueTargets(Y)), RBF(1.0), StandardMap(), (1e-3,))
    points = (
        Residual(n_initial=10, picker=picker).select(problem, 20, np.random.RandomState(0)).points
    )
    assert (points > 7.9).mean() > 0.8


def test_residual_works_for_classes_and_several_outputs(rng):
    X, y = make_moons(200, random_state=0)
    assert NystroemClassifier(20, selection="residual", random_state=0).fit(X, y).score(X, y) > 0.9
    model = NystroemRegressor(20, selection=Residual(n_rounds=2, min_agreement=0.1))
    assert model.fit(X, rng.rand(200, 3)).predict(X).shape == (200, 3)


@pytest.mark.parametrize("kind", [NegativeMargin, Residual])
def test_a_picker_refuses_an_indefinite_kernel_before_any_row_is_read(kind):
    without_rows = Problem(None, Sigmoid(0.1), StandardMap(), (1.0,))
    with pytest.raises(ValueError, match=r"picker='cholesky' of .* needs a positive semidefinite"):
        kind(picker="cholesky").select(without_rows, 5, np.random.RandomState(0))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (NegativeMargin(max_quantile=0), r"max_quantile=0 must be None or a number in \(0, 1\]"),
        (NegativeMargin(min_agreement=1.5), "min_agreement=1.5 must be"),
        (NegativeMargin(max_negative_margin="a lot"), "max_negative_margin='a lot' must be"),
        (NegativeMargin(max_negative_margin=np.nan), "max_negative_margin=nan must be"),
        (NegativeMargin(picker="best"), "picker='best' is not known"),
        (NegativeMargin(picker=CholeskyPicker(block=0)), "block=0 must be"),
        (NegativeMargin(oversampling=0), "oversampling=0 must be"),
        (NegativeMargin(n_rounds=0), "n_rounds=0 must be"),
        (Residual(n_rounds=1.5), "n_rounds=1.5 must be"),
    ],
)
def test_bad_parameters(rule, message):
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match=message):
        NystroemClassifier(5, selection=rule).fit(X, y)


def test_support_centroids_count_their_kernel_evaluations(mislabelled):
    X, y, _ = mislabelled
    got = select(SupportCentroids(n_initial=15, oversampling=2), X, y, n=20)
    # B and moments of the pilot, and the scores of all centroids
    assert got.n_kernel_evaluations == 15 * 15 + 400 * 15 + 40 * 15


@pytest.mark.parametrize(("n_initial", "allowed"), [(40, True), (41, False)])
def test_the_pilot_of_support_centroids_is_drawn_from_all_centroids(n_initial, allowed):
    rule = SupportCentroids(n_initial=n_initial, oversampling=2)
    with nullcontext() if allowed else pytest.raises(ValueError, match="exceeds the 40 centroids"):
        rule.check(20, StandardMap())
