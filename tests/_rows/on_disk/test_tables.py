"""Tables that are not in memory give the models that they give in memory, with the encoder."""

from __future__ import annotations

from itertools import pairwise

import factories
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.feather
import pytest
from row_stores import Again, as_libsvm, assert_close
from sklearn.base import clone

from nysplus import Checkpoint, NystroemClassifier, NystroemRegressor, Refinement
from nysplus.encoding import TableEncoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The column 'id' numbers the rows"),
]

N = 600
FRAME, Y = factories.frame_of_all_kinds(N)
WEIGHT = factories.weights(N)
CUTS = [0, 250, 251, 400, N]


def make_model(kind=NystroemClassifier, n=30, **params):
    encoder = TableEncoder(categories=["zip"])
    return kind(n, **{"encoder": encoder, "alpha": 0.1, "random_state": 0} | params)


def stored(frame, y=None, weight=None):
    """Return the whole table, in which the target stands among the features."""
    whole = frame.copy()
    if y is not None:
        whole.insert(3, "label", y)
    return whole if weight is None else whole.assign(weight=weight)


def _files(suffix, write):
    def store(folder, whole):
        (folder / "rows").mkdir()
        for number, (start, stop) in enumerate(pairwise(CUTS)):
            write(whole[start:stop], folder / "rows" / f"part-{number}{suffix}")
        return folder / "rows"

    return store


def _feather(folder, whole):
    table = pa.Table.from_pandas(whole, preserve_index=False)
    pa.feather.write_feather(table, folder / "rows.arrow", chunksize=73)
    return folder / "rows.arrow"


TABLES = {
    "parquet": _files(".parquet", lambda part, path: part.to_parquet(path, row_group_size=90)),
    "csv": _files(".csv", lambda part, path: part.to_csv(path, index=False)),
    "csv.gz": _files(".csv.gz", lambda part, path: part.to_csv(path, index=False)),
    "tsv": _files(".tsv", lambda part, path: part.to_csv(path, index=False, sep="\t")),
    "feather": _feather,
    "arrow table": lambda folder, whole: pa.Table.from_pandas(whole, preserve_index=False),
    "dataset": lambda folder, whole: pds.dataset(TABLES["parquet"](folder, whole)),
}
every_table = pytest.mark.parametrize("store", TABLES.values(), ids=TABLES)


def frames_of(make, size):
    return Again(
        [(make(FRAME[i : i + size]), Y[i : i + size]) for i in range(0, N, size)],
    )


def assert_same(model, memory, rows=None):
    """Check schema, knots and decision values; those of code columns are rounded to float32."""
    assert model._schema == memory._schema
    assert model.expansion_.encoder.same(memory.expansion_.encoder)
    expected = memory.decision_function(FRAME)
    assert_close(model.decision_function(FRAME), expected, 1e-6)
    if rows is not None:
        assert_close(model.decision_function(rows), expected, 1e-6)


# ---- fits ---------------------------------------------------------------------------------------


@every_table
def test_every_file_gives_the_model_of_the_frame(tmp_path, store):
    memory = make_model().fit(FRAME, Y)
    rows = store(tmp_path, stored(FRAME, Y))
    model = make_model().fit(rows, "label")
    assert_same(model, memory, rows)
    assert list(model.feature_names_in_) == list(FRAME)
    np.testing.assert_array_equal(model.predict(rows), memory.predict(FRAME))
    assert model.score(rows, "label") == memory.score(FRAME, Y)


