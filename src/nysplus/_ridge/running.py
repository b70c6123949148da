"""Incremental fits: the landmarks are fixed, rows are added, and two fits can be merged."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._holdout import best_of
from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._ridge.problem import RidgeProblem, choose_alpha, sum_moments
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.projected import projected
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion


@dataclass(frozen=True)
class RunningFit:
    """The moments of all rows so far, from which the model follows for any ridge.

    Attributes
    ----------
    feature_map : FeatureMap
    projection, center : ndarray or None
        The map ``x ↦ (x − c)P`` that rows are seen through.
    moments : Moments
        Of the features, in float64.
    """

    feature_map: FeatureMap
    projection: Float | None
    center: Float | None
    moments: Moments

    @classmethod
    def empty(
        cls,
        feature_map: FeatureMap,
        projection: Float | None,
        center: Float | None,
        n_outputs: int,
    ) -> RunningFit:
        """Return the fit before the first row."""
        return cls(feature_map, projection, center, Moments.zero(feature_map.rank, n_outputs))

    def plus(
        self, blocks: RowBlocks, alphas: tuple[float, ...], rng: np.random.RandomState
    ) -> tuple[RunningFit, RidgeProblem]:
        """Return the fit to more rows, and the ridge problem of these rows, to choose α on."""
        problem = RidgeProblem(
            projected(blocks, self.projection, self.center),
            self.feature_map,
            alphas,
            rng,
            "ridge",
        )
        evaluate = self.feature_map.features(np.float64)
        return self._with(sum_moments(problem, evaluate, self.feature_map.rank)), problem

    def _with(self, moments: Moments) -> RunningFit:
        """Return the fit to the rows of other moments as well; this one stays as it is."""
        total = deepcopy(self.moments)
        total += moments
        return replace(self, moments=total)

    def choose_on(self, problem: RidgeProblem) -> float:
        """Return the α of the best leave-one-out score on the rows of `problem`."""
        return choose_alpha(problem, RidgePath(self.moments), np.float64).alpha

    def choose(self, alphas: tuple[float, ...]) -> float:
        """Return the α of the smallest generalized cross-validation error; needs no rows."""
        if len(alphas) == 1:
            return alphas[0]
        path = RidgePath(self.moments)
        return best_of(alphas, score=lambda alpha: -path.generalized_cross_validation(alpha))

    def left_out(self, problem: RidgeProblem, alpha: float) -> LeaveOneOut:
        """Return the solution for one α, with leave-one-out scores of the rows of `problem`."""
        moments, found = self.moments, RidgePath(self.moments).solve(alpha)
        mean, weight = moments.feature_mean, moments.weight
        return LeaveOneOut(problem, found.W, found.b, mean, weight, found.inverse)

    def merged(self, other: RunningFit) -> RunningFit:
        """Return the fit to the rows of both; the two must have the same features."""
        if not self._same_features(other):
            raise ValueError(
                "The two models have different landmarks or kernels, so their sums cannot be "
                "added. Give both the same landmarks: selection=first.landmarks_, and the same "
                "kernel with gamma=first.gamma_."
            )
        return self._with(other.moments)

    def _same_features(self, other: RunningFit) -> bool:
        own, others = self.feature_map, other.feature_map
        if repr(own.kernel) != repr(others.kernel) or own.rank != others.rank:
            return False
        if own.landmarks.shape != others.landmarks.shape:
            return False
        if not _same_arrays(self.projection, other.projection):
            return False
        if not _same_arrays(self.center, other.center):
            return False
        differing: Any = own.landmarks != others.landmarks
        if differing.any() if isinstance(differing, np.ndarray) else differing.nnz:
            return False
        # randomized and ensemble maps may differ even if the landmarks are equal
        probe = own.landmarks[: min(16, own.landmarks.shape[0])]
        return bool(np.array_equal(own.features()(probe), others.features()(probe)))

    def expansion(self, alpha: float) -> KernelExpansion:
        """Return the fitted function for one α."""
        found = RidgePath(self.moments).solve(alpha)
        feature_map = self.feature_map
        A = feature_map.collapse(found.W)
        expansion = KernelExpansion(
            feature_map.kernel, feature_map.landmarks, A, found.b, self.projection
        )
        return expansion.with_center(self.center)


def _same_arrays(own: Float | None, other: Float | None) -> bool:
    if own is None or other is None:
        return own is other
    return bool(np.array_equal(own, other))
