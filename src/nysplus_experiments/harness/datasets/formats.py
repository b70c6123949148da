"""Parsers of the publishers' own file formats: files in, raw arrays out.

A parser takes the paths of one publication, in the order of the registry, and returns the arrays
``X_train, y_train, X_test, y_test``, or ``X, y`` where the publisher gives no split, unscaled.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Parser = Callable[[Sequence[Path]], Arrays]

COMPRESSED = (".bz2", ".gz", ".xz", ".Z")


class DatasetError(ValueError):
    """A dataset's file is there but is not what it should be."""


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing by its suffix (.bz2, .gz, .xz, .Z or none)."""
    if path.suffix == ".Z":
        return io.BytesIO(unlzw(path.read_bytes()))
    openers: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
    return openers.get(path.suffix, open)(path, "rb")


def unlzw(data: bytes) -> bytes:
    """Decompress the output of Unix ``compress``, which the standard library does not read.

    Codes are packed from the low bit up, 9 bits wide at first and one bit wider each time the
    table is full. Groups of 8 codes are padded to whole bytes, so every change of width and every
    clear code skips to the end of the current group.
    """
    if data[:2] != b"\x1f\x9d":
        raise DatasetError("a .Z file starts with the bytes 1f 9d; this one does not")
    max_width, block_mode = data[2] & 0x1F, bool(data[2] & 0x80)
    clear_code = 256 if block_mode else -1
    first_free = 257 if block_mode else 256
    table = [bytes([i]) for i in range(256)] + [b""] * (first_free - 256)
    pieces: list[bytes] = []
    previous, width = b"", 9
    position = group = 24  # in bits; three header bytes

    def group_end() -> int:
        size = 8 * width
        return group + -(-(position - group) // size) * size

    while position + width <= 8 * len(data):
        at = position >> 3
        code = int.from_bytes(data[at : at + 3], "little") >> (position & 7) & ((1 << width) - 1)
        position += width
        if code == clear_code:
            position = group = group_end()
            del table[first_free:]
            previous, width = b"", 9
            continue
        if code > len(table) or (code == len(table) and not previous):
            raise DatasetError("the .Z file is damaged: a code is out of range")
        entry = table[code] if code < len(table) else previous + previous[:1]
        pieces.append(entry)
        if previous and len(table) < 1 << max_width:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << width and width < max_width:
            position = group = group_end()
            width += 1
    return b"".join(pieces)


def read_members(path: Path, requested: Sequence[str]) -> list[bytes]:
    """Return members of a zip or tar archive, nested or not, by the ends of their paths."""
    found: dict[str, bytes] = {}
    with path.open("rb") as stream:
        _collect(stream, path.name, requested, found)
    missing = [name for name in requested if name not in found]
    if missing:
        raise DatasetError(f"{path.name} has no member {' and no member '.join(missing)}")
    return [found[name] for name in requested]


def _collect(
    stream: IO[bytes], name: str, requested: Sequence[str], found: dict[str, bytes]
) -> None:
    def visit(member: str, read: Callable[[], bytes]) -> None:
        for ending in requested:
            if ending not in found and f"/{member}".endswith(f"/{ending}"):
                found[ending] = read()
        if len(found) < len(requested) and member.endswith((".zip", ".tar.gz", ".tgz")):
            _collect(io.BytesIO(read()), member, requested, found)

    if name.endswith(".zip"):
        with zipfile.ZipFile(stream) as archive:
            for member in archive.namelist():
                # mypy cannot infer a lambda with a default
                visit(member, lambda member=member: archive.read(member))  # type: ignore[misc]
    else:
        with tarfile.open(fileobj=stream, mode="r:gz") as tar:
            for info in tar:
                handle = tar.extractfile(info) if info.isfile() else None
                if handle is not None:
                    visit(info.name, handle.read)


def read_table(stream: IO[bytes], dtype: type[np.generic], delimiter: str | None = None) -> Array:
    """Read a numeric text table without a header."""
    return np.loadtxt(stream, dtype=dtype, delimiter=delimiter, ndmin=2)


def read_libsvm(path: Path, n_features: int) -> tuple[Array, Array]:
    """Read a LIBSVM file; its at most 6 significant digits fit into float32."""
    from sklearn.datasets import load_svmlight_file

    with open_binary(path) as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, zero_based=False)
    return X.toarray().astype(np.float32), y.astype(np.int16)


def read_idx(path: Path) -> Array:
    """Read an idx file of unsigned bytes (the format of MNIST), plain or compressed."""
    with open_binary(path) as stream:
        data = stream.read()
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise DatasetError(f"{path.name} is not an idx file of unsigned bytes")
    n_dims = data[3]
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", n_dims, offset=4))
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * n_dims)
    if values.size != np.prod(shape, dtype=np.int64):
        raise DatasetError(f"{path.name} declares the shape {shape} but has {values.size} values")
    return values.reshape(shape)


def _split(train: tuple[Array, Array], test: tuple[Array, Array]) -> Arrays:
    return {"X_train": train[0], "y_train": train[1], "X_test": test[0], "y_test": test[1]}


def libsvm(n_features: int) -> Parser:
    """Return a parser for a training and a test file in LIBSVM's format."""

    def parse(paths: Sequence[Path]) -> Arrays:
        return _split(read_libsvm(paths[0], n_features), read_libsvm(paths[1], n_features))

    return parse


