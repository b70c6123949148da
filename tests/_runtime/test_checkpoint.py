"""A fit that was killed goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import sklearn
from threadpoolctl import threadpool_limits

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.rules import SolverRules
from nysplus._runtime.checkpoint import Checkpoint, Step
from nysplus.kernels import RBF, FunctionKernel

N, D = 1200, 3


def _data():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D))
    score = X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(N)
    targets = {
        "classes": np.searchsorted([-0.5, 0.5], score),
        "labels": np.c_[score > 0, X[:, 2] > 0].astype(int),
        "values": np.c_[np.sin(2 * X[:, 0]), score],
    }
    return X, targets, rng.choice([0.0, 0.5, 1.0, 3.0], N)


X, TARGETS, WEIGHT = _data()


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Passes of several blocks, and no waiting for the disk after each of them."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    with sklearn.config_context(working_memory=0.1):
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def _model(target="classes", **params):
    kind = NystroemRegressor if target == "values" else NystroemClassifier
    rule = "uniform" if target == "values" else "negative-margin"  # with passes to be recorded
    own = {"n_components": 15, "gamma": 0.5, "selection": rule, "random_state": 0}
    return kind(**own | params)


def _memmap(folder, X, y):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y


def _parquet(folder, X, y):
    frame = pd.DataFrame(X, columns=list("abc")[: X.shape[1]])
    names = ["y"] if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    frame[names] = y.reshape(len(X), -1)
    frame.to_parquet(folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet", "y" if y.ndim == 1 else names


STORES = {
    "ndarray": lambda folder, X, y: (X, y),
    "memmap": _memmap,
    "parquet": _parquet,
    "blocks": lambda folder, X, y: (
        [(X[i : i + 70], y[i : i + 70]) for i in range(0, len(X), 70)],
    ),
}
every_store = pytest.mark.parametrize("store", STORES)


class Killed(BaseException):
    """Stands in for a signal that nothing survives."""


@contextmanager
def _watched(monkeypatch, stop=None, at=None):
    """Count the blocks that are added to sums; be killed after `stop` of them.

    `at` maps numbers of blocks to what is called after them.
    """
    added = []

    def add(step, addend, position, original=Step.add):
        original(step, addend, position)
        added.append(position)
        (at or {}).get(len(added), lambda: None)()
        if len(added) == stop:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Step, "add", add)
        yield added


def _kill(monkeypatch, model, args, path, stop, **more):
    with _watched(monkeypatch, stop, **more), pytest.raises(Killed):
        model.fit(*args, checkpoint=Checkpoint(path, seconds=0))


def _assert_identical(model, other):
    for name in ("landmarks_", "dual_coef_", "intercept_", "landmark_indices_", "alpha_", "gamma_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    assert model.solver_ == other.solver_
    assert model.n_kernel_evaluations_ == other.n_kernel_evaluations_


def _assert_goes_on(monkeypatch, make, args, path, stops):
    """Kill a fit after each of `stops`, a share of all blocks, and compare what comes of it."""
    with _watched(monkeypatch) as added:
        whole = make().fit(*args, checkpoint=Checkpoint(path, seconds=0))
    total = len(added)
    assert total >= 5
    for stop in sorted({int(share * (total - 1)) + 1 for share in stops}):
        _kill(monkeypatch, make(), args, path, stop)
        with _watched(monkeypatch) as rest:
            model = make().fit(*args, checkpoint=path)
        assert len(rest) == total - stop
        _assert_identical(model, whole)
        assert not list(path.parent.glob(f"{path.name}*"))
    return whole


# ---- going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@every_store
def test_killed_anywhere(monkeypatch, tmp_path, path, store, target):
    args = STORES[store](tmp_path, X, TARGETS[target])
    _assert_goes_on(monkeypatch, lambda: _model(target), args, path, [0, 0.3, 0.6, 1])


def test_killed_after_every_single_block(monkeypatch, path):
    shares = np.linspace(0, 1, 200)
    _assert_goes_on(monkeypatch, _model, (X, TARGETS["classes"]), path, shares)


@pytest.mark.parametrize("threads", [2, 3])
@every_store
def test_several_threads(monkeypatch, tmp_path, path, store, threads):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    with threadpool_limits(threads, user_api="blas"):
        _assert_goes_on(monkeypatch, lambda: _model(alpha=0.1), args, path, [0.2, 0.5, 0.8])


@pytest.mark.parametrize(
    "params",
    [
        {"selection": "uniform", "alpha": 0.1},
        {"selection": "kmeans"},
        {"selection": "supervised-kmeans", "alpha": [0.1, 1.0]},
        {"selection": "support-centroids", "alpha": [0.1, 1.0]},
        {"selection": X[:15], "gamma": "scale"},
        {"gamma": "median", "approximation": "randomized"},
        {"approximation": "ensemble", "class_weight": "balanced"},
        {"kernel": RBF("median"), "gamma": "scale"},
    ],
    ids=str,
)
@pytest.mark.parametrize("store", ["ndarray", "blocks"])
def test_every_parameter(monkeypatch, tmp_path, path, store, params):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    _assert_goes_on(monkeypatch, lambda: _model(**params), args, path, [0.2, 0.8])


def test_weighted_rows(monkeypatch, tmp_path, path):
    args = *_memmap(tmp_path, X, TARGETS["classes"]), WEIGHT
    _assert_goes_on(monkeypatch, _model, args, path, [0.3, 0.7])


SOLVERS = {
    "direct-float64": (np.float64, True),
    "direct-float32": (np.float32, True),
    "direct-float32 polished": (np.float32, False),
    "gram-float64": (np.float64, True),
    "gram-float64 polished": (np.float64, False),
}


def _use(monkeypatch, rules):
    """Let estimators fit by these rules: they have no parameter for them."""
    monkeypatch.setitem(fit_expansion.__kwdefaults__, "rules", rules)


@pytest.mark.parametrize(("store", "alpha"), [("ndarray", "auto"), ("memmap", 0.1)])
@pytest.mark.parametrize("case", SOLVERS)
def test_every_solver(monkeypatch, tmp_path, path, case, store, alpha):
    dtype, certified = SOLVERS[case]
    solvers = (case.removesuffix(" polished"), "direct-float64")
    tolerance = np.inf if certified else 0.0
    _use(monkeypatch, SolverRules(solvers=solvers, tolerance=tolerance, fine_tolerance=1e-13))
    args = STORES[store](tmp_path, X.astype(dtype), TARGETS["classes"])
    model = _assert_goes_on(
        monkeypatch,
        lambda: _model(selection=X[:15], alpha=alpha),
        args,
        path,
        [0.2, 0.6, 0.9],
    )
    assert case.startswith(model.solver_) or case == "direct-float32 polished"


@pytest.mark.parametrize("target", TARGETS)
def test_the_iterative_solver_is_not_recorded(monkeypatch, path, target):
    """What it stores between passes is in memory only."""
    free = dict.fromkeys(("exponential_cost", "stored_value_cost", "sketched_value_cost"), 0.0)
    _use(monkeypatch, SolverRules(typical_iterations=0, **free))
    args = X, TARGETS[target]
    assert _model(target).fit(*args).solver_.startswith("iterative")
    model = _assert_goes_on(monkeypatch, lambda: _model(target), args, path, [0.2, 0.8])
    assert not model.solver_.startswith("iterative")


@every_store
def test_a_seed_that_nobody_gave(monkeypatch, tmp_path, path, store):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    _kill(monkeypatch, _model(random_state=None), args, path, 12)
    with np.load(path) as file:
        keys, numbers = file["generator.keys"], file["generator.numbers"]
    seed = np.random.RandomState()
    seed.set_state(("MT19937", keys, int(numbers[0]), int(numbers[1]), float(numbers[2])))
    model = _model(random_state=None).fit(*args, checkpoint=path)
    _assert_identical(model, _model(random_state=seed).fit(*args))


def test_a_generator_as_seed(monkeypatch, path):
    args = X, TARGETS["classes"]
    whole = _model(random_state=np.random.RandomState(7)).fit(*args)
    _kill(monkeypatch, _model(random_state=np.random.RandomState(7)), args, path, 12)
    model = _model(random_state=np.random.RandomState(7)).fit(*args, checkpoint=path)
    _assert_identical(model, whole)


def test_a_checkpoint_changes_nothing(tmp_path, path):
    for store in STORES:
        args = STORES[store](tmp_path, X, TARGETS["classes"])
        _assert_identical(_model().fit(*args, checkpoint=Checkpoint(path, 0)), _model().fit(*args))
        assert not path.exists()


def test_verbosity_may_change(monkeypatch, path, capsys):
    args = X, TARGETS["classes"]
    _kill(monkeypatch, _model(), args, path, 12)
    with _watched(monkeypatch) as rest:
        _model(verbose=2).fit(*args, checkpoint=str(path))
    with _watched(monkeypatch) as added:
        _model().fit(*args)
    assert len(rest) == len(added) - 12


def test_time_between_writes(monkeypatch, path):
    def nothing_is_written():
        assert not path.exists()

    with _watched(monkeypatch, at={5: nothing_is_written, 20: nothing_is_written}):
        _model().fit(X, TARGETS["classes"], checkpoint=path)


# ---- a real signal ------------------------------------------------------------------------------

SLOW_FIT = """
import sys, time
import numpy as np, sklearn
from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._rows.accumulators import TopRows
from nysplus._runtime.checkpoint import Checkpoint
from nysplus._ridge.path import Moments

