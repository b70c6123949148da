"""The paper's datasets: where they are published, how they are split, scaled and looked up.

A dataset is looked for as ``<name>.npz`` in the folder that the environment variable
``NYSPLUS_DATA`` names, then in the user's cache (``NYSPLUS_CACHE``, or the platform's own place),
and is then downloaded from its publisher. The paper says only that features were scaled to [0, 1];
here images share one range ("global") and all other data have one range a column ("feature"),
both taken from the training rows, so that test values may lie outside [0, 1].

>>> from nysplus_experiments.harness import datasets
>>> split = datasets.load("digits", trial=3)
>>> split.X_train.shape, split.X_test.shape
((1297, 64), (500, 64))
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from nysplus_experiments.harness.datasets.formats import Array, Arrays, DatasetError
from nysplus_experiments.harness.datasets.registry import DATASETS, Dataset, RemoteFile, Source

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "DatasetNotFound",
    "Presence",
    "RemoteFile",
    "Source",
    "Split",
    "cache_folder",
    "describe",
    "fetch",
    "find",
    "load",
    "prepare",
]

Progress = Callable[[int, int | None], None]
_SPLIT_KEYS = ("X_train", "y_train", "X_test", "y_test")


class DatasetNotFound(FileNotFoundError):
    """A dataset is in none of the places that were looked at."""


# -- records -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Training and test rows of one trial, scaled, with the paper's gamma.

    ``deviations`` are plain sentences on every difference from the paper.
    """

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    gamma: float
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Presence:
    """Where a dataset is: "NYSPLUS_DATA", "cache", "scikit-learn", or "" when absent."""

    dataset: Dataset
    where: str
    path: Path | None

    @property
    def present(self) -> bool:
        """Whether `load` needs no download."""
        return bool(self.where)


