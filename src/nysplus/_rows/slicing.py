"""Cut rows into blocks that fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._runtime.memory import working_bytes
from nysplus._runtime.threads import thread_count

# Matrix products of more rows are no faster, and take more memory.
MAX_BLOCK_ROWS = 4096
# The number of blocks is a multiple of this number, and they have equal sizes, so that no thread
# waits for another.
SHARES = 4
# Blocks get at least the working memory divided by this number, whatever else a pass needs.
LEAST_SHARE = 8


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the floating type of computations with rows of `dtype`.

    It is float32 for floats of at most 32 bits, and float64 for every other type, so that
    integers cannot overflow.
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
        Bytes of temporaries that one row needs. Every thread has the temporaries of one slice.
    most : int
        Largest number of rows of a slice.
    held : int
        Bytes of the working memory that are in use already.
    threads : int, optional
        Number of threads that share the memory; by default :func:`thread_count`.
    """
    budget = max(working_bytes() - held, working_bytes() // LEAST_SHARE)
    budget //= threads or thread_count()
    step = max(1, min(most, budget // max(row_bytes, 1)))
    n_slices = -(-n_rows // step)
    if n_slices > 1:
        n_slices = -(-n_slices // SHARES) * SHARES
        step = -(-n_rows // n_slices)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
