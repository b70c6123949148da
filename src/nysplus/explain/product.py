"""Exact Shapley values of products over columns.

For a landmark with the factors ``p_i = k(x_i, z_i)`` and a background row with the factors
``q_i = k(r_i, z_i)``, a coalition S of columns has the value ``Π_{i∈S} p_i Π_{i∉S} q_i``, and the
Shapley value of column i is an integral over its multilinear extension:

    ``φ_i = (p_i − q_i) ∫₀¹ Π_{k≠i} (t p_k + (1 − t) q_k) dt``

The integrand is a polynomial of degree d − 1, which Gauss–Legendre quadrature with ⌈d/2⌉ nodes
integrates exactly. It is summed over landmarks with their coefficients, and averaged over the
background.

Columns are taken in parts of g = 5. Within a part, the products over its 2^g subsets S separate x
from the background: ``Π_{i∈part} (t p_i + (1 − t) q_i)`` is the sum over S of
``t^|S| (1 − t)^(g − |S|) p^S q^(part − S)``, so the coefficients of all pairs of a row and a
background row are one matrix product. Only the products over the other parts are taken node by
node, from both ends; nothing is ever divided by a factor, which may be zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.explain.function import ExplainedFunction

# Columns of a part. More make the matrix products larger than the elementwise work they save.
PART = 5
# Products of parts at nodes that are in memory at once: about the size of a core's cache. Blocks
# have the second number of pairs at least, because calls of NumPy take time as well.
VALUES, LEAST_PAIRS = 2**18, 128
# Rows of a thread's share, so that the products of the background are made for many rows.
SHARE = 96


def node_count(d: int) -> int:
    """Return the number of nodes that integrate a product of d − 1 linear factors on [0, 1].

    ⌈d/2⌉ nodes are exact. With more than about 70 factors fewer nodes suffice for an error below
    2⁻⁵³ times the largest value of a coalition: on the ellipse with foci 0 and 1 and parameter ρ a
    factor grows by ``(ρ + 1/ρ) / 2`` at most, and N nodes have the relative error
    ``32/15 ((ρ + 1/ρ) / 2)^(d − 1) ρ^(2 − 2N) / (1 − ρ⁻²)`` (Trefethen, Approximation Theory and
    Approximation Practice, theorem 19.3), for every ρ > 1.
    """
    exact = -(-d // 2)
    rho = 1.0 + np.geomspace(1e-3, 10.0, 400)
    growth = (d - 1) * np.log((rho + 1.0 / rho) / 2.0)
    constants = np.log(32.0 / 15.0) + 53.0 * np.log(2.0) - np.log1p(-(rho**-2.0))
    enough = 1.0 + (growth + constants) / (2.0 * np.log(rho))
    return max(1, min(exact, int(np.ceil(enough.min()))))


@dataclass(frozen=True, eq=False)
class Rule:
    """The subsets of a part and the nodes of the quadrature, for d columns.

    Attributes
    ----------
    n_parts : int
    subsets : ndarray of bool of shape (2^g, g)
        Of the g columns of a part, by size.
    order : ndarray of shape (2^g,)
        The subsets as binary numbers.
    edges : ndarray of shape (g + 2,)
        The first subset of each size.
    values : ndarray of shape (Q, g + 1)
        ``t^s (1 − t)^(g − s)`` at each node t.
    weights : ndarray of shape (g, Q)
        ``w t^s (1 − t)^(g − 1 − s)`` at each node t of weight w.
    """

    n_parts: int
    subsets: npt.NDArray[np.bool_]
    order: npt.NDArray[np.intp]
    edges: npt.NDArray[np.intp]
    values: Float
    weights: Float

    @property
    def part(self) -> int:
        """Number of columns g of a part."""
        return int(self.subsets.shape[1])

    def sizes(self, first: int, stop: int) -> slice:
        """Return the subsets whose size is at least `first` and below `stop`."""
        return slice(self.edges[first], self.edges[stop])

    @cached_property
    def signs(self) -> list[Float]:
        """For each size s, matrices of ±1: a row for each subset of size s or s + 1.

        A column's gain is the value of subsets of size s + 1 that have it, minus the value of
        subsets of size s that lack it.
        """
        found: list[Float] = []
        for s in range(self.part):
            signs = self.subsets[self.sizes(s, s + 2)].astype(np.float64)
            signs[: self.edges[s + 1] - self.edges[s]] -= 1.0
            found.append(signs)
        return found

    def products(self, factors: Float, complement: bool) -> Float:
        """Return the products over all subsets, or over the columns outside them.

        Parameters
        ----------
        factors : ndarray of shape (d, n, rows)
        complement : bool

        Returns
        -------
        ndarray of shape (n_parts, 2^g, n, rows)
        """
        (d, *shape), g = factors.shape, self.part
        padded = np.ones((self.n_parts * g, *shape))  # columns that change nothing
        padded[:d] = factors
        padded = padded.reshape(self.n_parts, g, *shape)
        found = np.ones((self.n_parts, 2**g, *shape))
        for i in range(g):
            half = 2**i
            np.multiply(found[:, :half], padded[:, i, None], out=found[:, half : 2 * half])
        return found[:, 2**g - 1 - self.order if complement else self.order]


@cache
def quadrature(d: int) -> tuple[Float, Float]:
    """Return nodes and weights on [0, 1] that integrate a product of d − 1 linear factors."""
    nodes, weights = np.polynomial.legendre.leggauss(node_count(d))
    return (nodes + 1.0) / 2.0, weights / 2.0


@cache
def rule_of(d: int) -> Rule:
    """Return the rule for d columns."""
    g = min(PART, d)
    t, w = quadrature(d)
    subsets = ((np.arange(2**g)[:, None] >> np.arange(g)) & 1).astype(bool)
    sizes = subsets.sum(axis=1)
    order = np.argsort(sizes, kind="stable")
    s, lower = np.arange(g + 1), np.arange(g)[:, None]
    return Rule(
        -(-d // g),
        subsets[order],
        order,
        np.searchsorted(sizes[order], np.arange(g + 2)),
        t[:, None] ** s * (1.0 - t[:, None]) ** (g - s),
        w * t**lower * (1.0 - t) ** (g - 1 - lower),
    )


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
    slices = row_slices(len(U), 8 * VALUES // SHARE, SHARE)
    shares = in_threads(lambda rows: _share(function, U[rows], V), slices)
    return function.spread(np.concatenate(list(shares)))


def _share(function: ExplainedFunction, U: Float, V: Float) -> Float:
    """Return the values of some rows, for players that have columns."""
    d = len(function.players[1])
    rule, A = rule_of(d), function.expansion.dual_coef
    total = np.zeros((len(U), rule.n_parts * rule.part, A.shape[1]))
    pairs = max(LEAST_PAIRS, VALUES // (rule.n_parts * len(rule.values)))
    # the products of the background over subsets should not take more memory than those at nodes
    most = max(1, VALUES // (rule.n_parts * 2**rule.part * min(len(V), pairs)))
    memory = Memory.of(rule, pairs)
    for rows, landmarks, some in _blocks(len(U), len(A), len(V), pairs, most):
        outside = rule.products(_factors(function, V[some], landmarks), complement=True)
        for part in rows:
            inside = rule.products(_factors(function, U[part], landmarks), complement=False)
            phi = _gains(rule, inside.transpose(0, 2, 3, 1), outside.transpose(0, 2, 1, 3), memory)
            # from (parts, landmarks, rows, columns) to (rows, parts, columns, outputs)
            values = np.tensordot(phi, A[landmarks], axes=(1, 0)).transpose(1, 0, 2, 3)
            total[part] += values.reshape(values.shape[0], -1, A.shape[1])
    return total[:, :d] / len(V)


def _blocks(
    N: int, n: int, m: int, pairs: int, most: int
) -> Iterator[tuple[list[slice], slice, slice]]:
    """Yield blocks of landmarks, at most `most`, and of background rows, with blocks of rows.

    A block has at most `pairs` pairs of a landmark, a row and a background row.
    """
    some = min(m, pairs)
    step = -(-N // -(-N // (pairs // some)))  # blocks of equal size
    rows = [slice(first, first + step) for first in range(0, N, step)]
    several = min(most, pairs // (some * step))
    for first in range(0, n, several):
        for start in range(0, m, some):
            yield rows, slice(first, first + several), slice(start, start + some)


def _factors(function: ExplainedFunction, U: Float, landmarks: slice) -> Float:
    """Return the factor of each player, of shape (players, landmarks, rows).

    The factor of several code columns is their product.
    """
    kernel, Z = function.expansion.kernel, function.expansion.landmarks[landmarks]
    of_code = kernel.per_feature(U, Z).transpose(0, 2, 1)
    return function.by_player(of_code, np.multiply.reduceat)


@dataclass(frozen=True, eq=False)
class Memory:
    """Memory that all blocks use: to get new arrays of this size takes longer than to fill them.

    Attributes
    ----------
    coefficients : ndarray of shape (parts, g + 1, pairs)
    at_nodes, others : ndarray of shape (parts, Q, pairs)
    moments : ndarray of shape (parts, g, pairs)
    """

    coefficients: Float
    at_nodes: Float
    others: Float
    moments: Float

    @classmethod
    def of(cls, rule: Rule, pairs: int) -> Memory:
        """Return memory for a number of pairs of a landmark, a row and a background row."""
        sizes = (rule.part + 1, len(rule.values), len(rule.values), rule.part)
        return cls(*(np.empty((rule.n_parts, size, pairs)) for size in sizes))

    def first(self, pairs: int) -> Memory:
        """Return the beginning of the memory, for fewer pairs."""
        return Memory(*(_first(array, pairs) for array in vars(self).values()))


def _first(array: Float, pairs: int) -> Float:
    parts, size, _ = array.shape
    return array.reshape(-1)[: parts * size * pairs].reshape(parts, size, pairs)


def _gains(rule: Rule, p: Float, q: Float, memory: Memory) -> Float:
    """Return the values of all columns, summed over the background.

    Parameters
    ----------
    p : ndarray of shape (parts, n, rows, 2^g)
        Products of the factors of rows over subsets.
    q : ndarray of shape (parts, n, 2^g, m)
        Products of the factors of background rows over the columns outside them.
    memory : Memory

    Returns
    -------
    ndarray of shape (parts, n, rows, g)
    """
    (parts, n, rows, _), m, g = p.shape, q.shape[3], rule.part
    own = memory.first(n * rows * m)
    coefficients = own.coefficients.reshape(parts, g + 1, n, rows, m)
    for s in range(g + 1):
        of_size = rule.sizes(s, s + 1)
        np.matmul(p[..., of_size], q[:, :, of_size], out=coefficients[:, s])
    np.matmul(rule.values, own.coefficients, out=own.at_nodes)
    _products_of_others(own.at_nodes, own.others)
    np.matmul(rule.weights, own.others, out=own.moments)
    moments = own.moments.reshape(parts, g, n, rows, m)
    phi = np.zeros((parts, n, rows, g))
    for s in range(g):
        both = rule.sizes(s, s + 2)
        sums = np.matmul(moments[:, s], q[:, :, both].swapaxes(2, 3))
        sums *= p[..., both]
        phi += sums @ rule.signs[s]
    return phi


def _products_of_others(F: Float, others: Float) -> None:
    """Write the products over all parts but one, for each part (first axis); F is overwritten."""
    n = len(F)
    others[-1] = 1.0
    for i in range(n - 2, -1, -1):  # the parts that follow
        np.multiply(others[i + 1], F[i + 1], out=others[i])
    for i in range(1, n):  # the parts before
        if i > 1:
            F[i - 1] *= F[i - 2]
        others[i] *= F[i - 1]
