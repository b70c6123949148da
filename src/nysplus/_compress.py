"""A smaller model from a fitted one: landmarks are removed and moved, and nothing is fitted anew.

The smaller function f' follows the larger one f in the squared distance

    ``Σ_i w_i ‖f(x_i) − f'(x_i)‖² + ε ‖f − f'‖²_H``,    ``Σ_i w_i = 1``,

over the landmarks of f and, where some are given, over rows. The first term weighs what matters,
the second one, the norm of the kernel's own space, settles what the rows leave open. In this
distance the best coefficients of given landmarks follow from linear equations, and what the removal
of a landmark costs from the inverse of their matrix. Kernels with gradients then have their
landmarks moved by variable projection, all at once, which does more than merging close pairs does.
The intercept stays, so that the two functions agree far from all landmarks as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._blocks import Blocks, float_dtype
from nysplus._checkpoint import Journal
from nysplus._checks import check_count
from nysplus._expansion import KernelExpansion, in_float32
from nysplus._intake import Wanted, take_in
from nysplus._probability import fit_scaling
from nysplus._progress import Progress
from nysplus._projection import project
from nysplus._ridge import Solve, cholesky
from nysplus._targets import Float, ValueTargets
from nysplus.kernels import FunctionKernel, Kernel
from nysplus.landmarks.diversity import kernel_diagonal, pivoted_cholesky

Positions = npt.NDArray[np.intp]

# ε, in units of k(x, x): rows decide wherever they have anything to say.
SMOOTHNESS = 1e-4
# What keeps a factorisation alive, in units of k(x, x) ε; and how far it may be raised.
JITTER, MOST_JITTER = 1e-6, 1e6
# Landmarks that compete to be kept: so many for each, or this many.
SHORTLIST_RATIO, SHORTLIST = 4, 1000
# Removals after which the inverse is updated, by one matrix product.
REMOVALS = 64
# Steps that landmarks move: later ones change the last digits.
STEPS = 30
# Rows that the smaller model follows: more cost time and change little.
ROWS = 5000


def compressed(
    expansion: KernelExpansion, n: int, X: Any = None, weight: Float | None = None
) -> KernelExpansion:
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
        Rows on which the two should agree, beside the landmarks; they count for one half.
    weight : ndarray of shape (b,), optional
        Of the rows.
    """
    return _reduced(expansion, n, X, weight)[0]


def compress_model(model: Any, n_components: int, X: Any = None, y: Any = None) -> Any:
    """Return a copy of a fitted model with fewer landmarks.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Stays as it is.
    n_components : int
        Landmarks that stay; becomes the parameter of the copy.
    X : rows, as for `fit`, optional
        Rows like those to be predicted: at most 5000 of them are drawn, on which the copy
        follows `model`. Without rows the landmarks alone stand for them.
    y : targets, as for `fit`, optional
        With the targets of rows that `model` was not fitted to, a classifier's probabilities are
        scaled anew. Otherwise the scaling stays.

    Returns
    -------
    estimator of the same class
        `landmark_indices_` is None where landmarks have moved. It has no sums over rows to go on
        from in `partial_fit`.
    """
    check_is_fitted(model)
    if X is None and y is not None:
        raise ValueError("Got y without X. Pass the rows that the targets belong to.")
    rows = None if X is None else _drawn(model, X, y)
    if rows is None:
        expansion, kept = _reduced(model.expansion_, n_components)
    else:
        expansion, kept = _reduced(model.expansion_, n_components, rows.X, rows.weight)
    copy = clone(model).set_params(n_components=int(n_components))
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if name not in parameters}
    fitted.pop("_running", None)
    vars(copy).update(fitted)
    copy.expansion_ = expansion
    indices = model.landmark_indices_
    copy.landmark_indices_ = None if kept is None or indices is None else indices[kept]
    if rows is not None and rows.targets is not None and rows.targets.discrete:
        copy._scaling = fit_scaling(expansion(rows.X), rows.labels, rows.weight)
    return copy


def _drawn(model: Any, X: Any, y: Any) -> Any:
    """Return some rows, wherever they are, checked and coded as the model's own."""
    wanted = Wanted(None)
    if y is not None:
        weights = getattr(model, "class_weight", None)
        wanted = Wanted(model._kind, weights, model._code, several=False)
    blocks, _ = take_in(model, X, y, None, wanted, reset=False).open(Progress(), Journal())
    rng = check_random_state(model.random_state)
    return blocks.gather(np.sort(blocks.sample(min(ROWS, blocks.n_candidates), rng)))