# -- look-up -------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the user's cache folder for datasets; it need not exist yet."""
    if chosen := os.environ.get("NYSPLUS_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "nysplus"


def _places() -> list[tuple[str, Path]]:
    data = os.environ.get("NYSPLUS_DATA")
    named = [("NYSPLUS_DATA", Path(data).expanduser())] if data else []
    return [*named, ("cache", cache_folder())]


def _row(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"Unknown dataset {name!r}. Known names: {', '.join(DATASETS)}.")
    return DATASETS[name]


def find(name: str) -> Path | None:
    """Return the ``.npz`` file of a dataset, or None; never touches the network."""
    _row(name)
    paths = (folder / f"{name}.npz" for _, folder in _places())
    return next((path for path in paths if path.is_file()), None)


def describe() -> list[Presence]:
    """Return one record a dataset, in the table's order, with where its data are."""
    result = []
    for name, row in DATASETS.items():
        path = find(name)
        where = next((w for w, folder in _places() if path and path.parent == folder), "")
        builtin = not path and not row.sources[0].files
        result.append(Presence(row, "scikit-learn" if builtin else where, path))
    return result


def _not_found(row: Dataset, reason: str) -> DatasetNotFound:
    looked = "; ".join(
        f"{folder} ({label}{'' if folder.is_dir() else ', no such folder'})"
        for label, folder in _places()
    )
    files = " and ".join(f"{file.name} from {file.url}" for file in row.sources[0].files)
    return DatasetNotFound(
        f"{row.title} is not available: {reason}. Looked for {row.name}.npz in {looked}. "
        f"Put {row.name}.npz into one of these folders (NYSPLUS_DATA can name another), or get "
        f"{files} into a folder DIR and run `nysplus datasets prepare DIR`, which writes "
        f"{cache_folder() / (row.name + '.npz')}."
    )


# -- from the publisher to the cache -------------------------------------------------------------


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Return the ``.npz`` file of a dataset, downloading and converting it where it is absent.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total)`` during each file's download; the total is
        None where the server does not tell it.

    Returns
    -------
    Path
        The file that `find` finds from then on.
    """
    row, path = _row(name), find(name)
    if path is not None:
        return path
    cache, source = cache_folder(), row.sources[0]
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache) as folder:
        paths = [_download(row, file, Path(folder), progress) for file in source.files]
        return _convert(row, source, paths, cache)


def _download(row: Dataset, file: RemoteFile, folder: Path, progress: Progress | None) -> Path:
    partial, digest, done = folder / (file.name + ".part"), hashlib.sha256(), 0
    request = urllib.request.Request(file.url, headers={"User-Agent": "nysplus"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response, partial.open("wb") as out:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            while block := response.read(1 << 18):
                out.write(block)
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
    except (OSError, http.client.HTTPException) as error:
        raise _not_found(row, f"{file.url} could not be downloaded ({error})") from error
    if total is not None and done != total:
        raise _not_found(row, f"{file.url} broke off after {done} of {total} bytes")
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        raise DatasetError(
            f"{file.url} has the SHA-256 {digest.hexdigest()} instead of {file.sha256}: the "
            "download was damaged or the publisher changed the file. Try again; if it stays so, "
            "get the file elsewhere and run `nysplus datasets prepare DIR` on its folder DIR."
        )
    return partial.rename(folder / file.name)


def prepare(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    names: Iterable[str] | None = None,
) -> list[Path]:
    """Convert publishers' files to the ``.npz`` form.

    Parameters
    ----------
    folder : path
        Holds publishers' files under their own names, compressed or not, directly or in a
        sub-folder named as the dataset.
    out : path, optional
        Where to write; the user's cache by default, where `load` finds the result.
    names : iterable of str, optional
        The datasets to convert; by default all whose files are there.

    Returns
    -------
    list of Path
        The files written. Each appears whole or not at all.
    """
    folder, out = Path(folder), cache_folder() if out is None else Path(out)
    rows = [row for row in DATASETS.values() if row.sources[0].files]
    if names is not None:
        rows = [_row(name) for name in ([names] if isinstance(names, str) else names)]
    written = []
    for row in rows:
        located = _locate(row, folder)
        if located is not None:
            out.mkdir(parents=True, exist_ok=True)
            written.append(_convert(row, *located, out))
        elif names is not None:
            raise _not_found(row, f"its files are not in {folder}")
    if not written:
        known = ", ".join(file.name for row in rows for file in row.sources[0].files)
        raise DatasetNotFound(f"No publisher's file is in {folder}. Known files: {known}.")
    return written


def _locate(row: Dataset, folder: Path) -> tuple[Source, list[Path]] | None:
    for place in (folder / row.name, folder):
        for source in row.sources:
            paths = [file.locate(place) for file in source.files]
            present = [path for path in paths if path is not None]
            if len(present) == len(paths):
                return source, present
            if present:
                missing = [f.name for f, p in zip(source.files, paths, strict=True) if p is None]
                raise _not_found(row, f"{place} holds {present[0].name} but no {missing[0]}")
    return None


def _convert(row: Dataset, source: Source, paths: Sequence[Path], out: Path) -> Path:
    names = ", ".join(path.name for path in paths) or row.title
    try:
        arrays = source.parse(paths)
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged file makes a parser raise
        raise DatasetError(
            f"{names} could not be read as {row.title}: {error}. Get the file again from "
            f"{source.files[0].url if source.files else 'scikit-learn'}."
        ) from error
    _check(row, arrays, names)
    if source.note:
        arrays["notes"] = np.array([source.note])
    path = out / f"{row.name}.npz"
    partial = path.with_name(f".{row.name}-{os.getpid()}.part")
    try:
        with partial.open("wb") as stream:
            # names of arrays are taken for those of its own options
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


# -- from the file to a split --------------------------------------------------------------------


def _check(row: Dataset, arrays: Arrays, where: str) -> None:
    """Compare arrays with the publisher's counts; raise `DatasetError` at the first difference."""
    keys = _SPLIT_KEYS if len(row.rows) == 2 else ("X", "y")

    def fail(got: str, allowed: str) -> DatasetError:
        return DatasetError(
            f"{where}: {got}; {row.title} needs {allowed}. Replace the file, or convert the "
            "publisher's files again with `nysplus datasets prepare DIR`."
        )

    missing = [key for key in keys if key not in arrays]
    if missing:
        found = ", ".join(sorted(arrays)) or "no array"
        raise fail(f"found {found}, without {', '.join(missing)}", f"{', '.join(keys)}")
    for X_key, y_key, n_rows in zip(keys[::2], keys[1::2], row.rows, strict=True):
        X, y = arrays[X_key], arrays[y_key]
        if X.shape != (n_rows, row.n_features) or y.shape != (n_rows,):
            needed = f"({n_rows}, {row.n_features}) and ({n_rows},)"
            raise fail(f"{X_key} and {y_key} have the shapes {X.shape} and {y.shape}", needed)
        for key, array in ((X_key, X), (y_key, y)):
            if array.dtype.kind not in "buif":
                raise fail(f"{key} has the type {array.dtype}", "numbers")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise fail(f"{key} has NaN or infinite values", "finite numbers")
    n_classes = len(np.unique(np.concatenate([arrays[key] for key in keys[1::2]])))
    if n_classes != row.n_classes:
        raise fail(f"found {n_classes} classes", f"{row.n_classes} classes")


def _read(row: Dataset, download: bool) -> Arrays:
    path = find(row.name)
    if path is None and not row.sources[0].files:
        return row.sources[0].parse([])
    if path is None:
        if not download:
            raise _not_found(row, "downloading was switched off")
        path = fetch(row.name)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            arrays: Arrays = {key: content[key] for key in content.files}
    except MemoryError:
        raise
    except Exception as error:  # a damaged zip raises a dozen different exceptions
        raise DatasetError(
            f"{path} could not be read as an .npz file of plain arrays ({error}). Delete it and "
            "load again, or convert the publisher's files with `nysplus datasets prepare DIR`."
        ) from error
    _check(row, arrays, str(path))
    return arrays