folder, pause, *cases = sys.argv[1:]
rows = []

def slowly(cls):
    def of(cls, first, second, third, original=cls.of.__func__):
        rows.append(1)
        time.sleep(float(pause))
        return original(cls, first, second, third)
    cls.of = classmethod(of)

slowly(Moments)
slowly(TopRows)
X = np.load(folder + "/X.npy")
sklearn.set_config(working_memory=0.1)
for case in cases:
    store, target = case.split(".")
    y = np.load(folder + f"/{target}.npy")
    names = "y" if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    args = {
        "ndarray": lambda: (X, y),
        "memmap": lambda: (np.load(folder + "/X.npy", mmap_mode="r"), y),
        "parquet": lambda: (folder + "/rows.parquet", names),
        "blocks": lambda: ([(X[i : i + 70], y[i : i + 70]) for i in range(0, len(X), 70)],),
    }[store]()
    kind = NystroemRegressor if target == "values" else NystroemClassifier
    rule = "uniform" if target == "values" else "negative-margin"
    model = kind(15, gamma=0.5, selection=rule, random_state=0)
    rows.clear()
    model.fit(*args, checkpoint=Checkpoint(f"{folder}/{case}.checkpoint", seconds=0))
    np.savez(
        f"{folder}/{case}.npz",
        landmarks=model.landmarks_, coef=model.dual_coef_, intercept=model.intercept_,
        indices=model.landmark_indices_, alpha=model.alpha_, blocks=len(rows),
    )
