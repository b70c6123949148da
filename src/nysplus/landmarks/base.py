"""What a landmark selector is, what it gets and what it returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from nysplus._ridge.feature_map import Approximation
from nysplus._ridge.fit import ExpansionFit, fit_expansion
from nysplus._rows.blocks import RowBlocks
from nysplus.kernels import Kernel


@dataclass(frozen=True)
class Problem:
    """What a selector may look at.

    Attributes
    ----------
    blocks : RowBlocks
        Rows, targets (None for an unsupervised fit) and weights.
    kernel : Kernel
        With all parameters as numbers.
    approximation : Approximation
        The map of the final model.
    alphas : tuple of float
        The ridges of the final model, to choose from when there are several.
    """

    blocks: RowBlocks
    kernel: Kernel
    approximation: Approximation
    alphas: tuple[float, ...]

    def fit(
        self,
        landmarks: Any,
        rng: np.random.RandomState,
        stage: str = "ridge",
        with_score: bool = False,
    ) -> ExpansionFit:
        """Fit a model with given landmarks to these rows, as a pilot of the final one.

        O(N n (d + n)) time in one pass, and part of a second one where α is chosen.

        Parameters
        ----------
        landmarks : ndarray or CSR matrix of shape (n, d)
        rng : RandomState
        stage : str
            Name of the pass in progress reports.
        with_score : bool
            Whether to score the model on rows left out even if there is no α to choose.

        Returns
        -------
        ExpansionFit
            With the fitted function `expansion`, which returns the scores of rows.
        """
        return fit_expansion(
            self.blocks,
            landmarks,
            self.kernel,
            self.approximation,
            self.alphas,
            rng,
            stage,
            with_score,
        )


@dataclass(frozen=True)
class Landmarks:
    """The chosen points.

    Attributes
    ----------
    points : ndarray or CSR matrix of shape (n, d)
    indices : ndarray of shape (n,) or None
        Row numbers, where the landmarks are rows.
    n_kernel_evaluations : int
        What choosing them cost.
    """

    points: Any
    indices: npt.NDArray[np.intp] | None = None
    n_kernel_evaluations: int = 0


def rows_as_landmarks(blocks: RowBlocks, rows: npt.NDArray[np.intp]) -> Landmarks:
    """Return the rows with the given numbers as landmarks."""
    return Landmarks(blocks.gather(rows).X, rows)


@dataclass(repr=False, eq=False)
class LandmarkSelector(BaseEstimator):
    """Base class: a subclass chooses landmarks in :meth:`select`.

    Attributes
    ----------
    targets : {"ignored", "optional", "needed", "classes"}
        Whether the rule looks at targets, cannot do without, or works on classes only.
    kind : {"rows", "centroids", "class centroids"}
        What its landmarks are like: the width of a kernel is tuned with a cheap rule of the kind.
    """

    targets: ClassVar[Literal["ignored", "optional", "needed", "classes"]] = "ignored"
    kind: ClassVar[str] = "rows"

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks. Called before any work."""

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Choose `n` landmarks, fewer than there are rows that may be chosen."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class GivenLandmarks(LandmarkSelector):
    """Landmarks that the user brings.

    Parameters
    ----------
    points : ndarray or CSR matrix of shape (n, d)
    """

    points: Any

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Return the given points."""
        return Landmarks(self.points)


def select_landmarks(
    selector: LandmarkSelector, problem: Problem, n: int, rng: np.random.RandomState
) -> Landmarks:
    """Run a selector; where `n` covers all rows, take them all with a warning instead."""
    if isinstance(selector, GivenLandmarks):
        return selector.select(problem, n, rng)
    n_candidates = problem.blocks.n_candidates
    if n < n_candidates:
        return selector.select(problem, n, rng)
    if n > n_candidates:
        warnings.warn(
            f"n_components={n} exceeds the {n_candidates} rows of X that have a weight. All of "
            "them become landmarks, which is the full kernel machine. Lower n_components.",
            stacklevel=4,
        )
    return rows_as_landmarks(problem.blocks, problem.blocks.sample(n, rng))
