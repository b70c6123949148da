"""How the cost of a fit grows: against the number of rows N, and against the landmarks n.

Synthetic rows of 20 features in two classes, uniform landmarks, a fixed ridge. Repeats are the
outermost loop, every fit is a child process of its own, and a run that was stopped goes on.

    python benchmarks/growth.py [--repeats 3] [--quick] [--fresh]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import csv_rows
import numpy as np
from child_process import (
    environment,
    n_threads,
    resident_mb,
    restart_with_fixed_threads,
    run_in_child,
)
from measurement import RESULTS
from peers import RHO, SEED

from nysplus import NystroemClassifier
from nysplus.experiments._measure import measure

FEATURES = 20
GAMMA = 1 / FEATURES
# Half decades of rows at a fixed n, doublings of n at a fixed N.
ROWS, LANDMARKS = (10_000, 31_623, 100_000, 316_228, 1_000_000), 300
SIZES, ROWS_FOR_SIZES = (250, 500, 1000, 2000, 4000), 20_000
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Growth:
    """One row of ``growth.csv``: a fit; ``against`` ("N" or "n") is what varies in its series.

    Memory is what the fit takes beyond the data, in MiB.
    """

    against: str
    rows: int
    n: int
    dtype: str
    repeat: int
    fit_seconds: float
    peak_mb: float | None
    solver: str
    threads: int

    @property
    def key(self) -> tuple[str, int, int, str, int]:
        """What was measured."""
        return self.against, self.rows, self.n, self.dtype, self.repeat


def make_rows(n_rows: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows, and two classes that no plane separates. Calls no BLAS."""
    X = np.random.RandomState(SEED).standard_normal((n_rows, FEATURES)).astype(dtype)
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def fit_once(X: np.ndarray, y: np.ndarray, n: int) -> dict:
    """Fit after a warm-up; return columns of `Growth`."""
    settings = {"gamma": GAMMA, "alpha": RHO, "selection": "uniform", "random_state": SEED}
    NystroemClassifier(50, **settings).fit(X[:500], y[:500])
    before = resident_mb()
    with measure() as fitted:
        model = NystroemClassifier(n, **settings).fit(X, y)
    peak = fitted.peak_rss_mb
    return {
        "fit_seconds": fitted.seconds,
        "peak_mb": None if peak is None else max(peak - before, 0.0),
        "solver": getattr(model, "solver_", ""),
    }


def run(options: argparse.Namespace) -> None:
    """Measure everything that is not in the file yet."""
    all_rows, sizes = (ROWS[:3], SIZES[:3]) if options.quick else (ROWS, SIZES)
    series = [("N", rows, LANDMARKS) for rows in all_rows]
    series += [("n", ROWS_FOR_SIZES, n) for n in sizes]
    found = csv_rows.begin(options.out, Growth, environment(), options.fresh)
    done = {row.key for row in found}
    data = {dtype: make_rows(max(all_rows), dtype) for dtype in DTYPES}
    for repeat in range(options.repeats):
        for against, rows, n in series:
            for dtype in DTYPES:
                if (against, rows, n, dtype, repeat) in done:
                    continue
                X, y = (array[:rows] for array in data[dtype])
                columns = run_in_child(fit_once, X, y, n)
                row = Growth(against, rows, n, dtype, repeat, threads=n_threads(), **columns)
                csv_rows.append(options.out, row)
                print(
                    f"{repeat + 1}. N={rows:<8d}n={n:<5d}{dtype} fit {row.fit_seconds:8.3f} s"
                    f"  {row.solver}",
                    flush=True,
                )


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="the three smallest of each series")
    parser.add_argument("--out", type=Path, default=RESULTS / "growth.csv")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    try:
        run(parser.parse_args())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")


if __name__ == "__main__":
    main()
