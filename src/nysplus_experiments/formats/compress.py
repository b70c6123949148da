"""Compare compressed models with models fitted at that size, and with the SVM they come from.

- ``letter``, ``usps``, ``cod_rna``: 1000 landmarks compressed to 200, and to 16 kB, without rows,
  with rows, and with rows and classes, against 200 fitted.
- ``letter svc``: a support vector machine imported and compressed to a tenth of its vectors.
- ``letter merging``, ``usps merging``: landmarks that close pairs were merged to, against those
  that removals have left, each with the best coefficients, where they are and moved.

Rows are those that the larger model was fitted to. Needs the datasets (NYSPLUS_DATA names their
folder). A run that was stopped goes on.

    python benchmarks/compress.py [--datasets NAME ...] [--repeats 3] [--out FILE] [--fresh]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from nysplus._pruning import ROW_SMOOTHNESS, Misfit, eliminated, merged
from nysplus.experiments.datasets import DATASETS, Split, load

NAMES = ("letter", "usps", "cod_rna")
MERGED_NAMES = ("letter", "usps")
LARGE, SMALL, BUDGET = 1000, 200, "16kB"
# Of the training rows, so that a repeat takes a minute at most.
MAX_ROWS = 20_000
# Common settings for a support vector machine on Letter scaled to [0, 1]; not tuned.
SVC_NAME, SVC_PARAMS, SVC_RATIO = "letter", {"C": 10.0, "gamma": 8.0}, 10


@dataclass(frozen=True)
class Row:
    """One model: accuracy on the test rows in percent, processor seconds of this step alone.

    `error` is the squared difference of the scores from those of the model that it comes from, in
    units of their variance, for models that are meant to follow these.
    """

    dataset: str
    repeat: int
    way: str
    n: int
    n_bytes: int
    accuracy: float
    error: float
    seconds: float


def _timed(make: Any) -> tuple[Any, float]:
    start = time.process_time()
    return make(), time.process_time() - start


def _some(split: Split, repeat: int) -> tuple[Any, Any]:
    some = np.random.RandomState(repeat).permutation(len(split.X_train))[:MAX_ROWS]
    return split.X_train[some], split.y_train[some]


def _row(split: Split, where: tuple[str, int], way: str, model: Any, seconds: float) -> Row:
    accuracy = 100.0 * model.score(split.X_test, split.y_test)
    return Row(*where, way, model.n_components, model.model_bytes_, accuracy, np.nan, seconds)


def _given(X: Any, y: Any) -> dict[str, dict[str, Any]]:
    """Return what compression may be given beside the model."""
    return {"": {}, " with rows": {"X": X}, " with rows and classes": {"X": X, "y": y}}


def measure(name: str, repeat: int) -> Iterator[Row]:
    """Yield a row per way to a model with few landmarks."""
    split = load(name, trial=repeat)
    X, y = _some(split, repeat)

    def fitted(n: int) -> NystroemClassifier:
        return NystroemClassifier(n, gamma="auto", random_state=repeat).fit(X, y)

    large, seconds = _timed(lambda: fitted(LARGE))
    models = {"large": (large, seconds), "fitted": _timed(lambda: fitted(SMALL))}
    for more, given in _given(X, y).items():
        for way, size in (("compressed", {"n_components": SMALL}), (BUDGET, {"budget": BUDGET})):
            asked = {**size, **given}
            models[way + more] = _timed(lambda asked=asked: compress_model(large, **asked))
    for way, (model, seconds) in models.items():
        yield _row(split, (name, repeat), way, model, seconds)


def measure_svc(repeat: int) -> Iterator[Row]:
    """Yield a row each for the support vector machine, as imported, and compressed."""
    split = load(SVC_NAME, trial=repeat)
    X, y = _some(split, repeat)
    where = (f"{SVC_NAME} svc", repeat)
    svc, seconds = _timed(lambda: SVC(**SVC_PARAMS).fit(X, y))
    accuracy, n = 100.0 * svc.score(split.X_test, split.y_test), len(svc.support_)
    n_bytes = svc.support_vectors_.nbytes + svc.dual_coef_.nbytes + svc.intercept_.nbytes
    yield Row(*where, "SVC", n, n_bytes, accuracy, np.nan, seconds)
    yield _row(split, where, "imported", *_timed(lambda: from_svc(svc)))
    for more, given in _given(X, y).items():
        asked = {"n_components": n // SVC_RATIO, **given}
        small, seconds = _timed(lambda asked=asked: from_svc(svc, **asked))
        yield _row(split, where, f"compressed{more}", small, seconds)


def measure_merging(name: str, repeat: int) -> Iterator[Row]:
    """Yield a row per way to fewer landmarks, with the coefficients that follow scores best."""
    split = load(name, trial=repeat)
    X, y = _some(split, repeat)
    large = NystroemClassifier(LARGE, gamma="auto", random_state=repeat).fit(X, y)
    f, Z = large.expansion_, large.landmarks_
    some = X[: len(X) // 4]
    misfit = Misfit.of(f, some, np.full(len(some), 1.0 / len(some)), ROW_SMOOTHNESS)
    F = f(split.X_test)
    variance = ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean()

    def pruned() -> Any:
        return Z[eliminated(misfit.parts(Z).M, misfit.solve(Z), SMALL)[0]]

    ways = {"pruned": pruned, "merged": lambda: merged(f.kernel, Z, f.dual_coef, SMALL)}
    for way, make in ways.items():
        where_they_are, seconds = _timed(make)
        moved, more = _timed(lambda points=where_they_are: misfit.moved(points))
        for title, points, spent in (
            (way, where_they_are, seconds),
            (f"{way} and moved", moved, seconds + more),
        ):
            small = replace(f, landmarks=points, dual_coef=misfit.solve(points))
            scores = small(split.X_test)
            right = large.classes_[scores.argmax(axis=1)] == split.y_test
            error = ((scores - F) ** 2).sum(axis=1).mean() / variance
            numbers = (100.0 * right.mean(), float(error), spent)
            yield Row(f"{name} merging", repeat, title, SMALL, small.n_bytes, *numbers)


def measured(name: str, repeat: int) -> Iterator[Row]:
    """Yield the rows of one repeat of one part."""
    dataset, _, part = name.partition(" ")
    if part == "svc":
        return measure_svc(repeat)
    return measure_merging(dataset, repeat) if part == "merging" else measure(dataset, repeat)


def compress_table(rows: list[Row]) -> str:
    """Return a table in Markdown: median accuracy with its range, and median time."""
    following = any(not np.isnan(row.error) for row in rows)
    error_title, error_line = (" error |", "---:|") if following else ("", "")
    lines = [
        f"| dataset | model | n | bytes | accuracy % | range |{error_title} seconds |",
        f"|---|---|---:|---:|---:|---|{error_line}---:|",
    ]
    for dataset, way in dict.fromkeys((row.dataset, row.way) for row in rows):
        own = [row for row in rows if (row.dataset, row.way) == (dataset, way)]
        scores = [row.accuracy for row in own]
        n, n_bytes = (statistics.median_low([getattr(row, name) for row in own])
                      for name in ("n", "n_bytes"))  # fmt: skip
        error, seconds = (statistics.median([getattr(row, name) for row in own])
                          for name in ("error", "seconds"))  # fmt: skip
        name, _, part = dataset.partition(" ")
        title = f"{DATASETS[name].title} {part}".strip()
        spread = f"{min(scores):.2f} to {max(scores):.2f}"
        shown = ("" if np.isnan(error) else f" {error:.3f}") + " |" if following else ""
        lines.append(
            f"| {title} | {way} | {n} | {n_bytes:,} | {statistics.median(scores):.2f} | {spread} |"
            f"{shown} {seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    merging = [f"{name} merging" for name in MERGED_NAMES]
    parser.add_argument("--datasets", nargs="+", default=(*NAMES, f"{SVC_NAME} svc", *merging))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "compress.csv")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    args = parser.parse_args()
    begun = csv_rows.begin(args.out, Row, environment(), args.fresh)
    done = {(row.dataset, row.repeat) for row in begun}
    for repeat in range(args.repeats):
        for name in args.datasets:
            if (name, repeat) not in done:
                for row in list(measured(name, repeat)):  # a repeat is written as a whole
                    csv_rows.append(args.out, row)
    print(compress_table(csv_rows.read(args.out, Row)))


if __name__ == "__main__":
    main()
