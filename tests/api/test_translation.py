"""Rows far from zero: kernels of differences do not change if all rows are moved together."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from exported import GCC, c_scores, json_scores, onnx_outputs
from sklearn.svm import SVC, SVR

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, from_svc, load
from nysplus.curve import landmark_curve
from nysplus.export import to_c, to_json, to_onnx
from nysplus.kernels import RBF, Laplacian, Matern

# Multiples of 2^-10 in a small range: moved by the offsets below, they are exact in float64.
GRID = 2.0**-10
KERNELS = {"rbf": RBF(0.5), "laplacian": Laplacian(0.3), "matern": Matern(0.5, 1.5)}
# An offset for each feature: Unix seconds, thousands, a small number of the other sign.
OFFSETS = {
    "equal": np.full(3, 1e5),
    "large": np.full(3, 1e8),
    "Unix seconds": np.array([1.7e9, 2000.0, -3.0]),
}


def rows(n=300, dtype=np.float64):
    rng = np.random.RandomState(0)
    X = np.round(rng.standard_normal((n, 3)) / GRID) * GRID
    return X.astype(dtype), np.sin(2 * X[:, 0]) + X[:, 1] / 2


def fitted(X, y, kernel="rbf", **params):
    # landmarks that are rows: clusters may differ by chance
    params = {"n_components": 40, "selection": "uniform", "alpha": 1e-2, **params}
    return NystroemRegressor(kernel=KERNELS[kernel], random_state=0, **params).fit(X, y)


def in_c(model, X, folder):
    return c_scores(folder, model, X)[:, 0]


def in_onnx(model, X, dtype):
    return onnx_outputs(to_onnx(model, dtype=dtype), X.astype(dtype))["variable"][:, 0]


def in_json(model, X):
    return json_scores(to_json(model), X.astype(np.float64))[:, 0]


# -- fits ------------------------------------------------------------------------------------------

PATHS = {
    "plain": ({}, 1e-6),
    "budget": ({"budget": "1kB"}, 0.05),
    "large budget": ({"budget": "8kB"}, 0.02),
    # the search of the width starts from the variance of all entries, which a centre changes
    "diagonal metric": ({"metric": "diagonal"}, 1e-3),
    "full metric": ({"metric": "full"}, 1e-3),
    "directions and a budget": ({"metric": 2, "budget": "2kB"}, 0.05),
}


@cache
def predicted(path):
    """Return the predictions of a fit to rows near zero."""
    X, y = rows()
    return fitted(X, y, **PATHS[path][0]).predict(X)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("path", PATHS)
def test_fits_to_moved_rows(path, offset):
    params, tolerance = PATHS[path]
    X, y = rows()
    c = OFFSETS[offset]
    moved = fitted(X + c, y, **params)
    assert np.abs(moved.predict(X + c) - predicted(path)).max() < tolerance * np.ptp(y)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_kernel_within_a_budget(kernel, dtype):
    X, y = rows(dtype=dtype)
    c = OFFSETS["large"] if dtype == "float64" else np.float32([4096.0, -2048.0, 0.0])
    moved, model = fitted(X + c, y, kernel, budget="2kB"), fitted(X, y, kernel, budget="2kB")
    assert (X + c).dtype == dtype
    change = np.abs(moved.predict(X + c) - model.predict(X)).max()
    assert change < 0.05 * np.ptp(y)
    assert moved.score(X + c, y) > model.score(X, y) - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "dtype"),
    [
        (None, "float64"),
        ("2kB", "float32"),
        pytest.param(None, "float32", marks=pytest.mark.all_combinations),
        pytest.param("2kB", "float64", marks=pytest.mark.all_combinations),
    ],
)
def test_learned_models_of_moved_rows(budget, dtype):
    X, y = rows(dtype=dtype)
    c = OFFSETS["large"] if dtype == "float64" else np.float32([4096.0, -2048.0, 64.0])
    # within a budget only a search finds a model that is better than the unrefined one
    learn = Refinement(search=False) if budget is None else True
    moved, model = (fitted(R, y, budget=budget, refine=learn) for R in (X + c, X))
    assert moved.refined_
    assert model.refined_
    assert moved.score(X + c, y) > model.score(X, y) - 0.01


def test_classes_within_a_budget():
    X, y = rows()
    for budget in ("1kB", "4kB"):
        model = NystroemClassifier(budget=budget, random_state=0)
        score = model.fit(X, y > 0).score(X, y > 0)
        assert model.fit(X + 1e8, y > 0).score(X + 1e8, y > 0) > score - 0.02


def test_float32_rows_keep_their_digits_behind_a_metric():
    X, y = rows(dtype=np.float32)
    c = np.float32([4096.0, -2048.0, 0.0])
    for metric in ("diagonal", "full"):
        moved, model = fitted(X + c, y, metric=metric), fitted(X, y, metric=metric)
        change = np.abs(moved.predict(X + c) - model.predict(X)).max()
        assert change < 1e-3 * np.ptp(y)


def test_a_centre_is_counted_and_used_only_where_it_is_needed():
    X, y = rows()
    near, far = fitted(X + 10.0, y, budget="1kB"), fitted(X + 1e5, y, budget="1kB")
    assert near.expansion_.center is None
    assert far.expansion_.center.dtype == np.float32
    assert far.model_bytes_ <= 1024
    stored = far.expansion_.packed
    parts = (stored.landmarks, stored.dual_coef, stored.intercept, stored.center)
    assert far.model_bytes_ == sum(part.n_bytes for part in parts)
    assert stored.center.n_bytes == 4 * 3
    with pytest.raises(ValueError, match="a model with one takes 24 bytes"):
        fitted(X + 1e5, y, budget=20)


def test_a_centre_in_float64_where_float32_is_not_near_enough():
    X, y = rows()
    model = fitted(X + 1e9 + 30.0, y, budget="1kB")
    assert model.expansion_.center.dtype == np.float64
    assert model.score(X + 1e9 + 30.0, y) > fitted(X, y, budget="1kB").score(X, y) - 0.01


def test_kernels_of_products_have_no_centre():
    X, y = rows()
    model = NystroemRegressor(10, kernel="polynomial", budget="1kB", random_state=0)
    assert model.fit(X + 1e4, y).expansion_.center is None


def test_landmarks_stay_in_the_coordinates_of_the_rows():
    X, y = rows()
    for params in ({"budget": "8kB"}, {"metric": "diagonal"}, {"metric": "full"}):
        model = fitted(X + 1e5, y, **params)
        assert model.expansion_.center is not None
        low, high = (X + 1e5).min(), (X + 1e5).max()
        P = model.projection_
        Z = model.landmarks_ if P is None else model.landmarks_ @ np.linalg.inv(P)
        assert ((low - 1 <= Z) & (high + 1 >= Z)).all()
    estimator = NystroemRegressor(metric="diagonal", random_state=0)
    curve = landmark_curve(X + 1e5, y, [20, 40], estimator=estimator)
    assert (curve.scores > 0.9).all()


def test_given_landmarks_of_moved_rows():
    X, y = rows()
    Z = (X + 1e5)[:30]
    model = fitted(X + 1e5, y, metric="diagonal", selection=Z)
    np.testing.assert_allclose(model.landmarks_, Z @ model.projection_, rtol=1e-12)


def test_sparse_rows_of_a_model_with_a_centre():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = rows()
    model = fitted(X + 1e4, y, budget="2kB")
    csr = sparse.csr_matrix(X + 1e4)
    np.testing.assert_allclose(model.predict(csr), model.predict(X + 1e4), rtol=1e-6)


def test_rows_added_to_a_model_with_a_centre():
    X, y = rows()
    params = {"metric": "diagonal", "n_components": 20, "alpha": 1e-3, "random_state": 0}
    moved, model = NystroemRegressor(**params), NystroemRegressor(**params)
    for part in (slice(0, 150), slice(150, 300)):
        moved.partial_fit(X[part] + 1e8, y[part])
        model.partial_fit(X[part], y[part])
    assert moved.expansion_.center is not None
    np.testing.assert_allclose(moved.predict(X + 1e8), model.predict(X), atol=1e-5)
    np.testing.assert_allclose(
        moved.retune().predict(X + 1e8), model.retune().predict(X), atol=1e-5
    )


def test_rows_added_after_a_fit_with_a_centre():
    X, y = rows()
    moved = fitted(X + 1e8, y, metric="diagonal")
    with pytest.warns(UserWarning, match="fit keeps no sums"):
        moved.partial_fit(X + 1e8, y)
    assert moved.score(X + 1e8, y) > 0.95


# -- compression and imports -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [{"n_components": 10}, {"budget": "600B"}])
@pytest.mark.parametrize("by_rows", [False, True])
def test_compressed_models_of_moved_rows(size, by_rows):
    X, y = rows()
    scores = []
    for c in (0.0, 1e8):
        R = X + c
        model = fitted(R, y)
        small = model.compress(X=R if by_rows else None, **size)
        scores.append(small.score(R, y))
        assert "budget" not in size or small.model_bytes_ <= 600
    assert scores[1] > scores[0] - 0.03


def test_imported_models_of_moved_rows():
    X, y = rows()
    for machine, targets in ((SVR(gamma=0.5), y), (SVC(gamma=0.5), y > 0)):
        scores = []
        for R in (X, X + 1e5):
            small = from_svc(machine.fit(R, targets), budget="1kB")
            scores.append(small.score(R, targets))
        assert scores[1] > scores[0] - 0.03


# -- files and exports -----------------------------------------------------------------------------

MODELS = {
    "plain": {},
    "budget": {"budget": "2kB"},
    "diagonal metric": {"metric": "diagonal"},
    "full metric": {"metric": "full"},
}


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("model", MODELS)
def test_exported_models_of_moved_rows(model, offset, tmp_path):
    X, y = rows()
    R = X + OFFSETS[offset]
    model = fitted(R, y, alpha=0.1, **MODELS[model])
    expected, spread = model.predict(R), np.ptp(y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(R), expected)
    assert loaded.model_bytes_ == model.model_bytes_
    assert np.abs(in_json(model, R) - expected).max() < 1e-4 * spread
    assert np.abs(in_onnx(model, R, "float64") - expected).max() < 1e-4 * spread
    if GCC is not None:
        assert np.abs(in_c(model, R, tmp_path) - expected).max() < 1e-3 * spread


@pytest.mark.parametrize("kernel", KERNELS)
def test_float_rows_where_float_carries_them(kernel, tmp_path):
    X, y = rows()
    R = X + 1024.0  # exact in float32
    model = fitted(R, y, kernel)
    expected = model.predict(R)
    assert np.abs(in_onnx(model, R, "float32") - expected).max() < 1e-3 * np.ptp(y)
    if GCC is not None:
        assert np.abs(in_c(model, R, tmp_path) - expected).max() < 1e-3 * np.ptp(y)


@pytest.mark.parametrize("params", [{}, {"metric": "full"}])
def test_exports_of_models_of_float32_rows(params, tmp_path):
    X, y = rows(dtype=np.float32)
    R = X + np.float32([4096.0, -2048.0, 0.0])
    model = fitted(R, y, alpha=0.1, **params)
    expected = model.predict(R)
    assert np.abs(in_onnx(model, R, "float32") - expected).max() < 1e-4 * np.ptp(y)
    assert "const float *x" in to_c(model)
    if GCC is not None:
        assert np.abs(in_c(model, R, tmp_path) - expected).max() < 1e-4 * np.ptp(y)


def test_a_warning_where_float32_rows_have_too_few_digits():
    pytest.importorskip("onnx")
    X, y = rows()
    with pytest.warns(UserWarning, match="Pass dtype='float64'"):
        to_onnx(fitted(X + 1e8, y))


# -- rows elsewhere --------------------------------------------------------------------------------


def test_rows_on_disk_and_on_dask(tmp_path):
    dask = pytest.importorskip("dask.array")
    X, y = rows()
    R = X + 1e8
    np.save(tmp_path / "X.npy", R)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for params in ({"budget": "2kB"}, {"metric": "full"}):
        expected = fitted(R, y, **params)
        on_disk = fitted(mapped, y, **params)
        on_dask = fitted(
            dask.from_array(R, chunks=(100, 3)), dask.from_array(y, chunks=100), **params
        )
        for model in (on_disk, on_dask):
            assert model.expansion_.center is not None
            assert np.abs(model.predict(R) - expected.predict(R)).max() < 0.05 * np.ptp(y)
