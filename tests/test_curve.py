"""The curve's models are those that fits of their own find, and its held-out rows stay unseen."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._ridge.nested import forward_order
from nysplus._rows.blocks import Blocks
from nysplus._rows.target_codes import ClassCode, ValueCode
from nysplus.curve import LandmarkCurve, held_out, landmark_curve
from nysplus.kernels import RBF
from nysplus.plots import LandmarkCurveDisplay

SIZES = (3, 20, 40, 80)
RNG = np.random.RandomState(0)
X = RNG.standard_normal((600, 4))
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(600)
CLASSES = np.digitize(VALUES, [-0.8, 0.5])


def _parts(rows, y, seed, code=None, weight=None):
    """Return the training and the held-out rows of `landmark_curve`."""
    code = code or (ClassCode(np.unique(y)) if y.dtype.kind == "i" else ValueCode(1, flat=True))
    blocks = Blocks(rows, code.encode(y), weight)
    return held_out(blocks, rows.shape[0] // 5, np.random.RandomState(seed))


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        ("dense", "auto"),
        ("dense", "kmeans"),
        ("dense", "uniform"),
        ("float32", "negative-margin"),
        ("float32", "uniform"),
        ("sparse", "negative-margin"),
        ("sparse", "uniform"),
    ],
)
def test_classes_are_scored_as_fits_with_the_same_landmarks_do(kind, selection):
    rows = {"dense": X, "float32": X.astype(np.float32), "sparse": sp.csr_matrix(X)}[kind]
    model = NystroemClassifier(gamma=0.2, selection=selection, random_state=3)
    curve = landmark_curve(rows, CLASSES, SIZES, estimator=model)
    training, test = _parts(rows, CLASSES, 3)
    for i in range(len(SIZES)):
        model.set_params(selection=curve.landmarks[i], alpha=curve.alphas[i])
        model.fit(training.X, training.targets.codes)
        assert curve.scores[i] == model.score(test.X, test.targets.codes)
        assert curve.bytes[i] == model.model_bytes_
    assert curve.metric == "accuracy"
    assert [points.shape for points in curve.landmarks] == [(n, 4) for n in SIZES]


@pytest.mark.parametrize("gamma", [1e-2, 0.2, 5.0])
def test_values_are_scored_as_fits_with_the_same_landmarks_do(gamma):
    """Wide kernels make landmarks nearly dependent, and the order must go on beyond the gram.

    Fits of their own are within 1e-6 of the least objective.
    """
    # landmarks that targets have not moved: given ones are taken for such
    model = NystroemRegressor(gamma=gamma, selection="kmeans", random_state=3)
    curve = landmark_curve(X, VALUES, SIZES, estimator=model)
    training, test = _parts(X, VALUES, 3)
    y, y_test = training.targets.Y[:, 0], test.targets.Y[:, 0]
    for i in range(len(SIZES)):
        model.set_params(selection=curve.landmarks[i], alpha="auto").fit(training.X, y)
        assert curve.alphas[i] == model.alpha_
        assert curve.scores[i] == pytest.approx(model.score(test.X, y_test), abs=1e-5)
    assert curve.metric == "R²"


def test_ridges_are_those_that_the_estimator_chooses():
    """Half of the rows are held out, so the other half may all choose."""
    model = NystroemClassifier(gamma=0.2, random_state=3)
    curve = landmark_curve(X, CLASSES, SIZES, estimator=model, test_size=0.5)
    blocks = Blocks(X, ClassCode(np.arange(3)).encode(CLASSES))
    training, _ = held_out(blocks, 300, np.random.RandomState(3))
    for points, alpha in zip(curve.landmarks, curve.alphas, strict=True):
        model.set_params(selection=points).fit(training.X, training.targets.codes)
        assert alpha == model.alpha_


def test_learned_metrics_count():
    """The largest of several sizes is the model that a size alone gets from the estimator."""
    y = (X[:, 0] + 0.2 * VALUES > 0).astype(int)
    model = NystroemClassifier(metric="diagonal", selection="uniform", alpha=0.01, random_state=3)
    alone = landmark_curve(X, y, [40], estimator=model)
    several = landmark_curve(X, y, [20, 40], estimator=model)
    assert several.scores[1] == alone.scores[0]
    assert several.bytes[1] == alone.bytes[0]
    plain = landmark_curve(X, y, [20, 40], estimator=model.set_params(metric=None))
    np.testing.assert_array_equal(several.bytes - plain.bytes, 4 * 8)  # the diagonal
    assert several.scores[0] > plain.scores[0]


def test_forward_order_takes_what_lowers_the_objective_most():
    K, Y = RNG.standard_normal((30, 6)), RNG.standard_normal((30, 2))
    H, C = K.T @ K + 0.1 * np.eye(6), K.T @ Y

    def explained(chosen):
        return float((C[chosen] * np.linalg.solve(H[np.ix_(chosen, chosen)], C[chosen])).sum())

    chosen: list[int] = []
    while len(chosen) < 6:
        rest = [j for j in range(6) if j not in chosen]
        chosen.append(max(rest, key=lambda j: explained([*chosen, j])))
    assert forward_order(H, C, 6).tolist() == chosen
    assert forward_order(H, C, 2).tolist() == chosen[:2]


def test_forward_order_ends_where_columns_repeat_each_other():
    K = RNG.standard_normal((30, 3))[:, [0, 1, 0, 2, 1]]
    order = forward_order(K.T @ K, K.T @ RNG.standard_normal((30, 1)), 5)
    assert len(order) == 3
    assert len({"abacb"[j] for j in order}) == 3


def test_repeated_landmarks_add_nothing():
    Z = X[[5, 5, 17, 40, 40, 40, 88]]
    model = NystroemRegressor(gamma=0.2, selection=Z, alpha=1e-3, random_state=0)
    curve = landmark_curve(X, VALUES, [2, 4, 7], estimator=model)
    assert len(np.unique(curve.landmarks[1], axis=0)) == 4
    assert curve.scores[1] == pytest.approx(curve.scores[2], abs=1e-9)
    assert curve.scores[1] > curve.scores[0]


def test_smaller_sizes_take_some_of_given_landmarks():
    model = NystroemClassifier(gamma=0.2, selection=X[:50], random_state=0)
    curve = landmark_curve(X, CLASSES, [5, 20], estimator=model)
    given = {tuple(row) for row in X[:50]}
    assert len({tuple(row) for row in curve.landmarks[1]} & given) == 20
    np.testing.assert_array_equal(curve.landmarks[0], curve.landmarks[1][:5])


def test_landmarks_are_shared_by_sizes_up_to_four_times_apart():
    curve = landmark_curve(X, CLASSES, [18, 19, 20, 40, 80], random_state=0)
    landmarks = dict(zip(curve.sizes.tolist(), curve.landmarks, strict=True))
    np.testing.assert_array_equal(landmarks[40], landmarks[80][:40])
    np.testing.assert_array_equal(landmarks[20], landmarks[80][:20])
    assert not np.array_equal(landmarks[19], landmarks[80][:19])
    assert not np.array_equal(landmarks[18], landmarks[19][:18])


def test_held_out_rows_are_seen_by_nothing_but_the_scores():
    training, test = _parts(X, CLASSES, 0)
    spoilt = X.copy()
    spoilt[test.rows] += 100.0
    model = NystroemClassifier(gamma="scale", random_state=0)
    code = ClassCode(np.arange(3))
    for rows in (X, spoilt):
        again = held_out(Blocks(rows, code.encode(CLASSES)), 120, np.random.RandomState(0))
        np.testing.assert_array_equal(again[1].rows, test.rows)
        np.testing.assert_array_equal(again[0].X, training.X)
    found = [
        landmark_curve(rows, CLASSES, [10, 40], estimator=model, random_state=0)
        for rows in (X, spoilt)
    ]
    np.testing.assert_array_equal(found[0].landmarks[1], found[1].landmarks[1])
    np.testing.assert_array_equal(found[0].alphas, found[1].alphas)
    assert found[1].scores.max() < found[0].scores.max()


def test_each_class_gives_its_share_and_keeps_a_row():
    y = np.repeat([0, 1, 2, 3], [300, 200, 99, 1])
    training, test = _parts(X, y, 0)
    assert np.bincount(test.targets.codes, minlength=4) == pytest.approx([60, 40, 20, 0], abs=1)
    assert set(training.targets.codes) == {0, 1, 2, 3}
    assert training.n_rows + len(test) == 600
    assert not {tuple(row) for row in training.X} & {tuple(row) for row in test.X}


def test_rows_without_weight_are_left_out():
    weight = np.where(np.arange(600) < 400, 1.0, 0.0)
    training, test = _parts(X, CLASSES, 0, weight=weight)
    assert training.n_rows + len(test) == 400
    model = NystroemClassifier(gamma=0.2, random_state=0)
    weighted = landmark_curve(X, CLASSES, [10, 40], estimator=model, sample_weight=weight)
    alone = landmark_curve(X[:400], CLASSES[:400], [10, 40], estimator=model)
    np.testing.assert_array_equal(weighted.scores, alone.scores)


def test_class_weights_train_and_do_not_score():
    rare = (VALUES > 1.2).astype(int)
    plain, balanced = (
        NystroemClassifier(gamma=0.2, alpha=1.0, class_weight=weight, random_state=0)
        for weight in (None, "balanced")
    )
    training, test = _parts(X, rare, 0)
    curve = landmark_curve(X, rare, [40], estimator=balanced)
    assert curve.scores[0] < landmark_curve(X, rare, [40], estimator=plain).scores[0]
    factors = dict(enumerate(600 / (2 * np.bincount(rare))))
    balanced.set_params(selection=curve.landmarks[0], class_weight=factors)
    balanced.fit(training.X, training.targets.codes)
    assert curve.scores[0] == balanced.score(test.X, test.targets.codes)


def test_standard_errors_of_accuracy_are_binomial():
    curve = landmark_curve(X, CLASSES, SIZES, test_size=200, random_state=0)
    np.testing.assert_allclose(curve.errors, np.sqrt(curve.scores * (1 - curve.scores) / 200))


def test_the_curve_is_close_to_fits_of_their_own():
    """Ordered landmarks serve a size as well as those that are chosen for it, within the noise."""
    images, digits = load_digits(return_X_y=True)
    sizes = [20, 50, 150]
    model = NystroemClassifier(random_state=0)
    curve = landmark_curve(images, digits, sizes, estimator=model)
    training, test = _parts(images, digits, 0)
    for n, score, error in zip(sizes, curve.scores, curve.errors, strict=True):
        own = model.set_params(n_components=n).fit(training.X, training.targets.codes)
        assert abs(score - own.score(test.X, test.targets.codes)) < 2 * error


@pytest.mark.parametrize("make", [sp.csr_matrix, pd.DataFrame, lambda rows: rows.tolist()])
def test_rows_of_any_kind(make):
    model = NystroemClassifier(gamma=0.2, selection="uniform", random_state=1)
    want = landmark_curve(X, CLASSES, [5, 20], estimator=model)
    got = landmark_curve(make(X), CLASSES, [5, 20], estimator=model)
    np.testing.assert_array_equal(got.scores, want.scores)


def test_several_outputs_and_labels():
    values = landmark_curve(X, np.column_stack([VALUES, X[:, 0]]), [5, 60], random_state=0)
    assert values.metric == "R²"
    assert values.scores[1] > max(0.8, values.scores[0])
    labels = landmark_curve(X, np.column_stack([VALUES > 0, X[:, 0] > 0]), [5, 60], random_state=0)
    assert labels.metric == "accuracy"
    assert labels.scores[1] > max(0.7, labels.scores[0])


def test_sizes_may_come_in_any_order_and_repeat():
    got = landmark_curve(X, CLASSES, np.array([20, 5, 20]), random_state=0)
    want = landmark_curve(X, CLASSES, [5, 20], random_state=0)
    assert got.sizes.tolist() == [5, 20]
    np.testing.assert_array_equal(got.scores, want.scores)


@pytest.mark.parametrize(("rows", "largest"), [(600, 120), (30, 6), (3, 1)])
def test_sizes_by_default(rows, largest):
    sizes = landmark_curve(X[:rows], VALUES[:rows], random_state=0).sizes
    assert sizes[-1] == largest
    assert all(b >= 1.4 * a for a, b in pairwise(sizes))


def test_the_seed_decides_and_the_estimator_stays_as_it_is():
    model = NystroemClassifier(n_components=7, random_state=1)
    first, second = (landmark_curve(X, CLASSES, [20], estimator=model) for _ in range(2))
    other = landmark_curve(X, CLASSES, [20], estimator=model, random_state=2)
    np.testing.assert_array_equal(first.landmarks[0], second.landmarks[0])
    assert not np.array_equal(first.landmarks[0], other.landmarks[0])
    assert model.n_components == 7
    assert not hasattr(model, "n_features_in_")


CURVE = LandmarkCurve(
    np.array([10, 20, 40, 80]),
    np.array([0.80, 0.89, 0.905, 0.90]),
    np.array([0.02, 0.02, 0.01, 0.01]),
    np.array([1024, 2048, 4096, 8192]),
    np.ones(4),
    tuple(np.zeros((n, 1)) for n in (10, 20, 40, 80)),
    "accuracy",
)


@pytest.mark.parametrize(("loss", "size"), [(0, 40), (0.014, 40), (0.0151, 20), (0.2, 10)])
def test_smallest_within(loss, size):
    assert CURVE.smallest_within(loss) == size


def test_recommended_is_within_one_standard_error_of_the_best():
    assert (CURVE.best, CURVE.recommended) == (40, 40)
    assert CURVE.smallest_within(0.02) == 20
    with pytest.raises(ValueError, match=r"loss=-0\.1 must be a number of at least 0"):
        CURVE.smallest_within(-0.1)


def test_the_table_names_the_recommended_size():
    lines = str(CURVE).splitlines()
    assert len(lines) == 5
    assert [line.endswith("recommended") for line in lines] == [False, False, False, True, False]
    assert lines[3].split()[:4] == ["40", "0.9050", "0.0100", "4.0"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sizes": []}, ValueError, "sizes is empty"),
        ({"sizes": 10}, TypeError, "sizes=10 must be a sequence"),
        ({"sizes": [10, 0]}, ValueError, r"sizes\[1\]=0 must be an integer of at least 1"),
        ({"sizes": [2.5]}, ValueError, r"sizes\[0\]=2\.5 must be an integer"),
        ({"sizes": "ab"}, ValueError, r"sizes\[0\]='a' must be an integer"),
        ({"sizes": [10, 481]}, ValueError, "481 landmarks, and there are 480 training rows"),
        ({"test_size": 0.0}, ValueError, r"test_size=0\.0 must be a share between 0 and 1"),
        ({"test_size": 1}, ValueError, "test_size=1 must be"),
        ({"test_size": 600}, ValueError, "a number from 2 to 599 of the 600 rows"),
        ({"test_size": True}, ValueError, "test_size=True must be"),
        ({"test_size": 599}, ValueError, "each of the 3 classes is to be trained on"),
        ({"y": None}, ValueError, "pass y with classes or values"),
        ({"estimator": Nystroem()}, TypeError, "NystroemRegressor, got Nystroem"),
        (
            {"estimator": NystroemClassifier(selection=X[:10])},
            ValueError,
            "selection has 10 landmarks, and the largest of sizes is 20",
        ),
        (
            {"estimator": NystroemClassifier(approximation="ensemble")},
            ValueError,
            "needs approximation='standard'",
        ),
        ({"estimator": NystroemClassifier(alpha=-1)}, ValueError, "alpha=-1 must be"),
        ({"X": iter([])}, TypeError, "needs rows in memory"),
    ],
)
def test_bad_input(arguments, error, message):
    sizes = [1] if arguments.get("test_size") == 599 else [5, 20]
    given = {"X": X, "y": CLASSES, "sizes": sizes, **arguments}
    with pytest.raises(error, match=message):
        landmark_curve(**given)


def test_kernels_whose_features_do_not_nest():
    def indefinite(x, z):
        return float(np.tanh(3.0 * x @ z - 2.0))

    model = NystroemClassifier(kernel=indefinite, random_state=0)
    with pytest.raises(ValueError, match="features do not nest"):
        landmark_curve(X[:100], CLASSES[:100], [5, 20], estimator=model)


@pytest.fixture
def pyplot():
    return pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize(("y", "factor"), [(CLASSES, 100), (VALUES, 1)])
def test_display_draws_the_curve(pyplot, y, factor):
    kind = NystroemClassifier if factor == 100 else NystroemRegressor
    model = kind(kernel=RBF(gamma=0.2), random_state=0)
    display = LandmarkCurveDisplay.from_estimator(model, X, y, sizes=SIZES)
    curve = display.curve
    np.testing.assert_array_equal(display.line_.get_xdata(), SIZES)
    np.testing.assert_array_equal(display.line_.get_ydata(), factor * curve.scores)
    assert display.mark_.get_xdata() == [curve.recommended]
    assert display.ax_.get_xscale() == "log"
    assert curve.metric in display.ax_.get_ylabel()
    low = display.band_.get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(factor * (curve.scores - curve.errors).min())
    display.figure_.canvas.draw()


def test_display_draws_on_given_axes(pyplot):
    figure, axes = pyplot.subplots()
    display = LandmarkCurveDisplay(CURVE).plot(axes)
    assert display.ax_ is axes
    assert display.figure_ is figure
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["10\n1.0", "20\n2.0", "40\n4.0", "80\n8.0"]


def test_crowded_sizes_get_fewer_ticks(pyplot):
    sizes = np.array([10, 11, 100, 950, 1000])
    ones = np.ones(5)
    curve = LandmarkCurve(sizes, 0.9 * ones, 0.01 * ones, 1024 * sizes, ones, (), "R²")
    display = LandmarkCurveDisplay(curve).plot()
    assert display.ax_.get_xticks().tolist() == [11, 100, 1000]


def test_display_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "nysplus\[plot\]"'):
        LandmarkCurveDisplay(CURVE).plot()
