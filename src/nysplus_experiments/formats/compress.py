"""Compare compressed models with models fitted at that size, and with the SVM they come from.

- ``letter``, ``usps``, ``cod_rna``: 1000 landmarks compressed to 200, and to 16 kB, without rows,
  with rows, and with rows and classes, against 200 fitted landmarks.
- ``letter svc``: a support vector machine imported and compressed to a tenth of its vectors.
- ``letter merging``, ``usps merging``: landmarks from merging close pairs against landmarks from
  removal, each with the best coefficients, in place and moved.

Rows are those that the larger model was fitted to. ``repeats`` can be set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.svm import SVC

from nysplus import NystroemClassifier, from_svc
from nysplus._compression.merging import merged
from nysplus._compression.misfit import ROW_SMOOTHNESS, Misfit
from nysplus._compression.pruning import eliminated
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import Split, load
from nysplus_experiments.harness.measurement import Measure, measure
from nysplus_experiments.harness.records import Row

NAMES = ("letter", "usps", "cod_rna", "letter svc", "letter merging", "usps merging")
LARGE, SMALL, BUDGET = 1000, 200, "16kB"
# Training rows, so that a repeat takes a minute at most.
MAX_ROWS = 20_000
# Common settings for a support vector machine on Letter scaled to [0, 1]; not tuned.
SVC_PARAMS, SVC_RATIO = {"C": 10.0, "gamma": 8.0}, 10


@dataclass(frozen=True)
class Compression(Row, key="dataset repeat"):
    """One row of ``compress.csv``: accuracy in percent, processor seconds of this step alone.

    ``error``: mean squared change of the large model's scores over their variance, else NaN.
    """

    dataset: str
    repeat: int
    way: str
    n: int
    n_bytes: int
    accuracy: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Trial:
    """Rows of one repeat, at most ``max_rows`` for training."""

    dataset: str
    repeat: int
    split: Split
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def load(cls, dataset: str, repeat: int, max_rows: int) -> Trial:
        """Load a dataset and draw the training rows."""
        split = load(dataset.partition(" ")[0], trial=repeat)
        some = np.random.RandomState(repeat).permutation(len(split.X_train))[:max_rows]
        return cls(dataset, repeat, split, split.X_train[some], split.y_train[some])

    def fit(self, n: int) -> NystroemClassifier:
        """Fit n landmarks."""
        model = NystroemClassifier(n, gamma="auto", random_state=self.repeat)
        return model.fit(self.X, self.y)

    def row(self, way: str, measured: Measure[Any]) -> Compression:
        """Return the row of a model."""
        model, seconds = measured.result, measured.cpu_seconds
        accuracy = 100.0 * model.score(self.split.X_test, self.split.y_test)
        numbers = (model.n_components, model.model_bytes_, accuracy, np.nan, seconds)
        return Compression(self.dataset, self.repeat, way, *numbers)

    def given(self) -> dict[str, dict[str, Any]]:
        """Return the arguments of compression beside the size, by the suffix of their name."""
        rows = {"X": self.X}
        return {"": {}, " with rows": rows, " with rows and classes": rows | {"y": self.y}}


def measure_sizes(trial: Trial) -> Iterator[Compression]:
    """Yield a row per way to a model with few landmarks."""
    large = measure(trial.fit, LARGE)
    yield trial.row("large", large)
    yield trial.row("fitted", measure(trial.fit, SMALL))
    sizes: dict[str, dict[str, Any]] = {
        "compressed": {"n_components": SMALL},
        BUDGET: {"budget": BUDGET},
    }
    for suffix, given in trial.given().items():
        for way, size in sizes.items():
            yield trial.row(way + suffix, measure(large.result.compress, **size, **given))


def measure_svc(trial: Trial) -> Iterator[Compression]:
    """Yield a row each for the support vector machine, as imported, and compressed."""
    fitted = measure(SVC(**SVC_PARAMS).fit, trial.X, trial.y)
    svc = fitted.result
    n = len(svc.support_)
    n_bytes = svc.support_vectors_.nbytes + svc.dual_coef_.nbytes + svc.intercept_.nbytes
    accuracy = 100.0 * svc.score(trial.split.X_test, trial.split.y_test)
    numbers = (n, n_bytes, accuracy, np.nan, fitted.cpu_seconds)
    yield Compression(trial.dataset, trial.repeat, "SVC", *numbers)
    yield trial.row("imported", measure(from_svc, svc))
    for suffix, given in trial.given().items():
        small = measure(from_svc, svc, n_components=n // SVC_RATIO, **given)
        yield trial.row(f"compressed{suffix}", small)


def measure_merging(trial: Trial) -> Iterator[Compression]:
    """Yield a row per way to fewer landmarks, with the coefficients that follow scores best."""
    large = trial.fit(LARGE)
    f, Z = large.expansion_, large.landmarks_
    some = trial.X[: len(trial.X) // 4]
    misfit = Misfit.of(f, some, np.full(len(some), 1.0 / len(some)), ROW_SMOOTHNESS)
    X_test, y_test = trial.split.X_test, trial.split.y_test
    F = f(X_test)
    variance = ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean()
    ways: dict[str, Callable[[], Any]] = {
        "pruned": lambda: Z[eliminated(misfit.parts(Z).M, misfit.solve(Z), SMALL)[0]],
        "merged": lambda: merged(f.kernel, Z, f.dual_coef, SMALL),
    }
    for way, make in ways.items():
        kept = measure(make)
        moved = measure(misfit.moved, kept.result)
        both = kept.cpu_seconds + moved.cpu_seconds
        found = {
            way: (kept.result, kept.cpu_seconds),
            f"{way} and moved": (moved.result, both),
        }
        for title, (points, spent) in found.items():
            small = replace(f, landmarks=points, dual_coef=misfit.solve(points))
            scores = small(X_test)
            right = large.classes_[scores.argmax(axis=1)] == y_test
            error = ((scores - F) ** 2).sum(axis=1).mean() / variance
            numbers = (SMALL, small.n_bytes, 100.0 * right.mean(), float(error), spent)
            yield Compression(trial.dataset, trial.repeat, title, *numbers)


PARTS = {"": measure_sizes, "svc": measure_svc, "merging": measure_merging}


def run(options: BenchOptions) -> None:
    """Measure the repeats that are not in the file yet; merging on few rows in a smoke run."""
    options.expect("repeats")
    repeats = options.integer("repeats", 1 if options.smoke else 3)
    names = options.choose_datasets(NAMES, ("letter merging",) if options.smoke else NAMES)
    max_rows = 1500 if options.smoke else MAX_ROWS

    def fits(name: str, repeat: int) -> list[Compression]:
        return list(PARTS[name.partition(" ")[2]](Trial.load(name, repeat, max_rows)))

    tasks = [(name, repeat) for repeat in range(repeats) for name in names]
    options.measure("compress.csv", Compression, tasks, fits)
