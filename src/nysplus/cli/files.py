"""Read the files of users, and check them before any long work."""

from __future__ import annotations

import bz2
import codecs
import gzip
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._fit.model import FittedModel
from nysplus._rows.on_disk import read
from nysplus._rows.opening import open_elsewhere, schema_of
from nysplus._rows.readers import FORMATS, Source, join_chunks, open_source
from nysplus.cli.errors import CommandError
from nysplus.encoding.schema import TableSchema
from nysplus.persistence import load
from nysplus.report.wording import few

Array = npt.NDArray[Any]

ENDINGS = {**FORMATS, "npz": (".npz",)}
# The first bytes of files that are no text, and what such files are.
MAGIC = {
    b"PAR1": ("parquet", "a Parquet file"),
    b"ARROW1": ("ipc", "an Arrow file"),
    b"PK\x03\x04": ("npz", "a zip archive, as npz and Excel files are"),
    b"\xd0\xcf\x11\xe0": ("", "an Excel file"),
    b"\x89HDF": ("", "an HDF5 file"),
    b"SQLite": ("", "an SQLite database"),
}
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
COMPRESSION_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
# Bytes of text that are decoded at a time, and rows of an array that are predicted at a time.
TEXT_BYTES, ARRAY_ROWS = 2**22, 2**16


@dataclass(frozen=True)
class Rows:
    """The rows of a file, in memory.

    Attributes
    ----------
    X : pyarrow.Table, ndarray or CSR matrix
        All columns but the target.
    y : ndarray or pyarrow.ChunkedArray
        The target, as stored.
    target : str
        The name of the target.
    """

    X: Any
    y: Any
    target: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def take(self, rows: Array) -> Any:
        """Return some rows of X."""
        return self.X.take(rows) if hasattr(self.X, "column_names") else self.X[rows]


# -- checks ----------------------------------------------------------------------------------------


def checked_format(path: Path) -> str:
    """Return the format of a file by its ending, and check that its content may be of it."""
    if not path.exists():
        raise CommandError(f"{path} does not exist. Check the name and the folder.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder. Give a file.")
    matching = (form for form, ends in ENDINGS.items() if path.name.lower().endswith(ends))
    form = next(matching, None)
    if form is None:
        allowed = " ".join(end for ends in ENDINGS.values() for end in ends[:3])
        raise CommandError(
            f"{path} has an unknown ending. Allowed are {allowed}. Rename or convert the file."
        )
    if path.stat().st_size == 0:
        raise CommandError(f"{path} is empty: it has 0 bytes. Write it again.")
    _check_content(path, form)
    return form


def _check_content(path: Path, form: str) -> None:
    """Raise unless a file begins as files of its format do; text must be UTF-8."""
    with path.open("rb") as file:
        first = file.read(8)
    is_text = form in ("csv", "tsv", "libsvm")
    found = next((what for magic, what in MAGIC.items() if first.startswith(magic)), None)
    if found is not None and found[0] != form:
        ending = f" Rename it to end in {ENDINGS[found[0]][0]}." if found[0] else ""
        raise CommandError(f"{path} is not what its ending says: it is {found[1]}.{ending}")
    if found is None and not is_text:
        raise CommandError(
            f"{path} is not what its ending says: it does not begin as {form} files do. Rename it "
            "if it is of another kind, or write it again."
        )
    if is_text:
        _check_compression(path, first)
        _check_text(path)


def _check_compression(path: Path, first: bytes) -> None:
    """Raise unless a text file is compressed if and only if its ending says so."""
    ending = path.suffix.lower() if path.suffix.lower() in COMPRESSED else ""
    actual = next((end for end, magic in COMPRESSION_MAGIC.items() if first.startswith(magic)), "")
    if ending != actual:
        what = f"compressed ({actual})" if actual else "not compressed"
        raise CommandError(f"{path} is not what its ending says: it is {what}. Rename it.")


