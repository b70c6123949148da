"""Data frames in memory whose targets and weights are named columns."""

from __future__ import annotations

import factories
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._rows.frames import split_frame
from nysplus.curve import landmark_curve

ROWS = factories.table(120, 3)
WEIGHT = np.arange(120) % 3 + 1.0
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas-arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "arrow": pa.table,
}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))


def columns(**more):
    """Return columns by name, the target among the features."""
    a, b, c = ROWS.X.T
    return {"a": a, **more, "b": b, "c": c}


def model(target="binary", **params):
    kind = NystroemRegressor if "values" in target else NystroemClassifier
    return kind(10, selection="uniform", random_state=0, **params)


def features(X):
    return pd.DataFrame(X, columns=list("abc"))


@every_frame
@pytest.mark.parametrize("target", ["binary", "text", "values"])
def test_a_column_of_targets_is_no_feature(frame, target):
    y = ROWS.targets[target]
    expected = model(target).fit(features(ROWS.X), y)
    fitted = model(target).fit(frame(columns(t=y)), "t")
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(fitted.landmark_indices_, expected.landmark_indices_)
    predicted = expected.predict(features(ROWS.X))
    for rows in (columns(t=y), columns(), columns(other=y)):
        got = fitted.predict(frame(rows))
        if target == "values":
            np.testing.assert_allclose(got, predicted, rtol=1e-8)
        else:
            np.testing.assert_array_equal(got, predicted)
    score = expected.score(features(ROWS.X), y)
    assert fitted.score(frame(columns(t=y)), "t") == pytest.approx(score)
    if frame is not pa.table:  # files and tables take their targets from a column
        assert fitted.score(frame(columns(t=y)), y) == pytest.approx(score)


@every_frame
def test_columns_of_labels_and_weights(frame):
    Y = ROWS.targets["labels"]
    names = ["p", "q", "r"]
    expected = model(alpha=0.1).fit(features(ROWS.X), Y, sample_weight=WEIGHT)
    data = columns(w=WEIGHT, **dict(zip(names, Y.T, strict=True)))
    fitted = model(alpha=0.1).fit(frame(data), names, sample_weight="w")
    np.testing.assert_allclose(fitted.dual_coef_, expected.dual_coef_, rtol=1e-7)
    score = expected.score(features(ROWS.X), Y, WEIGHT)
    assert fitted.score(frame(data), names, "w") == pytest.approx(score)


@every_frame
def test_every_method_takes_the_name(frame):
    y = ROWS.targets["binary"]
    data = frame(columns(t=y))
    running = model(alpha=0.1).partial_fit(data, "t", classes=[0, 1]).partial_fit(data, "t")
    assert running.feature_names_in_.tolist() == ["a", "b", "c"]
    assert running.compress(5, data, "t").landmarks_.shape == (5, 3)
    supervised = Nystroem(n_components=8, selection="negative-margin", random_state=0)
    assert supervised.fit(data, "t").transform(data).shape == (120, 8)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_curve_takes_the_name(frame):
    y = ROWS.targets["binary"]
    curve = landmark_curve(frame(columns(t=y)), "t", [4, 8], random_state=0)
    expected = landmark_curve(features(ROWS.X), y, [4, 8], random_state=0)
    np.testing.assert_array_equal(curve.scores, expected.scores)


def test_a_list_of_texts_may_be_the_class_of_each_row():
    labels = np.where(ROWS.targets["binary"], "a", "b").tolist()
    fitted = model().fit(features(ROWS.X), labels)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.classes_.tolist() == ["a", "b"]


def test_columns_in_another_order_are_refused_as_by_scikit_learn():
    fitted = model().fit(pd.DataFrame(columns(t=ROWS.targets["binary"])), "t")
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(pd.DataFrame(columns(t=ROWS.targets["binary"]))[["t", "c", "b", "a"]])
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time.*- d.*yet now missing.*- c"):
        fitted.predict(pd.DataFrame(columns(d=ROWS.targets["binary"]))[["a", "b", "d"]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (pd.DataFrame(columns()), "t", r"y='t' is the name of no columns of X. Name one of \['a'"),
        (pl.LazyFrame(columns()), ["a", "t"], "y='t' is the name of no columns of X"),
        (features(ROWS.X)[["a", "b", "b"]], "b", r"name of 2 columns .* one of \['a', 'b'\]"),
        (features(ROWS.X)[["a", "b", "b"]], "a", "several columns of one name"),
        (pd.DataFrame(columns())[["a"]], "a", r"no columns besides those of y .*\['a'\]"),
        (ROWS.X, "t", "y='t' names a column, and X is a ndarray .*Pass y as an array"),
        (ROWS.X.tolist(), "t", "y='t' names a column, and X is a list"),
    ],
)
def test_names_that_are_no_columns(X, y, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, y)


def test_weights_of_arrays_have_no_names():
    with pytest.raises(ValueError, match="sample_weight='w' names a column, and X is a ndarray"):
        model().fit(ROWS.X, ROWS.targets["binary"], sample_weight="w")


def test_frames_without_named_columns_are_not_copied():
    frame = features(ROWS.X)
    assert split_frame(frame)[0] is frame
    assert split_frame(frame, features=["a", "b", "c"])[0] is frame
    assert split_frame(ROWS.X)[0] is ROWS.X


def test_of_lazy_frames_only_the_columns_of_the_fit_are_computed():
    fitted = model().fit(pl.LazyFrame(columns(t=ROWS.targets["binary"])), "t")

    def fail(_):
        raise AssertionError

    costly = pl.col("a").map_batches(fail, return_dtype=pl.Float64).alias("costly")
    lazy = pl.LazyFrame(columns()).with_columns(costly)
    assert fitted.predict(lazy).shape == (120,)