def _reduced(
    expansion: KernelExpansion, n: int, X: Any = None, weight: Float | None = None
) -> tuple[KernelExpansion, Positions | None]:
    """Return the smaller expansion, and which landmarks were kept if they are where they were."""
    kernel, Z = expansion.kernel, expansion.landmarks
    _check(kernel, n, Z.shape[0])
    if n == Z.shape[0]:
        return expansion, np.arange(n)
    seen = KernelExpansion(
        kernel=kernel,
        landmarks=Z,
        dual_coef=expansion.dual_coef,
        intercept=expansion.intercept,
    )
    if X is not None and expansion.projection is not None:
        X = project(X, expansion.projection)
    misfit = Misfit.of(seen, *_followed(Z, X, weight))
    kept = misfit.shortlist(n)
    M = misfit.parts(Z[kept]).M
    kept = kept[eliminated(M, misfit.solve(Z[kept]), n)[0]]
    points, moves = Z[kept], kernel.differentiable and not sp.issparse(Z)
    if moves:
        points = misfit.moved(points).astype(float_dtype(Z.dtype))
    double = KernelExpansion(
        kernel=kernel,
        landmarks=points,
        dual_coef=misfit.solve(points),
        intercept=expansion.intercept.astype(np.float64),
    )
    rows = misfit.X.astype(expansion.dual_coef.dtype)
    small = in_float32(double, Blocks(rows, ValueTargets(misfit.F)))
    return (
        KernelExpansion(
            kernel=kernel,
            landmarks=points,
            dual_coef=small.dual_coef,
            intercept=small.intercept,
            projection=expansion.projection,
        ),
        None if moves else kept,
    )


def _followed(Z: Any, X: Any, weight: Float | None) -> tuple[Any, Float]:
    """Return the rows on which the smaller model follows, and their weights, which sum to one.

    Landmarks are spread over what the model knows, rows over what it will be asked: both count for
    one half.
    """
    Z = Z[np.unique(np.linspace(0, Z.shape[0] - 1, ROWS).astype(np.intp))]
    own = np.full(Z.shape[0], 1.0 / Z.shape[0])
    if X is None:
        return Z, own
    weight = np.ones(X.shape[0]) if weight is None else weight
    sparse = sp.issparse(X) or sp.issparse(Z)
    both = sp.vstack([X, Z], format="csr") if sparse else np.concatenate([X, Z])
    return both, 0.5 * np.concatenate([weight / weight.sum(), own])


def _check(kernel: Kernel, n: int, most: int) -> None:
    check_count("n_components", n)
    if n > most:
        raise ValueError(
            f"n_components={n} exceeds the {most} landmarks of the model, which compress only "
            "lowers. Pass a smaller number, or fit a larger model."
        )
    if not kernel.positive_semidefinite and not isinstance(kernel, FunctionKernel):
        raise _indefinite(kernel)


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
    epsilon, jitter : float
    """

    kernel: Kernel
    X: Any
    weight: Float
    F: Float
    Z: Any
    A: Float
    epsilon: float
    jitter: float

    @classmethod
    def of(cls, expansion: KernelExpansion, X: Any, weight: Float) -> Misfit:
        """Return the distance from an expansion without a projection."""
        kernel, Z = expansion.kernel, expansion.landmarks.astype(np.float64)
        X = X.astype(np.float64)
        F = expansion(X).astype(np.float64) - expansion.intercept
        scale = float(kernel_diagonal(kernel, Z)[0].mean())
        if scale < 0:
            raise _indefinite(kernel)
        scale = scale or 1.0  # a kernel that is zero has no size
        epsilon = SMOOTHNESS * scale
        A = expansion.dual_coef.astype(np.float64)
        return cls(kernel, X, weight, F, Z, A, epsilon, JITTER * epsilon * scale)

    def shortlist(self, n: int) -> Positions:
        """Return the landmarks that compete for `n` places.

        All of them, or those that the others are explained by: with thousands of landmarks most
        are close to others. Large coefficients count more.
        """
        most = max(SHORTLIST_RATIO * n, SHORTLIST)
        if self.Z.shape[0] <= most:
            return np.arange(self.Z.shape[0])
        size = np.einsum("ij,ij->i", self.A, self.A)
        rng = np.random.RandomState(0)  # not used: greedy
        return np.sort(pivoted_cholesky(self.kernel, self.Z, most, size, rng, greedy=True))

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