"""
# What a fit has behind it when it is killed: sums over all rows.
CASES = {"ndarray.classes": 3, "memmap.values": 0, "parquet.classes": 1, "blocks.labels": 3}


def _finished_sums(path):
    """Return how many passes the record of a fit has behind it."""
    if not path.exists():
        return -1
    with np.load(path) as file:
        return len({name.partition(".")[0] for name in file.files} - {"header", "generator"}) - 1


def test_killed_by_a_signal(monkeypatch, tmp_path):
    stored = {}
    for case in CASES:
        store, target = case.split(".")
        stored[case] = STORES[store](tmp_path, X, TARGETS[target])
        np.save(tmp_path / f"{target}.npy", TARGETS[target])
    command = [sys.executable, "-c", SLOW_FIT, str(tmp_path)]
    for case, sums in CASES.items():
        path = tmp_path / f"{case}.checkpoint"
        with subprocess.Popen([*command, "0.02", case]) as process:
            until = time.monotonic() + 60
            while _finished_sums(path) < sums and time.monotonic() < until:
                assert process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert _finished_sums(path) >= sums
    subprocess.run([*command, "0", *CASES], check=True)
    assert not [*tmp_path.glob("*.checkpoint"), *tmp_path.glob("*.part")]
    for case, args in stored.items():
        with _watched(monkeypatch) as added:
            whole = _model(case.split(".")[1]).fit(*args)
        with np.load(tmp_path / f"{case}.npz") as result:
            np.testing.assert_array_equal(result["landmarks"], whole.landmarks_)
            np.testing.assert_array_equal(result["coef"], whole.dual_coef_)
            np.testing.assert_array_equal(result["intercept"], whole.intercept_)
            np.testing.assert_array_equal(result["indices"], whole.landmark_indices_)
            assert result["alpha"] == whole.alpha_
            assert 0 < result["blocks"] < len(added)


def test_records_are_on_the_disk_before_they_replace_others(monkeypatch, path):
    done = []
    monkeypatch.setattr(os, "fsync", lambda file: done.append("on disk"))
    monkeypatch.setattr(os, "replace", lambda *names: done.append("in place"))
    _kill(monkeypatch, _model(), (X, TARGETS["classes"]), path, 2)
    assert done == ["on disk", "in place"] * 2


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
    _kill(monkeypatch, _model(), (X, TARGETS["classes"]), path, 12)
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
        _model(**{name: value}).fit(X, TARGETS["classes"], checkpoint=record)
    _assert_identical(
        _model().fit(X, TARGETS["classes"], checkpoint=record),
        _model().fit(X, TARGETS["classes"]),
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
    _kill(monkeypatch, _model(), STORES[store](tmp_path, X, TARGETS["classes"]), path, 12)
    with _refused(path, "was written by another fit: the rows differ"):
        _model().fit(*STORES[store](tmp_path, rows, y), weight, checkpoint=path)


@every_store
def test_rows_in_another_order(monkeypatch, tmp_path, path, store):
    """Sums over these rows are the same in any order, but some are in the record already."""
    bits = np.random.RandomState(0).randint(0, 2, N)
    rows, y = np.c_[bits, 1 - bits].astype(float), np.roll(bits, 1)
    order = np.r_[0:100, np.arange(100, N - 100)[::-1], N - 100 : N]
    model = _model(alpha=0.1, selection=X[:15, :2])
    _kill(monkeypatch, model, STORES[store](tmp_path, rows, y), path, 2)
    with _refused(path, "was written by another fit: the rows differ"):
        model.fit(*STORES[store](tmp_path, rows[order], y[order]), checkpoint=path)


def test_another_class(record):
    with _refused(record, r"was written by another fit: .*estimator"):
        _model("values").fit(X, TARGETS["classes"].astype(float), checkpoint=record)


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
        _model().fit(X, TARGETS["classes"], checkpoint=path)
    assert not path.with_name("harm").exists()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.99])
def test_truncated_records(record, share):
    content = record.read_bytes()
    record.write_bytes(content[: int(share * len(content))])
    with _refused(
        record, "is no checkpoint of a fit, or a damaged one.*Delete it to start from the beginning"
    ):
        _model().fit(X, TARGETS["classes"], checkpoint=record)


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bits_are_found_or_harmless(record, seed):
    content, rng = record.read_bytes(), np.random.RandomState(seed)
    whole = _model().fit(X, TARGETS["classes"])
    directory = content.rindex(b"PK\x01\x02", 0, content.index(b"PK\x01\x02") + 4)
    places = [*rng.randint(len(content), size=20), *rng.randint(directory, len(content), size=60)]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randint(8)
        record.write_bytes(flipped)
        model = _model()
        try:
            model.fit(X, TARGETS["classes"], checkpoint=record)
        except ValueError:
            assert record.read_bytes() == flipped
        else:
            _assert_identical(model, whole)


# ---- disks that are full, folders that are not there -------------------------------------------


@contextmanager
def _limited(patched, how, size):
    """Let nothing be written any more."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if how == "limit":
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        return
    with patched.context() as more:
        more.setattr(os, how, full)
        yield


