"""Cut rows into blocks that fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._runtime.memory import working_bytes
from nysplus._runtime.threads import thread_count

# More rows than this make no matrix product faster, they only take memory.
MAX_BLOCK_ROWS = 4096
# Several blocks come in multiples of this many of equal size, so that no thread waits for another.
SHARES = 4
# The least share of the working memory that blocks get, whatever else a pass holds.
LEAST_SHARE = 8


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the floating type that rows of `dtype` are computed in: float32 only for floats
    of at most 32 bits, float64 for everything else (so that integers cannot overflow).
    """
    given = np.dtype(dtype)
    small = given.kind == "f" and given.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def row_slices(
    n_rows: int,
    row_bytes: int,
    most: int = MAX_BLOCK_ROWS,
    held: int = 0,
    threads: int | None = None,
) -> list[slice]:
    """Cut `n_rows` rows into slices whose temporaries fit scikit-learn's `working_memory`.

    Parameters
    ----------
    n_rows : int
    row_bytes : int
        Bytes of temporaries that one row needs. Every thread holds those of one slice.
    most : int
        Rows of a slice, at most.
    held : int
        Bytes that are taken already.
    threads : int, optional
        How many share the memory; by default as many as a pass may use from here.
    """
    budget = max(working_bytes() - held, working_bytes() // LEAST_SHARE)
    budget //= threads or thread_count()
    step = max(1, min(most, budget // max(row_bytes, 1)))
    n_slices = -(-n_rows // step)
    if n_slices > 1:
        n_slices = -(-n_slices // SHARES) * SHARES
        step = -(-n_rows // n_slices)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
