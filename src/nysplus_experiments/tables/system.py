"""The interface of a system: how it is fitted to the rows of a table within a number of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

#: Share of the training rows on which systems with a choice make it.
HELD_OUT = 0.2


class NoModel(Exception):
    """A system has no model of this size, or did not end in time; the text has the reason."""


@dataclass(frozen=True)
class Rows:
    """Training rows: a frame, and class codes 0, 1, … without a gap, or numbers for regression."""

    X: pd.DataFrame
    y: np.ndarray
    regression: bool
    seed: int

    @cached_property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return 0 if self.regression else int(self.y.max()) + 1

    @property
    def n_outputs(self) -> int:
        """Scores of a model: one for regression and for two classes, otherwise one a class."""
        return 1 if self.n_classes <= 2 else self.n_classes

    def held_out(self) -> tuple[Rows, Rows]:
        """Return rows to fit to, which have all classes, and a fifth of the rows to choose on."""
        order = np.random.default_rng(self.seed).permutation(len(self.y))
        if not self.regression:
            _, first = np.unique(self.y[order], return_index=True)
            order = np.concatenate([order[first], np.delete(order, first)])
        n_fit = max(self.n_classes, round((1 - HELD_OUT) * len(order)))
        return self._some(order[:n_fit]), self._some(order[n_fit:])

    def _some(self, rows: np.ndarray) -> Rows:
        n_classes = self.n_classes
        some = replace(self, X=self.X.iloc[rows].reset_index(drop=True), y=self.y[rows])
        some.__dict__["n_classes"] = n_classes  # a few rows need not have the last class
        return some

    def loss(self, outputs: np.ndarray) -> float:
        """Return the share of wrong classes, or the mean squared error, of outputs of a model."""
        if self.regression:
            return float(np.square(np.ravel(outputs) - self.y).mean())
        codes = outputs.argmax(axis=1) if outputs.ndim == 2 else outputs
        return float(np.mean(codes != self.y))


@dataclass(frozen=True)
class Model:
    """A fitted model.

    ``predict`` takes a frame and returns numbers for regression, and for classes either a column
    of probabilities a class or the class codes alone. ``detail`` says what was chosen.
    """

    predict: Callable[[pd.DataFrame], np.ndarray]
    n_bytes: int
    detail: str = ""


def _nothing(rows: Rows) -> None:
    return None


@dataclass(frozen=True)
class System:
    """One competitor.

    ``fit(rows, n_bytes, prepared)`` returns a model of at most ``n_bytes`` bytes, of any size if
    that is None, or raises `NoModel`. ``prepare(rows)`` is work that the models of limited sizes
    share; its time counts for each of them. ``library`` is the module whose version is recorded.
    """

    name: str
    title: str
    library: str
    fit: Callable[[Rows, int | None, Any], Model]
    prepare: Callable[[Rows], Any] = _nothing

    @property
    def installed(self) -> bool:
        """Whether the library is installed."""
        return find_spec(self.library) is not None

    @property
    def version(self) -> str:
        """Name and version of the library."""
        return f"{self.library} {import_module(self.library).__version__}"
