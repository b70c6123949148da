"""Conformal prediction: sets of classes, intervals of values, and the novelty of rows.

A nonconformity score tells how badly a target fits a prediction: one minus the probability of the
class, or the absolute residual of a value. Among n scores of rows that a model was not fitted to,
the one of rank ``⌈(n + 1) · confidence⌉`` bounds the score of a new row of the same distribution
with probability `confidence` or more (Vovk, Gammerman and Shafer 2005; Papadopoulos et al. 2002).
A prediction set has all classes, and an interval all values, with scores within that bound.

The novelty of a row is the rank of its similarity to the nearest landmark among other rows. Where
the model sees rows through a map, it is the larger of this rank and the rank of its squared length
along the directions in which the training rows vary least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._ridge.probability import Scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float

__all__ = ["LEVELS", "NOVELTY_LEVELS", "Calibration", "Directions", "Novelty"]

# Confidences whose bounds are kept; one in between is raised to the next. They are 1 % apart where
# they are in use, and closer at the end.
LEVELS: Float = np.round(
    np.concatenate(
        [np.arange(5, 50, 5) / 100, np.arange(50, 100) / 100, np.arange(991, 1000) / 1000, [0.9999]]
    ),
    4,
)
# Shares of rows whose similarity to the nearest landmark is kept; novelty is linear in between.
NOVELTY_LEVELS: Float = np.array(
    [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0]
)
# Directions of least variance that are kept: 2, 4 and 8 tell foreign rows about equally well, and
# cost 4 bytes each for every column.
N_DIRECTIONS = 4
# Least variance along a direction, of columns of unit variance: relations that hold exactly in the
# training rows may be rounded in others.
LEAST_VARIANCE = 1e-3
# Differences of confidences that are rounding.
ROUNDING = 1e-9

Source = Literal["leave-one-out", "held-out rows", "calibration rows"]
SOURCES: tuple[Source, ...] = ("leave-one-out", "held-out rows", "calibration rows")

NOT_CALIBRATED = (
    "This model has no scores of rows that it was not fitted to: `fit` to rows in memory has them, "
    "but models that were imported, compressed, updated by `partial_fit`, saved by an earlier "
    "version or fitted to rows outside memory may not. "
    "Call calibrate(X, y) with rows of its own."
)


def check_confidence(confidence: Any) -> float:
    """Return a confidence as a number, or raise unless it is between 0 and 1."""
    if not isinstance(confidence, (float, np.floating)) or not 0 < confidence < 1:
        raise ValueError(
            f"confidence={confidence!r} is not allowed. Pass a number between 0 and 1, such as 0.9."
        )
    if confidence > LEVELS[-1] + ROUNDING:
        raise ValueError(
            f"confidence={confidence!r} is above {LEVELS[-1]}, the largest confidence that models "
            "keep. Lower it."
        )
    return float(confidence)


def level_of(confidence: float) -> int:
    """Return the position of the smallest of `LEVELS` that is at least the confidence."""
    return int(np.searchsorted(LEVELS, confidence - ROUNDING))


def rows_needed(confidence: float) -> int:
    """Return the smallest n with ``⌈(n + 1) · confidence⌉ ≤ n``."""
    return ceil(confidence / (1.0 - confidence) - ROUNDING)


def bounds(scores: Float, weight: Float) -> npt.NDArray[np.float32]:
    """Return the finite-sample quantile of scores at each of `LEVELS`, infinite if there is none.

    Without weights the quantile of n scores is the one of rank ``⌈(n + 1) · level⌉``. A weight of
    two equals a repeated row in the distribution; n is then Kish's effective number of rows.

    Parameters
    ----------
    scores, weight : ndarray of shape (rows,)
    """
    order = np.argsort(scores, kind="stable")
    mass = float(weight.sum())
    n = mass**2 / float((weight**2).sum())
    shares = np.cumsum(weight[order]) / mass
    places = np.searchsorted(shares, LEVELS * (1.0 + 1.0 / n) - ROUNDING)
    found = np.append(scores[order], np.inf)[places]
    with np.errstate(over="ignore"):
        single = found.astype(np.float32)
    # never below the score itself, which a set has to include
    return np.where(single < found, np.nextafter(single, np.float32(np.inf)), single)


@dataclass(frozen=True)
class Calibration:
    """Bounds of nonconformity scores at all `LEVELS`.

    Attributes
    ----------
    bounds : ndarray of float32 of shape (n_levels, m)
        A column for all rows, for each class, or for each output of a regressor.
    n_rows : tuple of int
        Number of rows that each column comes from.
    class_conditional : bool
        Whether columns belong to classes.
    source : {"leave-one-out", "held-out rows", "calibration rows"}
        Which scores the bounds come from.
    """

    bounds: npt.NDArray[np.float32]
    n_rows: tuple[int, ...]
    class_conditional: bool
    source: Source

    def at(self, confidence: Any, classes: Sequence[Any] = ()) -> Float:
        """Return the bound of each column, of shape (m,), in float64.

        Parameters
        ----------
        confidence : float
            Between 0 and 1; one that is not among `LEVELS` is raised to the next.
        classes : sequence
            Names of the columns in errors, where these belong to classes.
        """
        number = level_of(check_confidence(confidence))
        found: Float = self.bounds[number].astype(np.float64)
        fewest = int(np.argmin(self.n_rows))
        if not np.isfinite(found).all():
            needed, n = rows_needed(float(LEVELS[number])), self.n_rows[fewest]
            named = f" of class {classes[fewest]!r}" if self.class_conditional else ""
            raise ValueError(
                f"confidence={confidence!r} needs the scores of at least {needed} rows{named}, and "
                f"this model has {n}. Lower the confidence, or call calibrate(X, y) with more rows."
            )
        return found


def calibrated(
    scored: ScoredRows,
    code: TargetCode,
    scaling: Scaling | None,
    source: Source,
    class_conditional: bool = False,
) -> Calibration | None:
    """Return the bounds of the scores of some rows; None for multilabel targets.

    Parameters
    ----------
    scored : ScoredRows
        Outputs of a model for rows that it was not fitted to, and their targets.
    code : TargetCode
    scaling : Scaling or None
        From scores to probabilities.
    source : str
    class_conditional : bool
        Whether every class has bounds of its own, so that sets cover each class separately.
    """
    if code.kind == "labels":
        return None
    if code.kind == "values":
        groups = [(residuals, scored.counts) for residuals in np.abs(scored.Y - scored.scores).T]
    else:
        codes = code.as_targets(scored.Y).class_codes
        assert codes is not None
        own = class_scores(scored.scores, scaling)[np.arange(len(codes)), codes]
        parts = [codes == c for c in range(len(code.classes))] if class_conditional else [...]
        groups = [(own[part], scored.counts[part]) for part in parts]
    return Calibration(
        np.column_stack([bounds(*group) for group in groups]),
        tuple(len(scores) for scores, _ in groups),
        class_conditional,
        source,
    )


def class_scores(scores: Float, scaling: Scaling | None) -> Float:
    """Return the nonconformity score of every class: one minus its probability.

    Every increasing function of the scores is valid. Where no slope is known, it is 1.
    """
    P = (scaling or Scaling(1.0, multilabel=False)).probabilities(scores)
    result: Float = 1.0 - P
    return result


@dataclass(frozen=True)
class Directions:
    """Directions in which rows vary least, and quantiles of the squared length of rows along them.

    A learned map keeps the features that tell targets apart. Rows that are unlike the training rows
    in other ways violate their narrowest relations: columns that hardly vary, sums of columns that
    are constant, columns that follow each other.

    Attributes
    ----------
    center : ndarray of float32 of shape (d,)
        Means of the columns of rows, before any code.
    weights : ndarray of float32 of shape (d, r)
        The directions, each divided by the deviation of rows along it; zero for categories.
    distances : ndarray of float32 of shape (n_novelty_levels,)
        Quantiles of the squared length at `NOVELTY_LEVELS`: they increase.
    """

    center: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    distances: npt.NDArray[np.float32]

    @classmethod
    def of(cls, X: Float, weight: Float, numeric: npt.NDArray[np.bool_]) -> Directions | None:
        """Return the directions of some rows, without quantiles; None for rows without numbers.

        O(rows d² + d³). NaN are gaps, which stand for the mean.
        """
        X = X.astype(np.float64, copy=False)
        known = np.isfinite(X) * weight[:, None]
        mass = np.maximum(known.sum(axis=0), np.finfo(np.float64).tiny)
        filled = np.nan_to_num(X, nan=0.0)
        center = (known * filled).sum(axis=0) / mass
        filled = np.where(known > 0, filled - center, 0.0)
        deviation = np.sqrt((known * filled**2).sum(axis=0) / mass)
        # a deviation that is rounding of the mean is none
        varies = numeric & (deviation > 1e-7 * np.abs(center))
        if not varies.any():
            return None
        scaled = filled[:, varies] / deviation[varies]
        values, vectors = np.linalg.eigh((scaled.T * weight) @ scaled / weight.sum())
        n = min(N_DIRECTIONS, len(values))
        weights = np.zeros((X.shape[1], n))
        weights[varies] = vectors[:, :n] / np.sqrt(np.maximum(values[:n], LEAST_VARIANCE))
        weights[varies] /= deviation[varies, None]
        unknown = np.zeros(len(NOVELTY_LEVELS), dtype=np.float32)
        return cls(center.astype(np.float32), weights.astype(np.float32), unknown)

    def squares(self, X: Any) -> Float:
        """Return the squared length of each row along the directions. O(d) a row."""
        center, weights = self.center.astype(np.float64), self.weights.astype(np.float64)
        if sp.issparse(X):
            along = X @ weights - center @ weights
        else:
            along = np.nan_to_num(X.astype(np.float64) - center, nan=0.0) @ weights
        with np.errstate(over="ignore", invalid="ignore"):
            squares: Float = np.nan_to_num((along**2).sum(axis=1), nan=np.inf)
        return squares


@dataclass(frozen=True)
class Novelty:
    """Quantiles of the similarity of rows to their nearest landmark.

    Attributes
    ----------
    similarities : ndarray of float32 of shape (n_novelty_levels,)
        Quantiles at ``1 − NOVELTY_LEVELS``: they decrease.
    directions : Directions or None
        A second measure, for models that see rows through a map. The novelty is the larger of two
        numbers; their quantiles are those at which the larger one has the rank of a level.
    """

    similarities: npt.NDArray[np.float32]
    directions: Directions | None = None

    @classmethod
    def of(cls, similarities: Float, weight: Float) -> Novelty:
        """Return the quantiles of the similarities of some rows. O(rows log rows)."""
        return cls(_quantiles(-similarities, weight, NOVELTY_LEVELS, -1.0))

    @classmethod
    def of_both(
        cls, similarities: Float, squares: Float, weight: Float, directions: Directions
    ) -> Novelty:
        """Return the quantiles of two measures of the same rows, other rows than the directions'.

        The share of rows whose larger rank is below the quantiles of a level is this level.
        """
        ranks = np.maximum(_ranks(-similarities, weight), _ranks(squares, weight))
        order = np.argsort(ranks, kind="stable")
        levels = np.interp(NOVELTY_LEVELS, _middles(weight[order]), ranks[order])
        distances = _quantiles(squares, weight, levels)
        found = replace(directions, distances=distances)
        return cls(_quantiles(-similarities, weight, levels, -1.0), found)

    def __call__(self, similarities: Float, X: Any = None) -> Float:
        """Return the share of rows that are less strange, between 0 and 1.

        Parameters
        ----------
        similarities : ndarray of shape (rows,)
        X : ndarray or CSR matrix of shape (rows, d), optional
            The rows before any code, where there are directions.
        """
        known = self.similarities[::-1].astype(np.float64)
        ranks: Float = np.interp(similarities.astype(np.float64), known, NOVELTY_LEVELS[::-1])
        if self.directions is None:
            return ranks
        distances = self.directions.distances.astype(np.float64)
        return np.maximum(ranks, np.interp(self.directions.squares(X), distances, NOVELTY_LEVELS))


def _middles(weight: Float) -> Float:
    """Return the middle of the step of each row, in order, so that the ends are the extremes."""
    shares = np.cumsum(weight)
    middles: Float = (shares - 0.5 * weight) / shares[-1]
    return middles


def _ranks(strangeness: Float, weight: Float) -> Float:
    """Return the share of rows that are less strange than each row."""
    order = np.argsort(strangeness, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = _middles(weight[order])
    return ranks


def _quantiles(
    strangeness: Float, weight: Float, levels: Float, sign: float = 1.0
) -> npt.NDArray[np.float32]:
    """Return the quantiles of a measure at some levels, times a sign."""
    order = np.argsort(strangeness, kind="stable")
    found = np.interp(levels, _middles(weight[order]), strangeness[order])
    with np.errstate(over="ignore"):
        quantiles: npt.NDArray[np.float32] = (sign * found).astype(np.float32)
    return np.nan_to_num(quantiles)