def _check_text(path: Path) -> None:
    """Raise unless a file is UTF-8 text without binary zeros."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    try:
        with opener(path, "rb") as file:
            while block := file.read(TEXT_BYTES):
                decoder.decode(block)
                if b"\0" in block:
                    line += block[: block.index(b"\0")].count(b"\n")
                    raise CommandError(
                        f"{path} is not text: line {line} has a binary zero. Export it again as "
                        "UTF-8 text."
                    )
                line += block.count(b"\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        raise CommandError(
            f"{path} is not UTF-8 text: line {line} has the byte {error.object[error.start]:#04x}. "
            f"Convert it, for example with: iconv -f latin1 -t utf-8 {path.name}"
        ) from error
    except (EOFError, OSError, zlib.error) as error:
        raise CommandError(f"{path} cannot be read: {error}. Write it again.") from error


def check_names(path: Path, names: list[str]) -> None:
    """Raise unless the columns of a file have different names."""
    if len(names) == 1 and (mark := next((m for m in ";\t|" if m in names[0]), None)):
        shown = "tabs" if mark == "\t" else repr(mark)
        advice = "Rename it to end in .tsv" if mark == "\t" else "Write it with commas"
        raise CommandError(
            f"{path} has one column, {names[0]!r}: its columns seem to be separated by {shown}. "
            f"{advice}."
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise CommandError(
            f"{path} has several columns of one name: {few(twice)}. Give every column its own name."
        )


def check_writable(path: Path, *inputs: Path | None, option: str = "--out") -> None:
    """Raise unless a file can be written, and is none of the inputs, before any long work."""
    folder = path.resolve().parent
    if any(each is not None and each.resolve() == path.resolve() for each in inputs):
        raise CommandError(
            f"{option} {path} is a file that the command uses already. Give another file."
        )
    if path.is_dir():
        raise CommandError(f"{path} is a folder. Give the name of a file.")
    if not folder.is_dir():
        raise CommandError(f"The folder {folder} does not exist. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise CommandError(f"{path} cannot be written: no permission. Give another place.")


def read_model(path: Path) -> Any:
    """Return the model of a file."""
    if not path.exists():
        raise CommandError(f"{path} does not exist. `nysplus train` writes such files.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder. Give a file of `nysplus train`.")
    return load(path)


# -- whole files -----------------------------------------------------------------------------------


def read_rows(path: Path, target: str | None) -> Rows:
    """Return all rows of a file, with the target apart."""
    form = checked_format(path)
    if form == "npz":
        return _npz_rows(path, target or "y")
    if form == "libsvm":
        _refuse_target(path, target)
        source = open_source(path)
        assert source is not None
        rows = join_chunks(list(read(source)))
        return Rows(rows.X, np.asarray(rows.y), "the first number of each line")
    table = _table(path, form)
    _check_target(path, table.column_names, target)
    assert target is not None
    X = table.drop_columns([target])
    if not X.num_columns:
        raise CommandError(f"{path} has no columns beside {target!r}. Add columns to learn from.")
    return Rows(X, table[target], target)


def read_table(path: Path) -> Any:
    """Return all columns of a file, as a table of pyarrow."""
    form = checked_format(path)
    if form in ("npz", "libsvm"):
        raise CommandError(f"{path} has no named columns. Give a CSV, TSV, Parquet or Arrow file.")
    return _table(path, form)


def read_target(path: Path, target: str | None) -> tuple[Any, str]:
    """Return the target column of a file, as stored, and its name."""
    form = checked_format(path)
    if form in ("npz", "libsvm"):
        rows = read_rows(path, target)
        return rows.y, rows.target
    _check_target(path, column_names(path, form), target)
    assert target is not None
    return _table(path, form, target)[target], target


def _check_target(path: Path, names: list[str], target: str | None) -> None:
    if target is None:
        raise CommandError(f"--target is missing. Name one of the columns of {path}: {few(names)}.")
    if target not in names:
        raise CommandError(f"{path} has no column {target!r}. Its columns are: {few(names, 50)}.")


def _refuse_target(path: Path, target: str | None) -> None:
    if target is not None:
        raise CommandError(
            f"--target {target} was given, and libsvm files such as {path} begin each line with "
            "the target. Leave --target out."
        )


def column_names(path: Path, form: str) -> list[str]:
    """Return the names of the columns of a table, checked."""
    pa = _pyarrow()
    try:
        if form == "parquet":
            names = pa.parquet.read_schema(path).names
        elif form == "ipc":
            with pa.ipc.open_file(path) as reader:
                names = reader.schema.names
        else:
            with pa.csv.open_csv(path, parse_options=_parsing(form)) as reader:
                names = reader.schema.names
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error
    check_names(path, names)
    return list(names)


def _table(path: Path, form: str, column: str | None = None) -> Any:
    """Return a table, or one of its columns, with the types of all of its entries."""
    pa = _pyarrow()
    column_names(path, form)
    columns = None if column is None else [column]
    try:
        if form == "parquet":
            table = pa.parquet.ParquetFile(path, page_checksum_verification=True).read(columns)
        elif form == "ipc":
            with pa.ipc.open_file(path) as reader:
                table = reader.read_all()
            table.validate(full=True)
        else:
            convert = pa.csv.ConvertOptions(strings_can_be_null=True, include_columns=columns)
            table = pa.csv.read_csv(path, parse_options=_parsing(form), convert_options=convert)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    if not len(table):
        raise CommandError(f"{path} has no rows. Add some.")
    return table


def _unreadable(path: Path, error: Exception) -> CommandError:
    return CommandError(f"{path} cannot be read: {error}. Write it again, or mend it there.")


def _parsing(form: str) -> Any:
    return _pyarrow().csv.ParseOptions(delimiter="\t" if form == "tsv" else ",")


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "CSV, TSV, Parquet and Arrow files are read with pyarrow, which is not installed: "
            'pip install "nysplus[table]"'
        ) from error
    return pyarrow


def _npz(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error


def _npz_rows(path: Path, target: str | None) -> Rows:
    arrays = _npz(path)
    needed = ["X"] if target is None else ["X", target]
    if lacking := [name for name in needed if name not in arrays]:
        raise CommandError(
            f"{path} has no arrays {lacking}. Its arrays are {few(arrays)}. Save the rows as X and "
            "the target as y: numpy.savez(path, X=X, y=y)."
        )
    X = arrays["X"]
    if X.ndim != 2 or not len(X):
        raise CommandError(f"X of {path} has the shape {X.shape}. Save it as rows and columns.")
    y = None if target is None else arrays[target]
    if y is not None and y.shape != X.shape[:1]:
        raise CommandError(
            f"{target} of {path} has the shape {y.shape}, and X has {len(X)} rows. Save one number "
            "or text for each row."
        )
    return Rows(X, y, str(target))


def check_columns(path: Path, form: str, schema: TableSchema | None) -> None:
    """Raise unless a table has the columns that a model uses; others are ignored."""
    if form in ("npz", "libsvm"):
        return
    names = column_names(path, form)
    if schema is not None and schema.names is not None:
        lacking = [column.name for column in schema.columns if column.name not in names]
        if lacking:
            raise CommandError(
                f"{path} has no columns {few(lacking)}, which the model uses. Its columns are: "
                f"{few(names, 50)}."
            )


# -- rows to predict -------------------------------------------------------------------------------


def applied(
    model: Any, path: Path, function: Callable[[FittedModel, Any], Array]
) -> Iterator[Array]:
    """Yield a function of the fitted model and of the rows of a file, chunk by chunk.

    Columns are checked before the first chunk.
    """
    form = checked_format(path)
    if form == "npz":
        X = _npz_rows(path, None).X
        return (
            model._apply(X[first : first + ARRAY_ROWS], function)
            for first in range(0, len(X), ARRAY_ROWS)
        )
    schema = schema_of(model)
    check_columns(path, form, schema)
    source = open_elsewhere(model, path, None, None, reset=False, is_table=schema is not None)
    assert isinstance(source, Source)
    return (function(model._model, chunk.X) for chunk in read(source))


def is_sparse(X: Any) -> bool:
    """Return whether rows are a sparse matrix."""
    return bool(sp.issparse(X))


def joined(chunks: list[Any]) -> Any:
    """Return the rows of all chunks, dense or sparse."""
    return sp.vstack(chunks, format="csr") if is_sparse(chunks[0]) else np.concatenate(chunks)
