"""Compare compressed models with models fitted at that size, and with the SVM they come from.

- ``landmarks``: 1000 landmarks compressed to 200, with and without rows, against 200 fitted.
- ``svc``: a support vector machine of Letter imported and compressed to a tenth of its vectors.

Needs the datasets (NYSPLUS_DATA names their folder). A run that was stopped goes on.

    python benchmarks/compress.py [--datasets NAME ...] [--repeats 3] [--out FILE] [--fresh]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import csv_rows
import numpy as np
from child_process import environment, restart_with_fixed_threads
from measurement import RESULTS
from sklearn.svm import SVC

from nysplus import NystroemClassifier
from nysplus._compress import compress_model
from nysplus._from_sklearn import from_svc
from nysplus.experiments.datasets import DATASETS, Split, load

NAMES = ("letter", "usps", "cod_rna")
LARGE, SMALL = 1000, 200
# Of the training rows, so that a repeat takes a minute at most.
MAX_ROWS = 20_000
# Common settings for a support vector machine on Letter scaled to [0, 1]; not tuned.
SVC_NAME, SVC_PARAMS, SVC_RATIO = "letter", {"C": 10.0, "gamma": 8.0}, 10
WAYS = ("large", "fitted", "compressed", "compressed with rows")
SVC_WAYS = ("SVC", "imported", "imported, compressed with rows")


@dataclass(frozen=True)
class Row:
    """One model: accuracy on the test rows in percent, processor seconds of this step alone."""

    dataset: str
    repeat: int
    way: str
    n: int
    accuracy: float
    seconds: float


def _timed(make: Any) -> tuple[Any, float]:
    start = time.process_time()
    return make(), time.process_time() - start


def _some(split: Split, repeat: int) -> tuple[Any, Any]:
    some = np.random.RandomState(repeat).permutation(len(split.X_train))[:MAX_ROWS]
    return split.X_train[some], split.y_train[some]


def measure(name: str, repeat: int) -> Iterator[Row]:
    """Yield a row per way to a model with few landmarks."""
    split = load(name, trial=repeat)
    X, y = _some(split, repeat)

    def fitted(n: int) -> NystroemClassifier:
        return NystroemClassifier(n, gamma="auto", random_state=repeat).fit(X, y)

    large, seconds = _timed(lambda: fitted(LARGE))
    models = [(large, seconds), _timed(lambda: fitted(SMALL))]
    models.append(_timed(lambda: compress_model(large, SMALL)))
    models.append(_timed(lambda: compress_model(large, SMALL, X)))
    for way, (model, seconds) in zip(WAYS, models, strict=True):
        accuracy = 100.0 * model.score(split.X_test, split.y_test)
        yield Row(name, repeat, way, len(model.landmarks_), accuracy, seconds)


def measure_svc(repeat: int) -> Iterator[Row]:
    """Yield a row each for the support vector machine, as imported, and compressed."""
    split = load(SVC_NAME, trial=repeat)
    X, y = _some(split, repeat)
    svc, seconds = _timed(lambda: SVC(**SVC_PARAMS).fit(X, y))
    models = [(svc, seconds), _timed(lambda: from_svc(svc))]
    n = len(svc.support_)
    models.append(_timed(lambda: compress_model(models[1][0], n // SVC_RATIO, X)))
    sizes = (n, n, n // SVC_RATIO)
    for way, size, (model, seconds) in zip(SVC_WAYS, sizes, models, strict=True):
        accuracy = 100.0 * model.score(split.X_test, split.y_test)
        yield Row(f"{SVC_NAME} svc", repeat, way, size, accuracy, seconds)


def compress_table(rows: list[Row]) -> str:
    """Return a table in Markdown: median accuracy with its range, and median time."""
    lines = [
        "| dataset | model | n | accuracy % | range | seconds |",
        "|---|---|---:|---:|---|---:|",
    ]
    for dataset, way in dict.fromkeys((row.dataset, row.way) for row in rows):
        own = [row for row in rows if (row.dataset, row.way) == (dataset, way)]
        scores = [row.accuracy for row in own]
        n = statistics.median_low([row.n for row in own])
        seconds = statistics.median([row.seconds for row in own])
        title = DATASETS[dataset.split()[0]].title
        spread = f"{min(scores):.2f} to {max(scores):.2f}"
        lines.append(
            f"| {title} | {way} | {n} | {statistics.median(scores):.2f} | {spread} "
            f"| {seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=(*NAMES, f"{SVC_NAME} svc"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "compress.csv")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    args = parser.parse_args()
    begun = csv_rows.begin(args.out, Row, environment(), args.fresh)
    done = {(row.dataset, row.repeat) for row in begun}
    for repeat in range(args.repeats):
        for name in args.datasets:
            if (name, repeat) not in done:
                svc = name == f"{SVC_NAME} svc"
                found = measure_svc(repeat) if svc else measure(name, repeat)
                for row in list(found):  # a repeat is written as a whole
                    csv_rows.append(args.out, row)
    print(compress_table(csv_rows.read(args.out, Row)))


if __name__ == "__main__":
    main()
