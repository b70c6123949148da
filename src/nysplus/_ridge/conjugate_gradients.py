"""Solve the normal equations of a ridge problem by passes over the rows, without forming them.

A pass costs O(N n (d + L)), or O(N n L) where kernel values are stored, and no n² for every row.
Conjugate gradients have two uses: they polish a solution that was found with too few digits, in
one or two passes, and they fit models with thousands of landmarks from a sketch of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.path import Solve, cholesky
from nysplus._ridge.rules import DEFAULT_RULES
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.slicing import row_slices
from nysplus._typing import Float

# Iterations in which the gap has not halved, after which conjugate gradients give up.
MAX_STALLED = 20


@dataclass(frozen=True)
class Start:
    """Weights with their residual and objective, to start conjugate gradients from.

    Attributes
    ----------
    W : ndarray of shape (k, L)
    R : ndarray of shape (k, L)
        ``Φ_cᵀ D (Y − ΦW − b) − αW``.
    objective : float
    """

    W: Float
    R: Float
    objective: float


class NormalEquations:
    """``(Φ_cᵀ D Φ_c + α) W = Φ_cᵀ D Y`` with the centred features Φ_c and the weights D.

    Parameters
    ----------
    blocks : RowBlocks
    feature_map : FeatureMap
    dtype : type
        Precision of the kernel values and their products; sums over blocks are float64.
    stage : str
        Name of the passes in progress reports.
    keep : bool
        Whether to store the kernel values, N × n numbers, for later passes.

    Attributes
    ----------
    feature_mean : ndarray of shape (k,)
        Mean of the features, as of the last call of :meth:`start` or :meth:`sketch`.
    evaluated : int
        Number of rows whose kernel values were computed, counted in every pass.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        feature_map: FeatureMap,
        dtype: type[np.floating[Any]],
        stage: str,
        keep: bool = False,
    ) -> None:
        self.blocks = blocks
        self.feature_map = feature_map
        self.dtype = dtype
        self.evaluated = 0
        self._stage = stage
        self._columns = feature_map.columns(dtype)
        # the kernel values of each block, by the number of its first row
        self._stored: dict[int, Float] | None = {} if keep else None
        targets = blocks.target_spread()
        self.weight, self.target_mean = targets.mass, targets.mean
        self.feature_mean: Float = np.zeros(feature_map.rank)

    @property
    def row_bytes(self) -> int:
        """Bytes of temporaries that a row of a pass needs: X twice and K."""
        return 8 * (2 * self.blocks.n_features + self.feature_map.n_landmarks)

    @property
    def kernel_values(self) -> Callable[[Block], Float]:
        """``block ↦ K``, from memory if stored. The function travels, so it does not hold self."""
        columns, stored = self._columns, self._stored
        if stored is None:
            return lambda block: columns(block.X)

        def look_up(block: Block) -> Float:
            assert isinstance(block.rows, slice)
            K = stored.get(block.rows.start)
            if K is None:
                K = stored[block.rows.start] = columns(block.X)
            return K

        return look_up

    def reweighted(self, blocks: Blocks) -> NormalEquations:
        """Return the equations of the same rows with other weights."""
        other = NormalEquations(blocks, self.feature_map, self.dtype, self._stage)
        other._stored = self._stored
        return other

    def intercept(self, W: Float) -> Float:
        """Return the best intercept b for the weights W."""
        return self.target_mean - self.feature_mean @ W

    def start(self, W: Float, alpha: float) -> Start:
        """Return the weights W with their residual and objective, for the best intercept.

        Sets the mean of the features to the precision of this pass.
        """
        A = self.feature_map.collapse(W).astype(self.dtype)
        b, kernel_values, dtype = self.intercept(W), self.kernel_values, self.dtype

        def part(block: Block) -> Float:
            K, weight = kernel_values(block), block.weight[:, None]
            residuals = block.Y - (K @ A).astype(np.float64) - b
            weighted = np.hstack([residuals * weight, weight])
            sums = (weighted.T.astype(dtype) @ K).T
            squares = np.append((residuals**2 * weight).sum(axis=0), 0.0)
            return np.vstack([sums, weighted.sum(axis=0), squares])

        sums = self._fold(part, (len(A) + 2, len(b) + 1), "residual")
        columns, (totals, squares) = self.feature_map.transposed(sums[:-2]), sums[-2:]
        self.feature_mean = columns[:, -1] / self.weight
        # the best intercept removes the mean residual, and with it a part of the squares
        shift = totals[:-1] / self.weight
        R = columns[:, :-1] - np.outer(columns[:, -1], shift)
        objective = float(squares.sum() - self.weight * shift @ shift)
        return Start(W, R - alpha * W, objective + alpha * float((W**2).sum()))

    def product(self, P: Float) -> Float:
        """Return ``Φ_cᵀ D Φ_c P``."""
        A = self.feature_map.collapse(P).astype(self.dtype)
        centre, kernel_values, dtype = self.feature_mean @ P, self.kernel_values, self.dtype

        def part(block: Block) -> Float:
            K = kernel_values(block)
            weighted = ((K @ A).astype(np.float64) - centre) * block.weight[:, None]
            return np.vstack([(weighted.T.astype(dtype) @ K).T, weighted.sum(axis=0)])

        sums = self._fold(part, (len(A) + 1, P.shape[1]), "conjugate gradients")
        return self.feature_map.transposed(sums[:-1]) - np.outer(self.feature_mean, sums[-1])

    def _fold(self, part: Callable[[Block], Float], shape: tuple[int, ...], step: str) -> Float:
        if not self._stored:
            self.evaluated += self.blocks.n_rows
        zero = partial(np.zeros, shape)
        return self.blocks.fold(part, zero, self.row_bytes, f"{self._stage}: {step}")

    def sketch(self, rng: np.random.RandomState, ratio: int = DEFAULT_RULES.sketch_ratio) -> Float:
        """Return a matrix G of k columns and few rows with ``GᵀG ≈ Φ_cᵀ D Φ_c``.

        The rows of each block are shuffled, given random signs and added up in groups, about
        ``ratio · k`` of them. All rows enter the sketch, so it is good even if the landmarks are
        not typical of the rows. Sets the mean of the features.
        """
        slices = row_slices(self.blocks.n_rows, self.row_bytes)
        group = max(1, self.blocks.n_rows // (ratio * self.feature_map.rank))
        starts = np.cumsum([0, *(-(-(s.stop - s.start) // group) for s in slices)])
        seeds = dict(
            zip((s.start for s in slices), rng.randint(2**31, size=len(slices)), strict=True)
        )
        places = dict(zip((s.start for s in slices), starts, strict=False))
        n = self.feature_map.n_landmarks
        G = np.empty((starts[-1], n), dtype=self.dtype)
        ones = np.empty(starts[-1], dtype=self.dtype)

        def part(block: Block) -> Float:
            assert isinstance(block.rows, slice)
            own = np.random.RandomState(seeds[block.rows.start])
            K = self.kernel_values(block)
            order = own.permutation(len(K))
            signs = own.choice([-1.0, 1.0], size=len(K)) * np.sqrt(block.weight[order])
            signs = signs.astype(self.dtype)
            place = places[block.rows.start]
            for number, start in enumerate(range(0, len(K), group)):
                members = order[start : start + group]
                np.matmul(signs[start : start + group], K[members], out=G[place + number])
                ones[place + number] = signs[start : start + group].sum()
            sums: Float = K.T @ block.weight.astype(self.dtype)
            return sums

        sums = self._fold(part, (n,), "sketch")
        centre = sums / self.weight
        self.feature_mean = self.feature_map.transposed(centre[:, None])[:, 0]
        G -= np.outer(ones, centre.astype(self.dtype))
        return self.feature_map.whitener(self.dtype)(G)


def sketched_scatter(G: Float) -> Float:
    """Return ``GᵀG`` in float64."""
    return (G.T @ G).astype(np.float64)


def preconditioner(scatter: Float, alpha: float) -> Solve | None:
    """Return the solver of ``(S̃ + α) Z = R`` for a sketched scatter S̃.

    None if ``S̃ + α`` is singular to working precision: its solutions would show no gap where
    there is one.
    """
    found = cholesky(scatter, alpha)
    return None if found is None else found[0]


@dataclass(frozen=True)
class Iterate:
    """The last iterate of conjugate gradients.

    Attributes
    ----------
    W, b : ndarray
        Weights and intercept.
    objective : float
    gap : float
        Estimated distance of the objective from its minimum, relative to the minimum.
    iterations : int
    converged : bool
    """

    W: Float
    b: Float
    objective: float
    gap: float
    iterations: int
    converged: bool


def conjugate_gradients(
    equations: NormalEquations,
    solve: Solve,
    start: Start,
    alpha: float,
    tolerance: float,
    max_iterations: int = DEFAULT_RULES.max_iterations,
) -> Iterate:
    """Minimise the ridge objective, all outputs at once.

    Parameters
    ----------
    equations : NormalEquations
    solve : callable
        The preconditioner: multiplies by an approximation of ``(Φ_cᵀ D Φ_c + α)⁻¹``.
    start : Start
        Weights to start from. If their residual was computed in a higher precision, the solution
        has that precision too: only a correction is solved for in the lower one.
    alpha : float
        The ridge.
    tolerance : float
        Stop when the objective is within this share of its minimum, as estimated by
        ``⟨r, z⟩`` with the residual r and the preconditioned residual z.
    max_iterations : int

    Notes
    -----
    One pass for each iteration.
    """
    W, R, objective = start.W.copy(), start.R.copy(), start.objective
    Z = solve(R)
    slopes = (R * Z).sum(axis=0)
    P, iterations = Z.copy(), 0
    smallest, stalled = np.inf, 0
    while True:
        gap = float(slopes.sum()) / max(objective, 1e-300)
        smallest, stalled = (gap, 0) if gap < 0.5 * smallest else (smallest, stalled + 1)
        converged = gap <= tolerance
        failed = iterations == max_iterations or stalled > MAX_STALLED or not np.isfinite(gap)
        if converged or failed:
            break
        H = equations.product(P) + alpha * P
        curvatures = (P * H).sum(axis=0)
        steps = np.divide(slopes, curvatures, out=np.zeros_like(slopes), where=curvatures > 0)
        W += steps * P
        R -= steps * H
        objective -= float(steps @ slopes)
        Z = solve(R)
        before, slopes = slopes, (R * Z).sum(axis=0)
        P = Z + np.divide(slopes, before, out=np.zeros_like(slopes), where=before > 0) * P
        iterations += 1
    return Iterate(W, equations.intercept(W), max(objective, 0.0), gap, iterations, converged)
