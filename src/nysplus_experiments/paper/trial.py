"""Data of one trial, and records of its fits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._ridge.feature_map import Approximation
from nysplus._ridge.fit import ExpansionFit
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import Problem
from nysplus_experiments.harness.datasets import Split

# The paper's ρ.
ALPHA = 1e-5

Codes = npt.NDArray[np.intp]


def seed_of(dataset: str, trial: int, first_size: int) -> int:
    """Return the seed of rows whose first draw is of ``first_size`` rows, on every machine."""
    name = f"{dataset}/{trial}/{first_size}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:4], "big")


@dataclass(frozen=True)
class Stage:
    """A model on landmarks, its time and memory, and the generator as the fit left it."""

    fit: ExpansionFit
    seconds: float
    peak_rss_mb: float | None
    rng: np.random.RandomState


@dataclass(frozen=True)
class Fitted:
    """A fitted model; ``predict`` goes from rows to class numbers, the rest as in `Result`."""

    predict: Callable[[Any], Codes]
    first_stage_seconds: float | None
    final_stage_seconds: float
    paper_bytes: int
    stored_bytes: int
    kernel_evaluations: int | None
    peak_rss_mb: float | None


class Trial:
    """The data of one trial, ready to be fitted, with the first stage that was fitted last."""

    def __init__(self, split: Split, number: int) -> None:
        self.split = split
        self.number = number
        self.kernel = RBF(gamma=split.gamma)
        self.classes, codes = np.unique(split.y_train, return_inverse=True)
        self.targets = ClassTargets(codes.astype(np.intp), len(self.classes))
        self.blocks = Blocks(split.X_train, self.targets)
        self._stage: tuple[tuple[str, int], Stage] | None = None

    def problem(self, approximation: Approximation) -> Problem:
        """Return the problem that a selector gets."""
        return Problem(self.blocks, self.kernel, approximation, (ALPHA,))

    def seed(self, first_size: int) -> int:
        """Return the seed of rows whose first draw is of `first_size` rows."""
        return seed_of(self.split.name, self.number, first_size)

    def stage(self, variant: str, n: int, fit: Callable[[], Stage]) -> Stage:
        """Return the fit of a one-stage method with `n` landmarks; new unless it was the last."""
        if self._stage is None or self._stage[0] != (variant, n):
            self._stage = ((variant, n), fit())
        return self._stage[1]

    def accuracy(self, codes: Codes) -> float:
        """Return the share of test rows whose class number is right, in percent."""
        return 100.0 * float(np.mean(self.classes[codes] == self.split.y_test))


def codes_of(scores: Float) -> Codes:
    """Return the class numbers of the highest scores; two classes share one output."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return scores.argmax(axis=1)


def on_landmarks(
    expansion: KernelExpansion,
    evaluations: int,
    first_stage_seconds: float | None,
    final_stage_seconds: float,
    peak_rss_mb: float | None,
) -> Fitted:
    """Return a model that is a kernel expansion; its size by the paper's count is n (d + L) · 8."""
    n, d = expansion.landmarks.shape
    return Fitted(
        predict=lambda X: codes_of(expansion(X)),
        first_stage_seconds=first_stage_seconds,
        final_stage_seconds=final_stage_seconds,
        paper_bytes=8 * n * (d + expansion.dual_coef.shape[1]),
        stored_bytes=expansion.n_bytes,
        kernel_evaluations=evaluations,
        peak_rss_mb=peak_rss_mb,
    )


def largest(*peaks: float | None) -> float | None:
    """Return the largest of the peaks that are known, or None."""
    return max((peak for peak in peaks if peak is not None), default=None)
