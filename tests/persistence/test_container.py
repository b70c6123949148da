"""Models in files: the same bits come back, and damaged or hostile files do no harm."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from exported import json_scores
from factories import alter
from forged import JUNK, forge, loaded, places, set_entry, set_tensor
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sampling import sampled
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from nysplus import (
    EnsembleMap,
    LearnedMetric,
    Nystroem,
    NystroemClassifier,
    NystroemRegressor,
    RandomizedMap,
    StandardMap,
)
from nysplus._bytes.budget import STORAGE
from nysplus._bytes.quantise import pack_expansion
from nysplus.export import to_json
from nysplus.kernels import KERNELS, RBF, FunctionKernel, Matern, Polynomial
from nysplus.landmarks import (
    CholeskyPicker,
    ClassCentroids,
    GivenLandmarks,
    NegativeMargin,
    RPCholesky,
)
from nysplus.persistence import FORMAT, load, save
from nysplus.persistence import container as persistence


def _rows(seed=0, n=120, d=4):
    """Rows without negative features, which every kernel takes."""
    X = np.random.RandomState(seed).rand(n, d)
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int) + (X[:, 2] > 0.7)


X, Y3 = _rows()
Y2 = (Y3 > 0).astype(int)
TEST, _ = _rows(1, 50)
LABELS = np.stack([Y2, Y3 == 2], axis=1).astype(int)
VALUES = np.stack([np.sin(4 * X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def _classifier(y=Y3, **params):
    return NystroemClassifier(**{"n_components": 15, "random_state": 0, **params}).fit(X, y)


def _regressor(y=VALUES, **params):
    return NystroemRegressor(**{"n_components": 15, "random_state": 0, **params}).fit(X, y)


def _same_arrays(one, other):
    if sp.issparse(one):
        assert type(one) is type(other)
        assert one.shape == other.shape
        one, other = (np.hstack([M.data, M.indices, M.indptr]) for M in (one, other))
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


def _round_trip(model, tmp_path, test=TEST):
    """Save, load, and compare everything there is to compare, bit for bit."""
    path = tmp_path / "model.safetensors"
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(again.expansion_.kernel) == repr(model.expansion_.kernel)
    for name in ("landmarks", "dual_coef", "intercept"):
        _same_arrays(getattr(model.expansion_, name), getattr(again.expansion_, name))
    if model.expansion_.projection is None:
        assert again.expansion_.projection is None
    else:
        _same_arrays(model.expansion_.projection, again.expansion_.projection)
    names = ["predict"]
    if isinstance(model, NystroemClassifier):
        names += ["decision_function", "predict_proba"]
        _same_arrays(model.classes_, again.classes_)
    for name in names:
        _same_arrays(getattr(model, name)(test), getattr(again, name)(test))
    for name in ("alpha_", "gamma_", "solver_", "n_kernel_evaluations_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.n_passes_ == model.n_passes_
    np.testing.assert_array_equal(again.landmark_indices_, model.landmark_indices_)
    assert again.model_bytes_ == model.model_bytes_
    header = int.from_bytes(path.read_bytes()[:8], "little")
    assert path.stat().st_size == 8 + header + model.model_bytes_
    assert os.listdir(tmp_path) == ["model.safetensors"]
    return again


MODELS = {
    "binary": lambda: _classifier(Y2),
    "three classes": _classifier,
    "text": lambda: _classifier(np.array(["no", "perhaps", "yes, Ünïcode"])[Y3]),
    "objects": lambda: _classifier(np.array(["a", "b", "c"], dtype=object)[Y3]),
    "bool": lambda: _classifier(Y2.astype(bool)),
    "floats": lambda: _classifier(Y3 * 2.0 - 1.0),
    "int8 classes": lambda: _classifier(Y3.astype(np.int8)),
    "labels": lambda: _classifier(LABELS),
    "one output": lambda: _regressor(VALUES[:, 0]),
    "one column": lambda: _regressor(VALUES[:, :1]),
    "two outputs": _regressor,
    "diagonal": lambda: _classifier(metric="diagonal"),
    "low rank": lambda: _classifier(metric=2),
    "full": lambda: _regressor(metric="full"),
    "no ridge": lambda: _regressor(alpha=0),
}


@cache
def _fitted(name):
    return MODELS[name]()


@sampled(("name", "dtype"), MODELS.keys(), [None, *STORAGE])
def test_models_come_back_bit_for_bit(tmp_path, name, dtype):
    model = copy.copy(_fitted(name))
    if dtype is not None:
        alter(model, expansion=pack_expansion(model.expansion_, dtype, X))
    again = _round_trip(model, tmp_path)
    assert (again.expansion_.packed is None) == (dtype is None)
    if dtype is not None:
        one, other = model.expansion_.packed, again.expansion_.packed
        assert one.dual_coef.type_name == other.dual_coef.type_name
        assert other.landmarks.type_name == dtype
        _same_arrays(one.landmarks.values, other.landmarks.values)


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"poly"}))
def test_every_kernel(tmp_path, kernel):
    _round_trip(_regressor(kernel=kernel, selection="uniform"), tmp_path)


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern("median", nu=2.5), Polynomial(1.0, 0.5, 2)])
def test_kernel_objects(tmp_path, kernel):
    again = _round_trip(_regressor(kernel=kernel), tmp_path)
    assert type(again.kernel) is type(kernel)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_sparse_landmarks(tmp_path, make):
    rows = make(np.where(X > 0.6, X, 0.0))
    model = NystroemClassifier(15, random_state=0).fit(rows, Y3)
    assert sp.issparse(model.landmarks_)
    _round_trip(model, tmp_path, make(TEST))


def test_float32_rows(tmp_path):
    model = NystroemClassifier(15, random_state=0).fit(X.astype(np.float32), Y3)
    assert model.dual_coef_.dtype == np.float32
    _round_trip(model, tmp_path, TEST.astype(np.float32))


def test_the_order_of_coefficients_is_kept(tmp_path):
    """Products of matrices round differently in another order."""
    model = _classifier()
    columns_first = np.asfortranarray(model.dual_coef_)
    alter(model, expansion=replace(model.expansion_, dual_coef=columns_first))
    again = _round_trip(model, tmp_path)
    assert again.dual_coef_.flags.f_contiguous
    assert not again.dual_coef_.flags.c_contiguous


@pytest.mark.parametrize(
    "params",
    [
        {"selection": NegativeMargin(n_initial=20, picker=CholeskyPicker(greedy=True))},
        {"selection": ClassCentroids(power=1.0, share="root")},
        {"selection": RPCholesky(max_rows=50)},
        {"selection": X[:9]},
        {"selection": GivenLandmarks(X[:9].astype(np.float32))},
        {"selection": sp.csr_matrix(X[:9])},
        {"approximation": EnsembleMap(n_experts=3)},
        {"approximation": RandomizedMap(rank=5)},
        {"approximation": StandardMap(rank=7)},
        {"metric": LearnedMetric("diagonal", n_rounds=1)},
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}},
        {"class_weight": {np.int64(0): np.float64(1.5)}},
        {"alpha": [0.1, 1.0]},
        {"alpha": (0.1, 1)},
        {"alpha": np.array([0.1, 1.0], dtype=np.float32)},
        {"gamma": np.float32(0.7)},
        {"n_components": np.int32(12)},
    ],
    ids=repr,
)
def test_parameters_come_back(tmp_path, params):
    model = _classifier(**params)
    path = tmp_path / "model"
    save(model, path)
    again = load(path)
    (name,) = params
    one, other = model.get_params()[name], again.get_params()[name]
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert repr(clone(again)) == repr(clone(model))


def test_a_random_state_goes_on_where_it_was(tmp_path):
    rng = np.random.RandomState(3)
    model = _classifier(random_state=rng)
    rng.standard_normal()  # the second of a pair waits in the state
    save(model, tmp_path / "model")
    again = load(tmp_path / "model").random_state
    np.testing.assert_array_equal(again.standard_normal(5), rng.standard_normal(5))


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    model = _classifier()
    save(model, tmp_path / "model")
    again = clone(load(tmp_path / "model")).fit(X, Y3)
    np.testing.assert_array_equal(again.decision_function(TEST), model.decision_function(TEST))


def test_feature_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "größe"])
    model = NystroemClassifier(10, random_state=0).fit(frame, Y3)
    again = _round_trip(model, tmp_path, frame)
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "größe"]
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame.rename(columns={"a": "z"}))


def test_sums_of_partial_fit_are_not_saved(tmp_path):
    model = NystroemClassifier(10, random_state=0)
    model.partial_fit(X, Y3, classes=[0, 1, 2])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEST), model.predict_proba(TEST))
    assert not hasattr(again, "n_passes_")
    with pytest.raises(ValueError, match="needs sums over the rows"):
        again.retune()
    with pytest.warns(UserWarning, match="fit keeps no sums"):
        again.partial_fit(X, Y3)


def test_files_are_safetensors_and_the_same_each_time(tmp_path):
    model = _classifier()
    for name in ("one", "other"):
        save(model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    np.testing.assert_array_equal(load_file(tmp_path / "one")["landmarks"], model.landmarks_)
    with safe_open(tmp_path / "one", framework="np") as file:
        header = json.loads(file.metadata()["nysplus"])
    assert header["format"] == 1
    assert header["class"] == "NystroemClassifier"
    assert header["params"]["n_components"] == 15


def test_older_versions_refuse_a_model_with_a_centre(tmp_path):
    path = tmp_path / "model"
    for offset, number in ((0.0, 1), (1e6, 2)):
        model = _classifier(metric="diagonal").fit(X + offset, Y3)
        save(model, path)
        with safe_open(path, framework="np") as file:
            header = json.loads(file.metadata()["nysplus"])
            assert ("center" in file.keys()) == (number == 2)  # noqa: SIM118
        assert header["format"] == number <= FORMAT
        np.testing.assert_array_equal(load(path).predict(X + offset), model.predict(X + offset))


def test_int8_takes_a_byte_a_number(tmp_path):
    model = _classifier()
    alter(model, expansion=pack_expansion(model.expansion_, "int8", X))
    assert model.model_bytes_ == 15 * (4 + 3) + 4 * (4 + 3) + 4 * 3
    _round_trip(model, tmp_path)


# What cannot be saved


def _overlap(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": FunctionKernel(_overlap, vectorized=True)},
        {"kernel": lambda x, z: x @ z},
        {"selection": RPCholesky(weight=np.ones_like)},
    ],
)
def test_functions_are_refused_with_the_reason(tmp_path, params):
    model = _regressor()
    model.set_params(**params)
    with pytest.raises(ValueError, match="loading would have to execute"):
        save(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_fitted_function_kernel_is_refused(tmp_path):
    model = _regressor(kernel=FunctionKernel(_overlap, vectorized=True))
    with pytest.raises(ValueError, match=r"kernel=.*cannot be saved"):
        save(model, tmp_path / "model")


def test_classes_of_others_are_refused(tmp_path):
    class Own(RBF):
        pass

    class Derived(NystroemRegressor):
        pass

    with pytest.raises(ValueError, match="Own"):
        save(_regressor(kernel=Own(1.0)), tmp_path / "model")
    for model in (Derived(5).fit(X, VALUES), Nystroem().fit(X)):
        with pytest.raises(TypeError, match=r"Allowed are \['NystroemClassifier'"):
            save(model, tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(NystroemRegressor(), tmp_path / "model")


def test_an_unfinished_file_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(_regressor(), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(persistence.os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save(_classifier(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


# Files that are damaged or hostile


@pytest.fixture
def written(tmp_path):
    model = copy.copy(_fitted("three classes"))
    alter(model, expansion=pack_expansion(model.expansion_, "int8", X))
    path = tmp_path / "model"
    save(model, path)
    return path


def _outcome(path, content, expected):
    """Load some bytes: either a ValueError that names the file, or the same model."""
    path.write_bytes(content)
    again = loaded(path)
    if again is None:
        return False
    np.testing.assert_array_equal(again.predict_proba(TEST), expected.predict_proba(TEST))
    assert repr(again.get_params()) == repr(expected.get_params())
    return True


def test_truncated_files(written):
    content, expected = written.read_bytes(), load(written)
    for length in [*range(0, 64), *range(64, len(content), 41), len(content) - 1]:
        assert not _outcome(written, content[:length], expected)


def test_bytes_after_the_end(written):
    content, expected = written.read_bytes(), load(written)
    assert not _outcome(written, content + b"\0", expected)


def test_flipped_bits(written):
    content, expected = written.read_bytes(), load(written)
    rng = np.random.RandomState(0)
    n_loaded = 0
    places = np.concatenate([np.arange(80), rng.randint(len(content), size=600)])
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randint(8)
        n_loaded += _outcome(written, bytes(damaged), expected)
    # spaces that fill up the header may be lost, nothing else
    assert n_loaded <= 5


def test_overwritten_stretches(written):
    content, expected = written.read_bytes(), load(written)
    rng = np.random.RandomState(1)
    for _ in range(200):
        start, length = rng.randint(len(content)), rng.randint(1, 40)
        damaged = content[:start] + rng.bytes(length) + content[start + length :]
        _outcome(written, damaged, expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes"),
        (b"\x80\x04\x95 a pickle, say, of an old model", "truncated, or no safetensors"),
        ((10**12).to_bytes(8, "little") + b"{}", "1000000000000 bytes"),
        (b"\2\0\0\0\0\0\0\0{}", "no nysplus header"),
        (b"\2\0\0\0\0\0\0\0[]", "no nysplus header"),
        ((200_000).to_bytes(8, "little") + b"[" * 200_000, "cannot be loaded"),
    ],
)
def test_files_of_another_kind(tmp_path, content, message):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_safetensors_of_others(tmp_path):
    save_file({"weight": np.ones(3)}, tmp_path / "other", {"format": "np"})
    with pytest.raises(ValueError, match="no nysplus header"):
        load(tmp_path / "other")


def test_a_missing_file_is_called_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def _array(values, dtype="<i8", shape=None):
    shape = [len(values)] if shape is None else shape
    return {"array": {"dtype": dtype, "shape": shape, "values": values}}


def _without(tensors, header):
    del tensors["intercept"]


FORGED = {
    "newer format": (set_entry("format", to=FORMAT + 1), "Upgrade nysplus"),
    "no format": (set_entry("format", to="one"), "no format number"),
    "format zero": (set_entry("format", to=0), "no format number"),
    "class": (set_entry("class", to="Popen"), "class='Popen' is not known"),
    "class of another module": (set_entry("class", to="os.system"), "not known"),
    "no class": (set_entry("class", to=None), "class=None"),
    "parameter": (set_entry("params", "evil", to=1), r"no parameters \['evil'\]"),
    "object": (
        set_entry("params", "kernel", to={"object": {"class": "FunctionKernel", "params": {}}}),
        "'FunctionKernel' is not known",
    ),
    "object without parameters": (
        set_entry("params", "selection", to={"object": {"class": "GivenLandmarks", "params": {}}}),
        r"needs the parameters \['points'\]",
    ),
    "word": (set_entry("params", "kernel", to={"pickle": "gASV"}), "word 'pickle' is not known"),
    "two words": (set_entry("params", "kernel", to={"tuple": [], "dict": []}), "is no value"),
    "dict": (set_entry("params", "class_weight", to={"dict": [[1]]}), "list of pairs"),
    "key": (set_entry("params", "class_weight", to={"dict": [[[1], 2]]}), "unhashable"),
    "array type": (set_entry("params", "alpha", to=_array([1], "|V8")), "is not allowed"),
    "array of objects": (set_entry("params", "alpha", to=_array([None], "|O")), "other things"),
    "array values": (set_entry("params", "alpha", to=_array([1.5])), "not of its type"),
    "array shape": (set_entry("params", "alpha", to=_array([1], shape=[2])), "wrong size"),
    "array bomb": (
        set_entry("params", "alpha", to=_array(["a"] * 9, "<U99999999")),
        "much more memory",
    ),
    "array bombs": (
        set_entry("params", "alpha", to=[_array(["a"], "<U1000000")] * 8),
        "much more memory",
    ),
    "empty values": (set_entry("params", "alpha", to=[[]] * 10**6), "much more memory"),
    "deep values": (
        set_entry("params", "alpha", to=json.loads("[" * 200 + "]" * 200)),
        "nested more than 100 deep",
    ),
    "number bomb": (set_entry("params", "alpha", to=_array([2**70])), "cannot be loaded"),
    "random state": (
        set_entry(
            "params",
            "random_state",
            to={"random_state": ["MT19937", _array([1] * 624, "<u4"), 9999, 0, 0.0]},
        ),
        "random state",
    ),
    "no targets": (set_entry("targets", to=None), "targets=None"),
    "target kind": (set_entry("targets", "kind", to="colours"), "'colours' are not known"),
    "class count": (set_entry("targets", "classes", to=_array([0, 1])), "3 outputs, its targets 1"),
    "one class": (set_entry("targets", "classes", to=_array([0])), "two or more"),
    "class order": (set_entry("targets", "classes", to=_array([0, 2, 1])), "sorted"),
    "same classes": (set_entry("targets", "classes", to=_array([0, 1, 1])), "sorted"),
    "values": (
        set_entry("targets", to={"kind": "values", "n_outputs": 3, "flat": False}),
        "another kind",
    ),
    "label bomb": (
        set_entry("targets", to={"kind": "labels", "n_outputs": 10**12}),
        "targets 10000",
    ),
    "features": (set_entry("n_features_in", to=5), "4 features, its rows 5"),
    "no features": (set_entry("n_features_in", to=0), "at least 1"),
    "feature names": (set_entry("feature_names_in", to=["a"]), "4 texts"),
    "slope": (set_entry("scaling", "slope", to=-1.0), "slope=-1.0"),
    "slope nan": (set_entry("scaling", "slope", to=float("nan")), "slope=nan"),
    "multilabel": (set_entry("scaling", "multilabel", to=True), "as the targets are"),
    "attribute": (set_entry("fitted", "predict", to=1), "'predict' is not known"),
    "alpha": (set_entry("fitted", "alpha_", to="x"), "alpha_='x'"),
    "indices": (set_entry("fitted", "landmark_indices_", to=_array([1])), "landmark_indices_"),
    "kernel": (
        set_entry("expansion", "kernel", to={"object": {"class": "Auto", "params": {}}}),
        "no k",
    ),
    "gamma": (
        set_entry("expansion", "kernel", "object", "params", "gamma", to="scale"),
        "gamma='scale' of RBF",
    ),
    "zero gamma": (
        set_entry("expansion", "kernel", "object", "params", "gamma", to=0.0),
        "gamma=0.0 of RBF",
    ),
    "negative gamma": (
        set_entry("expansion", "kernel", "object", "params", "gamma", to=-1.0),
        "gamma=-1.0 of RBF",
    ),
    "nu": (
        set_entry(
            "expansion",
            "kernel",
            to={"object": {"class": "Matern", "params": {"gamma": 1.0, "nu": 0.7}}},
        ),
        "nu=0.7",
    ),
    "fortran": (set_entry("expansion", "fortran", to=["x"]), "no tensor"),
    "not stored": (set_entry("expansion", "stored", to=False), "its tensors are"),
    "csr": (set_entry("expansion", "csr", to={"shape": [15, 4], "array": False}), "CSR landmarks"),
    "missing": (_without, "expected are"),
    "one more": (set_tensor("more", lambda _: np.ones(2)), "its tensors are"),
    "rows": (set_tensor("landmarks", lambda Z: Z[:-1].copy()), "for 14 landmarks"),
    "no rows": (set_tensor("landmarks", lambda Z: Z[:0].copy()), r"the shape \(0, 4\)"),
    "flat": (set_tensor("landmarks", lambda Z: Z.ravel()), "its landmarks have the shape"),
    "outputs": (set_tensor("intercept", lambda b: b[:-1].copy()), "its intercept has the shape"),
    "axes": (set_tensor("dual_coef", lambda A: A.ravel()), "its coefficients have the shape"),
    "scale": (set_tensor("dual_coef.scale", lambda s: s[:-1].copy()), "float16 per column"),
    "negative scale": (set_tensor("dual_coef.scale", lambda s: -s), "not be negative"),
    "large scale": (set_tensor("dual_coef.scale", lambda s: s * 0 + 1e38), "too large"),
    "nan": (set_tensor("intercept", lambda b: b * np.nan), "not finite"),
    "inf": (set_tensor("landmarks.scale", lambda s: s + np.inf), "not finite"),
    "type": (set_tensor("dual_coef", lambda A: A.astype(np.int16)), "is not int8"),
    "scale type": (set_tensor("landmarks.scale", lambda s: s.astype(np.float64)), "float16 per"),
    "integers": (set_tensor("intercept", lambda b: b.astype(np.int32)), "int32 without a scale"),
    "projection": (
        set_tensor("projection", lambda _: np.ones((3, 4), np.float32)),
        "projection has",
    ),
    "center": (set_tensor("center", lambda _: np.ones(3, np.float32)), r"the shape \(4,\)"),
    "center nan": (set_tensor("center", lambda _: np.full(4, np.nan, np.float32)), "not finite"),
    "center type": (set_tensor("center", lambda _: np.ones(4, np.int32)), "int32 without a scale"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(written, name):
    change, message = FORGED[name]
    forge(written, change)
    with pytest.raises(ValueError, match=message) as caught:
        load(written)
    assert str(written) in str(caught.value)


def test_a_scaling_of_values_is_refused(tmp_path):
    path = tmp_path / "model"
    save(NystroemRegressor(10, random_state=0).fit(X, Y3), path)
    forge(path, set_entry("scaling", to={"slope": 1.0, "multilabel": False}))
    with pytest.raises(ValueError, match="scaling belongs to classifiers only"):
        load(path)


def test_junk_at_every_place_of_the_header(written):
    content = written.read_bytes()
    with safe_open(written, framework="np") as file:
        header = json.loads(file.metadata()["nysplus"])
    for number, keys in enumerate(places(header)):
        for junk in JUNK[number % 3 :: 3]:
            written.write_bytes(content)
            forge(written, set_entry(*keys, to=junk))
            loaded(written)


@pytest.mark.parametrize("name", ["landmarks", "landmarks.scale", "dual_coef", "intercept"])
def test_junk_in_every_tensor(written, name):
    content = written.read_bytes()
    for shape in [(), (0,), (3,), (15, 3), (4,), (15, 4), (0, 4), (2, 2, 2)]:
        for dtype in ["bool", "int8", "uint64", "float16", "float32", "float64"]:
            written.write_bytes(content)
            junk = np.ones(shape, dtype)
            forge(written, set_tensor(name, lambda _, junk=junk: junk))
            again = loaded(written)
            if again is not None:
                assert np.isfinite(again.predict_proba(TEST)).all()


def test_a_forgery_of_nothing_loads(written):
    expected = load(written).predict_proba(TEST)
    forge(written, lambda tensors, header: None)
    np.testing.assert_array_equal(load(written).predict_proba(TEST), expected)


@pytest.mark.parametrize(
    ("part", "make"),
    [
        ("indices", lambda a: a + 4),
        ("indices", lambda a: a - 4),
        ("indices", lambda a: a.astype(np.float64)),
        ("indptr", lambda a: a[:-1].copy()),
        ("indptr", lambda a: a[::-1].copy()),
        ("indptr", lambda a: a + 1),
        ("data", lambda a: a[:-1].copy()),
        ("data", lambda a: a[:, None].copy()),
        ("indices", lambda a: a[:, None].copy()),
        ("indptr", lambda a: a[:, None].copy()),
    ],
)
def test_forged_csr_landmarks(tmp_path, part, make):
    path = tmp_path / "model"
    save(NystroemClassifier(15, random_state=0).fit(sp.csr_matrix(X), Y3), path)
    forge(path, set_tensor(f"landmarks.{part}", make))
    with pytest.raises(ValueError, match="CSR numbers"):
        load(path)


@pytest.mark.parametrize(
    "shape", [[15, 0], [0, 4], [-15, 4], [15.0, 4], [15], [15, 4, 1], ["a", 4]]
)
def test_forged_shapes_of_csr_landmarks(tmp_path, shape):
    path = tmp_path / "model"
    save(NystroemClassifier(15, random_state=0).fit(sp.csr_matrix(X), Y3), path)
    forge(path, set_entry("expansion", "csr", "shape", to=shape))
    with pytest.raises(ValueError, match="must be two positive integers"):
        load(path)


# JSON


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"poly"}))
def test_json_has_all_that_is_needed(kernel):
    model = _regressor(kernel=kernel, selection="uniform")
    np.testing.assert_allclose(json_scores(to_json(model), TEST), model.predict(TEST), rtol=1e-7)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_json_of_matern(nu):
    model = _regressor(kernel=Matern(nu=nu))
    np.testing.assert_allclose(json_scores(to_json(model), TEST), model.predict(TEST), rtol=1e-7)


@pytest.mark.parametrize("name", ["diagonal", "low rank"])
@pytest.mark.parametrize("dtype", STORAGE)
def test_json_of_stored_models(name, dtype):
    model = copy.copy(_fitted(name))
    alter(model, expansion=pack_expansion(model.expansion_, dtype, X))
    scores = model.decision_function(TEST)
    # kernel values are at most 1, and rounded to float32 unless all numbers are float64
    rounding = np.finfo("float64" if dtype == "float64" else "float32").eps
    tolerance = rounding * np.abs(model.expansion_.dual_coef).sum(axis=0).max()
    np.testing.assert_allclose(json_scores(to_json(model), TEST), scores, atol=tolerance)


def test_json_numbers_are_exact():
    model = _classifier()
    alter(model, expansion=pack_expansion(model.expansion_, "int8", X))
    content = json.loads(to_json(model))
    for name in ("landmarks", "dual_coef", "intercept"):
        array = getattr(model.expansion_, name)
        np.testing.assert_array_equal(np.array(content[name]), array.astype(np.float64))
    assert content["dtype"] == "float32"


def test_json_of_probabilities_and_decisions():
    model = _classifier(np.array(["a", "b", "c"])[Y3])
    content = json.loads(to_json(model))
    F = json_scores(to_json(model), TEST)
    E = np.exp(content["slope"] * (F - F.max(axis=1, keepdims=True)))
    np.testing.assert_allclose(E / E.sum(axis=1, keepdims=True), model.predict_proba(TEST))
    assert [content["classes"][i] for i in F.argmax(axis=1)] == model.predict(TEST).tolist()

    binary = _classifier(Y2)
    content, f = json.loads(to_json(binary)), json_scores(to_json(binary), TEST)[:, 0]
    p = 1 / (1 + np.exp(-2 * content["slope"] * f))
    np.testing.assert_allclose(p, binary.predict_proba(TEST)[:, 1], rtol=1e-9)
    assert [content["classes"][int(s > 0)] for s in f] == binary.predict(TEST).tolist()

    labels = _classifier(LABELS)
    content, F = json.loads(to_json(labels)), json_scores(to_json(labels), TEST)
    p = 1 / (1 + np.exp(-2 * content["slope"] * F))
    np.testing.assert_allclose(p, labels.predict_proba(TEST), rtol=1e-9)
    assert content["targets"] == "labels"


def test_json_of_sparse_landmarks():
    model = NystroemRegressor(15, random_state=0).fit(sp.csr_matrix(np.where(X > 0.5, X, 0)), Y2)
    Z = json.loads(to_json(model))["landmarks"]
    dense = np.zeros(Z["shape"])
    for row, indices, values in zip(dense, Z["indices"], Z["values"], strict=True):
        row[indices] = values
    np.testing.assert_array_equal(dense, model.landmarks_.toarray())


def test_json_of_an_expansion_and_into_a_file(tmp_path):
    model = _regressor()
    text = to_json(model.expansion_, tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == text
    assert json.loads(text)["targets"] == "scores"
    np.testing.assert_allclose(json_scores(text, TEST), model.predict(TEST), rtol=1e-7)


def test_json_refuses_what_has_no_formula():
    with pytest.raises(ValueError, match="no formula"):
        to_json(_regressor(kernel=FunctionKernel(_overlap, vectorized=True)))
    with pytest.raises(TypeError, match="Fit the model first"):
        to_json(NystroemRegressor())


@pytest.mark.parametrize("dtype", [None, "int8", "float16"])
@pytest.mark.parametrize("n", [0, 15])
def test_a_linear_term_comes_back(n, dtype, tmp_path, rng):
    model = _classifier()
    expansion = replace(model.expansion_, linear=rng.randn(4, 3))
    if n == 0:
        empty = {"landmarks": expansion.landmarks[:0], "dual_coef": expansion.dual_coef[:0]}
        expansion = replace(expansion, **empty)
    if dtype is not None:
        expansion = pack_expansion(expansion, dtype, X)
    model = alter(model, expansion=expansion, landmark_indices=None)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_bytes_ == model.model_bytes_
    np.testing.assert_array_equal(again.predict_proba(TEST), model.predict_proba(TEST))


def test_a_linear_term_of_another_shape_is_refused(tmp_path, rng):
    model = _classifier()
    model = alter(model, expansion=replace(model.expansion_, linear=rng.randn(3, 3)))
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"linear term does not have the shape \(4, 3\)"):
        load(tmp_path / "model")


def test_a_file_without_landmarks_needs_a_linear_term(tmp_path):
    model = _classifier()
    empty = {name: getattr(model.expansion_, name)[:0] for name in ("landmarks", "dual_coef")}
    model = alter(model, expansion=replace(model.expansion_, **empty), landmark_indices=None)
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"landmarks have the shape \(0, 4\)"):
        load(tmp_path / "model")
