"""The target: whether it has classes or values, and which rows have one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus.cli.errors import CommandError
from nysplus.report.scores import Task
from nysplus.report.wording import few

Array = npt.NDArray[Any]

# Whole numbers of at most this many different values are classes.
FEW_VALUES = 20


@dataclass(frozen=True)
class TargetValues:
    """The entries of a target column.

    Attributes
    ----------
    name : str
    y : ndarray of shape (n,)
        Texts, truth values, int64 or float64, of the rows that have an entry.
    known : ndarray of bool, of shape (N,)
        Which rows have an entry.
    """

    name: str
    y: Array
    known: npt.NDArray[np.bool_]

    @property
    def n_missing(self) -> int:
        """Number of rows without an entry."""
        return int(len(self.known) - np.count_nonzero(self.known))


def target_values(name: str, column: Any) -> TargetValues:
    """Return the entries of a target column of pyarrow or numpy."""
    y, known = _numpy(column) if isinstance(column, np.ndarray) else _arrow(name, column)
    y = y[known]
    if not len(y):
        raise CommandError(f"The target {name!r} has no entries. Name another column.")
    if y.dtype.kind == "f":
        if np.isinf(y).any():
            raise CommandError(f"The target {name!r} contains infinity. Remove these rows.")
        if (y == np.round(y)).all() and np.abs(y).max() < 2**53:
            y = y.astype(np.int64)
    return TargetValues(name, y, known)


def _numpy(y: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    if y.dtype.kind in "biu":
        return (y if y.dtype.kind == "b" else y.astype(np.int64)), np.ones(len(y), bool)
    if y.dtype.kind == "f":
        return y.astype(np.float64), ~np.isnan(y)
    if y.dtype.kind == "U":
        return y, y != ""
    raise CommandError(f"The target has the type {y.dtype}. Allowed are numbers and texts.")


def _arrow(name: str, column: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    known = np.asarray(column.is_valid().to_numpy())
    if pa.types.is_boolean(kind):
        return column.fill_null(False).to_numpy().astype(bool), known
    if pa.types.is_integer(kind):
        return column.fill_null(0).to_numpy().astype(np.int64), known
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64()).fill_null(np.nan).to_numpy().astype(np.float64)
        return values, known & ~np.isnan(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        texts = compute.fill_null(column.cast(pa.string()), "").to_numpy(zero_copy_only=False)
        values = np.asarray(texts, dtype=object)
        known = known & (values != "")
        return (values.astype(str) if len(values) else values), known
    raise CommandError(
        f"The target {name!r} has the type {kind}. Allowed are numbers, texts and truth values. "
        "Convert it."
    )


def choose_task(target: TargetValues, option: str) -> tuple[Task, str]:
    """Return the task of a target, and the reason for it; check that the target allows it."""
    name, y = target.name, target.y
    values = np.unique(y)
    if len(values) == 1:
        raise CommandError(
            f"The target {name!r} has one value, {values[0].item()!r}, in all rows. There is "
            "nothing to learn: name another column."
        )
    if option not in ("auto", "classify", "regress"):
        raise CommandError(f"--task {option} is not known. Allowed are auto, classify, regress.")
    if option == "regress" and y.dtype.kind not in "if":
        shown = few(values[:3])
        raise CommandError(
            f"The target {name!r} contains {_kind(y)} such as {shown}, and --task regress needs "
            "numbers. Use --task classify, or convert the column."
        )
    task, reason = _task(y, values, option)
    if task == "classify" and 2 * len(values) > len(y):
        raise CommandError(
            f"The target {name!r} has {len(values):,} different values in {len(y):,} rows, too "
            f"many for classes: {few(values[:3])}, … Name another column"
            + (", or use --task regress." if y.dtype.kind in "if" else ".")
        )
    return task, reason


def _task(y: Array, values: Array, option: str) -> tuple[Task, str]:
    if option != "auto":
        return ("classify" if option == "classify" else "regress"), f"--task {option}"
    if y.dtype.kind in "bU":
        return "classify", f"it contains {_kind(y)}"
    if y.dtype.kind == "i" and len(values) <= FEW_VALUES and 2 * len(values) <= len(y):
        return "classify", f"it contains {len(values)} different whole numbers; or --task regress"
    if y.dtype.kind == "i":
        return "regress", f"it contains {len(values):,} different whole numbers; or --task classify"
    return "regress", "it contains fractions"


def _kind(y: Array) -> str:
    return {"b": "truth values", "U": "texts"}.get(y.dtype.kind, "numbers")
