"""Fewer landmarks for an expansion: some are removed, the others take over and are moved.

The smaller function f' follows the larger one f in the squared distance

    ``Σ_i w_i ‖f(x_i) − f'(x_i)‖² + ε ‖f − f'‖²_H``,    ``Σ_i w_i = 1``,

over the landmarks of f and, where some are given, over rows. The first term weighs what matters,
the second one, the norm of the kernel's own space, settles what the rows leave open. In this
distance the best coefficients of given landmarks follow from linear equations, and what the removal
of a landmark costs from the inverse of their matrix. Kernels with gradients then have their
landmarks moved by variable projection, all at once.
The intercept stays, so that the two functions agree far from all landmarks as well; except where
f is a small difference of large terms, which few landmarks cannot follow: it is then first
replaced by a function of smaller coefficients, and of another intercept, with the same scores.

Instead of being removed, landmarks of the RBF kernel may be merged with others (:func:`merged`).
Once they have moved, merged ones are sometimes closer to f than those that removals leave,
sometimes farther (``benchmarks/compress.py`` measures both).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize

from nysplus._blocks import Blocks, float_dtype
from nysplus._checks import check_count
from nysplus._expansion import KernelExpansion, in_float32
from nysplus._projection import project
from nysplus._ridge import Solve, cholesky
from nysplus._targets import Float, ValueTargets
from nysplus.kernels import FunctionKernel, Kernel
from nysplus.landmarks.diversity import kernel_diagonal, pivoted_cholesky

Positions = npt.NDArray[np.intp]

# ε, in units of k(x, x), where landmarks alone stand for rows, and where there are rows.
SMOOTHNESS, ROW_SMOOTHNESS = 1e-4, 1e-5
# What keeps a factorisation alive, in units of k(x, x) ε; and how far it may be raised.
JITTER, MOST_JITTER, TAMED_JITTER = 1e-6, 1e6, 1e-3
# A function whose smoothness costs more than its scores are worth is replaced by one that has the
# same scores up to this share of their variance, with the largest of these ε that allows it.
SAME_SCORES = 1e-3
RIDGES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# Landmarks that compete to be kept: so many for each, or this many.
SHORTLIST_RATIO, SHORTLIST = 4, 1000
# Removals after which the inverse is updated, by one matrix product.
REMOVALS = 64
# Points between two landmarks that are tried for the one that they are merged to.
SEGMENT = np.linspace(0.0, 1.0, 11)
# Steps that landmarks move: later ones change the last digits.
STEPS = 30
# Rows that the smaller model follows: more cost time and change little.
ROWS = 5000


def reduced(
    expansion: KernelExpansion,
    n: int,
    X: Any = None,
    weight: Float | None = None,
    merge: bool = False,
) -> tuple[KernelExpansion, Positions | None]:
    """Return an expansion with fewer landmarks that stays as close to the given one as possible.

    O(b n'² + n'³) for b rows and n' landmarks at first, of which four for each that stays are
    looked at, or 1000; then 30 steps of O(b n² + n³) for kernels with gradients.

    Parameters
    ----------
    expansion : KernelExpansion
        Of a positive semidefinite kernel; of a function it is found out.
    n : int
        Landmarks that stay.
    X : ndarray or CSR matrix of shape (b, d), optional
        Rows on which the two should agree, beside the landmarks; they count for one half, and
        not more than 5000 of them are used.
    weight : ndarray of shape (b,), optional
        Of the rows.
    merge : bool
        Whether landmarks are merged instead of removed: dense ones of the RBF kernel.

    Returns
    -------
    expansion : KernelExpansion
    kept : ndarray of shape (n,), or None
        Which landmarks were kept, if they are where they were.
    """
    kernel, Z = expansion.kernel, expansion.landmarks
    check_number(n, Z.shape[0])
    if n == Z.shape[0]:
        return expansion, np.arange(n)
    if not kernel.positive_semidefinite and not isinstance(kernel, FunctionKernel):
        raise _indefinite(kernel)
    seen = replace(expansion, projection=None, storage=None)
    if X is not None and expansion.projection is not None:
        X = project(X, expansion.projection)
    followed = _followed(Z, X, weight)
    smoothness = SMOOTHNESS if X is None else ROW_SMOOTHNESS
    kept = shortlist(seen, n)
    misfit = Misfit.of(seen, *followed, smoothness)
    if misfit.cancels:
        misfit = Misfit.of(tamed(seen, Z[kept], *followed), *followed, smoothness)
    A, moves = misfit.solve(Z[kept]), kernel.differentiable and not sp.issparse(Z)
    if merge:
        points = merged(kernel, Z[kept], A, n)
    else:
        kept = kept[eliminated(misfit.parts(Z[kept]).M, A, n)[0]]
        points = Z[kept]
    if moves:
        points = misfit.moved(points).astype(float_dtype(Z.dtype))
    double = KernelExpansion(kernel, points, misfit.solve(points), misfit.b)
    rows = misfit.X.astype(expansion.dual_coef.dtype)
    small = in_float32(double, Blocks(rows, ValueTargets(misfit.F)))
    return replace(small, projection=expansion.projection), None if moves else kept


def _followed(Z: Any, X: Any, weight: Float | None) -> tuple[Any, Float]:
    """Return the rows on which the smaller model follows, and their weights, which sum to one.

    Landmarks are spread over what the model knows, rows over what it will be asked: both count for
    one half.
    """
    Z = Z[_spread(Z.shape[0])]
    own = np.full(Z.shape[0], 1.0 / Z.shape[0])
    if X is None:
        return Z, own
    some = _spread(X.shape[0])
    X, weight = X[some], np.ones(len(some)) if weight is None else weight[some]
    sparse = sp.issparse(X) or sp.issparse(Z)
    both = sp.vstack([X, Z], format="csr") if sparse else np.concatenate([X, Z])
    return both, 0.5 * np.concatenate([weight / weight.sum(), own])


def _spread(n_rows: int) -> Positions:
    """Return positions of at most `ROWS` rows."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.intp))


