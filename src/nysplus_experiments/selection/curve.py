"""Time what `landmark_curve` saves against fitting every size anew, and compare the scores.

Both are given the same training rows and scored on the same held-out rows. Needs the datasets
(NYSPLUS_DATA names their folder).

    python benchmarks/curve.py [--datasets NAME ...] [--repeats 3] [--out FILE] [--fresh]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import csv_rows
import numpy as np
from child_process import environment, restart_with_fixed_threads
from measurement import RESULTS

from nysplus import NystroemClassifier
from nysplus._blocks import Blocks
from nysplus._targets import ClassCode
from nysplus.curve import held_out, landmark_curve
from nysplus.experiments.datasets import DATASETS, load

NAMES = ("letter", "usps", "cod_rna", "covtype")
SERIES = {
    "doubling": (10, 20, 40, 80, 160, 320, 640, 1000),
    "even": (300, 400, 500, 600, 700, 800, 900, 1000),
}
# Of the training rows of a dataset, so that a repeat takes half a minute at most.
MAX_ROWS = 10_000
PAGE = Path(__file__).resolve().parents[1] / "docs" / "how_many_landmarks.md"
MARKS = ("<!-- table of benchmarks/curve.py -->\n", "<!-- end of the table -->\n")


@dataclass(frozen=True)
class Row:
    """One size in one repeat.

    Attributes
    ----------
    series : str
        Which sizes the curve has.
    rows : int
        Training and held-out rows together.
    curve, refit : float
        Accuracy on the held-out rows.
    error : float
        Its standard error.
    refit_seconds, curve_seconds : float
        Processor time; that of the curve is for all sizes together.
    """

    series: str
    dataset: str
    rows: int
    repeat: int
    n: int
    curve: float
    refit: float
    error: float
    refit_seconds: float
    curve_seconds: float


def measure(series: str, name: str, repeat: int) -> Iterator[Row]:
    """Yield a row per size."""
    split = load(name)
    some = np.random.RandomState(repeat).permutation(len(split.X_train))[:MAX_ROWS]
    X, y = split.X_train[some], split.y_train[some]
    model = NystroemClassifier(gamma=split.gamma, random_state=repeat)
    start = time.process_time()
    curve = landmark_curve(X, y, SERIES[series], estimator=model)
    curve_seconds = time.process_time() - start
    training, held = held_out(
        Blocks(X, ClassCode(np.unique(y)).encode(y)), len(y) // 5, np.random.RandomState(repeat)
    )
    y_training, y_held = training.targets.codes, held.targets.codes
    for n, score, error in zip(SERIES[series], curve.scores, curve.errors, strict=True):
        start = time.process_time()
        refit = model.set_params(n_components=n).fit(training.X, y_training).score(held.X, y_held)
        seconds = time.process_time() - start
        yield Row(series, name, len(y), repeat, n, score, refit, error, seconds, curve_seconds)


def curve_table(rows: list[Row]) -> str:
    """Return a table in Markdown: the curve less fits of their own, in points, and the times."""
    sizes = sorted({row.n for row in rows})
    lines = [
        "| dataset | " + " | ".join(f"n = {n}" for n in sizes) + " | curve s | fits s | ratio |",
        "|---|" + "---:|" * (len(sizes) + 3),
    ]
    for name in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == name]
        repeats = {row.repeat for row in own}
        gains = [
            100 * statistics.mean(row.curve - row.refit for row in own if row.n == n) for n in sizes
        ]
        curve = statistics.median({row.repeat: row.curve_seconds for row in own}.values())
        fits = statistics.median(
            sum(row.refit_seconds for row in own if row.repeat == repeat) for repeat in repeats
        )
        cells = [f"{round(gain, 1) + 0.0:+.1f}" for gain in gains]  # no minus zero
        times = [f"{curve:.1f}", f"{fits:.1f}", f"{fits / curve:.1f}"]
        lines.append("| " + " | ".join([DATASETS[name].title, *cells, *times]) + " |")
    return "\n".join(lines)


def both_tables(rows: list[Row]) -> str:
    """Return a table for each series of sizes."""
    return "\n\n".join(
        curve_table([row for row in rows if row.series == series]) for series in SERIES
    )


def write_table(rows: list[Row], page: Path) -> None:
    """Put the table where the page has its marks."""
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    text = f"{before}{MARKS[0]}{both_tables(rows)}\n{MARKS[1]}{after}"
    page.write_text(text, encoding="utf-8")


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=NAMES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "curve.csv")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    args = parser.parse_args()
    done = {
        (row.series, row.dataset, row.repeat)
        for row in csv_rows.begin(args.out, Row, environment(), args.fresh)
    }
    for task in itertools.product(SERIES, args.datasets, range(args.repeats)):
        if task not in done:
            for row in list(measure(*task)):  # a repeat is written as a whole
                csv_rows.append(args.out, row)
    rows = csv_rows.read(args.out, Row)
    print(both_tables(rows))
    if args.out == RESULTS / "curve.csv":
        write_table(rows, PAGE)


if __name__ == "__main__":
    main()
