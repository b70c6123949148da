"""Displays of Shapley values: the numbers that they draw, and the words beside them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from nysplus import NystroemClassifier
from nysplus.explain import ShapleyValues, shapley_values
from nysplus.plots import (
    ShapleyBarDisplay,
    ShapleyBeeswarmDisplay,
    ShapleyImagesDisplay,
    ShapleyWaterfallDisplay,
)

pyplot = pytest.importorskip("matplotlib.pyplot")
IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return NystroemClassifier(10, random_state=0).fit(IRIS, SPECIES)


@pytest.fixture(scope="module")
def explanation(model):
    return shapley_values(model, IRIS[::5], IRIS[::15])


def table():
    """Return values of a table with a category, a gap, a constant and errors."""
    rng = np.random.RandomState(0)
    data = np.column_stack([rng.rand(30), rng.randint(0, 2, 30), np.ones(30), np.full(30, 1.7e9)])
    data[0, 0] = np.nan
    shown = data.astype(object)
    shown[:, 1] = np.where(data[:, 1] > 0, "Rome", "a city of a very long name indeed")
    shown[:, 3] = np.datetime64(1_700_000_000, "s")
    shown[0, 0] = "missing"
    values = rng.randn(30, 4)
    names, errors = ["size", "city", "one", "when"], np.full((30, 4), 0.1)
    return ShapleyValues(values, np.ones(30), data, names, False, errors, shown)


def tick_texts(display):
    display.figure_.canvas.draw()
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_waterfall_ends_at_the_score(model, explanation):
    display = ShapleyWaterfallDisplay.from_values(explanation, output=1, row=3)
    right = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert right[-1] == pytest.approx(model.decision_function(IRIS[15:16])[0, 1])
    assert display.bars_[0].get_x() == pytest.approx(explanation.base_values[3, 1])
    widths = np.array([bar.get_width() for bar in display.bars_])
    np.testing.assert_allclose(np.sort(widths), np.sort(explanation.values[3, :, 1]))
    assert (np.diff(np.abs(widths)) >= 0).all()
    assert any(text == f"column 0 = {IRIS[15, 0]:g}" for text in tick_texts(display))


def test_waterfall_sums_the_other_columns_and_has_errors():
    display = ShapleyWaterfallDisplay.from_values(table(), max_columns=2)
    texts = tick_texts(display)
    assert texts[0] == "2 other columns"
    assert len(display.bars_) == 3
    with pytest.raises(ValueError, match="row=30"):
        ShapleyWaterfallDisplay.from_values(table(), row=30)
    with pytest.raises(ValueError, match="max_columns=0"):
        ShapleyWaterfallDisplay.from_values(table(), max_columns=0)
    shown = tick_texts(ShapleyWaterfallDisplay.from_values(table(), row=0))
    assert "size = missing" in shown
    assert any(text.endswith("…") or text == "city = Rome" for text in shown)


def test_bars_are_mean_absolute_values(model, explanation):
    display = ShapleyBarDisplay.from_values(explanation, output="2")
    means = np.abs(explanation.values[:, :, 2]).mean(axis=0)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], np.sort(means))
    two = ShapleyBarDisplay.from_estimator(model, IRIS[::5], IRIS[::15], output=2, max_columns=3)
    assert tick_texts(two)[0] == "sum of 1 other column"


def test_swarm_has_a_point_for_each_row(explanation):
    display = ShapleyBeeswarmDisplay.from_values(explanation, output=0, max_columns=2)
    order = np.argsort(np.abs(explanation.values[:, :, 0]).mean(axis=0))[-2:]
    for points, column in zip(display.points_, order, strict=True):
        offsets = points.get_offsets()
        np.testing.assert_allclose(offsets[:, 0], explanation.values[:, column, 0])
        assert np.ptp(offsets[:, 1]) < 0.9
    assert len(display.figure_.axes) == 2  # with a colour bar
    _, ax = pyplot.subplots()
    given = ShapleyBeeswarmDisplay.from_values(explanation, output=0, ax=ax)
    assert len(given.figure_.axes) == 1


def test_swarm_draws_categories_and_gaps_in_grey():
    display = ShapleyBeeswarmDisplay.from_values(table())
    display.figure_.canvas.draw()
    by_name = dict(zip(tick_texts(display), display.points_, strict=True))
    assert len(np.unique(by_name["city"].get_facecolors(), axis=0)) == 1
    assert len(np.unique(by_name["size"].get_facecolors(), axis=0)) > 10
    grey = by_name["size"].get_facecolors()[0]
    assert grey[0] == grey[1] == grey[2]


def test_images_show_the_values_of_pixels():
    X, y = (array[:300] for array in load_digits(return_X_y=True))
    model = NystroemClassifier(20, random_state=0).fit(X, y)
    display = ShapleyImagesDisplay.from_estimator(model, X[:2], X[5:9], outputs=["3", 4])
    found = shapley_values(model, X[:2], X[5:9])
    np.testing.assert_allclose(display.values.reshape(2, 64, 2), found.values[:, :, 3:5])
    np.testing.assert_array_equal(display.images_[3].get_array(), X[1].reshape(8, 8))
    assert display.names == ["3", "4"]
    assert len(display.images_) == 6
    assert ShapleyImagesDisplay.from_values(found).values.shape == (2, 8, 8, 10)
    two = NystroemClassifier(9, random_state=0).fit(X, y > 4)
    assert ShapleyImagesDisplay.from_estimator(two, X[:1], X[5:7]).names is None
    with pytest.raises(ValueError, match="shape="):
        ShapleyImagesDisplay.from_values(found, shape=(5, 5))