def check_number(n: Any, most: int) -> None:
    """Raise unless so many landmarks can be left of `most`."""
    check_count("n_components", n)
    if n > most:
        raise ValueError(
            f"n_components={n} exceeds the {most} landmarks of the model, which compress only "
            "lowers. Pass a smaller number, or fit a larger model."
        )


def _indefinite(kernel: Kernel) -> ValueError:
    return ValueError(
        f"compress needs a positive semidefinite kernel, {kernel!r} is none. Fit a smaller model "
        "instead, or choose another kernel."
    )


def eliminated(M: Float, A: Float, n: int) -> tuple[Positions, float]:
    """Remove landmarks one after the other, always the one that costs least; return the others.

    In the norm ``tr AᵀMA`` the removal of landmark j costs ``‖a_j‖² / (M⁻¹)_jj`` if all others
    make up for it, and the costs add up: also returned. The inverse of what is left of M
    follows by the elimination of j, so that this is a Cholesky factorisation of M⁻¹ with an order
    of its own. O(k³) for k landmarks, of which nearly all is matrix products.

    Parameters
    ----------
    M : ndarray of shape (k, k)
        Positive definite.
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        How many stay.
    """
    found = cholesky(M, 0.0)
    if found is None:
        raise ValueError("M is not positive definite to working precision.")
    inverse = found[0](np.eye(len(M)))
    # no (M⁻¹)_jj is below this, whatever is removed
    floor = 1.0 / np.diag(M)
    kept, A, total = np.arange(len(M)), A.copy(), 0.0
    while len(kept) > n:
        count = min(REMOVALS, len(kept) - n)
        taken = np.zeros((len(kept), count))
        diagonal = np.maximum(np.diag(inverse), floor)
        left = np.ones(len(kept), dtype=bool)
        for step in range(count):
            cost = np.einsum("ij,ij->i", A, A) / diagonal
            cost[~left] = np.inf
            j = int(cost.argmin())
            total += float(cost[j])
            column = inverse[:, j] - taken[:, :step] @ taken[j, :step]
            A -= np.outer(column / diagonal[j], A[j])
            taken[:, step] = column / np.sqrt(diagonal[j])
            diagonal = np.maximum(diagonal - taken[:, step] ** 2, floor)
            left[j] = False
        kept, A, floor, taken = kept[left], A[left], floor[left], taken[left]
        inverse = inverse[np.ix_(left, left)] - taken @ taken.T
    return kept, total


