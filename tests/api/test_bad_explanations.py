"""One clear error for rows that cannot be explained, and for models without integer arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nysplus import NystroemClassifier
from nysplus.explain import feature_importance, landmark_attribution, shapley_values
from nysplus.export import to_c, to_json

X = np.random.RandomState(0).rand(40, 3)
y = np.arange(40) % 2
TABLE = pd.DataFrame({"size": X[:, 0], "city": np.array(["Rome", "Oslo"])[y], "age": X[:, 1]})
OTHERS = "background must have the columns of the model's rows"


@pytest.fixture(scope="module")
def model():
    return NystroemClassifier(6, selection="uniform", random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("background", "message"),
    [
        (TABLE.drop(columns="city"), rf"{OTHERS}.* no columns \['city'\]"),
        (TABLE.rename(columns={"city": "town"}), rf"{OTHERS}.* no columns \['city'\]"),
    ],
)
def test_background_with_other_columns(background, message):
    of_table = NystroemClassifier(6, encoder="auto", random_state=0).fit(TABLE, y)
    with pytest.raises(ValueError, match=message):
        shapley_values(of_table, TABLE[:2], background)


@pytest.mark.parametrize(
    ("background", "message"),
    [
        (X[:, :2], f"{OTHERS}. X has 2 features"),
        (None, f"{OTHERS}. Expected 2D array"),
        (np.full((2, 3), np.inf), f"{OTHERS}. Input X contains infinity"),
        (X[:0], OTHERS),
    ],
)
def test_background_that_is_no_rows(model, background, message):
    with pytest.raises(ValueError, match=message):
        shapley_values(model, X[:2], background)


def test_rows_of_landmarks(model):
    with pytest.raises(ValueError, match="x must have the columns"):
        landmark_attribution(model, X[0, :2])
    with pytest.raises(ValueError, match=r"X has 3 rows, and row \d+ of the training rows"):
        landmark_attribution(model, X[0], X[:3], y[:3])
    with pytest.raises(ValueError, match="expecting 3 features"):
        feature_importance(model, X[:, :2], y)


@pytest.mark.parametrize("export", [to_c, to_json])
def test_exported_background_with_other_columns(model, export):
    with pytest.raises(ValueError, match="explain must have the columns of the model's rows"):
        export(model, explain=X[:, :2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "this one has floating numbers. Pass X"),
        ({"X": X[:, :2]}, "expecting 3 features"),
        ({"X": np.full((3, 3), np.nan)}, "Input X contains NaN"),
        ({"X": X, "input_type": "float"}, "Pass one of int16, int8, uint8"),
        ({"X": X, "explain": X}, "explain and confidence are options of arithmetic='float'"),
        ({"X": X, "arithmetic": "integer"}, "Pass 'float' or 'int'"),
    ],
)
def test_models_without_integer_arithmetic(model, options, message):
    with pytest.raises(ValueError, match=message):
        to_c(model, **{"arithmetic": "int"} | options)