def usps(paths: Sequence[Path]) -> Arrays:
    """USPS from LIBSVM, whose labels 1 to 10 stand for the digits 0 to 9."""
    arrays = libsvm(256)(paths)
    for key in ("y_train", "y_test"):
        arrays[key] -= 1
    return arrays


def letter_libsvm(paths: Sequence[Path]) -> Arrays:
    """Letter from LIBSVM, whose values in [-1, 1] are put back to the original 0 to 15."""
    arrays = libsvm(16)(paths)
    for key in ("X_train", "X_test"):
        scaled = (arrays[key] + 1.0) * 7.5
        whole = np.rint(scaled)
        if np.abs(scaled - whole).max(initial=0.0) > 1e-3:
            raise DatasetError("the letter.scale files should hold whole numbers scaled to [-1, 1]")
        arrays[key] = whole.astype(np.uint8)
    return arrays


def letter_uci(paths: Sequence[Path]) -> Arrays:
    """Letter from UCI: ``T,2,8,...`` with the capital first; the last quarter is the test set."""
    with open_binary(paths[0]) as stream:
        rows = [line.split(",") for line in stream.read().decode("ascii").split()]
    y = np.array([ord(row[0]) - ord("A") + 1 for row in rows], dtype=np.uint8)
    X = np.array([row[1:] for row in rows], dtype=np.int64).astype(np.uint8)
    n_train = len(rows) * 3 // 4
    return _split((X[:n_train], y[:n_train]), (X[n_train:], y[n_train:]))


def har(paths: Sequence[Path]) -> Arrays:
    """HAR from UCI: whitespace-separated text inside a zip, itself inside the download's zip."""
    requested = [f"{part}/{kind}_{part}.txt" for part in ("train", "test") for kind in ("X", "y")]
    X_train, y_train, X_test, y_test = map(io.BytesIO, read_members(paths[0], requested))
    return _split(
        (read_table(X_train, np.float32), read_table(y_train, np.uint8)[:, 0]),
        (read_table(X_test, np.float32), read_table(y_test, np.uint8)[:, 0]),
    )


def mnist(paths: Sequence[Path]) -> Arrays:
    """MNIST's four idx files: training images and labels, test images and labels."""
    images, labels, test_images, test_labels = map(read_idx, paths)
    return _split(
        (images.reshape(len(images), -1), labels),
        (test_images.reshape(len(test_images), -1), test_labels),
    )


def svhn(paths: Sequence[Path]) -> Arrays:
    """SVHN's cropped digits in Matlab files; the label 10 stands for the digit 0."""
    from scipy.io import loadmat

    def read(path: Path) -> tuple[Array, Array]:
        content = loadmat(path, variable_names=["X", "y"])
        images = np.asarray(content["X"])  # height x width x colour x row
        X = np.ascontiguousarray(images.transpose(3, 0, 1, 2)).reshape(images.shape[3], -1)
        return X, (np.asarray(content["y"]).ravel() % 10).astype(np.uint8)

    return _split(read(paths[0]), read(paths[1]))


def _read_label_last(path: Path, delimiter: str | None = None) -> tuple[Array, Array]:
    with open_binary(path) as stream:
        table = read_table(stream, np.int16, delimiter)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.uint8)


def covtype(paths: Sequence[Path]) -> Arrays:
    """CovType from UCI: comma-separated whole numbers, label last."""
    X, y = _read_label_last(paths[0], ",")
    return {"X": X, "y": y}


def shuttle(paths: Sequence[Path]) -> Arrays:
    """Statlog Shuttle: whitespace-separated whole numbers, label last."""
    return _split(_read_label_last(paths[0]), _read_label_last(paths[1]))


BUZZ_MEMBER = "Twitter-Absolute-Sigma-500.data"


def buzz(paths: Sequence[Path]) -> Arrays:
    """Buzz from UCI: the Twitter set, comma-separated, label last, alone or in its archive."""
    path = paths[0]
    if path.name.endswith((".zip", ".tar.gz", ".tgz")):
        stream: IO[bytes] = io.BytesIO(read_members(path, [BUZZ_MEMBER])[0])
    else:
        stream = open_binary(path)
    with stream:
        table = read_table(stream, np.float64, ",")
    return {"X": table[:, :-1].astype(np.float32), "y": table[:, -1].astype(np.uint8)}


def digits(paths: Sequence[Path]) -> Arrays:
    """Return the 8 x 8 digits that come with scikit-learn."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return {"X": X.astype(np.uint8), "y": y.astype(np.uint8)}
