"""The code that reads files of others, each piece with files to start from."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse as sp
import typer
from factories import alter, with_few_bits
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.quantise import pack_expansion
from nysplus._rows.readers import open_source
from nysplus._runtime.checkpoint import Checkpoint, Step
from nysplus.encoding import TableEncoder
from nysplus.persistence import container, load, save
from nysplus_experiments.cli import app
from nysplus_experiments.harness import records
from nysplus_experiments.paper.experiment import load_experiment
from nysplus_experiments.paper.results import Result, read_results
from nysplus_experiments.paper.runner import RESULTS_FILE, plan, read_notes

ROWS = np.random.RandomState(0).rand(40, 3)
CLASSES = (ROWS[:, 0] > 0.5).astype(int)


@dataclass(frozen=True)
class Target:
    """Some code that reads a file.

    Attributes
    ----------
    name : str
    seeds : callable
        Takes a folder to work in, and returns valid inputs.
    run : callable
        Takes an input and a folder, and reads it.
    words : tuple of bytes
        Pieces of the format.
    """

    name: str
    seeds: Callable[[Path], list[bytes]]
    run: Callable[[bytes, Path], None]
    words: tuple[bytes, ...] = ()


# ---- models -------------------------------------------------------------------------------------


@cache
def _models() -> tuple[object, ...]:
    packed = NystroemRegressor(6, random_state=0).fit(ROWS, ROWS[:, :2])
    small = pack_expansion(packed.expansion_, "int8", ROWS)
    packed._model = replace(packed._model, expansion=small)
    few_bits = NystroemClassifier(5, metric=2, random_state=0).fit(ROWS, CLASSES)
    bits = {"landmarks": 3, "dual_coef": 4, "projection": 5}
    alter(few_bits, expansion=with_few_bits(few_bits.expansion_, bits, offset=True))
    names = np.array(["no", "yes"])[CLASSES]
    sparse = sp.csr_matrix(np.where(ROWS > 0.5, ROWS, 0.0))
    rng = np.random.RandomState(3)
    return (
        packed,
        few_bits,
        NystroemClassifier(5, metric="diagonal", random_state=0).fit(ROWS, names),
        NystroemClassifier(5, selection=ROWS[:5], class_weight={0: 1.0, 1: 2.0}).fit(ROWS, CLASSES),
        NystroemClassifier(4, random_state=rng).fit(sparse, np.stack([CLASSES, 1 - CLASSES], 1)),
        _encoding_model(),
    )


def _encoding_model() -> NystroemClassifier:
    """Return a model of a table with numbers, gaps, categories and dates."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40), unit="D")
    frame = _frame().assign(when=days).drop(columns="n")
    frame.loc[::7, "a"] = np.nan
    encoder = TableEncoder(n_bins=4, min_level_rows=2)
    return NystroemClassifier(5, encoder=encoder, random_state=0).fit(frame, CLASSES)


def _model_files(folder: Path) -> list[bytes]:
    contents = []
    for model in _models():
        save(model, folder / "seed")
        contents.append((folder / "seed").read_bytes())
    (folder / "seed").unlink()
    return contents


def _load(content: bytes, folder: Path) -> None:
    path = folder / "model"
    path.write_bytes(content)
    _use(load(path))


def _use(model) -> None:
    """Do with a loaded model what people do with any model."""
    repr(model)
    model.get_params()
    if model.expansion_.encoder is not None:
        model.expansion_(np.zeros((2, model.expansion_.encoder.n_inputs)))
    elif model.n_features_in_ < 1000:
        model.predict(np.zeros((2, model.n_features_in_)))


def _model_headers(folder: Path) -> list[bytes]:
    """Return headers with the number of their model in the first byte."""
    headers = []
    for number, content in enumerate(_model_files(folder)):
        (folder / "seed").write_bytes(content)
        with safe_open(folder / "seed", framework="np") as file:
            header = json.loads(file.metadata()["nysplus"])
        del header["sha256"]
        headers.append(bytes([number]) + json.dumps(header).encode())
    return headers


@cache
def _tensors(number: int, folder: Path) -> dict[str, np.ndarray]:
    (folder / "seed").write_bytes(_model_files(folder)[number])
    return load_file(folder / "seed")