@pytest.mark.parametrize("size", [7, 61, N])
@pytest.mark.parametrize("make", [lambda part: part, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_blocks_of_frames(make, size):
    memory = make_model().fit(FRAME, Y)
    blocks = frames_of(make, size)
    assert_same(make_model().fit(blocks), memory, blocks)


def test_blocks_of_polars():
    pl = pytest.importorskip("polars")
    memory = make_model().fit(FRAME, Y)
    blocks = frames_of(pl.from_pandas, 61)
    assert_same(make_model().fit(blocks), memory, blocks)


@pytest.mark.parametrize("kind", ["memory map", "arrays", "objects"])
def test_arrays_with_gaps(tmp_path, kind):
    X = FRAME[["number", "whole", "zip", "constant"]].to_numpy(np.float64, na_value=np.nan)
    rows, y = [(X[i : i + 61], Y[i : i + 61]) for i in range(0, N, 61)], None
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        rows, y = np.load(tmp_path / "X.npy", mmap_mode="r"), Y
    elif kind == "objects":
        X = FRAME[["number", "colour", "flag"]].to_numpy(dtype=object)
        rows = [(X[i : i + 61], Y[i : i + 61]) for i in range(0, N, 61)]
    # small coefficients: float32 sums of other blocks then round alike
    memory, model = (make_model(encoder="auto", alpha=1.0) for _ in range(2))
    memory.fit(X, Y)
    model.fit(rows, y)
    assert model._schema == memory._schema
    for given in (X, rows):
        np.testing.assert_allclose(
            model.decision_function(given),
            memory.decision_function(X),
            0,
            factories.rounding_of_codes(memory),
        )


@pytest.mark.parametrize("store", ["parquet", "csv"])
def test_weights_of_zero_leave_rows_out(tmp_path, store):
    """Levels are counted, and knots drawn, among rows of positive weight."""
    memory = make_model().fit(FRAME, Y, sample_weight=WEIGHT)
    rows = TABLES[store](tmp_path, stored(FRAME, Y, WEIGHT))
    model = make_model().fit(rows, "label", sample_weight="weight")
    assert_same(model, memory)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        make_model().fit(rows, "label", sample_weight=np.zeros(N))


def test_values_and_statistics_of_targets(tmp_path):
    """Training rows get means of other folds, by their numbers among all rows."""
    values = FRAME["number"].fillna(0).to_numpy() + FRAME["street"].str.len()
    encoder = TableEncoder(categories=["zip"], target_statistics=True, min_level_rows=2)
    memory = make_model(NystroemRegressor, encoder=encoder).fit(FRAME, values)
    rows = TABLES["parquet"](tmp_path, stored(FRAME, values))
    model = make_model(NystroemRegressor, encoder=encoder).fit(rows, "label")
    assert model.expansion_.encoder.same(memory.expansion_.encoder)
    assert_close(model.predict(rows), memory.predict(FRAME), 1e-6)


@pytest.mark.parametrize(
    "params",
    [{"budget": "8kB"}, {"refine": Refinement(search=False), "budget": "4kB"}],
    ids=["budget", "refined"],
)
def test_budgets_and_refinement(tmp_path, params):
    memory = make_model(**params).fit(FRAME, Y)
    rows = TABLES["parquet"](tmp_path, stored(FRAME, Y))
    model = make_model(**params).fit(rows, "label")
    assert model._schema == memory._schema
    assert model.model_bytes_ <= int(params["budget"].removesuffix("kB")) * 1024
    assert model.score(rows, "label") == pytest.approx(memory.score(FRAME, Y), abs=0.02)


def test_the_first_look_is_a_pass_with_a_name(tmp_path, capsys):
    rows = TABLES["csv"](tmp_path, stored(FRAME, Y))
    make_model(verbose=2).fit(rows, "label")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[NystroemClassifier] columns: 600")
    assert lines[1].startswith("[NystroemClassifier] survey: 600 of 600 rows")


@pytest.mark.parametrize("encoder", [None, "auto"])
def test_sparse_rows_are_left_as_they_are(tmp_path, encoder):
    rows = as_libsvm(True)(tmp_path)
    model = NystroemClassifier(20, alpha=0.1, random_state=0, encoder=encoder).fit(rows)
    plain = NystroemClassifier(20, alpha=0.1, random_state=0).fit(rows)
    np.testing.assert_array_equal(model.decision_function(rows), plain.decision_function(rows))
    with pytest.raises(TypeError, match="sparse rows, which cannot be encoded as a table"):
        make_model().fit(FRAME, Y).predict(rows)


# ---- other columns at predict -------------------------------------------------------------------


@pytest.mark.parametrize("store", ["parquet", "csv", "arrow table"])
def test_columns_are_found_by_name(tmp_path, store):
    model = make_model().fit(FRAME, Y)
    other = FRAME[FRAME.columns[::-1]].drop(columns=["id", "constant"])
    other = other.assign(more="text", label=Y)
    rows = TABLES[store](tmp_path, other)
    np.testing.assert_array_equal(model.predict(rows), model.predict(FRAME))
    assert model.score(rows, "label") == model.score(FRAME, Y)


@pytest.mark.parametrize("store", ["parquet", "csv", "arrow table"])
def test_missing_columns_are_named(tmp_path, store):
    model = make_model().fit(FRAME, Y)
    rows = TABLES[store](tmp_path, FRAME.drop(columns=["flag", "zip"]))
    with pytest.raises(ValueError, match=r"X has no columns \['flag', 'zip'\]\. Its columns are"):
        model.predict(rows)
    with pytest.raises(ValueError, match=r"X has no columns \['flag', 'zip'\], which the model"):
        model.predict([FRAME.drop(columns=["flag", "zip"])])


@pytest.mark.parametrize("store", ["parquet", "csv"])
def test_columns_of_another_kind_at_predict(tmp_path, store):
    model = make_model().fit(FRAME, Y)
    rows = TABLES[store](tmp_path, FRAME.assign(number="much"))
    with pytest.raises(TypeError, match=r"'number' contained numbers in training.*such as 'much'"):
        model.predict(rows)


@pytest.mark.parametrize("store", ["parquet", "csv"])
def test_columns_without_entries_and_new_levels_at_predict(tmp_path, store):
    model = make_model().fit(FRAME, Y)
    other = FRAME.assign(colour=None, number=np.nan, street="another street")
    rows = TABLES[store](tmp_path, other)
    assert_close(model.decision_function(rows), model.decision_function(other), 1e-6)


def test_a_level_that_looks_like_a_number_stays_text(tmp_path):
    """What a column of a CSV file stands for follows from training, not from the file at hand."""
    frame = FRAME.assign(street=np.where(np.arange(N) % 3, "7", "A"))
    path = TABLES["csv"](tmp_path, stored(frame, Y))
    model = make_model().fit(path, "label")
    (tmp_path / "few").mkdir()
    few = frame[frame["street"] == "7"]
    few.to_csv(tmp_path / "few" / "few.csv", index=False)
    np.testing.assert_array_equal(model.predict(tmp_path / "few"), model.predict(few))


@pytest.mark.parametrize("store", ["parquet", "csv", "memory map", "blocks"])
def test_infinities_are_refused_by_name(tmp_path, store):
    frame = FRAME.copy()
    frame.loc[500, "number"] = np.inf
    name = "'number'"
    if store == "memory map":
        X = frame[["number", "zip"]].to_numpy()
        np.save(tmp_path / "X.npy", X)
        args, name = (np.load(tmp_path / "X.npy", mmap_mode="r"), Y), "'column 0'"
    elif store == "blocks":
        args = ([(frame[i : i + 61], Y[i : i + 61]) for i in range(0, N, 61)],)
    else:
        args = TABLES[store](tmp_path, stored(frame, Y)), "label"
    encoder = "auto" if store == "memory map" else TableEncoder(categories=["zip"])
    with pytest.raises(ValueError, match=f"The column {name} contains infinity"):
        make_model(encoder=encoder).fit(*args)


@pytest.mark.parametrize("store", ["parquet", "csv"])
def test_targets_and_weights_are_checked_as_ever(tmp_path, store):
    y = np.where(np.arange(N) == 300, None, np.arange(N) % 2)
    rows = TABLES[store](tmp_path, stored(FRAME, pd.array(y, dtype="Int64")))
    with pytest.raises(ValueError, match=r"y contains (NaN|a missing value) in row 300"):
        make_model().fit(rows, "label")
    with pytest.raises(ValueError, match="sample_weight contains -1 in row 7"):
        make_model().fit(rows, Y, sample_weight=np.where(np.arange(N) == 7, -1.0, 1.0))


# ---- beside fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["parquet", "csv"])
def test_rows_over_time(tmp_path, store):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = TABLES[store](tmp_path / "first", stored(FRAME, Y))
    more, more_y = factories.frame_of_all_kinds(N, seed=1)
    second = TABLES[store](tmp_path / "second", stored(more, more_y))
    memory = make_model().partial_fit(FRAME, Y, ["no", "yes"]).partial_fit(more, more_y)
    model = make_model().partial_fit(first, "label", ["no", "yes"]).partial_fit(second, "label")
    assert_same(model, memory)


def test_compressed_with_rows_in_a_file(tmp_path):
    rows = TABLES["csv"](tmp_path, stored(FRAME, Y))
    model = make_model().fit(rows, "label")
    small = model.compress(10, rows, "label")
    assert len(small.landmarks_) == 10
    assert small.score(rows, "label") == pytest.approx(
        model.compress(10, FRAME, Y).score(FRAME, Y), abs=0.02
    )


class Interrupted:
    """Blocks that end a fit in the middle of one of its passes."""

    def __init__(self, last=None):
        self.passes, self.last = 0, last

    def __iter__(self):
        self.passes += 1
        for i in range(0, N, 61):
            if self.passes == self.last and i > N // 2:
                raise InterruptedError
            yield FRAME[i : i + 61], Y[i : i + 61]


def test_a_checkpoint_belongs_to_its_columns(tmp_path):
    """The same numbers with other names of levels are other rows."""
    model, blocks, file = make_model(selection="kmeans"), Interrupted(), tmp_path / "checkpoint"
    whole = clone(model).fit(blocks)
    with pytest.raises(InterruptedError):
        clone(model).fit(Interrupted(blocks.passes), checkpoint=Checkpoint(file, 0.0))
    assert file.exists()
    renamed = FRAME.assign(size=FRAME["size"].cat.rename_categories({"huge": "giant"}))
    others = [(renamed[i : i + 61], Y[i : i + 61]) for i in range(0, N, 61)]
    with pytest.raises(ValueError, match="another fit: the columns differ"):
        clone(model).fit(others, checkpoint=file)
    assert_same(clone(model).fit(Interrupted(), checkpoint=file), whole)
    assert not file.exists()
