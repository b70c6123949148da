"""Exact Shapley values of products over columns.

For a landmark with the factors ``p_i = k(x_i, z_i)`` and a background row with the factors
``q_i = k(r_i, z_i)``, a coalition S of columns has the value ``Π_{i∈S} p_i Π_{i∉S} q_i``, and the
Shapley value of column i is an integral over its multilinear extension:

    ``φ_i = (p_i − q_i) ∫₀¹ Π_{k≠i} (t p_k + (1 − t) q_k) dt``

The integrand is a polynomial of degree d − 1, which Gauss–Legendre quadrature with ⌈d/2⌉ nodes
integrates exactly. It is summed over landmarks with their coefficients, and averaged over the
background.

Columns are taken in parts of g ≤ 5. Within a part, the products over its 2^g subsets S separate x
from the background: ``Π_{i∈part} (t p_i + (1 − t) q_i)`` is the sum over S of
``t^|S| (1 − t)^(g − |S|) p^S q^(part − S)``, so the coefficients of all pairs of a row and a
background row are one matrix product. Only the products over the other parts are taken node by
node, from both ends; nothing is ever divided by a factor, which may be zero. Where factors are
close to each other the polynomial is nearly one of a lower degree, and needs fewer nodes.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.explain.function import ExplainedFunction

# Columns of a part, at most. More make the matrix products larger than the elementwise work they
# save.
PART = 5
# Numbers in memory at once: products of parts at nodes, pairs of rows and background rows that
# share matrix products, and products of subsets. All stay in a core's cache of 1 to 2 MB.
VALUES, PAIRS, PRODUCTS = 2**15, 2**12, 2**17
# Rows, background rows and landmarks of a thread's share, at most.
ROWS, SHARE = 250, 25
# Logarithm of the largest error of a quadrature.
ROUNDING = -53.0 * math.log(2.0)


@cache
def node_count(d: int, spread: int | None = None) -> int:
    """Return the number of nodes that integrate a product of d − 1 linear factors on [0, 1].

    ⌈d/2⌉ nodes are exact. Fewer suffice for an error below 2⁻⁵³ times the largest value of a
    coalition. Two bounds hold for N nodes and factors between 0 and 1:

    - The derivative of order 2N is ``(d − 1)! / (d − 1 − 2N)! (Σ|p_k − q_k| / (d − 1))^2N`` at
      most (Maclaurin's inequality), and the error is the derivative times
      ``N!⁴ / ((2N + 1) (2N)!³)``.
    - On the ellipse with foci 0 and 1 and parameter ρ > 1 a factor grows by ``(ρ + 1/ρ) / 2`` at
      most, which gives the error ``32/15 ((ρ + 1/ρ) / 2)^(d − 1) ρ^(2 − 2N) / (1 − ρ⁻²)``
      (Trefethen, Approximation Theory and Approximation Practice, theorem 19.3).

    Parameters
    ----------
    d : int
    spread : int, optional
        A bound of ``Σ|p_k − q_k|``. Where it is given, the error is below 2⁻⁵³ itself.
    """
    rho = 1.0 + np.geomspace(1e-3, 10.0, 400)
    growth = (d - 1) * np.log((rho + 1.0 / rho) / 2.0)
    constants = np.log(32.0 / 15.0) - ROUNDING - np.log1p(-(rho**-2.0))
    enough = int(np.ceil((1.0 + (growth + constants) / (2.0 * np.log(rho))).min()))
    most, slope = max(1, min(-(-d // 2), enough)), d if spread is None else spread
    return next((N for N in range(1, most) if _log_error(d, N, slope) < ROUNDING), most)


def _log_error(d: int, N: int, spread: int) -> float:
    """Return the logarithm of the bound by the derivative of order 2N ≤ d − 1."""
    logs = [math.lgamma(k + 1) for k in (d - 1, d - 1 - 2 * N, N, 2 * N)]
    slope = math.log(min(max(spread, 1) / (d - 1), 1.0))
    derivative = logs[0] - logs[1] + 2 * N * slope
    return derivative + 4 * logs[2] - 3 * logs[3] - math.log(2 * N + 1)


class Workspace:
    """Arrays that are used again: to get new ones takes longer than to fill them."""

    def __init__(self) -> None:
        self._arrays: dict[str, Float] = {}

    def array(self, name: str, *shape: int) -> Float:
        """Return an array with any contents; the next one of this name has the same memory."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size)
        return self._arrays[name][:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of d columns: the i-th column belongs to part i modulo the number of parts.

    Attributes
    ----------
    n_parts : int
    subsets : ndarray of bool of shape (2^g, g)
        Of the g columns of a part, by size; the complement of the k-th is the k-th from the end.
    edges : ndarray of shape (g + 2,)
        The first subset of each size.
    neighbours : ndarray of shape (2^(g + 1) − 2,)
        For each size s < g, all subsets of size s or s + 1.
    signs : ndarray of shape (2^(g + 1) − 2, g)
        A column's gain is the value of subsets of size s + 1 that have it, minus the value of
        subsets of size s that lack it: their signs, and zero for all others.
    """

    n_parts: int
    subsets: npt.NDArray[np.bool_]
    edges: npt.NDArray[np.intp]
    neighbours: npt.NDArray[np.intp]
    signs: Float

    @classmethod
    @cache
    def of(cls, d: int) -> Parts:
        """Return as few parts as possible, all of one size."""
        n_parts = -(-d // PART)
        g = -(-d // n_parts)
        subsets = ((np.arange(2**g)[:, None] >> np.arange(g)) & 1).astype(bool)
        subsets = subsets[np.argsort(subsets.sum(axis=1), kind="stable")]
        sizes = subsets.sum(axis=1)
        neighbours = [np.flatnonzero((sizes == s) | (sizes == s + 1)) for s in range(g)]
        signs = [
            subsets[own] - (sizes[own] == s)[:, None].astype(np.float64)
            for s, own in enumerate(neighbours)
        ]
        edges = np.searchsorted(sizes, np.arange(g + 2))
        return cls(n_parts, subsets, edges, np.concatenate(neighbours), np.concatenate(signs))

    @property
    def size(self) -> int:
        """Number of columns g of a part."""
        return int(self.subsets.shape[1])

    def of_size(self, first: int, stop: int) -> slice:
        """Return the subsets whose size is at least `first` and below `stop`."""
        return slice(self.edges[first], self.edges[stop])

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """The last column of each subset, without the empty one, and the subset of the others."""
        place = {tuple(subset): k for k, subset in enumerate(self.subsets.tolist())}
        found = []
        for subset in list(place)[1:]:
            last = max(i for i, inside in enumerate(subset) if inside)
            found.append((last, place[(*subset[:last], False, *subset[last + 1 :])]))
        return found

    def products(self, factors: Float, found: Float, complement: bool) -> None:
        """Write the products over all subsets, or over the columns outside them.

        Parameters
        ----------
        factors : ndarray of shape (d, n, rows)
        found : ndarray of shape (2^g, n_parts, n, rows)
        complement : bool
        """
        (d, *shape), g, padded = factors.shape, self.size, factors
        if d < self.n_parts * g:
            padded = np.ones((self.n_parts * g, *shape))  # columns that change nothing
            padded[:d] = factors
        padded = padded.reshape(g, self.n_parts, *shape)
        by_subset = found[::-1] if complement else found
        by_subset[0] = 1.0
        for k, (last, others) in enumerate(self.steps, start=1):
            np.multiply(by_subset[others], padded[last], out=by_subset[k])


def quadrature(d: int) -> tuple[Float, Float]:
    """Return nodes and weights on [0, 1] that integrate a product of d − 1 linear factors."""
    return _gauss_legendre(node_count(d))


@cache
def _gauss_legendre(n: int) -> tuple[Float, Float]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1.0) / 2.0, weights / 2.0


@cache
def powers_at_nodes(g: int, n: int) -> tuple[Float, Float]:
    """Return the powers of n nodes for parts of g columns, without and with the nodes' weights.

    Returns
    -------
    values : ndarray of shape (n, g + 1)
        ``t^s (1 − t)^(g − s)`` at each node t.
    weights : ndarray of shape (g, n)
        ``w t^s (1 − t)^(g − 1 − s)`` at each node t of weight w.
    """
    t, w = _gauss_legendre(n)
    s, lower = np.arange(g + 1), np.arange(g)[:, None]
    values = t[:, None] ** s * (1.0 - t[:, None]) ** (g - s)
    return values, w * t**lower * (1.0 - t) ** (g - 1 - lower)


def product_values(function: ExplainedFunction, C: Float, background: Float) -> Float:
    """Return the Shapley values of the kernel's part of the scores.

    O(N m n d Q) for N rows, m background rows, n landmarks, d columns and Q nodes.

    Parameters
    ----------
    function : ExplainedFunction
        With the form "product".
    C : ndarray of shape (N, D)
        Code columns.
    background : ndarray of shape (m, D)

    Returns
    -------
    ndarray of shape (N, columns of the user, L)
    """
    U, V = function.coordinates(C), function.coordinates(background)
    shares = list(product(_blocks(len(U), ROWS), _blocks(len(function.expansion.dual_coef), SHARE)))
    total = np.zeros((len(U), len(function.players[1]), function.expansion.dual_coef.shape[1]))
    found = in_threads(lambda share: _values(function, U[share[0]], V, share[1]), shares)
    with closing(found):
        for (rows, _), values in zip(shares, found, strict=True):
            total[rows] += values
    return function.spread(total / len(V))


def _blocks(n: int, most: int) -> list[slice]:
    """Return slices of `most` at most, of about equal size."""
    step = -(-n // -(-n // most))
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def _values(function: ExplainedFunction, U: Float, V: Float, share: slice) -> Float:
    """Return the values of rows by some landmarks, summed over the background.

    Returns
    -------
    ndarray of shape (rows, players that have columns, L)
    """
    Z, A = function.expansion.landmarks[share], function.expansion.dual_coef[share]
    parts, work = Parts.of(len(function.players[1])), Workspace()
    n_subsets, largest = 2**parts.size, min(max(len(U), len(V)), ROWS)
    total = np.zeros((len(U), parts.size, parts.n_parts, A.shape[1]))
    for own in _blocks(len(Z), max(1, PRODUCTS // (parts.n_parts * n_subsets * largest))):
        factors = _factors(function, Z[own], U)
        p = work.array("inside", n_subsets, parts.n_parts, *factors.shape[1:])
        parts.products(factors, p, complement=False)
        p = p.transpose(1, 2, 3, 0)
        sums = work.array("sums", *p.shape[:3], len(parts.neighbours))
        sums[:] = 0.0
        for block in _blocks(len(V), ROWS):
            others = _factors(function, Z[own], V[block])
            q = work.array("outside", n_subsets, parts.n_parts, *others.shape[1:])
            parts.products(others, q, complement=True)
            nodes = node_count(len(factors), math.ceil(_spread(factors) + _spread(others)))
            _add_sums(parts, nodes, p, q.transpose(1, 2, 0, 3), sums, work)
        sums *= p[..., parts.neighbours]
        # from (parts, landmarks, rows, columns) to (rows, columns, parts, outputs)
        total += np.tensordot(sums @ parts.signs, A[own], axes=(1, 0)).transpose(1, 2, 0, 3)
    return total.reshape(len(U), -1, A.shape[1])[:, : len(function.players[1])]


def _factors(function: ExplainedFunction, Z: Float, U: Float) -> Float:
    """Return the factor of each player, of shape (players, landmarks, rows).

    The factor of several code columns is their product.
    """
    of_code = function.expansion.kernel.per_feature(Z, U)
    return function.by_player(of_code, np.multiply.reduceat)


def _spread(factors: Float) -> float:
    """Return the largest ``Σ(1 − p_k)``: two of them bound ``Σ|p_k − q_k|`` of factors up to 1."""
    within = factors.min() >= 0.0 and factors.max() <= 1.0
    return len(factors) - float(factors.sum(axis=0).min()) if within else len(factors)


def _add_sums(parts: Parts, nodes: int, p: Float, q: Float, sums: Float, work: Workspace) -> None:
    """Add the sums over background rows of ``q^(part − S) ∫ t^s (1 − t)^(g − 1 − s) Π … dt``.

    The product is that of all other parts at t, and S are the subsets of size s or s + 1.

    Parameters
    ----------
    parts : Parts
    nodes : int
        Number of nodes of the quadrature.
    p : ndarray of shape (parts, n, rows, 2^g)
        Products of the factors of rows over subsets.
    q : ndarray of shape (parts, n, 2^g, m)
        Products of the factors of background rows over the columns outside them.
    sums : ndarray of shape (parts, n, rows, 2^(g + 1) − 2)
    work : Workspace
    """
    (n_parts, n, N, _), m, g = p.shape, q.shape[3], parts.size
    most = max(1, PAIRS // m)
    rows = _blocks(N, most)
    landmarks = _blocks(n, max(1, most // rows[0].stop))
    for own, block in product(landmarks, rows):
        inside, outside = p[:, own, block], q[:, own]
        shape = (*inside.shape[1:3], m)
        by_size = work.array("coefficients", n_parts, g + 1, *shape)
        for s in range(g + 1):
            subsets = parts.of_size(s, s + 1)
            multiply = np.matmul if 0 < s < g else np.multiply  # with a single subset
            multiply(inside[..., subsets], outside[:, :, subsets], out=by_size[:, s])
        moments, stop = work.array("moments", n_parts, g, *shape), 0
        _integrate(by_size, moments, nodes, work)
        for s in range(g):
            both = outside[:, :, parts.of_size(s, s + 2)].swapaxes(2, 3)
            first, stop = stop, stop + both.shape[3]
            sums[:, own, block, first:stop] += np.matmul(moments[:, s], both)


def _integrate(by_size: Float, moments: Float, nodes: int, work: Workspace) -> None:
    """Write ``∫ t^s (1 − t)^(g − 1 − s) Π dt`` with the product over all parts but one, for each.

    Parameters
    ----------
    by_size : ndarray of shape (parts, g + 1, …)
        The coefficients of ``t^s (1 − t)^(g − s)`` of each part.
    moments : ndarray of shape (parts, g, …)
    nodes : int
    work : Workspace
    """
    n_parts, g = moments.shape[:2]
    coefficients, moments = (a.reshape(*a.shape[:2], -1) for a in (by_size, moments))
    values, weights = powers_at_nodes(g, nodes)
    for block in _blocks(moments.shape[2], max(1, VALUES // (n_parts * nodes))):
        shape = (n_parts, nodes, block.stop - block.start)
        at_nodes, others = work.array("at nodes", *shape), work.array("others", *shape)
        np.matmul(values, coefficients[..., block], out=at_nodes)
        _products_of_others(at_nodes, others)
        np.matmul(weights, others, out=moments[..., block])


def _products_of_others(F: Float, others: Float) -> None:
    """Write the products over all parts but one, for each part (first axis); F is overwritten."""
    n = len(F)
    if n <= 2:
        others[:] = F[::-1] if n == 2 else 1.0
        return
    np.multiply(F[n - 1], F[n - 2], out=others[n - 3])
    for i in range(n - 4, -1, -1):  # the parts that follow
        np.multiply(others[i + 1], F[i + 1], out=others[i])
    for i in range(1, n - 2):  # the parts before
        others[i] *= F[i - 1]
        F[i] *= F[i - 1]
    for i in (n - 2, n - 1):
        np.multiply(F[n - 3], F[2 * n - 3 - i], out=others[i])
