"""Columns on very different scales: one warning, which says what to do."""

from __future__ import annotations

import warnings

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor

X, y = factories.classes(300)
WIDE = X * [1.0, 1.0, 2000.0, 0.5]
ADVICE = "Scale the columns, for example with sklearn.preprocessing.StandardScaler in a pipeline"


def fit(model, X, y=y):
    """Fit, and return the texts of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [warning.message.args[0] for warning in caught]


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor, Nystroem])
@pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian"])
def test_one_warning_that_names_the_columns(kind, kernel):
    (text,) = fit(kind(n_components=20, kernel=kernel, random_state=0), WIDE)
    assert text.startswith("The columns of X differ in spread by a factor of ")
    assert "feature 2 varies by about" in text
    assert "feature 3 by about" in text
    assert ADVICE in text
    assert "encoder='auto' or metric='diagonal'" in text


@pytest.mark.parametrize("params", [{"budget": "1kB"}, {"n_components": "auto"}])
def test_one_warning_however_many_models_are_fitted(params):
    assert len(fit(NystroemClassifier(random_state=0, **params), WIDE)) == 1


def test_the_warning_points_to_the_caller():
    with pytest.warns(UserWarning, match="differ in spread") as caught:
        NystroemClassifier(20, random_state=0).fit(WIDE, y)
    assert caught[0].filename == __file__


def test_the_advice_is_good():
    for model in (
        make_pipeline(StandardScaler(), NystroemClassifier(20, random_state=0)),
        NystroemClassifier(20, metric="diagonal", random_state=0),
        NystroemClassifier(20, encoder="auto", random_state=0),
    ):
        assert fit(model, WIDE) == []
    clone(model).partial_fit(WIDE, y, classes=[0, 1, 2])


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "cosine"])
def test_kernels_without_distances_are_left_alone(kernel):
    assert fit(NystroemRegressor(20, kernel=kernel, random_state=0), np.abs(WIDE) / 1e3) == []


def test_factors_up_to_100_are_left_alone():
    assert fit(NystroemClassifier(20), X / X.std(axis=0) * [1.0, 9.0, 80.0, 1.0]) == []


def test_rare_categories_beside_standardised_columns(rng):
    """The deviations of 0/1 columns depend on how rare the ones are, their units do not."""
    rare = (np.arange(30_000)[:, None] % [30_000, 10_000, 200, 2] == 0).astype(float)
    both = np.hstack([rng.standard_normal((30_000, 2)), rare])
    assert rare.std(axis=0).min() < 0.01
    assert fit(NystroemRegressor(5, random_state=0), both, both[:, 0]) == []


def test_standardised_columns_with_outliers(rng):
    """Rows that no sample has set the deviation: the others are close together."""
    raw = rng.standard_normal((60_000, 3))
    raw[7, 1] = 1e6
    scaled = StandardScaler().fit_transform(raw)
    assert np.abs(scaled[100:, 1]).max() < 0.01
    assert fit(NystroemRegressor(5, random_state=0), scaled, raw[:, 0]) == []


def test_constant_and_sparse_columns():
    constant = np.hstack([X, np.full((300, 1), 1e9), np.zeros((300, 1))])
    model = NystroemRegressor(20, gamma=0.1, random_state=0)
    assert fit(model, constant) == []
    assert fit(model, np.full((300, 2), [3.0, 1e9])) == []
    assert fit(model, sp.csr_matrix(WIDE)) == []


def test_rows_on_disk_and_on_dask(tmp_path):
    dask = pytest.importorskip("dask.array")
    model = NystroemClassifier(20, random_state=0)
    (known,) = fit(model, WIDE)
    for rows, texts in ((WIDE, [known]), (X, [])):
        np.save(tmp_path / "X.npy", rows)
        assert fit(clone(model), np.load(tmp_path / "X.npy", mmap_mode="r")) == texts
        chunks = dask.from_array(rows, chunks=(100, 4))
        assert fit(clone(model), chunks, dask.from_array(y, chunks=100)) == texts


def test_rows_one_after_another():
    model = NystroemClassifier(20, random_state=0)
    with pytest.warns(UserWarning, match="differ in spread"):
        model.partial_fit(WIDE[:100], y[:100], classes=[0, 1, 2])
    model.partial_fit(WIDE[100:], y[100:])  # without a warning, which would be an error
