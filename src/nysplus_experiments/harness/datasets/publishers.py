"""Download publishers' files, check them, and convert them to the ``.npz`` form."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from nysplus_experiments.harness.datasets import registry
from nysplus_experiments.harness.datasets.formats import Arrays, DatasetError
from nysplus_experiments.harness.datasets.registry import Dataset, RemoteFile, Source

Progress = Callable[[int, int | None], None]
_CHUNK_BYTES = 1 << 18
SPLIT_KEYS = ("X_train", "y_train", "X_test", "y_test")


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Return the ``.npz`` file of a dataset, downloaded and converted where it is absent."""
    row, path = registry.row_of(name), registry.find(name)
    if path is not None:
        return path
    cache, source = registry.cache_folder(), row.sources[0]
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache) as folder:
        paths = [_download(row, file, Path(folder), progress) for file in source.files]
        return _convert(row, source, paths, cache)


def _download(row: Dataset, file: RemoteFile, folder: Path, progress: Progress | None) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'Downloads need pooch, which is not installed. Run pip install "nysplus[experiments]", '
            f"or get {file.url} into a folder DIR and run `nysplus datasets prepare DIR`."
        ) from error
    pooch.get_logger().setLevel("WARNING")  # it would print each file's checksum
    downloader = pooch.HTTPDownloader(
        progressbar=_Bar(progress) if progress else False,
        chunk_size=_CHUNK_BYTES,
        headers={"User-Agent": "nysplus"},
        timeout=60,
    )
    known_hash = f"sha256:{file.sha256}" if file.sha256 else None
    try:
        path = pooch.retrieve(file.url, known_hash, file.name, folder, downloader=downloader)
    except OSError as error:
        raise registry.not_found(row, f"{file.url} could not be downloaded ({error})") from error
    except ValueError as error:
        raise DatasetError(
            f"{file.url} does not have the checksum {file.sha256} ({error}): the download was "
            "damaged or the publisher changed the file. Try again; if it stays so, get the file "
            "elsewhere and run `nysplus datasets prepare DIR` on its folder DIR."
        ) from error
    return Path(path)


class _Bar:
    """The progress bar that pooch expects, around a function of bytes done and bytes in all."""

    def __init__(self, show: Progress) -> None:
        self.total, self._done, self._show = 0, 0, show

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self._show(min(self._done, self.total or self._done), self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def prepare(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    names: Iterable[str] | None = None,
) -> list[Path]:
    """Convert publishers' files to the ``.npz`` form; return the files written.

    ``folder`` holds the files under their own names, compressed or not, directly or in a
    sub-folder named as the dataset; by default all that are there go to the user's cache.
    """
    folder, out = Path(folder), registry.cache_folder() if out is None else Path(out)
    rows = [row for row in registry.DATASETS.values() if row.sources[0].files]
    if names is not None:
        rows = [registry.row_of(name) for name in ([names] if isinstance(names, str) else names)]
    written = []
    for row in rows:
        located = _locate(row, folder)
        if located is not None:
            out.mkdir(parents=True, exist_ok=True)
            written.append(_convert(row, *located, out))
        elif names is not None:
            raise registry.not_found(row, f"its files are not in {folder}")
    if not written:
        known = ", ".join(file.name for row in rows for file in row.sources[0].files)
        raise registry.DatasetNotFound(f"No publisher's file is in {folder}. Known files: {known}.")
    return written


def _locate(row: Dataset, folder: Path) -> tuple[Source, list[Path]] | None:
    for place in (folder / row.name, folder):
        for source in row.sources:
            paths = [file.locate(place) for file in source.files]
            present = [path for path in paths if path is not None]
            if len(present) == len(paths):
                return source, present
            if present:
                lacking = next(f for f, p in zip(source.files, paths, strict=True) if p is None)
                found = f"{place} holds {present[0].name} but no {lacking.name}"
                raise registry.not_found(row, found)
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
    check(row, arrays, names)
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


def check(row: Dataset, arrays: Arrays, where: str) -> None:
    """Compare arrays with the publisher's counts; raise `DatasetError` at the first difference."""
    keys = SPLIT_KEYS if len(row.rows) == 2 else ("X", "y")

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