@pytest.mark.parametrize("how", ["limit", "fsync", "replace"])
@every_store
def test_a_full_disk(monkeypatch, tmp_path, path, store, how):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    with _watched(monkeypatch) as added:
        whole = _model().fit(*args)
    _kill(monkeypatch, _model(), args, path, 10)
    before = path.read_bytes()
    with (
        _limited(monkeypatch, how, len(before) // 2),
        pytest.warns(UserWarning, match=r"could not be written.*the last one stays valid"),
    ):
        _kill(monkeypatch, _model(), args, path, 7)  # seven more
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))
    with _watched(monkeypatch) as rest:
        _assert_identical(_model().fit(*args, checkpoint=path), whole)
    assert len(rest) == len(added) - 10


@pytest.mark.parametrize("how", ["limit", "fsync", "replace"])
def test_a_fit_ends_on_a_full_disk(monkeypatch, path, how):
    with (
        _limited(monkeypatch, how, 100),
        pytest.warns(UserWarning, match=r"could not be written \(.*there is none yet.*continues"),
    ):
        model = _model().fit(X, TARGETS["classes"], checkpoint=Checkpoint(path, 0))
    _assert_identical(model, _model().fit(X, TARGETS["classes"]))
    assert os.listdir(path.parent) == []


def test_what_a_kill_in_a_write_leaves_goes_with_the_record(path):
    path.with_name(f".{path.name}.0123abcd.part").write_bytes(b"half of a")
    _model().fit(X, TARGETS["classes"], checkpoint=path)
    assert os.listdir(path.parent) == []


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
        _model(alpha=-1).fit(X, TARGETS["classes"], checkpoint=record)
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


@pytest.mark.parametrize("case", KERNELS)
def test_kernels_that_are_functions(monkeypatch, path, case):
    """They have no names to be found by, and are told from each other by what they do."""
    few = X[:200], TARGETS["classes"][:200]
    kernel, other = KERNELS[case]
    model = _model(kernel=kernel, selection=X[:5], alpha=0.1, gamma="scale")
    whole = model.fit(*few).dual_coef_
    _kill(monkeypatch, model, few, path, 1)
    model.set_params(kernel=other)
    with _refused(path, "was written by another fit: kernel differ"):
        model.fit(*few, checkpoint=path)
    model.set_params(kernel=kernel).fit(*few, checkpoint=path)
    np.testing.assert_array_equal(model.dual_coef_, whole)


def test_another_working_memory(monkeypatch, tmp_path, path):
    args = _memmap(tmp_path, X, TARGETS["classes"])
    _kill(monkeypatch, _model(), args, path, 5)
    with (
        sklearn.config_context(working_memory=10),
        _refused(path, "was written by another fit: .*working_memory.* differ"),
    ):
        _model().fit(*args, checkpoint=path)
