"""The base class of landmark selectors, their input and their result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from nysplus._ridge.feature_map import Approximation
from nysplus._ridge.fit import ExpansionFit, fit_expansion
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._typing import Float
from nysplus.kernels import Kernel


@dataclass(frozen=True)
class Problem:
    """The input of a selector: rows, and the parameters of the final model.

    Attributes
    ----------
    blocks : RowBlocks
        Rows, targets (None for an unsupervised fit) and weights.
    kernel : Kernel
        With all parameters as numbers.
    approximation : Approximation
        The feature map.
    alphas : tuple of float
        Ridges to choose from.
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
        unused: Block | None = None,
    ) -> ExpansionFit:
        """Fit a model with given landmarks, as a pilot of the final model.

        O(N n (d + n)) time in one pass, and part of a second pass if α is chosen.
        ``dataclasses.replace`` makes problems with fewer rows or other parameters.

        Parameters
        ----------
        landmarks : ndarray or CSR matrix of shape (n, d)
        rng : RandomState
        stage : str
            Name of the pass in progress reports.
        with_score : bool
            Whether to score the model on left-out rows even if there is no α to choose.
        unused : Block, optional
            Rows whose targets have not moved the landmarks, if the others' targets have.

        Returns
        -------
        ExpansionFit
            ``expansion`` is the fitted function: it returns the scores of rows, of shape
            (rows, outputs). ``n_kernel_evaluations`` counts the kernel values of the fit.
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
            unused=unused,
        )


@dataclass(frozen=True)
class Members:
    """Some rows, drawn at random, and the part that each of them has in the landmarks.

    Attributes
    ----------
    rows : Block
    landmark : ndarray of int of shape (b,)
        Number of the landmark that is a mean of the row and others.
    share : ndarray of shape (b,)
        Weight of one observation of the row in that mean; 0 for rows that are in no mean.
    """

    rows: Block
    landmark: npt.NDArray[np.intp]
    share: Float

    @classmethod
    def of_none(cls, rows: Block) -> Members:
        """Return rows that have no part in the landmarks."""
        return cls(rows, np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows)))


@dataclass(frozen=True)
class Landmarks:
    """The result of a selector.

    Attributes
    ----------
    points : ndarray or CSR matrix of shape (n, d)
        The landmarks.
    indices : ndarray of shape (n,) or None
        Row numbers, if the landmarks are rows.
    n_kernel_evaluations : int
        Number of kernel values that the selector computed.
    members : Members or None
        Rows whose part in the landmarks is known, where targets had a part in the choice: their
        leave-one-out scores can be corrected for it.
    """

    points: Any
    indices: npt.NDArray[np.intp] | None = None
    n_kernel_evaluations: int = 0
    members: Members | None = None

    @property
    def unused(self) -> Block | None:
        """Rows whose targets have not moved the landmarks; None where no such rows are known."""
        if self.members is None or self.members.share.any():
            return None
        return self.members.rows


def rows_as_landmarks(blocks: RowBlocks, rows: npt.NDArray[np.intp]) -> Landmarks:
    """Return the rows with the given numbers as landmarks."""
    return Landmarks(blocks.gather(rows).X, rows)


@dataclass(repr=False, eq=False)
class LandmarkSelector(BaseEstimator):
    """Base class: a subclass chooses landmarks in :meth:`select`.

    Attributes
    ----------
    targets : {"ignored", "optional", "needed", "classes"}
        Whether the selector ignores targets, uses them if there are any, needs them, or needs
        classes.
    kind : {"rows", "centroids", "class centroids"}
        Kind of landmarks. ``gamma="auto"`` compares widths with cheap landmarks of the same kind.
    """

    targets: ClassVar[Literal["ignored", "optional", "needed", "classes"]] = "ignored"
    kind: ClassVar[str] = "rows"

    @property
    def by_kernel(self) -> bool:
        """Whether landmarks are rows, and rows are compared by the kernel alone."""
        return False

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks. Called before any work."""

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Choose `n` landmarks. There are more than `n` rows to choose from."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class GivenLandmarks(LandmarkSelector):
    """Landmarks given by the user.

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
    """Run a selector; if `n` exceeds the number of rows, return all rows with a warning."""
    if isinstance(selector, GivenLandmarks):
        return selector.select(problem, n, rng)
    n_candidates = problem.blocks.n_candidates
    if n < n_candidates:
        return selector.select(problem, n, rng)
    if n > n_candidates:
        warnings.warn(
            f"n_components={n} exceeds the {n_candidates} rows of X that have a weight. All of "
            "them become landmarks, which gives the full kernel machine. Lower n_components.",
            stacklevel=4,
        )
    return rows_as_landmarks(problem.blocks, problem.blocks.sample(n, rng))
