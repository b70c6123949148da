"""Look up finished runs by curve and pair them by trial.

A curve is a method with its rule for ``n_0``; a cell
is one size of a curve, a mapping from trial to result; a series maps trials to numbers. Trials of
the same number use the same split, so two curves are compared by the differences of their series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.statistics import Series, subtract
from nysplus_experiments.paper.results import Result

Cell = dict[int, Result]

#: Methods without landmarks: their accuracy does not depend on ``n``.
FULL_METHODS = ("KRR", "KSVM")
#: The order in which methods are listed; what is not here comes last, by name.
METHODS = (
    *("Nys", "ENys", "RNys", "KNys", "Nys+", "ENys+", "RNys+", "KNys+", "SC"),
    *("Fourier", *FULL_METHODS),
)
_LABELS = {"SC": "KNys+ (centroids)"}


def method_label(method: str) -> str:
    """Return the name under which a method is printed."""
    return _LABELS.get(method, method)


def method_order(method: str) -> tuple[int, str]:
    """Return a sort key that lists methods in the order of `METHODS`."""
    return (METHODS.index(method) if method in METHODS else len(METHODS), method)


def dataset_title(name: str) -> str:
    """Return the name that the paper prints, or ``name`` itself where it is not in the table."""
    return DATASETS[name].title if name in DATASETS else name


# -- numbers of one result -----------------------------------------------------------------------


def accuracy(result: Result) -> float | None:
    """Test accuracy in percent."""
    return result.accuracy


def kilobytes(result: Result) -> float | None:
    """Model size by the paper's accounting, in kB of 1024 bytes as the paper's figures have it."""
    return None if result.paper_bytes is None else result.paper_bytes / 1024


def training_seconds(result: Result) -> float | None:
    """Seconds of steps 3 to 6 for a two-stage method, of the whole fit for any other."""
    return result.final_stage_seconds


def series(cell: Cell, value: Callable[[Result], float | None] = accuracy) -> Series:
    """Return one number a trial, without the trials that lack it."""
    pairs = ((trial, value(result)) for trial, result in sorted(cell.items()))
    return {trial: x for trial, x in pairs if x is not None and math.isfinite(x)}


# -- look-up -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A method and its ``n_0``: a number, "same" for ``n_0 = n_f``, or the "largest" of each size.

    Methods of one stage have no ``n_0`` and belong to "same" and "largest".
    """

    method: str
    n_initial: int | Literal["same", "largest"] = "same"

    @property
    def label(self) -> str:
        """The curve in words."""
        label = method_label(self.method)
        if self.n_initial == "same":
            return label
        n_0 = "largest n_0" if self.n_initial == "largest" else f"n_0 = {self.n_initial}"
        return f"{label} ({n_0})"


class Runs:
    """Successful results, indexed. A run that occurs twice counts once, the last time.

    Parameters
    ----------
    results : iterable of Result
        Rows with the status "error" are left out.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        self._cells: dict[tuple[str, str], dict[tuple[int, int | None], Cell]] = {}
        for r in results:
            if r.status == "ok" and r.accuracy is not None:
                sizes = self._cells.setdefault((r.dataset, r.method), {})
                sizes.setdefault((r.n, r.n_initial), {})[r.trial] = r

    @property
    def datasets(self) -> list[str]:
        """Names of the datasets with results, in the order of the table of datasets."""
        known = list(DATASETS)
        names = {dataset for dataset, _ in self._cells}
        return sorted(names, key=lambda d: (known.index(d) if d in known else len(known), d))

    def methods(self, dataset: str) -> list[str]:
        """Return the methods with results on a dataset."""
        return sorted((m for d, m in self._cells if d == dataset), key=method_order)

    def cells(self, dataset: str, method: str) -> dict[tuple[int, int | None], Cell]:
        """Return every (n, n_0) of a method with its trials, in increasing order."""
        found = self._cells.get((dataset, method), {})
        return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or 0)))

    def curve(self, dataset: str, curve: Curve) -> dict[int, Cell]:
        """Return the cells of a curve by ``n``, in increasing order; empty where there are none."""
        chosen: dict[int, Cell] = {}
        for (n, n_0), cell in self.cells(dataset, curve.method).items():
            if curve.n_initial == "largest":  # cells come with n_0 in increasing order
                chosen[n] = cell
            elif n_0 == curve.n_initial or (curve.n_initial == "same" and n_0 in (None, n)):
                chosen.setdefault(n, {}).update(cell)
        return chosen

    def fixed_n_initials(self, dataset: str, method: str = "Nys+") -> list[int]:
        """Return each ``n_0`` that was run with two sizes or more: the curves of figure 1."""
        pairs = [(n, n_0) for n, n_0 in self.cells(dataset, method) if n_0 is not None]
        counts = {n_0: len({n for n, other in pairs if other == n_0}) for _, n_0 in pairs}
        return sorted(n_0 for n_0, count in counts.items() if count > 1)

    def sizes(self, dataset: str, curve: Curve) -> dict[int, float]:
        """Return the model size in kB of each ``n`` of a curve, where it is recorded."""
        sizes = {n: series(cell, kilobytes) for n, cell in self.curve(dataset, curve).items()}
        return {n: float(np.mean(list(kb.values()))) for n, kb in sizes.items() if kb}

    def accuracies(self, dataset: str, curve: Curve) -> dict[int, Series]:
        """Return the accuracy of each trial by ``n``."""
        return {n: series(cell) for n, cell in self.curve(dataset, curve).items()}

    def reference(self, dataset: str, method: str, trials: Iterable[int]) -> Series:
        """Return the accuracy of a full kernel machine for the given trials.

        On a fixed split it is the same in every trial, so that one run stands for all of them.
        """
        cells = self.cells(dataset, method).values()
        found = {t: a for cell in cells for t, a in series(cell).items()}
        fixed = dataset in DATASETS and DATASETS[dataset].split == "fixed"
        if fixed and len(found) == 1:
            return dict.fromkeys(trials, next(iter(found.values())))
        return {t: found[t] for t in trials if t in found}

    def differences(self, dataset: str, better: Curve, worse: Curve) -> dict[int, Series]:
        """Return ``better`` minus ``worse`` by ``n``, paired by trial, in points of accuracy."""
        if better.method in FULL_METHODS:
            mirrored = self.differences(dataset, worse, better)
            return {n: {t: -gap for t, gap in gaps.items()} for n, gaps in mirrored.items()}
        ours = self.accuracies(dataset, better)
        if worse.method in FULL_METHODS:
            theirs: Mapping[int, Series] = {
                n: self.reference(dataset, worse.method, own) for n, own in ours.items()
            }
        else:
            theirs = self.accuracies(dataset, worse)
        paired = {n: subtract(ours[n], theirs[n]) for n in ours if n in theirs}
        return {n: gaps for n, gaps in paired.items() if gaps}
