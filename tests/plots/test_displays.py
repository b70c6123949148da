"""Displays: the numbers that they draw, and the words beside them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.metrics import confusion_matrix

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus.encoding import ImageEncoder
from nysplus.plots import (
    BudgetCurve,
    BudgetCurveDisplay,
    ConfusionSharesDisplay,
    ImportanceDisplay,
    LandmarkBoundaryDisplay,
    LandmarkImagesDisplay,
    MarginDisplay,
    RefinementDisplay,
    ReliabilityDisplay,
    ResidualDisplay,
)
from nysplus.plots.calibration import wilson_interval
from nysplus.plots.style import landmark_rows

pyplot = pytest.importorskip("matplotlib.pyplot")
DIGITS, CLASSES = (array[:600] for array in load_digits(return_X_y=True))
MOONS, SIDES = make_moons(300, noise=0.3, random_state=0)


def drawn(display):
    """Draw the figure, as saving it does, and return the display."""
    display.figure_.canvas.draw()
    assert display.ax_.figure is display.figure_
    return display


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# ---- margins -------------------------------------------------------------------------------------


def test_margins_of_two_classes_are_scores_with_a_sign():
    model = NystroemClassifier(20, selection="uniform", random_state=0).fit(MOONS, SIDES)
    display = drawn(MarginDisplay.from_estimator(model, MOONS, SIDES))
    expected = (2 * SIDES - 1) * model.decision_function(MOONS)
    np.testing.assert_allclose(display.margins, expected)
    np.testing.assert_array_equal(
        np.flatnonzero(display.selected), np.sort(model.landmark_indices_)
    )
    assert sum(bar.get_height() for bar in display.bars_) == len(MOONS)
    assert sum(bar.get_height() for bar in display.selected_bars_) == 20
    assert legend(display)[1] == "20 rows selected as landmarks"


def test_margins_of_many_classes_are_negative_where_predictions_are_wrong():
    model = NystroemClassifier(15, random_state=0).fit(DIGITS, CLASSES)
    display = drawn(MarginDisplay.from_estimator(model, DIGITS, CLASSES))
    wrong = model.predict(DIGITS) != CLASSES
    np.testing.assert_array_equal(display.margins < 0, wrong)
    assert display.selected is None  # centroids are no rows
    assert display.selected_bars_ is None


def test_landmarks_beyond_the_given_rows_are_not_marked():
    model = NystroemClassifier(20, selection="uniform", random_state=0).fit(MOONS, SIDES)
    assert MarginDisplay.from_estimator(model, MOONS[:30], SIDES[:30]).selected is None


def test_margins_of_given_scores():
    display = MarginDisplay.from_predictions(["a", "b", "b"], [-1.0, 2.0, -3.0], selected=[2])
    np.testing.assert_array_equal(display.margins, [1.0, 2.0, -3.0])
    np.testing.assert_array_equal(display.selected, [False, False, True])


# ---- two dimensions ------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [np.array([0, 1]), np.array(["no", "yes"]), np.array([-1, 7])])
def test_regions_are_the_predicted_classes(names):
    y = names[SIDES]
    model = NystroemClassifier(8, random_state=0).fit(MOONS, y)
    display = drawn(LandmarkBoundaryDisplay.from_estimator(model, MOONS, y, grid_resolution=20))
    grid = np.column_stack([display.boundary.xx0.ravel(), display.boundary.xx1.ravel()])
    mesh = display.ax_.collections[0]
    np.testing.assert_array_equal(names[mesh.get_array().ravel().astype(int)], model.predict(grid))
    np.testing.assert_allclose(display.landmarks_.get_offsets(), model.landmarks_)
    assert legend(display) == [f"class {names[0]}", f"class {names[1]}", "8 landmarks"]


def test_landmarks_behind_a_map_are_shown_among_the_rows():
    model = NystroemClassifier(8, metric=1, random_state=0).fit(MOONS, SIDES)
    assert model.projection_.shape == (2, 1)
    Z = landmark_rows(model)
    np.testing.assert_allclose(Z @ model.projection_, model.landmarks_, atol=1e-6)
    drawn(LandmarkBoundaryDisplay.from_estimator(model, MOONS))


def test_regions_need_two_features():
    model = NystroemClassifier(5, random_state=0).fit(DIGITS, CLASSES)
    with pytest.raises(ValueError, match="two dimensions"):
        LandmarkBoundaryDisplay.from_estimator(model, DIGITS)


# ---- images --------------------------------------------------------------------------------------


def test_images_are_landmarks_sorted_by_class():
    model = NystroemClassifier(12, random_state=0).fit(DIGITS, CLASSES)
    display = drawn(LandmarkImagesDisplay.from_estimator(model))
    assert display.images.shape == (12, 8, 8)
    flat = display.images.reshape(12, 64)
    np.testing.assert_array_equal(model.predict(flat).astype(str), display.names)
    assert list(display.names) == sorted(display.names)
    ordered = {tuple(row) for row in flat}
    assert ordered == {tuple(row) for row in model.landmarks_}
    assert len(display.ax_.get_images()) == 12


@pytest.mark.parametrize("rows", [None, DIGITS])
def test_images_behind_a_map_are_mapped_to_the_landmarks(rows):
    model = NystroemClassifier(12, metric=10, random_state=0).fit(DIGITS, CLASSES)
    Z = landmark_rows(model, rows)
    np.testing.assert_allclose(Z @ model.projection_, model.landmarks_, atol=1e-4)
    drawn(LandmarkImagesDisplay.from_estimator(model, (8, 8), X=rows, max_images=5))


def test_images_of_an_encoder_and_of_a_regressor():
    model = NystroemClassifier(6, encoder=ImageEncoder((8, 8)), random_state=0)
    model.fit(DIGITS, CLASSES)
    assert LandmarkImagesDisplay.from_estimator(model).images.shape == (6, 8, 8)
    values = NystroemRegressor(6, random_state=0).fit(DIGITS, CLASSES.astype(float))
    assert drawn(LandmarkImagesDisplay.from_estimator(values)).names is None


def test_images_need_the_right_shape():
    model = NystroemClassifier(5, random_state=0).fit(DIGITS[:, :60], CLASSES)
    with pytest.raises(ValueError, match="60 numbers"):
        LandmarkImagesDisplay.from_estimator(model)
    table = NystroemClassifier(5, encoder="auto", random_state=0).fit(MOONS, SIDES)
    with pytest.raises(ValueError, match="tables are no images"):
        LandmarkImagesDisplay.from_estimator(table)
    near = (MOONS[:, 0] > 0.5).astype(int)
    linear = NystroemClassifier(budget="1kB", encoder="auto", random_state=0).fit(MOONS, near)
    with pytest.raises(ValueError, match="no landmarks"):
        LandmarkImagesDisplay.from_estimator(linear)


# ---- sizes ---------------------------------------------------------------------------------------


def test_models_of_several_budgets_are_scored_on_held_out_rows():
    model = NystroemClassifier(random_state=0)
    display = BudgetCurveDisplay.from_estimator(
        model, DIGITS, CLASSES, ["2kB", "1kB"], random_state=0, name="digits"
    )
    curve = drawn(display).curves["digits"]
    assert (curve.bytes <= [1024, 2048]).all()
    assert curve.scores.min() > 0.7
    p = curve.scores
    np.testing.assert_allclose(curve.errors, np.sqrt(p * (1 - p) / 150))
    assert display.ax_.get_ylabel().startswith("accuracy on held-out rows (%)")
    assert model.budget is None


def test_values_are_scored_by_r2():
    X, y = load_diabetes(return_X_y=True)
    display = BudgetCurveDisplay.from_estimator(
        NystroemRegressor(random_state=0), X, y, [300, 600], random_state=0
    )
    curve = display.curves["NystroemRegressor"]
    assert curve.metric == "R²"
    assert curve.scores.max() > 0.2


def test_given_points_are_sorted_by_size():
    display = drawn(BudgetCurveDisplay.from_points([4096, 1024], [0.9, 0.8], name="peer"))
    np.testing.assert_array_equal(display.curves["peer"].bytes, [1024, 4096])
    np.testing.assert_array_equal(display.lines_[0][0].get_ydata(), [80.0, 90.0])
    assert "standard error" not in display.ax_.get_ylabel()
    both = BudgetCurveDisplay(
        {name: BudgetCurve(np.array([1, 2]), np.array([0.5, 0.6])) for name in "ab"}
    ).plot()
    assert legend(both) == ["a", "b"]


# ---- probabilities and errors --------------------------------------------------------------------


def test_groups_compare_probability_with_correctness():
    P = np.column_stack([np.linspace(0.5, 1.0, 100), np.linspace(0.5, 0.0, 100)])
    y = np.repeat([1, 0], 50)
    display = drawn(ReliabilityDisplay.from_predictions(y, P, n_groups=2))
    np.testing.assert_allclose(display.confidence, [P[:50, 0].mean(), P[50:, 0].mean()])
    np.testing.assert_array_equal(display.correct, [0.0, 1.0])
    np.testing.assert_array_equal(display.counts, [50, 50])


def test_reliability_of_a_model():
    model = NystroemClassifier(20, random_state=0).fit(MOONS[:150], SIDES[:150])
    display = drawn(ReliabilityDisplay.from_estimator(model, MOONS[150:], SIDES[150:], n_groups=3))
    score = model.score(MOONS[150:], SIDES[150:])
    assert np.average(display.correct, weights=display.counts) == pytest.approx(score)
    assert 0 <= display.calibration_error < 0.2


def test_wilson_intervals_of_known_cases():
    low, high = wilson_interval(np.array([0.5, 1.0]), np.array([100, 10]))
    np.testing.assert_allclose(low, [0.4038, 0.7225], atol=1e-3)
    np.testing.assert_allclose(high, [0.5962, 1.0], atol=1e-3)


@pytest.mark.parametrize("n", [3, 26])
def test_cells_have_counts_and_shares(n):
    rng = np.random.RandomState(0)
    y, predicted = rng.randint(n, size=(2, 400))
    display = ConfusionSharesDisplay.from_predictions(y, predicted)
    drawn(display)
    expected = confusion_matrix(y, predicted)
    np.testing.assert_array_equal(display.confusion_matrix, expected)
    share = 100 * expected[0, 1] / expected[0].sum()
    shown = display.text_[0, 1].get_text()
    if n == 3:
        assert shown == f"{expected[0, 1]}\n{share:.0f} %"
    else:
        assert shown == (str(expected[0, 1]) if expected[0, 1] else "")
    np.testing.assert_allclose(display.im_.get_array()[0, 1], share)


def test_matrix_without_numbers_and_with_weights():
    weights = np.full(4, 0.5)
    display = ConfusionSharesDisplay.from_predictions(
        [0, 0, 1, 1], [0, 1, 1, 1], sample_weight=weights
    )
    assert display.text_[1, 1].get_text() == "1\n100 %"
    assert display.text_[1, 0].get_text() == ""
    plain = ConfusionSharesDisplay(np.eye(2, dtype=int)).plot(include_values=False, colorbar=False)
    assert plain.text_ is None


# ---- refinement ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_history_has_the_scores_of_the_report(kind):
    model = kind(10, refine=Refinement(n_epochs=2), random_state=0).fit(MOONS, SIDES)
    display = drawn(RefinementDisplay.from_estimator(model))
    factor = 100 if kind is NystroemClassifier else 1
    heights = np.concatenate([points[0].get_ydata() for points in display.points_]).astype(float)
    scores = [trial.score for trial in model.report_.trials[:-1]]
    np.testing.assert_allclose(heights, factor * np.array(scores))
    unrefined = factor * model.report_.trials[-1].score
    assert display.unrefined_.get_ydata()[0] == pytest.approx(unrefined)
    assert any("chosen" in text for text in legend(display))


def test_history_needs_a_refinement():
    model = NystroemClassifier(10, random_state=0).fit(MOONS, SIDES)
    with pytest.raises(ValueError, match="refine=True"):
        RefinementDisplay.from_estimator(model)


# ---- all -----------------------------------------------------------------------------------------


def test_displays_draw_on_given_axes():
    figure, ax = pyplot.subplots()
    display = MarginDisplay.from_predictions([0, 1], [-1.0, 1.0], ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_displays_without_matplotlib_say_what_to_install(monkeypatch):
    display = MarginDisplay(np.zeros(3))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "nysplus\[plot\]"'):
        display.plot()


# ---- columns and values --------------------------------------------------------------------------


def test_importance_is_sorted_and_cut():
    losses = np.linspace(-0.01, 0.2, 20)
    intervals = np.column_stack([losses - 0.02, losses + 0.03])
    names = [f"column {i}" for i in range(19)] + ["a name of more than twenty-four letters"]
    display = drawn(ImportanceDisplay(names, losses, intervals).plot())
    shown = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert shown[:2] == ["a name of more than twe…", "column 18"]
    assert len(shown) == 15
    assert display.bars_[0].get_width() == pytest.approx(20.0)
    (segments,) = [line.get_segments() for line in display.bars_.errorbar.lines[2]]
    np.testing.assert_allclose(segments[0][:, 0], [18.0, 23.0])
    values = drawn(ImportanceDisplay(["a"], losses[-1:], intervals[-1:], "R²").plot())
    assert values.bars_[0].get_width() == pytest.approx(0.2)


def test_residuals_are_true_values_minus_predictions():
    X, y = load_diabetes(return_X_y=True)
    model = NystroemRegressor(20, random_state=0).fit(X[:200], y[:200])
    display = drawn(ResidualDisplay.from_estimator(model, X[200:], y[200:]))
    np.testing.assert_allclose(display.residuals, y[200:] - model.predict(X[200:]))
    assert legend(display) == ["242 rows", "90 % of rows", "median"]
    groups = np.array_split(np.argsort(display.predicted, kind="stable"), 10)
    medians = [np.median(display.residuals[group]) for group in groups]
    np.testing.assert_allclose(display.line_.get_ydata(), medians)


def test_many_rows_are_thinned_out():
    display = drawn(ResidualDisplay.from_predictions(np.zeros(5000), np.arange(5000.0)))
    assert len(display.points_.get_offsets()) == 1667