def shortlist(expansion: KernelExpansion, n: int) -> Positions:
    """Return the landmarks that compete for `n` places.

    All of them, or those that the others are explained by: with thousands of landmarks most are
    close to others. Large coefficients count more.
    """
    Z, A = expansion.landmarks, expansion.dual_coef
    most = max(SHORTLIST_RATIO * n, SHORTLIST)
    if Z.shape[0] <= most:
        return np.arange(Z.shape[0])
    size = np.einsum("ij,ij->i", A, A, dtype=np.float64)
    rng = np.random.RandomState(0)  # not used: greedy
    return np.sort(pivoted_cholesky(expansion.kernel, Z, most, size, rng, greedy=True))


def tamed(expansion: KernelExpansion, points: Any, X: Any, weight: Float) -> KernelExpansion:
    """Return an expansion in other landmarks with the same scores and smaller coefficients.

    The smoothest one that is close enough, with an intercept of its own. An intercept of hundreds
    that kernel functions take off again, as a wide kernel with a small ridge makes it, would
    otherwise be most of what the smaller model follows. O(b n² + n³), a few times.
    """
    kernel, Z, X = expansion.kernel, points.astype(np.float64), X.astype(np.float64)
    K, B, F = kernel(X, Z), kernel(Z, Z), expansion(X).astype(np.float64)
    mean, K_mean = weight @ F, weight @ K
    K -= K_mean
    F -= mean
    weighted = weight[:, None] * K
    S, R = weighted.T @ K, weighted.T @ F
    scale, most = float(np.diag(B).mean()), SAME_SCORES * float((weight @ F**2).sum())
    for ridge in RIDGES:
        epsilon = ridge * scale
        found = cholesky(S + epsilon * B, TAMED_JITTER * epsilon * scale)
        if found is None:  # and less of a ridge makes no better equations
            break
        A = found[0](R)
        expansion = KernelExpansion(kernel, points, A, mean - K_mean @ A)
        if float((weight @ (F - K @ A) ** 2).sum()) <= most:
            break
    return expansion


def merged(kernel: Kernel, Z: Float, A: Float, n: int) -> Float:
    """Merge landmarks until `n` are left, as training on a budget does (Wang et al. 2012).

    The one of the smallest coefficients goes, together with the one that makes it cost least in
    the norm of the kernel's space, to the best point between the two. O(k (d + L)) for each of k
    landmarks.

    Parameters
    ----------
    kernel : Kernel
        RBF: between two landmarks it is a power of the one at its ends.
    Z : ndarray of shape (k, d)
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        How many are left.
    """
    Z, A = Z.astype(np.float64), A.astype(np.float64)
    sizes, left = np.einsum("ij,ij->i", A, A), np.ones(len(Z), dtype=bool)
    for _ in range(len(Z) - n):
        i = int(np.where(left, sizes, np.inf).argmin())
        near, products = kernel(Z, Z[i : i + 1]), (A @ A[i])[:, None]
        to_i, to_j = near ** (1.0 - SEGMENT) ** 2, near**SEGMENT**2
        both = sizes[i] + sizes[:, None] + 2.0 * near * products
        lost = both - to_i**2 * sizes[i] - to_j**2 * sizes[:, None] - 2.0 * to_i * to_j * products
        left[i] = False
        lost[~left] = np.inf
        j, best = np.unravel_index(int(lost.argmin()), lost.shape)
        Z[j] += SEGMENT[best] * (Z[i] - Z[j])
        A[j] = to_i[j, best] * A[i] + to_j[j, best] * A[j]
        sizes[j] = A[j] @ A[j]
    return Z[left]


@dataclass(frozen=True)
class Parts:
    """The matrices of the equations ``(KᵀDK + εB) A' = KᵀDF + εC`` for landmarks Z'.

    Attributes
    ----------
    K : ndarray of shape (b, n)
        ``k(X, Z')``.
    B : ndarray of shape (n, n)
        ``k(Z', Z')``.
    C : ndarray of shape (n, L)
        ``k(Z', Z) A``: f less its intercept, at Z'.
    M : ndarray of shape (n, n)
        The left side, and what keeps it positive definite.
    solve : callable
        ``R ↦ M⁻¹R``.
    jitter : float
        What was added to the diagonal of the left side.
    """

    K: Float
    B: Float
    C: Float
    M: Float
    solve: Solve
    jitter: float


