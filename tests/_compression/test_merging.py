"""Merged landmarks of the RBF kernel."""

from __future__ import annotations

import numpy as np

from nysplus._compression.merging import merged
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF


def test_one_merger_is_the_best_of_all_points_between(rng):
    """The landmark of the smallest coefficients and another become the best point between them."""
    kernel, Z, A = RBF(0.5), rng.randn(6, 2), rng.randn(6, 3)
    A[2] *= 0.1
    f = KernelExpansion(kernel, Z, A, np.zeros(3))

    def distance(points):
        """The least squared distance to f in the kernel's space, of two functions of two points."""
        both = np.concatenate([Z, points])
        B, C = kernel(points, points), kernel(points, Z) @ A
        best = np.linalg.solve(B, C)
        a = np.concatenate([A, -best])
        return float((a * (kernel(both, both) @ a)).sum())

    def alternatives():
        for j in set(range(6)) - {2}:
            for share in np.linspace(0, 1, 11):
                points = np.delete(Z, [2, j], axis=0)
                yield np.concatenate([points, (Z[j] + share * (Z[2] - Z[j]))[None]])

    found = merged(kernel, Z, A, 5)
    assert len(found) == 5
    rest = [point for point in found if not (point == Z).all(axis=1).any()]
    assert len(rest) <= 1  # four stay where they are, or all but the one that went
    # coefficients of others make up for some of it, which the rule for pairs does not count
    assert distance(found) <= 1.5 * min(distance(points) for points in alternatives())
    assert f.landmarks is Z


def test_equal_landmarks_are_merged_first(rng):
    kernel, Z = RBF(0.5), 3.0 * rng.randn(8, 3)
    A = rng.randn(8, 2)
    double = np.concatenate([Z, Z[:3]])
    left = merged(kernel, double, np.concatenate([A, 0.01 * A[:3]]), 8)
    assert {tuple(row) for row in left.round(9)} == {tuple(row) for row in Z.round(9)}
