"""Rows, targets and weights that are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from row_stores import (
    CHUNK,
    NAMES,
    SPARSE,
    SPARSE_Y,
    STORES,
    TARGETS,
    WEIGHT,
    N,
    X,
    as_libsvm,
    as_memmap,
    as_parquet,
    cut_into,
    make_model,
    one_of_a_kind,
)

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._rows.on_disk import ChunkRules, using_chunk_rules
from nysplus._rows.readers import open_source
from nysplus.kernels import RBF


def _broken_rows():
    broken = X.copy()
    broken[431, 1] = np.nan
    return broken


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("memmap", r"X contains NaN in row 431 .*column 1\b"),
        ("parquet-groups-of-7", r"X contains NaN in row 431 .*rows.parquet.*column 'b'"),
        ("parquet-files", r"X contains NaN in row 431 \(row 81 of part-3.pq.*column 'b'"),
        ("csv", r"X contains NaN in row 431 \(row 81 of part-3.csv.*column 'b'"),
        ("table", r"X contains NaN in row 431 .*column 'b'"),
        ("blocks-of-61", r"X contains NaN in row 431 \(row 4 of block 7.*column 1\b"),
    ],
)
def test_a_missing_number_late_in_a_stream_is_named(tmp_path, store, message):
    rows, y, _ = STORES[store](tmp_path, _broken_rows(), TARGETS["binary"], None)
    with pytest.raises(ValueError, match=message):
        make_model().fit(rows, y)
    model = make_model().fit(pd.DataFrame(X, columns=NAMES), TARGETS["binary"])
    with pytest.raises(ValueError, match=message):
        model.predict(rows)
    with pytest.raises(ValueError, match=message):
        Nystroem(n_components=5, selection="negative-margin").fit(rows, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(N) == 431, np.nan, TARGETS["binary"]), "y contains NaN in row 431"),
        (np.where(np.arange(N) == 431, 0.5, TARGETS["binary"]), "continuous.*y contains 0.5"),
        (np.ones(N, dtype=int), "one class only, .*1"),
        (np.where(np.arange(N) % 2, 2, TARGETS["labels"][:, 0])[:, None] * [1, 1], "indicator"),
    ],
)
@pytest.mark.parametrize("store", ["memmap", "blocks-of-61"])
def test_labels_that_will_not_do(tmp_path, store, y, message):
    with pytest.raises(ValueError, match=message):
        make_model().fit(*STORES[store](tmp_path, X, y, None))


@pytest.mark.parametrize("dtype", [object, str])
@pytest.mark.parametrize("size", [CHUNK, 100, N // 2])
def test_classes_of_two_kinds(dtype, size):
    rules = ChunkRules(max_rows=100_000 if size == N // 2 else CHUNK)
    blocks = cut_into(X, TARGETS["binary"], None, size)
    blocks[-1] = blocks[-1][0], TARGETS["text"][-len(blocks[-1][1]) :].astype(dtype)
    with (
        using_chunk_rules(rules),
        pytest.raises(ValueError, match=r"number.*text|text.*number"),
    ):
        make_model().fit(blocks)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(N), "All sample weights are zero"),
        (np.where(np.arange(N) == 431, -1.0, 1.0), "sample_weight contains -1 in row 431"),
        (np.where(np.arange(N) == 431, np.inf, 1.0), "sample_weight contains infinity in row 431"),
        (np.where(TARGETS["binary"] == 1, 1.0, 0.0), "one class only"),
    ],
)
@one_of_a_kind
def test_weights_that_will_not_do(tmp_path, store, weight, message):
    with pytest.raises(ValueError, match=message):
        make_model().fit(*STORES[store](tmp_path, X, TARGETS["binary"], weight))


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_targets_that_nobody_named(tmp_path, kind):
    with pytest.raises(ValueError, match=r"requires y to be passed.*Name the column with y="):
        kind(5).fit(as_parquet(100)(tmp_path, X, TARGETS["binary"], None)[0])
    with pytest.raises(ValueError, match=r"requires y to be passed.*blocks \(X, y\)"):
        kind(5).fit([X[:100], X[100:]])
    with pytest.raises(ValueError, match=r"no columns \['z'\]. Its columns are \['a', 'y'"):
        kind(5).fit(tmp_path / "rows.parquet", "z")
    with pytest.raises(ValueError, match="y was passed beside X, but blocks bring their own"):
        kind(5).fit(cut_into(X, TARGETS["binary"], None, 100), TARGETS["binary"])


def test_class_weights_of_labels(tmp_path):
    with pytest.raises(ValueError, match="one class per row"):
        make_model(class_weight="balanced").fit(*as_memmap(tmp_path, X, TARGETS["labels"], None))


def test_rows_that_are_shuffled_between_passes():
    rng = np.random.RandomState(0)

    def blocks():
        order = rng.permutation(N)
        yield from cut_into(X[order], TARGETS["binary"][order], None, 100)

    with pytest.raises(ValueError, match=r"block 0 is not the same as before.*turn shuffling off"):
        make_model().fit(blocks)


@pytest.mark.parametrize("lost", [1, -1])
def test_rows_that_get_fewer_or_more_between_passes(lost):
    calls = []

    def blocks():
        calls.append(1)
        cut = cut_into(X, TARGETS["binary"], None, 100)
        yield from cut[:-1] if (len(calls) > 2) == (lost > 0) else cut

    with pytest.raises(ValueError, match=r"This pass over X gave .* rows, the first one gave"):
        make_model().fit(blocks)


def test_iterators_that_can_be_read_once():
    with pytest.raises(ValueError, match="generator that can be read only once"):
        make_model().fit(block for block in cut_into(X, TARGETS["binary"], None, 100))


def test_columns_are_found_by_name(tmp_path):
    named = pd.DataFrame(X, columns=NAMES)
    model = make_model().fit(named, TARGETS["binary"])
    expected = model.decision_function(named)
    moved = named[["c", "a", "b"]].assign(more="text")
    for suffix, write in (".parquet", moved.to_parquet), (".csv", moved.to_csv):
        write(tmp_path / f"moved{suffix}", index=False)
        got = model.decision_function(tmp_path / f"moved{suffix}")
        np.testing.assert_allclose(got, expected, atol=1e-12)
    named[["c", "a"]].to_parquet(tmp_path / "fewer.parquet")
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"no columns \['b'\]"):
            method(tmp_path / "fewer.parquet")


def test_names_of_columns_are_kept(tmp_path):
    model = make_model().fit(*as_parquet(50)(tmp_path, X, TARGETS["binary"], WEIGHT))
    assert list(model.feature_names_in_) == NAMES
    model.predict(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=["a", "b", "d"]))
    model.fit(*as_memmap(tmp_path, X, TARGETS["binary"], None))
    assert not hasattr(model, "feature_names_in_")


def test_blocks_of_data_frames_with_other_columns():
    blocks = [
        (pd.DataFrame(x, columns=NAMES), y) for x, y in cut_into(X, TARGETS["binary"], None, 90)
    ]
    model = make_model().fit(blocks)
    assert list(model.feature_names_in_) == NAMES
    moved = [(x[["c", "a", "b"]], y) for x, y in blocks]
    with pytest.raises(ValueError, match=r"feature names|columns"):
        model.predict(moved)
    with pytest.raises(ValueError, match=r"feature names|columns"):
        model.score(moved)


@pytest.mark.parametrize("store", ["memmap", "blocks-of-61", "table"])
def test_wrong_number_of_features(tmp_path, store):
    model = make_model().fit(X[:, :2], TARGETS["binary"])
    rows, *_ = STORES[store](tmp_path, X, TARGETS["binary"], None)
    wide = 4 if store == "table" else 3
    with pytest.raises(
        ValueError, match=f"X has {wide} features, but NystroemClassifier is expecting 2 features"
    ):
        model.predict(rows)
    given = make_model(selection=X[:20, :2])
    with pytest.raises(ValueError, match=r"have 2 features, X has \d"):
        given.fit(*STORES[store](tmp_path, X, TARGETS["binary"], None))


def test_unknown_libsvm_features(tmp_path):
    model = make_model().fit(SPARSE[:, :8], SPARSE_Y)
    with pytest.raises(ValueError, match=r"rows\.svm"):
        model.predict(as_libsvm(True)(tmp_path))


@pytest.mark.parametrize("params", [{"alpha": -1}, {"kernel": "gauss"}, {"n_components": 0}])
def test_parameters_are_checked_before_any_row_is_read(params):
    reads = []

    def blocks():
        reads.append(1)
        yield from cut_into(X, TARGETS["binary"], None, 100)

    open_source(blocks)
    for_opening = len(reads)
    with pytest.raises(ValueError, match=next(iter(params))):
        make_model().set_params(**params).fit(blocks)
    assert len(reads) <= 2 * for_opening


def test_more_landmarks_than_rows_that_weigh(tmp_path):
    weight = np.where(np.arange(N) < 15, 1.0, 0.0)
    rows = as_memmap(tmp_path, X, TARGETS["binary"], weight)
    with pytest.warns(UserWarning, match="n_components=20 exceeds the 15 rows"):
        model = make_model().fit(*rows)
    np.testing.assert_array_equal(model.landmark_indices_, np.arange(15))


def test_histogram_kernel_on_negative_rows(tmp_path):
    with pytest.raises(ValueError, match="non-negative features"):
        make_model(kernel="chi2").fit(*as_memmap(tmp_path, X, TARGETS["binary"], None))


def test_median_and_scale_are_those_of_rows_that_weigh(tmp_path):
    """Rows of weight zero are far away and must not count."""
    far = np.where(WEIGHT[:, None] > 0, X, 1e3)
    for gamma in ("scale", "median"):
        model = make_model(kernel=RBF(gamma), gamma="scale").fit(
            *as_memmap(tmp_path, far, TARGETS["binary"], WEIGHT)
        )
        assert model.gamma_ > 1e-2