@dataclass(frozen=True)
class Misfit:
    """How far an expansion with other landmarks is from a given one, and how to come closer.

    Attributes
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (b, d)
    weight : ndarray of shape (b,)
        D; sums to one.
    F : ndarray of shape (b, L)
        Scores of the rows, less the intercept.
    Z : ndarray or CSR matrix of shape (n_given, d)
    A : ndarray of shape (n_given, L)
    b : ndarray of shape (L,)
    epsilon, jitter : float
    """

    kernel: Kernel
    X: Any
    weight: Float
    F: Float
    Z: Any
    A: Float
    b: Float
    epsilon: float
    jitter: float

    @classmethod
    def of(
        cls,
        expansion: KernelExpansion,
        X: Any,
        weight: Float,
        smoothness: float = SMOOTHNESS,
    ) -> Misfit:
        """Return the distance from an expansion without a projection."""
        kernel, Z = expansion.kernel, expansion.landmarks.astype(np.float64)
        X = X.astype(np.float64)
        F = expansion(X).astype(np.float64) - expansion.intercept
        scale = float(kernel_diagonal(kernel, Z)[0].mean())
        if scale < 0:
            raise _indefinite(kernel)
        scale = scale or 1.0  # a kernel that is zero has no size
        epsilon = smoothness * scale
        A, b = (array.astype(np.float64) for array in (expansion.dual_coef, expansion.intercept))
        return cls(kernel, X, weight, F, Z, A, b, epsilon, JITTER * epsilon * scale)

    @property
    def cancels(self) -> bool:
        """Whether the function is a small difference of large terms: ``ε ‖f‖²_H`` says so."""
        own = KernelExpansion(self.kernel, self.Z, self.A, np.zeros(len(self.b)))(self.Z)
        spread = self.weight @ (self.F - self.weight @ self.F) ** 2
        return bool(self.epsilon * (self.A * own).sum() > spread.sum())

    def parts(self, points: Any) -> Parts:
        """Return the equations of the coefficients of landmarks."""
        points = points.astype(np.float64, copy=False)
        K, B = self.kernel(self.X, points), self.kernel(points, points)
        M = K.T @ (self.weight[:, None] * K)
        M += self.epsilon * B
        jitter = self.jitter
        while (found := cholesky(M, jitter)) is None:
            jitter *= 10.0
            if jitter > MOST_JITTER * self.jitter:
                raise _indefinite(self.kernel)
        M.flat[:: len(M) + 1] += jitter
        return Parts(K, B, self.kernel(points, self.Z) @ self.A, M, found[0], jitter)

    def solve(self, points: Any) -> Float:
        """Return the best coefficients for landmarks, of shape (n, L)."""
        return self._coefficients(self.parts(points))

    def _coefficients(self, parts: Parts) -> Float:
        cross = parts.K.T @ (self.weight[:, None] * self.F)
        return parts.solve(cross + self.epsilon * parts.C)

    def value_and_gradient(self, points: Float) -> tuple[float, Float]:
        """Return the distance at the best coefficients, up to a constant, and ``∂/∂Z'``.

        At the best coefficients the distance changes with the landmarks alone.
        """
        parts = self.parts(points)
        A = self._coefficients(parts)
        left = self.F - parts.K @ A
        weighted = self.weight[:, None] * left
        value = float((weighted * left).sum() + parts.jitter * (A**2).sum())
        value += self.epsilon * float((A * (parts.B @ A - 2.0 * parts.C)).sum())
        # ∇_z k(x, z) = σ (z − x), summed over the rows, f' and f
        H = self.kernel.slopes(self.X, points)
        H *= weighted @ A.T
        gradient = (self.X.T @ H).T - H.sum(axis=0)[:, None] * points
        for others, coefficients, sign in ((points, A, 1.0), (self.Z, self.A, -1.0)):
            H = self.kernel.slopes(points, others)
            H *= A @ coefficients.T
            H *= sign * self.epsilon
            gradient += H.sum(axis=1)[:, None] * points - H @ others
        return value, 2.0 * gradient

    def moved(self, points: Any) -> Float:
        """Move landmarks to where the distance is smaller; they never end up farther.

        For a kernel with slopes and dense landmarks.
        """
        # the kernel's own length, and a distance of one for a model that is zero
        unit = 1.0 / np.sqrt(2.0 * float(self.kernel.get_params()["gamma"]))
        size = float((self.weight @ self.F**2).sum()) or 1.0
        start = points.astype(np.float64)

        def scaled(steps: Float) -> tuple[float, Float]:
            value, gradient = self.value_and_gradient(unit * steps.reshape(start.shape))
            return value / size, unit / size * gradient.ravel()

        found = minimize(
            scaled, start.ravel() / unit, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        )
        best: Float = unit * found.x.reshape(start.shape)
        return best
