"""One clear error, before any long work, that says what was got, what is allowed, what to do."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nysplus import (
    EnsembleMap,
    Nystroem,
    NystroemClassifier,
    NystroemRegressor,
    RandomizedMap,
    StandardMap,
)
from nysplus.kernels import RBF
from nysplus.landmarks import NegativeMargin

X = np.random.RandomState(0).rand(40, 3)
y = np.arange(40) % 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be an integer of at least 1"),
        ({"n_components": -3}, "n_components=-3 must be"),
        ({"n_components": 2.5}, "n_components=2.5 must be an integer"),
        ({"n_components": True}, "n_components=True must be an integer"),
        ({"n_components": 10, "approximation": StandardMap(rank=11)}, "rank=11 exceeds the 10"),
        ({"n_components": 10, "approximation": RandomizedMap(rank=11)}, "rank=11 exceeds the 10"),
        ({"approximation": EnsembleMap(n_experts=0)}, "n_experts=0 must be"),
        ({"approximation": "exact"}, r"'exact' is not known. Allowed are \['ensemble'"),
        ({"kernel": "gaussian"}, "kernel='gaussian' is not known. Allowed are"),
        ({"kernel": 3}, "kernel=3 is not known"),
        ({"selection": "random"}, "selection='random' is not known. Allowed are"),
        ({"alpha": -1.0}, "alpha=-1.0 must be"),
        ({"alpha": float("nan")}, "alpha=nan must be"),
        ({"alpha": [1.0, float("inf")]}, "alpha=.*must be"),
        ({"gamma": -1.0}, "gamma=-1.0 is not allowed"),
        ({"gamma": float("nan")}, "gamma=nan is not allowed"),
        ({"gamma": "best"}, "gamma='best' is not allowed"),
        ({"kernel": RBF(), "gamma": 2.0}, "gamma=2.0 has no effect beside kernel=RBF"),
        ({"selection": np.ones((5, 2))}, "have 2 features, X has 3"),
        ({"selection": np.full((5, 3), np.nan)}, "NaN"),
    ],
)
@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
def test_parameters(kind, params, message):
    with pytest.raises(ValueError, match=message):
        kind(**params).fit(X, y)


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("C", r"'C'.*Use alpha, the ridge penalty: about 1 / \(2 C\)"),
        ("n_landmarks", "'n_landmarks'.*Use n_components, the number of landmarks"),
        ("sigma", "'sigma'.*Use gamma"),
        ("n_component", "'n_component'.*Did you mean 'n_components'"),
        ("zzz", "'zzz'"),
    ],
)
def test_unknown_parameters(kind, name, message):
    with pytest.raises(TypeError, match=f"unexpected keyword argument {message}"):
        kind(**{name: 10})
    with pytest.raises(ValueError, match=f"Invalid parameter {message}"):
        kind().set_params(**{name: 10})
    with pytest.raises(ValueError, match=f"Invalid parameter {message}"):
        make_pipeline(kind()).set_params(**{f"{kind.__name__.lower()}__{name}": 10})
    search = GridSearchCV(kind(n_components=5), {name: [1, 10]}, scoring=lambda *_: 0.0)
    with pytest.raises(ValueError, match=f"Invalid parameter {message}"):
        search.fit(X, y)


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
@pytest.mark.parametrize("name", ["degree", "coef0", "n_jobs", "kernel_params"])
def test_parameters_of_the_transformer_only(kind, name):
    assert name in Nystroem().get_params()
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'. [A-Z]"):
        kind(**{name: 2})


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
def test_advice_leaves_the_constructor_as_it_is(kind):
    parameters = list(inspect.signature(kind).parameters)
    assert parameters == list(inspect.signature(kind.__init__).parameters)[1:]
    assert sorted(parameters) == sorted(kind().get_params())
    model = kind(n_components=7, gamma=0.3)
    for same in (clone(model), pickle.loads(pickle.dumps(model)), kind(**model.get_params())):
        assert same.get_params() == model.get_params()
    with pytest.raises(TypeError, match="positional argument"):
        kind(5, 6)


@pytest.mark.parametrize(
    ("budget", "meant"), [("16KiB", "16kB"), ("1.5 MiB", "1.5MB"), ("2g", "2GB"), ("100", "100B")]
)
def test_units_of_a_budget(budget, meant):
    with pytest.raises(ValueError, match=f"budget='{budget}' .* Did you mean '{meant}'?"):
        NystroemClassifier(budget=budget).fit(X, y)


def test_names_of_kernels_and_selections():
    with pytest.raises(ValueError, match=r"kernel='gaussian' .* Use 'rbf'"):
        NystroemClassifier(kernel="gaussian").fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='Laplacian' .* Did you mean 'laplacian'"):
        NystroemClassifier(kernel="Laplacian").fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='precomputed' .* Use nysplus.Nystroem"):
        NystroemClassifier(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"selection='random' .* Use 'uniform'"):
        NystroemClassifier(selection="random").fit(X, y)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (X, np.where(y, "yes", "no")),
        (X, np.where(y, "yes", "no").astype(object)),
        (X, np.where(y, "yes", "no").tolist()),
        (X, pd.Series(np.where(y, "yes", "no"))),
        (X, pd.Series(np.where(y, "yes", "no"), dtype="category")),
        (X, np.where(y, "1", "none")),
        (pd.DataFrame({"a": X[:, 0], "t": np.where(y, "yes", "no")}), "t"),
        (pa.table({"a": X[:, 0], "t": np.where(y, "yes", "no")}), "t"),
        ([(X, np.where(y, "yes", "no"))], None),
    ],
)
def test_text_as_values(rows, text):
    message = "y contains '(yes|no|none)', which is not a number. .* use NystroemClassifier"
    with pytest.raises(ValueError, match=message):
        NystroemRegressor(5).fit(rows, text)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (NegativeMargin(n_initial=0), "n_initial=0 must be"),
        (NegativeMargin(10, StandardMap(rank=20)), "rank=20 exceeds the 10 landmarks"),
    ],
)
def test_selector_parameters(selection, message):
    with pytest.raises(ValueError, match=message):
        NystroemClassifier(20, selection=selection).fit(X, y)


def test_inherited_rank_that_does_not_fit_the_pilot():
    model = NystroemClassifier(
        20, approximation=StandardMap(rank=15), selection=NegativeMargin(n_initial=10)
    )
    with pytest.raises(ValueError, match=r"rank=15 exceeds the 10 landmarks.*n_initial"):
        model.fit(X, y)


def test_supervised_selection_for_a_regression():
    with pytest.raises(ValueError, match=r"chooses landmarks by class labels.*'uniform' or"):
        NystroemRegressor(selection="negative-margin").fit(X, y.astype(float))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
def test_features_that_are_not_finite(kind, bad):
    broken = X.copy()
    broken[7, 1] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        kind(5).fit(broken, y) if kind is not Nystroem else Nystroem(n_components=5).fit(broken)
    model = NystroemClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match="contains"):
        model.predict(broken)


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
def test_missing_values_are_to_be_replaced_or_dropped(kind):
    broken = X.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN") as raised:
        kind(n_components=5).fit(broken, y)
    message = str(raised.value)
    assert "SimpleImputer" in message
    assert "drop the rows" in message
    assert "HistGradientBoosting" not in message


def test_one_class_only():
    with pytest.raises(ValueError, match=r"y has one class only, .*1.*at least two classes"):
        NystroemClassifier().fit(X, np.ones(40, dtype=int))
    with pytest.raises(ValueError, match="one class only"):
        NystroemClassifier().fit(X, y, sample_weight=y.astype(float))


@pytest.mark.parametrize("empty", [np.empty((0, 3)), np.empty((40, 0))])
def test_empty_data(empty):
    with pytest.raises(ValueError, match=r"0 (sample|feature)"):
        NystroemClassifier().fit(empty, y[: len(empty)])


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_wrong_number_of_features_at_predict(kind):
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        kind(5).fit(X, y).predict(X[:, :2])


def test_renamed_columns_at_predict():
    model = NystroemClassifier(5).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("abd")))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_text_column_is_named(frame):
    data = frame({"height": X[:, 0], "city": ["Bern"] * 40, "width": X[:, 1]})
    with pytest.raises(ValueError, match=r"not numbers: \['city'\]. Pass encoder='auto'"):
        NystroemClassifier(5).fit(data, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(40), "must not be negative, got -1. Use 0"),
        (np.zeros(40), "All sample weights are zero"),
        (np.ones(39), "inconsistent numbers of samples"),
        (np.ones((40, 2)), r"one dimension, got shape \(40, 2\)"),
        (np.full(40, np.nan), "sample_weight contains NaN"),
        (np.full(40, 1e300), "must not exceed 1e\\+50, got 1e\\+300.*Divide all weights"),
        (np.r_[1e51, np.ones(39)], "must not exceed 1e\\+50, got 1e\\+51"),
    ],
)
@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_weights(kind, weight, message):
    with pytest.raises(ValueError, match=message):
        kind(5).fit(X, y, sample_weight=weight)


def test_class_weights():
    with pytest.raises(ValueError, match="class_weight"):
        NystroemClassifier(5, class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="one class per row"):
        NystroemClassifier(5, class_weight="balanced").fit(X, np.c_[y, 1 - y])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({0: -1.0, 1: 1.0}, "the weight -1.0 for class 0, and weights must be numbers from 0"),
        ({0: 1.0, 1: np.nan}, "the weight nan for class 1"),
        ({0: np.inf, 1: 1.0}, "the weight inf for class 0"),
        ({0: 1e300, 1: 1.0}, "the weight 1e\\+300 for class 0"),
        ({0: "high", 1: 1.0}, "the weight 'high' for class 0"),
        ({0: 0.0, 1: 0.0}, "class_weight is zero for every class of y"),
    ],
)
@pytest.mark.parametrize("blocks", [False, True])
def test_class_weights_that_are_no_weights(weight, message, blocks):
    model = NystroemClassifier(5, class_weight=weight)
    with pytest.raises(ValueError, match=message):
        model.fit([(X, y)]) if blocks else model.fit(X, y)


def test_a_class_of_weight_zero_is_left_out():
    labels = np.arange(40) % 3
    model = NystroemClassifier(5, class_weight={0: 0.0, 1: 1.0, 2: 1.0}, random_state=0)
    assert 0 not in model.fit(X, labels).predict(X)


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
@pytest.mark.parametrize("weight", [-1.0, 1e300, np.nan])
def test_weights_of_blocks(kind, weight):
    with pytest.raises(ValueError, match=r"sample_weight contains .* in row 3 "):
        kind(5).fit([(X, y, np.where(np.arange(40) == 3, weight, 1.0))])


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
@pytest.mark.parametrize("column", [y[:, None], y[None, :]], ids=["column", "row"])
def test_sparse_targets(kind, column):
    with pytest.raises(TypeError, match=r"y is a sparse matrix.*y.toarray\(\)"):
        kind(5).fit(X, sp.csr_matrix(column))
    with pytest.raises(TypeError, match=r"y is a sparse matrix.*y.toarray\(\)"):
        kind(5).fit([(X, sp.csr_matrix(column))])


def test_sparse_values_of_several_outputs():
    with pytest.raises(TypeError, match="y is a sparse matrix of shape \\(40, 2\\)"):
        NystroemRegressor(5).fit(X, sp.csr_matrix(X[:, :2]))


def test_a_sparse_indicator_of_labels_is_allowed():
    labels = np.c_[y, 1 - y]
    models = [
        NystroemClassifier(5, random_state=0).fit(X, Y) for Y in (labels, sp.csr_matrix(labels))
    ]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("scale", [1e300, -1e120])
def test_values_whose_squares_overflow(scale, blocks):
    values = scale * (1.0 + y)
    with pytest.raises(ValueError, match=r"y contains a value of size 2e\+\d+.*Divide y by"):
        NystroemRegressor(5).fit([(X, values)]) if blocks else NystroemRegressor(5).fit(X, values)


def test_the_largest_values_and_weights_together():
    values, weight = 1e100 * X[:, 0], np.full(40, 1e50)
    model = NystroemRegressor(5, random_state=0).fit(X, values, sample_weight=weight)
    small = NystroemRegressor(5, random_state=0).fit(X, X[:, 0])
    assert model.score(X, values) >= small.score(X, X[:, 0]) - 0.01


def test_continuous_labels():
    with pytest.raises(ValueError, match="Unknown label type"):
        NystroemClassifier(5).fit(X, X[:, 0])


def test_histogram_kernel_on_negative_or_sparse_rows():
    with pytest.raises(ValueError, match="non-negative features"):
        NystroemClassifier(5, kernel="chi2").fit(X - 1, y)
    with pytest.raises(TypeError, match="dense rows only"):
        NystroemClassifier(5, kernel="chi2").fit(sp.csr_matrix(X), y)


def test_more_landmarks_than_rows_warns_and_works():
    with pytest.warns(
        UserWarning, match="n_components=100 exceeds the 40 rows.*Lower n_components"
    ):
        model = NystroemClassifier(100).fit(X, y)
    assert model.landmarks_.shape == (40, 3)
