"""Records of other fits, damaged records, and disks that are full."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from full_disk import full_disk
from killed_fits import (
    STORES,
    TARGETS,
    WEIGHT,
    Killed,
    N,
    X,
    as_memmap,
    assert_identical,
    every_store,
    kill,
    make_model,
    watched,
)

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._runtime.checkpoint import Checkpoint
from nysplus.kernels import FunctionKernel

# ---- records that are not of this fit -----------------------------------------------------------


@contextmanager
def _refused(path, message):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        yield
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.part"))


@pytest.fixture
def record(monkeypatch, path):
    """What a killed fit has left behind."""
    kill(monkeypatch, make_model(), (X, TARGETS["classes"]), path, 12)
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 16),
        ("kernel", "laplacian"),
        ("gamma", 0.51),
        ("selection", "uniform"),
        ("selection", X[:15]),
        ("approximation", "ensemble"),
        ("alpha", 0.1),
        ("class_weight", "balanced"),
        ("random_state", 1),
        ("random_state", None),
    ],
)
def test_other_parameters(record, name, value):
    with _refused(
        record,
        rf"was written by another fit: {name}\b.* differ. Delete it to start from the beginning",
    ):
        make_model(**{name: value}).fit(X, TARGETS["classes"], checkpoint=record)
    assert_identical(
        make_model().fit(X, TARGETS["classes"], checkpoint=record),
        make_model().fit(X, TARGETS["classes"]),
    )


def _changed(array, row, value):
    array = np.array(array)
    array[row] = value
    return array


OTHER_DATA = {
    "first row": (_changed(X, 0, 9.0), TARGETS["classes"], None),
    "last row": (_changed(X, -1, 9.0), TARGETS["classes"], None),
    "a row in the middle": (_changed(X, N // 2, 9.0), TARGETS["classes"], None),
    "fewer rows": (X[:-1], TARGETS["classes"][:-1], None),
    "fewer columns": (X[:, :2], TARGETS["classes"], None),
    "a label": (X, _changed(TARGETS["classes"], N // 2, 3), None),
    "weights": (X, TARGETS["classes"], WEIGHT),
}


@pytest.mark.parametrize("store", ["ndarray", "memmap"])
@pytest.mark.parametrize("case", OTHER_DATA)
def test_other_data(monkeypatch, tmp_path, path, store, case):
    rows, y, weight = OTHER_DATA[case]
    kill(monkeypatch, make_model(), STORES[store](tmp_path, X, TARGETS["classes"]), path, 12)
    with _refused(path, "was written by another fit: the rows differ"):
        make_model().fit(*STORES[store](tmp_path, rows, y), weight, checkpoint=path)


@every_store
def test_rows_in_another_order(monkeypatch, tmp_path, path, store):
    """Sums over these rows are the same in any order, but some are in the record already."""
    bits = np.random.RandomState(0).randint(0, 2, N)
    rows, y = np.c_[bits, 1 - bits].astype(float), np.roll(bits, 1)
    order = np.r_[0:100, np.arange(100, N - 100)[::-1], N - 100 : N]
    model = make_model(alpha=0.1, selection=X[:15, :2])
    kill(monkeypatch, model, STORES[store](tmp_path, rows, y), path, 2)
    with _refused(path, "was written by another fit: the rows differ"):
        model.fit(*STORES[store](tmp_path, rows[order], y[order]), checkpoint=path)


def test_another_class(record):
    with _refused(record, r"was written by another fit: .*estimator"):
        make_model("values").fit(X, TARGETS["classes"].astype(float), checkpoint=record)


class Payload:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.mkdir, (str(self._path),)


def _as_npz(path, **arrays):
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def _as_npy(path):
    with open(path, "wb") as file:
        np.save(file, X)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("rows, columns\n1, 2\n"),
    "array": _as_npy,
    "arrays": lambda path: _as_npz(path, X=X),
    "header that is no text": lambda path: _as_npz(path, header=X),
    "header that is a list": lambda path: _as_npz(path, header=np.array("[1, 2]")),
    "header of nothing": lambda path: _as_npz(path, header=np.array("{}")),
    "pickle": lambda path: path.write_bytes(pickle.dumps(Payload(path.with_name("harm")))),
    "pickle inside": lambda path: _as_npz(
        path, header=np.array([Payload(path.with_name("harm"))], dtype=object)
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_files_that_are_no_records(path, case):
    DAMAGE[case](path)
    with _refused(path, "is no checkpoint of a fit, or a damaged one|was written by another fit"):
        make_model().fit(X, TARGETS["classes"], checkpoint=path)
    assert not path.with_name("harm").exists()


def _parts_of(record):
    with np.load(record) as archive:
        return {name: archive[name] for name in archive.files}


CHANGES = {
    "another number": lambda parts: parts["0.values"].__iadd__(1e-9),
    "another type": lambda parts: parts.update({"0.values": parts["0.values"].astype("f4")}),
    "another shape": lambda parts: parts.update({"0.values": parts["0.values"][..., None]}),
    "a part less": lambda parts: parts.pop("generator.keys"),
    "a part more": lambda parts: parts.update({"9.values": np.zeros(3)}),
    "another position": lambda parts: _set_header(parts, position="all"),
    "a negative position": lambda parts: _set_header(parts, position=-1),
    "no position": lambda parts: _set_header(parts, position=None),
}


def _set_header(parts, **changed):
    header = json.loads(str(parts["header"])) | changed
    parts["header"] = np.array(json.dumps(header))


@pytest.mark.parametrize("case", CHANGES)
def test_records_that_were_changed(record, case):
    """The archive itself is whole, and its own checksums are right."""
    parts = _parts_of(record)
    first = next(name for name in parts if name.startswith("0."))
    parts["0.values"] = parts.pop(first)
    CHANGES[case](parts)
    parts[first] = parts.pop("0.values")
    np.savez(record.with_suffix(".npz"), **parts)
    record.with_suffix(".npz").replace(record)
    with _refused(record, "is no checkpoint of a fit, or a damaged one"):
        make_model().fit(X, TARGETS["classes"], checkpoint=record)


def test_a_compressed_record_is_refused(record):
    """Some kilobytes could become gigabytes."""
    np.savez_compressed(record.with_suffix(".npz"), **_parts_of(record), zeros=np.zeros(10**6))
    record.with_suffix(".npz").replace(record)
    with _refused(record, "its parts are larger than the file"):
        make_model().fit(X, TARGETS["classes"], checkpoint=record)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.99])
def test_truncated_records(record, share):
    content = record.read_bytes()
    record.write_bytes(content[: int(share * len(content))])
    with _refused(
        record, "is no checkpoint of a fit, or a damaged one.*Delete it to start from the beginning"
    ):
        make_model().fit(X, TARGETS["classes"], checkpoint=record)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_flipped_bits_are_found_or_harmless(record, seed):
    content, rng = record.read_bytes(), np.random.RandomState(seed)
    whole = make_model().fit(X, TARGETS["classes"])
    directory = content.rindex(b"PK\x01\x02", 0, content.index(b"PK\x01\x02") + 4)
    places = [*rng.randint(len(content), size=20), *rng.randint(directory, len(content), size=60)]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randint(8)
        record.write_bytes(flipped)
        model = make_model()
        try:
            model.fit(X, TARGETS["classes"], checkpoint=record)
        except ValueError:
            assert record.read_bytes() == flipped
        else:
            assert_identical(model, whole)


# ---- disks that are full, folders that are not there -------------------------------------------


@pytest.mark.parametrize("how", ["limit", "fsync", "replace"])
@every_store
def test_a_full_disk(monkeypatch, tmp_path, path, store, how):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    with watched(monkeypatch) as added:
        whole = make_model().fit(*args)
    kill(monkeypatch, make_model(), args, path, 10)
    before = path.read_bytes()
    with (
        full_disk(monkeypatch, how, len(before) // 2),
        pytest.warns(UserWarning, match=r"could not be written.*the last one stays valid"),
    ):
        kill(monkeypatch, make_model(), args, path, 7)  # seven more
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))
    with watched(monkeypatch) as rest:
        assert_identical(make_model().fit(*args, checkpoint=path), whole)
    assert len(rest) == len(added) - 10


@pytest.mark.parametrize("how", ["limit", "fsync", "replace"])
def test_a_fit_ends_on_a_full_disk(monkeypatch, path, how):
    with (
        full_disk(monkeypatch, how, 100),
        pytest.warns(UserWarning, match=r"could not be written \(.*there is none yet.*continues"),
    ):
        model = make_model().fit(X, TARGETS["classes"], checkpoint=Checkpoint(path, 0))
    assert_identical(model, make_model().fit(X, TARGETS["classes"]))
    assert os.listdir(path.parent) == []


def test_what_a_kill_in_a_write_leaves_goes_with_the_record(path):
    path.with_name(f".{path.name}.0123abcd.part").write_bytes(b"half of a")
    make_model().fit(X, TARGETS["classes"], checkpoint=path)
    assert os.listdir(path.parent) == []


# ---- two fits, one path -------------------------------------------------------------------------


def test_a_checkpoint_in_use_is_refused(monkeypatch, path):
    """By the same fit as well as by another one, and the running fit loses nothing."""
    refusals = []

    def fit_beside(alpha):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="is in use by a fit that is still running") as caught:
            make_model(alpha=alpha).fit(X, TARGETS["classes"], checkpoint=path)
        assert path.read_bytes() == before
        refusals.append(str(caught.value))

    at = {5: lambda: fit_beside("auto"), 9: lambda: fit_beside(0.3)}
    with watched(monkeypatch, at=at):
        model = make_model().fit(X, TARGETS["classes"], checkpoint=Checkpoint(path, 0))
    assert len(refusals) == 2
    assert str(path) in refusals[0]
    assert_identical(model, make_model().fit(X, TARGETS["classes"]))
    assert os.listdir(path.parent) == []


def test_a_fit_that_failed_does_not_keep_its_checkpoint_in_use(monkeypatch, path):
    args, stop = (X, TARGETS["classes"]), 12
    with watched(monkeypatch, stop), pytest.raises(Killed) as caught:
        make_model().fit(*args, checkpoint=Checkpoint(path, 0))
    assert os.listdir(path.parent) == [path.name]
    model = make_model().fit(*args, checkpoint=path)
    assert caught.traceback  # which keeps the objects of the first fit alive
    assert_identical(model, make_model().fit(*args))


def test_a_linked_checkpoint(monkeypatch, path):
    link = path.with_name("link")
    link.symlink_to(path.name)
    kill(monkeypatch, make_model(), (X, TARGETS["classes"]), link, 12)
    assert path.exists()
    assert_identical(
        make_model().fit(X, TARGETS["classes"], checkpoint=path),
        make_model().fit(X, TARGETS["classes"], checkpoint=link),
    )
    assert os.listdir(path.parent) == ["link"]


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_paths_that_will_not_do_are_found_before_any_work(tmp_path, kind):
    reads = []

    def blocks():
        reads.append(1)
        yield X, TARGETS["classes"]

    for place in (tmp_path / "nowhere" / "file", tmp_path):
        for checkpoint in (place, str(place), Checkpoint(place)):
            with pytest.raises(ValueError, match="must name a file in a folder that exists"):
                kind(5).fit(blocks, checkpoint=checkpoint)
    assert reads == []


def test_a_fit_that_fails_keeps_its_record(record):
    before = record.read_bytes()
    with pytest.raises(ValueError, match="alpha="):
        make_model(alpha=-1).fit(X, TARGETS["classes"], checkpoint=record)
    assert record.read_bytes() == before


def _named(number):
    def function(x, z):
        return float(x @ z) * number

    return function


KERNELS = {
    "constants": [lambda x, z: float(x @ z), lambda x, z: float(x @ z + 1.0)],
    "defaults": [lambda x, z, s=s: s * float(x @ z) for s in (1.0, 2.0)],
    "enclosed": [_named(1.0), _named(2.0)],
    "names": [lambda x, z: float(np.cos(x @ z)), lambda x, z: float(np.exp(x @ z))],
    "inner": [
        lambda x, z: sum(a * b for a, b in zip(x, z, strict=True)),
        lambda x, z: sum(a * b * 2 for a, b in zip(x, z, strict=True)),
    ],
    "objects": [
        FunctionKernel(lambda X, Z: X @ Z.T, vectorized=True),
        FunctionKernel(lambda X, Z: X @ Z.T + 1.0, vectorized=True),
    ],
}


# linear functions of the rows are poor models of these classes
@pytest.mark.filterwarnings("ignore:The model predicts .* for none of their own training rows")
@pytest.mark.parametrize("case", KERNELS)
def test_kernels_that_are_functions(monkeypatch, path, case):
    """They have no names to be found by, and are told from each other by what they do."""
    few = X[:200], TARGETS["classes"][:200]
    kernel, other = KERNELS[case]
    model = make_model(kernel=kernel, selection=X[:5], alpha=0.1, gamma="scale")
    whole = model.fit(*few).dual_coef_
    kill(monkeypatch, model, few, path, 1)
    model.set_params(kernel=other)
    with _refused(path, "was written by another fit: kernel differ"):
        model.fit(*few, checkpoint=path)
    model.set_params(kernel=kernel).fit(*few, checkpoint=path)
    np.testing.assert_array_equal(model.dual_coef_, whole)


def test_another_working_memory(monkeypatch, tmp_path, path):
    args = as_memmap(tmp_path, X, TARGETS["classes"])
    kill(monkeypatch, make_model(), args, path, 5)
    with (
        sklearn.config_context(working_memory=10),
        _refused(path, "was written by another fit: .*working_memory.* differ"),
    ):
        make_model().fit(*args, checkpoint=path)
