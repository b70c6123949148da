"""Measure the BLAS floor of a Nyström fit: the matrix products that no fit in this order can avoid.

For all N rows: ``K = X Zᵀ``; the whitening of K by a triangular product or solve, whichever is
faster here; and the symmetric rank-k update ``C += Φᵀ Φ``. The median block is scaled to N rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import get_blas_funcs

from nysplus_experiments.harness.bench import BenchOptions

BLOCK_ROWS = 4096
# Enough for a stable median; a fit of that length would show the same noise.
SECONDS_TO_MEASURE = 0.5
MIN_BLOCKS = 5


def measure_floor(X: np.ndarray, n_landmarks: int) -> dict[str, float]:
    """Return the seconds of each product for all rows of X, and of the floor.

    The first rows are the landmarks. The whitening counts in its faster form.
    """
    n_rows, n = len(X), n_landmarks
    block_rows = min(BLOCK_ROWS, n_rows)
    trmm, trsm, syrk = get_blas_funcs(("trmm", "trsm", "syrk"), dtype=X.dtype)
    Z = np.ascontiguousarray(X[:n])
    # A triangle whose powers stay in range, so that no product meets infinities.
    noise = np.random.RandomState(0).standard_normal((n, n)) * (0.1 / n)
    T = np.asfortranarray(np.triu(noise, 1) + np.eye(n), dtype=X.dtype)
    K = np.empty((block_rows, n), X.dtype)
    C = np.zeros((n, n), X.dtype, order="F")
    # BLAS counts columns first: K.T is the same memory, read as the matrix that BLAS wants.
    steps: dict[str, Callable[[np.ndarray], object]] = {
        "product": lambda block: np.matmul(block, Z.T, out=K),
        "triangular product": lambda block: trmm(1.0, T, K.T, overwrite_b=1),
        "triangular solve": lambda block: trsm(1.0, T, K.T, overwrite_b=1),
        "rank-k update": lambda block: syrk(1.0, K.T, beta=1.0, c=C, overwrite_c=1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    begin, first, blocks = time.perf_counter(), 0, -1
    while blocks < MIN_BLOCKS or time.perf_counter() - begin < SECONDS_TO_MEASURE:
        block = X[first : first + block_rows]
        for name, step in steps.items():
            start = time.perf_counter()
            step(block)
            seconds[name].append(time.perf_counter() - start)
        blocks += 1
        if blocks == 0:  # the first block pays for pages and threads
            seconds = {name: [] for name in steps}
        first = first + block_rows if first + 2 * block_rows <= n_rows else 0
    share = n_rows / block_rows
    found = {name: share * statistics.median(times) for name, times in seconds.items()}
    whitening = min(found["triangular product"], found["triangular solve"])
    return {"floor": found["product"] + whitening + found["rank-k update"], **found}


def run(options: BenchOptions) -> None:
    """Print the floor for random rows: ``rows``, ``features`` and ``sizes`` can be set."""
    options.expect("rows", "features", "sizes")
    n_rows = options.integer("rows", 5000 if options.smoke else 60_000)
    n_features = options.integer("features", 784)
    print("seconds for", n_rows, "rows of", n_features, "features")
    for dtype in ("float32", "float64"):
        X = np.random.RandomState(0).random_sample((n_rows, n_features)).astype(dtype)
        for n in options.integers("sizes", (250,) if options.smoke else (250, 1000, 2000)):
            parts = (f"{name} {seconds:.3f}" for name, seconds in measure_floor(X, n).items())
            print(f"{dtype}, n = {n}:", ", ".join(parts), flush=True)