def load(
    name: str,
    trial: int = 0,
    *,
    download: bool = True,
    public_split: bool = False,
    dtype: DTypeLike = np.float64,
) -> Split:
    """Load a dataset, split and scaled as in the paper.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
    trial : int
        Seed of the split, where the dataset is split at random; the same everywhere.
    download : bool
        Whether to ask the publisher for a dataset that is not on this machine.
    public_split : bool
        Take the publisher's split of a dataset that the paper split anew (IJCNN).
    dtype : float64 or float32
        Type of the features. One copy of the rows is made in this type.

    Returns
    -------
    Split
        Features scaled by the training rows' range, labels as the publisher writes them.
    """
    row, dtype = _row(name), np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype} is not supported. Use float64 or float32.")
    if not isinstance(trial, int | np.integer) or not 0 <= trial < 2**32:
        raise ValueError(f"trial={trial!r} is not allowed. Use a whole number from 0 to 2**32 - 1.")
    if public_split and row.split != "resplit":
        able = ", ".join(r.name for r in DATASETS.values() if r.split == "resplit")
        raise ValueError(f"public_split=True applies to {able} only, not to {name}. Drop it.")
    arrays = _read(row, download)
    notes = [*row.notes, *(str(note) for note in arrays.get("notes", ()))]
    X, y, X_test, y_test = _divide(row, arrays, int(trial), public_split, notes)
    got = (len(X), len(X_test))
    if row.paper is not None and got != row.paper:
        notes.insert(
            0,
            f"{row.title} has {got[0]} training and {got[1]} test rows here, "
            f"{row.paper[0]} and {row.paper[1]} in the paper.",
        )
    X, X_test = _scale(X, X_test, row.scaling, dtype)
    y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    return Split(name, X, y, X_test, y_test, row.gamma, tuple(notes))


def _divide(
    row: Dataset, arrays: Arrays, trial: int, public_split: bool, notes: list[str]
) -> tuple[Array, Array, Array, Array]:
    """Return raw training and test rows of one trial; add what was done to ``notes``."""
    if row.split == "fixed" or public_split:
        X, y, X_test, y_test = (arrays[key] for key in _SPLIT_KEYS)
        if row.unique:
            return _drop_duplicates(row, X, y, X_test, y_test, notes)
        return X, y, X_test, y_test
    if row.split == "resplit":
        X = np.concatenate([arrays["X_train"], arrays["X_test"]])
        y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        notes.append(
            f"The paper does not say how its rows of {row.title} were split; here the "
            f"{' and '.join(map(str, row.rows))} public rows are pooled and drawn at random for "
            "each trial."
        )
    else:
        X, y = arrays["X"], arrays["y"]
    order = np.random.RandomState(trial).permutation(len(X))
    n_train, n_test = row.counts
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return X[train], y[train], X[test], y[test]


def _drop_duplicates(
    row: Dataset, X: Array, y: Array, X_test: Array, y_test: Array, notes: list[str]
) -> tuple[Array, Array, Array, Array]:
    keep, n_both = _first_occurrences(X, y)
    keep_test, n_both_test = _first_occurrences(X_test, y_test)
    train, test = _keys(X[keep]), _keys(X_test[keep_test])
    n_shared = int(np.isin(test, train).sum())
    notes.append(
        f"Rows of {row.title} whose features occurred before are dropped: {len(keep)} of {len(X)} "
        f"training rows and {len(keep_test)} of {len(X_test)} test rows are kept."
    )
    notes.append(
        f"{n_both} feature vectors of the training file and {n_both_test} of the test file of "
        f"{row.title} carry both labels; the first label is kept."
    )
    notes.append(f"{n_shared} test rows of {row.title} also occur among the training rows.")
    return X[keep], y[keep], X_test[keep_test], y_test[keep_test]


def _keys(X: Array) -> Array:
    """Return one comparable item a row; adding 0 makes -0.0 and 0.0 the same bytes."""
    X = np.ascontiguousarray(X + 0)
    return X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()


def _first_occurrences(X: Array, y: Array) -> tuple[Array, int]:
    """Return the first row of each feature vector, in order, and how many carry two labels."""
    _, first, group = np.unique(_keys(X), return_index=True, return_inverse=True)
    labels, code = np.unique(y, return_inverse=True)
    pairs = np.unique(group * len(labels) + code)
    n_both = int((np.bincount(pairs // len(labels)) > 1).sum())
    return np.sort(first), n_both


def _scale(
    X: Array, X_test: Array, scaling: Literal["global", "feature"], dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    """Scale by the training range: (x - min) / (max - min), 0 where the range is empty.

    The range is taken in float64, so that narrow integer types cannot overflow.
    """
    axis = None if scaling == "global" else 0
    low = np.asarray(X.min(axis=axis), dtype=np.float64)
    span = np.asarray(X.max(axis=axis), dtype=np.float64) - low
    constant = span == 0.0
    scaled = []
    for rows in (X, X_test):
        result = rows.astype(dtype)  # always a copy: scaled in place below
        result -= low.astype(dtype)
        result /= np.where(constant, 1.0, span).astype(dtype)
        result[:, np.broadcast_to(constant, result.shape[1])] = 0.0
        scaled.append(result)
    return scaled[0], scaled[1]
