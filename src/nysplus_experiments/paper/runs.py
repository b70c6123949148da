"""Look up finished runs by curve: tables with one row a trial and one column a size.

Trials of the same number use the same split, so curves are compared by differences of tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.paper.results import Result

#: Trials on which a claim is judged first.
PILOT = 5
#: Methods without landmarks: their accuracy does not depend on ``n``.
FULL_METHODS = ("KRR", "KSVM")
#: The order in which methods are listed; other ones come last, by name.
METHODS = (
    *("Nys", "ENys", "RNys", "KNys", "Nys+", "ENys+", "RNys+", "KNys+", "SC"),
    *("Fourier", *FULL_METHODS),
)
_LABELS = {"SC": "KNys+ (centroids)"}


def method_label(method: str) -> str:
    """Return the name under which a method is printed."""
    return _LABELS.get(method, method)


def dataset_title(name: str) -> str:
    """Return the name that the paper prints, or ``name`` itself where it is not in the table."""
    return DATASETS[name].title if name in DATASETS else name


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


def _ordered(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names in the order of those known, other ones last."""
    found, place = set(names), {name: i for i, name in enumerate(known)}
    return sorted(found, key=lambda name: (place.get(name, len(place)), name))


def _finished(fits: pd.DataFrame) -> pd.Series:
    """Return whether each row is of a cell with `PILOT` trials, if its dataset has such cells."""
    cell = ["dataset", "method", "n", "n_initial"]
    trials = fits.groupby(cell, dropna=False)["trial"].transform("nunique")
    full = fits["method"].isin(FULL_METHODS)
    most = trials.mask(full, 0).groupby(fits["dataset"]).transform("max")
    return full | (trials >= PILOT) | (most < PILOT)


class Runs:
    """Successful results, each once; ``fits`` has a column ``kb``, the paper's model size.

    Where sizes of a dataset have five trials, failed ones included, sizes with fewer are left out:
    they are being run, and a mean over all sizes would have no more trials than they have.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        fits = records.frame(results, Result).astype({"n_initial": float, "paper_bytes": float})
        good = (fits["status"] == "ok") & fits["accuracy"].notna()
        fits = fits[good & _finished(fits)].assign(kb=fits["paper_bytes"] / 1024)
        key = ["dataset", "method", "n", "n_initial", "trial"]
        self.fits = fits.drop_duplicates(key, keep="last").sort_values(key)
        self._parts = dict(list(self.fits.groupby(["dataset", "method"])))

    @property
    def datasets(self) -> list[str]:
        """Names of the datasets with results, in the order of the table of datasets."""
        return _ordered((dataset for dataset, _ in self._parts), DATASETS)

    def methods(self, dataset: str) -> list[str]:
        """Return the methods with results on a dataset."""
        return _ordered((m for d, m in self._parts if d == dataset), METHODS)

    def rows(self, dataset: str, method: str) -> pd.DataFrame:
        """Return all models of a method on a dataset."""
        return self._parts.get((dataset, method), self.fits.iloc[:0])

    def curve(self, dataset: str, curve: Curve) -> pd.DataFrame:
        """Return the models of a curve."""
        own = self.rows(dataset, curve.method)
        n_0 = own["n_initial"].fillna(0)
        if curve.n_initial == "largest":
            return own[n_0 == n_0.groupby(own["n"]).transform("max")]
        if curve.n_initial == "same":
            return own[(n_0 == 0) | (n_0 == own["n"])]
        return own[n_0 == curve.n_initial]

    def table(self, dataset: str, curve: Curve, column: str = "accuracy") -> pd.DataFrame:
        """Return a column of a curve, one row a trial and one column a size."""
        own = self.curve(dataset, curve)
        table = own.pivot(index="trial", columns="n", values=column).astype(float)
        return table.where(np.isfinite(table)).dropna(axis="columns", how="all")

    def fixed_n_initials(self, dataset: str, method: str = "Nys+") -> list[int]:
        """Return each ``n_0`` that was run with two sizes or more: the curves of figure 1."""
        sizes = self.rows(dataset, method).groupby("n_initial")["n"].nunique()
        return [int(n_0) for n_0 in sizes.index[sizes > 1]]

    def sizes(self, dataset: str, curve: Curve) -> dict[int, float]:
        """Return the model size in kB of each ``n`` of a curve, where it is recorded."""
        return self.table(dataset, curve, "kb").mean().to_dict()

    def reference(self, dataset: str, method: str, trials: pd.Index) -> pd.Series:
        """Return the accuracy of a full kernel machine for the given trials.

        On a fixed split it is the same in every trial, so that one run stands for all of them.
        """
        found = self.rows(dataset, method).groupby("trial")["accuracy"].last()
        fixed = dataset in DATASETS and DATASETS[dataset].split == "fixed"
        if fixed and len(found) == 1:
            return pd.Series(found.iloc[0], index=trials)
        return found.reindex(trials).dropna()

    def differences(self, dataset: str, better: Curve, worse: Curve) -> pd.DataFrame:
        """Return ``better`` minus ``worse`` by trial and ``n``, in points of accuracy."""
        if better.method in FULL_METHODS:
            return -self.differences(dataset, worse, better)
        ours = self.table(dataset, better)
        if worse.method in FULL_METHODS:
            gaps = ours.sub(self.reference(dataset, worse.method, ours.index), axis="index")
        else:
            gaps = ours - self.table(dataset, worse)
        return gaps.dropna(axis="columns", how="all")