def _load_forged(content: bytes, folder: Path) -> None:
    """Load a model with the given header, under a checksum that is right."""
    tensors = _tensors(content[0] % len(_models()) if content else 0, folder)
    text = content[1:].decode("utf-8", "replace")
    try:
        header = json.loads(text)
        if isinstance(header, dict):
            text = json.dumps({**header, "sha256": container._checksum(header, tensors)})
    except (ValueError, RecursionError):
        pass  # a header that is no JSON
    save_file(tensors, folder / "model", {"nysplus": text})
    _use(load(folder / "model"))


# ---- tables and text ----------------------------------------------------------------------------


def _reader(name: str, **more: object) -> Callable[[bytes, Path], None]:
    def read(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        source = open_source(path, **more)
        for most in (70, 1000):
            for chunk in source.chunks(most):
                assert chunk.X.shape[1] == source.n_features
        source.first_targets(3)

    return read


def _frame() -> pd.DataFrame:
    frame = pd.DataFrame(ROWS, columns=["a", "b", "größe"])
    return frame.assign(n=np.arange(40), flag=ROWS[:, 1] > 0.5, y=np.array(["x", "yy"])[CLASSES])


def _parquet_files(folder: Path) -> list[bytes]:
    contents = []
    for options in ({}, {"compression": "none", "row_group_size": 7}, {"use_dictionary": False}):
        buffer = io.BytesIO()
        pa.parquet.write_table(pa.Table.from_pandas(_frame()), buffer, **options)
        contents.append(buffer.getvalue())
    return contents


def _arrow_files(folder: Path) -> list[bytes]:
    contents = []
    for compression in ("uncompressed", "lz4"):
        buffer = io.BytesIO()
        table = pa.Table.from_pandas(_frame())
        pa.feather.write_feather(table, buffer, compression=compression, chunksize=9)
        contents.append(buffer.getvalue())
    return contents


def _csv_files(folder: Path) -> list[bytes]:
    text = _frame().to_csv(index=False)
    return [text.encode(), text.replace("\n", "\r\n").encode(), b'a,y\n"1",x\n2,"y ""z"""\n']


LIBSVM = b"# head\n1 1:0.5 3:2 7:1e-3\n-1 qid:4 2:1 3:-0.25 # end\n\n2.5\n1 1:1\n"


def _read_map(content: bytes, folder: Path) -> None:
    """Read a memory map of some type and shape, with targets and weights that are maps too."""
    path = folder / "rows.bin"
    kind, width, content = content[:1], content[1:2], content[2:]
    dtype = np.dtype(
        ("f8", "f4", "f2", ">f8", "i8", "u1", "?", "c16", "M8[s]", "S3", "<U2")[
            int.from_bytes(kind, "little") % 11
        ]
    )
    n_columns = int.from_bytes(width, "little") % 9 + 1
    path.write_bytes(content)
    n_rows = len(content) // (dtype.itemsize * n_columns)
    X = np.memmap(path, dtype, "r", shape=(n_rows, n_columns))
    source = open_source(X, X[:, 0], X[:, -1])
    list(source.chunks(n_rows // 5 + 1))
    source.take(np.arange(min(3, n_rows)))


class Bytes:
    """Choices that follow from bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def number(self, below: int) -> int:
        return int.from_bytes(self._content.read(2), "little") % below

    def array(self, *shape: int) -> np.ndarray:
        n = int(np.prod(shape))
        values = np.frombuffer(self._content.read(8 * n).ljust(8 * n, b"\0"), "<f8").reshape(shape)
        return values.astype(("f8", "f4", "i4", "?", "O", "U5")[self.number(6)])


def _two_blocks() -> bytes:
    """Return the bytes of two blocks with three rows, two columns and no targets."""
    numbers, values = np.array([3, 2, 0], "<u2").tobytes(), ROWS[:3, :2].tobytes()
    # the types of X, y and the weights are float64, y is flat, and there are no weights
    block = numbers + values + bytes(4) + ROWS[:3, 0].tobytes() + bytes(6) + b"\2\0"
    return b"\2\0" + 2 * block


def _rows_of(choices: Bytes, n: int, d: int) -> object:
    """Return rows in one of the forms that a block may have, or may not."""
    makers: tuple[Callable[[], object], ...] = (
        lambda: choices.array(n, d),
        lambda: sp.csr_matrix(np.abs(choices.array(n, d).astype("f8"))),
        lambda: choices.array(n, d).tolist(),
        lambda: pd.DataFrame(choices.array(n, d)),
        lambda: choices.array(n),
        lambda: None,
    )
    return makers[choices.number(6)]()


def _targets_of(choices: Bytes, n: int) -> object:
    kind = choices.number(3)
    return [None] * n if kind == 2 else choices.array(n, 2) if kind else choices.array(n)


def _block(choices: Bytes) -> object:
    n, d = choices.number(5), choices.number(4)
    X, y = _rows_of(choices, n, d), _targets_of(choices, n)
    weight = choices.array(choices.number(6))
    forms = (X, (X,), (X, y), (X, y, weight), [X, y], (X, y, weight, y))
    return forms[choices.number(6)]


def _read_blocks(content: bytes, folder: Path) -> None:
    choices = Bytes(content)
    source = open_source([_block(choices) for _ in range(choices.number(4))])
    if source is not None:
        list(source.chunks(3))
        list(source.chunks(50))


# ---- checkpoints --------------------------------------------------------------------------------


class _Killed(BaseException):
    pass


def _checkpointed(path: Path, stop: int | None = None) -> None:
    """Fit a model with a checkpoint, and end it after some blocks."""
    added, original = [], Step.add

    def add(step, addend, position):
        original(step, addend, position)
        added.append(position)
        if len(added) == stop:
            raise _Killed

    Step.add = add
    try:
        model = NystroemClassifier(4, gamma=1.0, selection="negative-margin", random_state=0)
        model.fit(ROWS, CLASSES, checkpoint=Checkpoint(path, seconds=0))
    finally:
        Step.add = original


def _checkpoint_files(folder: Path) -> list[bytes]:
    contents = []
    for stop in (1, 2, 3):
        try:
            _checkpointed(folder / "seed", stop)
        except _Killed:
            contents.append((folder / "seed").read_bytes())
            (folder / "seed").unlink()
    return contents


def _resume(content: bytes, folder: Path) -> None:
    path = folder / "fit.checkpoint"
    path.write_bytes(content)
    _checkpointed(path)


def _resume_forged(content: bytes, folder: Path) -> None:
    """Go on with a record whose parts have checksums that are right."""
    _resume(with_right_checksums(content), folder)


def with_right_checksums(archive: bytes) -> bytes:
    """Return a ZIP archive of stored files whose checksums were set anew, as far as it is one."""
    new, at = bytearray(archive), archive.find(b"PK\1\2")
    while at >= 0 and at + 46 <= len(new):
        (size,) = struct.unpack_from("<I", new, at + 20)
        (offset,) = struct.unpack_from("<I", new, at + 42)
        if offset + 30 <= len(new):
            names = struct.unpack_from("<HH", new, offset + 26)
            start = offset + 30 + sum(names)
            checksum = struct.pack("<I", zlib.crc32(new[start : start + size]))
            new[at + 16 : at + 20] = new[offset + 14 : offset + 18] = checksum
        at = archive.find(b"PK\1\2", at + 46)
    return bytes(new)


# ---- experiments and commands -------------------------------------------------------------------

EXPERIMENT = b"""description = "Some"
trials = 2

[[run]]
figures = [2, 3]
datasets = ["digits"]
methods = ["Nys", "Nys+", "KRR"]
sizes = [10, 20]
n_initial = [5]

[run.override.digits]
sizes = [10, 30]
"""
EXPERIMENT_WORDS = (
    *(b"[[run]]\n", b"[run]\n", b"[run.override.digits]\n", b"trials = ", b"sizes = ", b'"same"'),
    *(b"= [", b"]", b'"usps"', b"'''", b'"""', b"a.b.c = 1\n", b"1979-05-27", b"0x1f"),
)


def _plan(content: bytes, folder: Path) -> None:
    path = folder / "own.toml"
    path.write_bytes(content)
    plan(load_experiment(path))


def _results_files(folder: Path) -> list[bytes]:
    (folder / RESULTS_FILE).unlink(missing_ok=True)
    records.begin(folder / RESULTS_FILE, Result, environment=None)
    for n in (10, 20):
        row = Result("digits", "Nys", n, None, 0, 7, "ok", accuracy=91.5, n_train=100)
        records.append(folder / RESULTS_FILE, row)
    notes = json.dumps({"left_out": ["a"], "deviations": {"digits": ["b"]}})
    return [(folder / RESULTS_FILE).read_bytes() + b"\0" + notes.encode()]


def _read_results(content: bytes, folder: Path) -> None:
    """Read results and notes, which a zero byte divides."""
    results, _, notes = content.partition(b"\0")
    (folder / RESULTS_FILE).write_bytes(results)
    (folder / "notes.json").write_bytes(notes)
    read_results(folder / RESULTS_FILE)
    read_notes(folder)


ARGUMENTS = (
    *(b"reproduce", b"--dry-run", b"--config", b"own.toml", b"--profile", b"smoke", b"--only"),
    *(b"2,3", b"--datasets", b"digits", b"--out", b"figures", b"report", b"datasets", b"prepare"),
    *(b"--help", b"bench", b"pages", b"--set", b"a=b", b".", b"nowhere", b"-1", b""),
)


def _command(content: bytes, folder: Path) -> None:
    """Run a command line, whose arguments lines of the input are; the rest is an experiment."""
    lines, _, experiment = content.partition(b"\n\n")
    arguments = [line.decode("utf-8", "replace") for line in lines.split(b"\n")][:8]
    (folder / "own.toml").write_bytes(experiment)
    if "reproduce" in arguments:
        arguments.append("--dry-run")
    if {"bench", "fetch"} & set(arguments):  # measure, write pages and use the network
        arguments = ["bench", "nothing", *arguments[1:]]
    previous = os.getcwd()
    os.chdir(folder)
    try:
        app(arguments, standalone_mode=False)
    except (typer.Exit, typer.Abort, SystemExit):
        pass
    except Exception as error:
        # the errors of click on wrong arguments, which it prints
        if not hasattr(error, "exit_code"):
            raise AssertionError(f"a traceback is printed: {error!r}") from error
    finally:
        os.chdir(previous)


COMMANDS = [
    b"reproduce\n--config\nown.toml\n--dry-run\n\n" + EXPERIMENT,
    b"reproduce\n--profile\nsmoke\n--only\n2,3\n--datasets\ndigits\n--dry-run\n\n",
    b"report\nnowhere\n\n",
    b"figures\n.\n--only\n2\n\n",
    b"datasets\n\n",
    b"datasets\nprepare\n.\n--out\n.\n\n",
]

MODEL_WORDS = (
    *(b'{"array": {"dtype": "<U9", "shape": [1], "values": ["a"]}}', b'{"tuple": []}'),
    *(b'{"dict": [[1, 2]]}', b'{"object": {"class": "RBF", "params": {}}}', b'{"csr": {}}'),
    *(b'"<U268435456"', b'"|O"', b'"<f8"', b'"shape": ', b"[0, 1]", b"NaN", b"Infinity", b"1e999"),
    *(b'{"object": {"class": "Matern", "params": {"nu": 1}}}', b'{"random_state": []}'),
)

TARGETS = {
    target.name: target
    for target in (
        Target("model", _model_files, _load, MODEL_WORDS),
        Target("model-header", _model_headers, _load_forged, MODEL_WORDS),
        Target("parquet", _parquet_files, _reader("rows.parquet", y="y"), (b"PAR1",)),
        Target("arrow", _arrow_files, _reader("rows.arrow", y="y"), (b"ARROW1",)),
        Target("csv", _csv_files, _reader("rows.csv", y="y"), (b'"', b";", b"\t", b'""')),
        Target(
            "csv-gz",
            lambda folder: [gzip.compress(text) for text in _csv_files(folder)],
            _reader("rows.csv.gz", y="y"),
        ),
        Target("libsvm", lambda folder: [LIBSVM], _reader("rows.svm"), (b" 1:1", b"qid:", b"0:0")),
        Target(
            "libsvm-bz2",
            lambda folder: [bz2.compress(LIBSVM * 3)],
            _reader("rows.svm.bz2"),
        ),
        Target("memory-map", lambda folder: [b"\0\2" + ROWS.tobytes()], _read_map),
        Target("blocks", lambda folder: [_two_blocks()], _read_blocks),
        Target("checkpoint", _checkpoint_files, _resume, (b"PK\1\2", b"PK\3\4", b"\x93NUMPY")),
        Target("checkpoint-parts", _checkpoint_files, _resume_forged, (b"'descr': '<f8'", b"'|O'")),
        Target("experiment", lambda folder: [EXPERIMENT], _plan, EXPERIMENT_WORDS),
        Target("results", _results_files, _read_results, (b"digits,Nys,", b",,,,", b'"')),
        Target("command", lambda folder: list(COMMANDS), _command, (*ARGUMENTS, *EXPERIMENT_WORDS)),
    )
}
