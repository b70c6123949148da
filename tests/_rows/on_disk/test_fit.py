"""Wherever the rows are, the fit is that of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from row_stores import (
    FEW,
    ONE_OF_A_KIND,
    SELECTIONS,
    SPARSE,
    SPARSE_STORES,
    SPARSE_Y,
    STORES,
    TARGETS,
    WEIGHT,
    X,
    as_libsvm,
    as_memmap,
    assert_same,
    cut_into,
    every_store,
    make_model,
    one_of_a_kind,
    rows_for,
)
from sampling import sampled
from sklearn.datasets import dump_svmlight_file

from nysplus._rows.on_disk import read
from nysplus._rows.readers import open_source
from nysplus.landmarks import NegativeMargin

pytestmark = pytest.mark.slow


@every_store
def test_sources_have_several_chunks(tmp_path, store):
    rows, y, weight = store(tmp_path, X, TARGETS["binary"], WEIGHT)
    chunks = list(read(open_source(rows, y, weight)))
    assert len(chunks) >= 9
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), X)


@sampled(("store", "selection"), FEW, [*SELECTIONS, "given"])
def test_every_selection(tmp_path, store, selection):
    params = {"selection": X[::25] if selection == "given" else selection}
    whole = make_model(**params).fit(X, TARGETS["binary"])
    assert_same(
        make_model(**params).fit(*STORES[store](tmp_path, X, TARGETS["binary"], None)), whole
    )


KINDS = {
    "signed, weighted": ("signed", WEIGHT),
    "boolean": ("boolean", None),
    "text": ("text", None),
    "text, weighted": ("text", WEIGHT),
    "labels, weighted": ("labels", WEIGHT),
    "values, weighted": ("values", WEIGHT),
    "two-values": ("two-values", None),
}


@sampled(("store", "kind"), STORES, KINDS.keys())
def test_every_kind_of_target(tmp_path, store, kind):
    target, weight = KINDS[kind]
    y = TARGETS[target]
    whole = make_model(target).fit(X, y, sample_weight=weight)
    model = make_model(target).fit(*store(tmp_path, X, y, weight))
    assert_same(model, whole)
    predicted, expected = model.predict(rows_for(model, X)), whole.predict(X)
    assert predicted.shape == expected.shape
    if "values" not in target:
        np.testing.assert_array_equal(predicted, expected)


@sampled(("store", "selection"), ONE_OF_A_KIND, SELECTIONS)
def test_weights_with_every_selection(tmp_path, store, selection):
    y = TARGETS["labels"]
    whole = make_model(selection=selection).fit(X, y, sample_weight=WEIGHT)
    model = make_model(selection=selection).fit(*STORES[store](tmp_path, X, y, WEIGHT))
    assert_same(model, whole)
    if model.landmark_indices_ is not None:
        assert (WEIGHT[model.landmark_indices_] > 0).all()


PARAMETERS = [
    {"alpha": "auto"},
    {"alpha": [1e-2, 1.0, 10.0]},
    {"gamma": "scale"},
    {"gamma": "median"},
    {"kernel": "matern", "gamma": "median", "alpha": "auto"},
    {"kernel": "poly", "gamma": "scale"},
    {"approximation": "randomized"},
    {"approximation": "ensemble"},
    {"selection": "auto", "alpha": "auto", "gamma": "scale"},
    {"selection": NegativeMargin(n_initial=7)},
    {"class_weight": "balanced"},
    {"class_weight": {"low": 0.3, "mid": 4.0}},
    {"class_weight": "balanced", "selection": "negative-margin", "alpha": [0.1, 1.0]},
]


@sampled(("store", "params"), ONE_OF_A_KIND, PARAMETERS)
def test_every_parameter(tmp_path, store, params):
    y = TARGETS["text"]
    whole = make_model(**params).fit(X, y, sample_weight=WEIGHT)
    assert_same(make_model(**params).fit(*STORES[store](tmp_path, X, y, WEIGHT)), whole)


@pytest.mark.parametrize("alpha", ["auto", [0.01, 1.0]])
@pytest.mark.parametrize("target", ["values", "two-values", "labels"])
@one_of_a_kind
def test_chosen_ridges(tmp_path, store, target, alpha):
    y = TARGETS[target]
    whole = make_model(target, alpha=alpha).fit(X, y, sample_weight=WEIGHT)
    assert_same(
        make_model(target, alpha=alpha).fit(*STORES[store](tmp_path, X, y, WEIGHT)),
        whole,
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16])
@one_of_a_kind
def test_every_type_of_number(tmp_path, store, dtype):
    if dtype is np.float16 and store == "csv":
        pytest.skip("text has no type")
    small = np.clip(np.round(X * 20 + 100), 0, 250).astype(dtype)
    params = {"gamma": "scale", "selection": small[:20].astype(float)}
    whole = make_model(**params).fit(small, TARGETS["binary"])
    model = make_model(**params).fit(*STORES[store](tmp_path, small, TARGETS["binary"], None))
    np.testing.assert_allclose(
        model.decision_function(rows_for(model, small)),
        whole.decision_function(small),
        atol=1e-3 if dtype is np.float16 else 1e-9,
    )


@sampled(("store", "selection"), ["memmap", "parquet-files", "feather", "blocks-of-61"], SELECTIONS)
def test_float32_rows(tmp_path, store, selection):
    rows, y = X.astype(np.float32), TARGETS["several"]
    whole = make_model(selection=selection).fit(rows, y)
    model = make_model(selection=selection).fit(*STORES[store](tmp_path, rows, y, None))
    assert model.landmarks_.dtype == model.dual_coef_.dtype == np.float32
    assert model.solver_ == whole.solver_
    np.testing.assert_allclose(model.landmarks_, whole.landmarks_, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(rows_for(model, rows)),
        whole.decision_function(rows),
        atol=1e-4,
    )


@pytest.mark.parametrize("target", ["text", "labels", "two-values"])
@pytest.mark.parametrize("seed", range(3))
def test_given_landmarks_make_the_order_of_blocks_indifferent(target, seed):
    rng = np.random.RandomState(seed)
    params = {"selection": X[:20], "alpha": [0.01, 0.1, 1.0]}
    whole = make_model(target, **params).fit(X, TARGETS[target], sample_weight=WEIGHT)
    blocks = cut_into(X, TARGETS[target], WEIGHT, rng.randint(1, 90))
    rng.shuffle(blocks)
    assert_same(make_model(target, **params).fit(blocks), whole)


def test_targets_of_one_column_keep_their_shape(tmp_path):
    y = TARGETS["values"][:, None]
    whole = make_model("values").fit(X, y)
    model = make_model("values").fit(*as_memmap(tmp_path, X, y, None))
    assert model.predict(X).shape == whole.predict(X).shape


def test_columns_in_fortran_order_and_views_of_memmaps(tmp_path):
    whole = make_model().fit(X[100:, 1:], TARGETS["binary"][100:])
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_same(make_model().fit(rows[100:, 1:], TARGETS["binary"][100:]), whole)


# ---- sparse rows --------------------------------------------------------------------------------


WIDTHS = [(name, "scale") for name in SELECTIONS] + [("uniform", "median")]


@sampled(("store", "selection_and_gamma"), SPARSE_STORES, WIDTHS)
def test_sparse_rows(tmp_path, store, selection_and_gamma):
    selection, gamma = selection_and_gamma
    whole = make_model(selection=selection, gamma=gamma).fit(SPARSE, SPARSE_Y)
    rows = store(tmp_path)
    model = make_model(selection=selection, gamma=gamma).fit(rows)
    assert_same(model, whole)
    assert sp.issparse(model.landmarks_) == sp.issparse(whole.landmarks_)
    np.testing.assert_allclose(
        model.decision_function(rows), whole.decision_function(SPARSE), atol=1e-9
    )
    assert model.score(rows) == pytest.approx(whole.score(SPARSE, SPARSE_Y))


@pytest.mark.parametrize("zero_based", [True, False])
def test_later_libsvm_files_number_features_as_the_first_one(tmp_path, zero_based):
    """In the rows to be predicted the first feature does not occur."""
    model = make_model().fit(as_libsvm(zero_based)(tmp_path))
    few = SPARSE[np.flatnonzero(SPARSE[:, [0]].toarray() == 0)]
    dump_svmlight_file(
        few, np.zeros(few.shape[0]), str(tmp_path / "few.svm"), zero_based=zero_based
    )
    np.testing.assert_allclose(
        model.decision_function(tmp_path / "few.svm"), model.decision_function(few), atol=1e-12
    )
