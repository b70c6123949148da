"""Read rows chunk by chunk: memory maps, tables, libsvm text, and blocks of the user's code.

A `Source` can be read any number of times, always in the same order, and keeps at most a few
chunks in memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nysplus._rows.readers.base import (
    Chunk,
    Reading,
    Source,
    check_chunk,
    join_chunks,
    mapping_of,
)
from nysplus._rows.readers.blocks import (
    BlockRows,
    as_chunk,
    block_names,
    check_traits,
    gives_blocks,
    traits,
)
from nysplus._rows.readers.column_types import TypesChanged
from nysplus._rows.readers.libsvm import LibsvmRows
from nysplus._rows.readers.memory_maps import MemmapRows
from nysplus._rows.readers.tables import TableRows, open_dataset

__all__ = [
    "BlockRows",
    "Chunk",
    "LibsvmRows",
    "MemmapRows",
    "Reading",
    "Source",
    "TableRows",
    "TypesChanged",
    "as_chunk",
    "block_names",
    "check_chunk",
    "check_traits",
    "is_source",
    "join_chunks",
    "open_source",
    "traits",
]

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".csv.gz", ".csv.bz2"),
    "tsv": (".tsv", ".tsv.gz", ".tsv.bz2"),
    "libsvm": tuple(s + p for s in (".svm", ".libsvm", ".svmlight") for p in ("", ".gz", ".bz2")),
}


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    is_table: bool = False,
) -> Source | None:
    """Return a reader for X, or None if X is an array, data frame or list of rows as usual.

    Parameters
    ----------
    X : path, memmap, pyarrow table or dataset, iterable of blocks, or anything else
    y, sample_weight : array-like or str, optional
        For tables also the name of a column. Blocks and libsvm files have their own.
    features : sequence of str, optional
        Columns to read; only tables use it.
    n_features, zero_based : optional
        As in :class:`LibsvmRows`; other readers ignore them.
    is_table : bool
        Whether columns may have gaps, texts and dates. Sparse rows never have.
    """
    if isinstance(X, (str, os.PathLike)):
        form, folder, files = _find_files(X)
        if form != "libsvm":
            dataset = open_dataset(folder, form, files)
            return TableRows(dataset, y, sample_weight, features, is_table)
        _refuse(y, sample_weight, "libsvm files bring their own y, and no weights")
        return LibsvmRows(files, n_features, zero_based)
    if _is_mapped(X):
        return MemmapRows(X, y, sample_weight, is_table)
    if _is_arrow(X):
        return TableRows(X, y, sample_weight, features, is_table)
    if gives_blocks(X):
        _refuse(y, sample_weight, "blocks bring their own, as (X, y) or (X, y, sample_weight)")
        return BlockRows(X, is_table=is_table)
    return None


def is_source(X: Any) -> bool:
    """Return whether `open_source` has a reader for X, without opening a file."""
    return isinstance(X, (str, os.PathLike)) or _is_mapped(X) or _is_arrow(X) or gives_blocks(X)


def _is_mapped(X: Any) -> bool:
    return isinstance(X, np.memmap) and X.ndim == 2 and mapping_of(X) is not None


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow"


def _refuse(y: Any, sample_weight: Any, reason: str) -> None:
    for what, values in ("y", y), ("sample_weight", sample_weight):
        if values is not None:
            raise ValueError(f"{what} was passed beside X, but {reason}. Leave {what} out.")


def _find_files(path: str | os.PathLike[str]) -> tuple[str, Path, dict[str, Path]]:
    """Return the format that a file, or every file in a folder, has, the folder, and the files."""
    given = Path(path).absolute()
    if not given.exists():
        raise FileNotFoundError(
            f"X={os.fspath(path)!r} is neither a file nor a folder. For files on other computers "
            "pass a pyarrow.dataset.Dataset."
        )
    files = {given.name: given}
    if given.is_dir():
        found = {file.relative_to(given): file for file in sorted(given.rglob("*"))}
        files = {
            name.as_posix(): file
            for name, file in found.items()
            if file.is_file() and not any(part.startswith((".", "_")) for part in name.parts)
        }
    forms = {_format(name): name for name in files}
    form = next(iter(forms)) if len(forms) == 1 else None
    if form is None:
        allowed = "; ".join(" ".join(suffixes) for suffixes in FORMATS.values())
        raise ValueError(
            f"X={os.fspath(path)!r} holds {sorted(forms.values()) or 'no files'}. Pass one file, "
            f"or a folder of files, of one of these kinds: {allowed}."
        )
    return form, given if given.is_dir() else given.parent, files


def _format(name: str) -> str | None:
    matching = (form for form, ends in FORMATS.items() if name.lower().endswith(ends))
    return next(matching, None)
