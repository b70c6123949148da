"""Kernels: each a small object that fills a matrix ``K(X, Z)``.

A kernel is a dataclass and a :class:`~sklearn.base.BaseEstimator`, so ``clone``,
``set_params``, ``repr`` and grid search work on it. Data-dependent widths (``gamma="scale"``,
``"median"``) become numbers when a fit calls :meth:`Kernel.resolve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import pairwise
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from nysplus._blocks import RowBlocks, float_dtype
from nysplus._targets import Float

__all__ = [
    "KERNELS",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Cosine",
    "FunctionKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Sigmoid",
    "make_kernel",
]

# The median heuristic needs a typical distance, not an exact one: half a million pairs.
MEDIAN_ROWS = 1000
# Kernel values that stay in the cache between the product and the exponential, and are many
# enough for the product not to be slowed down by packing the landmarks again and again.
CACHED_VALUES = 2**20


def squared_distances(X: Any, Z: Any) -> Float:
    """Return ``‖x_i − z_j‖²`` by one matrix product, of shape (rows of X, rows of Z).

    Dense rows are first moved to the mean of Z. The distances do not change, but
    ``‖x‖² + ‖z‖² − 2xz`` then no longer cancels when all rows lie far from the origin.
    """
    if not sp.issparse(X) and not sp.issparse(Z):
        shift = Z.mean(axis=0)
        X, Z = X - shift, Z - shift
    D: Float = safe_sparse_dot(X, Z.T, dense_output=True)
    D *= -2.0
    D += row_norms(X, squared=True)[:, None]
    D += row_norms(Z, squared=True)[None, :]
    return np.maximum(D, 0.0, out=D)


@dataclass(repr=False, eq=False)
class Kernel(BaseEstimator):
    """Base class: a subclass fills a block of the kernel matrix in :meth:`evaluate`."""

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every matrix ``K(Z, Z)`` is; False where that is not known."""
        return True

    @property
    def differentiable(self) -> bool:
        """Whether :meth:`slopes` gives the kernel's gradients."""
        return False

    @property
    def is_tuned(self) -> bool:
        """Whether the width is to be chosen by the targets."""
        return False

    @property
    def takes_any_point(self) -> bool:
        """Whether means of rows may be landmarks; False where only rows themselves make sense."""
        return True

    def __call__(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix of shape (rows of X, rows of Z); integers become float64."""
        X = X if sp.issparse(X) else np.asarray(X)
        Z = Z if sp.issparse(Z) else np.asarray(Z)
        dtype = np.result_type(float_dtype(X.dtype), float_dtype(Z.dtype))
        return self.evaluate(X.astype(dtype, copy=False), Z.astype(dtype, copy=False))

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return ``k(x_i, z_j)`` for floating rows X (b × d) and Z (n × d) of one type.

        A new matrix, which the caller may use up.
        """
        raise NotImplementedError

    def bind(self, Z: Any) -> Callable[[Any], Float]:
        """Return ``X ↦ K(X, Z)`` for one Z and many X, both floating and of one type."""
        return lambda X: self.evaluate(X, Z)

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return σ with ``∇_x k(x_i, z_j) = σ_ij (x_i − z_j)``, of shape (rows of X, rows of Z).

        For floating rows of one type, and for a kernel that is `differentiable`: one of the
        Euclidean distance that is smooth at 0.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no slopes. RBF has them, and Matern with nu=1.5 or 2.5."
        )

    def resolve(self, blocks: RowBlocks, rng: np.random.RandomState) -> Kernel:
        """Return this kernel with every parameter that depends on the data set to a number."""
        return self


@dataclass(repr=False, eq=False)
class _Width(Kernel):
    """A kernel with a ``gamma``.

    Parameters
    ----------
    gamma : "scale", "median", "auto", None or float
        "scale" as in scikit-learn's ``SVC``; "median" from the median distance between rows;
        "auto" chosen by the targets; None as in scikit-learn's kernel functions.
    """

    gamma: float | str | None = "scale"

    @property
    def is_tuned(self) -> bool:
        """Whether ``gamma`` is "auto"."""
        return isinstance(self.gamma, str) and self.gamma == "auto"

    @property
    def width(self) -> float:
        """``gamma`` as the number that it must be when the kernel is evaluated."""
        gamma: Any = self.gamma
        if isinstance(gamma, Real):
            return float(gamma)
        raise ValueError(
            f"gamma={gamma!r} depends on the data, which {type(self).__name__} has not seen. Pass "
            "a number; inside an estimator, fit finds it."
        )

    def resolve(self, blocks: RowBlocks, rng: np.random.RandomState) -> Kernel:
        """Return this kernel with ``gamma`` as a number."""
        resolved: Kernel = clone(self).set_params(gamma=self._gamma_of(blocks, rng))
        return resolved

    def _gamma_of(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        gamma: Any = self.gamma
        if gamma is None:
            return self._default(blocks)
        if isinstance(gamma, str) and gamma == "scale":
            return self._scale(blocks, rng)
        if isinstance(gamma, str) and gamma == "median":
            return self._median(blocks, rng)
        if not isinstance(gamma, Real) or not 0 < float(gamma) < np.inf:
            raise ValueError(
                f"gamma={gamma!r} is not allowed. Pass 'scale', 'median', 'auto', None "
                "(scikit-learn's kernel default) or a positive finite number."
            )
        return float(gamma)

    def _default(self, blocks: RowBlocks) -> float:
        return 1.0 / blocks.n_features

    def _scale(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        variance = blocks.variance()
        return 1.0 / (blocks.n_features * variance) if variance > 0 else 1.0

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        raise ValueError(
            f"gamma='median' needs a kernel of distances, {type(self).__name__} is none. "
            "Pass 'scale' or a number."
        )


def _median_distance(blocks: RowBlocks, rng: np.random.RandomState, metric: str) -> float:
    """Return the median distance between distinct pairs of at most 1000 rows, or 0."""
    X = blocks.gather(blocks.sample(MEDIAN_ROWS, rng)).X.astype(np.float64)
    distances = pdist(X.toarray() if sp.issparse(X) else X, metric)
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 0.0


@dataclass(repr=False, eq=False)
class _Radial(_Width):
    """A kernel of the Euclidean distance; a length scale ℓ is ``gamma = 1 / (2ℓ²)``."""

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        length = _median_distance(blocks, rng, "euclidean")
        return 1.0 / (2.0 * length**2) if length > 0 else 1.0


@dataclass(repr=False, eq=False)
class RBF(_Radial):
    """Gaussian kernel ``exp(−γ‖x − z‖²)``.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale": ``1 / (d · Var(X))``; "median": ``1 / (2 m²)`` with m the median distance;
        None: ``1 / d``.

    Examples
    --------
    >>> from nysplus.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.607]]
    """

    @property
    def differentiable(self) -> bool:
        """True."""
        return True

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        return self.bind(Z)(X)

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return ``−2γK``."""
        K = self.evaluate(X, Z)
        K *= -2.0 * self.width
        return K

    def bind(self, Z: Any) -> Callable[[Any], Float]:
        """Return ``X ↦ K(X, Z)``; for dense rows one product and one exponential."""
        if sp.issparse(Z):
            return lambda X: self._of_distances(squared_distances(X, Z))
        gamma, (n, d) = self.width, Z.shape
        # −γ‖x − z‖² = [x, ‖x‖², 1] · [2γz, −γ, −γ‖z‖²], both sides moved to the mean of Z
        # (see squared_distances): the product alone gives what is to be exponentiated.
        shift = Z.mean(axis=0)
        columns = np.empty((d + 2, n), dtype=Z.dtype)
        columns[:d] = (Z - shift).T
        columns[d + 1] = -gamma * np.einsum("ij,ij->j", columns[:d], columns[:d])
        columns[d] = -gamma
        columns[:d] *= 2.0 * gamma

        def bound(X: Any) -> Float:
            if sp.issparse(X):
                return self._of_distances(squared_distances(X, Z))
            rows = np.empty((X.shape[0], d + 2), dtype=Z.dtype)
            np.subtract(X, shift, out=rows[:, :d])
            np.einsum("ij,ij->i", rows[:, :d], rows[:, :d], out=rows[:, d])
            rows[:, d + 1] = 1.0
            K = np.empty((X.shape[0], n), dtype=Z.dtype)
            step = max(1, CACHED_VALUES // n)
            for start in range(0, len(K), step):
                part = K[start : start + step]
                np.matmul(rows[start : start + step], columns, out=part)
                np.minimum(part, 0.0, out=part)
                np.exp(part, out=part)
            return K

        return bound

    def _of_distances(self, D: Float) -> Float:
        D *= -self.width
        return np.exp(D, out=D)


@dataclass(repr=False, eq=False)
class Matern(_Radial):
    """Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2.

    With ``r = ‖x − z‖ / ℓ`` and ``ℓ = 1 / √(2γ)``: ``exp(−r)``, ``(1 + √3 r) exp(−√3 r)`` or
    ``(1 + √5 r + 5r²/3) exp(−√5 r)``. It tends to ``RBF(gamma)`` as ν grows.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        As for :class:`RBF`. Equals scikit-learn's ``Matern(length_scale=(2γ) ** -0.5)``.
    nu : {0.5, 1.5, 2.5}, default=1.5
    """

    nu: float = 1.5

    def resolve(self, blocks: RowBlocks, rng: np.random.RandomState) -> Kernel:
        """Return this kernel with ``gamma`` as a number, after checking ``nu``."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu={self.nu!r} is not available. Allowed are 0.5, 1.5 and 2.5.")
        return super().resolve(blocks, rng)

    @property
    def differentiable(self) -> bool:
        """Whether ν is above 1/2, which leaves a kink at the landmark."""
        return self.nu in (1.5, 2.5)

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        s = self._scaled_distances(X, Z)
        K = np.exp(-s)
        if self.nu == 1.5:
            K *= 1.0 + s
        elif self.nu == 2.5:
            K *= 1.0 + s + s**2 / 3.0
        return K

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return ``−4νγ exp(−s)``, for ν = 5/2 times ``(1 + s) / 3``, with ``s = √(2ν) r``."""
        if not self.differentiable:
            return super().slopes(X, Z)
        s = self._scaled_distances(X, Z)
        # k'(s) is −s exp(−s), times (1 + s) / 3 for ν = 5/2; ∇s is 4νγ (x − z) / s
        slopes = np.exp(-s)
        slopes *= -4.0 * self.nu * self.width
        if self.nu == 2.5:
            slopes *= (1.0 + s) / 3.0
        return slopes

    def _scaled_distances(self, X: Any, Z: Any) -> Float:
        """Return ``√(2ν) r``, where ``r² = 2γ‖x − z‖²``."""
        D = squared_distances(X, Z)
        D *= 4.0 * self.nu * self.width
        return np.sqrt(D, out=D)


@dataclass(repr=False, eq=False)
class Laplacian(_Width):
    """Laplacian kernel ``exp(−γ‖x − z‖₁)``.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale": ``1 / (d · Std(X))``, since the distance grows with the values themselves;
        "median": ``1 / m`` with m the median distance; None: ``1 / d``.
    """

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.laplacian_kernel(X, Z, gamma=self.width)
        return K.astype(X.dtype, copy=False)

    def _scale(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        deviation = np.sqrt(blocks.variance())
        return float(1.0 / (blocks.n_features * deviation)) if deviation > 0 else 1.0

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        length = _median_distance(blocks, rng, "cityblock")
        return 1.0 / length if length > 0 else 1.0


@dataclass(repr=False, eq=False)
class Polynomial(_Width):
    """Polynomial kernel ``(γ xz + c)^p``.

    Parameters
    ----------
    gamma : "scale", None or float, default="scale"
        "scale": ``1 / (d · Var(X))``; None: ``1 / d``.
    coef0 : float, default=1
    degree : float, default=3
    """

    coef0: float = 1.0
    degree: float = 3

    @property
    def positive_semidefinite(self) -> bool:
        """Whether all terms of the power count positively."""
        return self.coef0 >= 0 and float(self.degree).is_integer()

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.polynomial_kernel(
            X, Z, gamma=self.width, coef0=self.coef0, degree=self.degree
        )
        return K


@dataclass(repr=False, eq=False)
class Sigmoid(_Width):
    """Sigmoid kernel ``tanh(γ xz + c)``, which is not positive semidefinite.

    Its negative eigenvalues enter the feature map by their size, as in scikit-learn's
    ``Nystroem``.

    Parameters
    ----------
    gamma : "scale", None or float, default="scale"
        "scale": ``1 / (d · Var(X))``; None: ``1 / d``.
    coef0 : float, default=1
    """

    coef0: float = 1.0

    @property
    def positive_semidefinite(self) -> bool:
        """False."""
        return False

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.sigmoid_kernel(X, Z, gamma=self.width, coef0=self.coef0)
        return K


@dataclass(repr=False, eq=False)
class Cosine(Kernel):
    """Cosine similarity ``xz / (‖x‖‖z‖)``."""

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.cosine_similarity(X, Z, dense_output=True)
        return K


@dataclass(repr=False, eq=False)
class Linear(Kernel):
    """Linear kernel ``xz``."""

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.linear_kernel(X, Z, dense_output=True)
        return K


def _require_histograms(X: Any, kernel: Kernel) -> None:
    """Raise unless X is dense and has no negative entry, which chi-squared distances need."""
    name = type(kernel).__name__
    if sp.issparse(X):
        raise TypeError(f"{name} takes dense rows only, got a sparse matrix. Pass X.toarray().")
    if X.size and X.min() < 0:
        raise ValueError(
            f"{name} takes non-negative features (histograms, counts), got {X.min():g}. "
            "Scale the features to [0, 1] or choose another kernel."
        )


@dataclass(repr=False, eq=False)
class Chi2(_Width):
    """Chi-squared kernel ``exp(−γ Σ (x − z)² / (x + z))`` of non-negative features.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale" and "median": one over the mean or median chi-squared distance of at most 1000
        rows; None: 1, as in scikit-learn's ``chi2_kernel``.
    """

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        _require_histograms(X, self)
        K: Float = pairwise.chi2_kernel(X, Z, gamma=self.width)
        return K

    def _default(self, blocks: RowBlocks) -> float:
        return 1.0

    def _scale(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        return self._one_over(np.mean, blocks, rng)

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        return self._one_over(np.median, blocks, rng)

    def _one_over(
        self, typical: Callable[[Any], Any], blocks: RowBlocks, rng: np.random.RandomState
    ) -> float:
        X = blocks.gather(blocks.sample(MEDIAN_ROWS, rng)).X
        _require_histograms(X, self)
        distances = -pairwise.additive_chi2_kernel(X)
        distances = distances[distances > 0]
        return float(1.0 / typical(distances)) if distances.size else 1.0


@dataclass(repr=False, eq=False)
class AdditiveChi2(Kernel):
    """Additive chi-squared kernel ``−Σ (x − z)² / (x + z)`` of non-negative features."""

    @property
    def positive_semidefinite(self) -> bool:
        """False: it is a negative distance."""
        return False

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        _require_histograms(X, self)
        K: Float = pairwise.additive_chi2_kernel(X, Z)
        return K


@dataclass(repr=False, eq=False)
class FunctionKernel(Kernel):
    """Any Python function as a kernel.

    Parameters
    ----------
    function : callable
        ``function(x, z, **params)`` of two rows returns a number, as scikit-learn's
        ``pairwise_kernels`` calls it; with ``vectorized=True`` it gets two matrices and
        returns the whole kernel matrix, which is far faster.
    vectorized : bool, default=False
    params : dict, optional
        Keyword arguments of `function`.

    Examples
    --------
    >>> from nysplus.kernels import FunctionKernel
    >>> overlap = FunctionKernel(lambda X, Z: X @ Z.T, vectorized=True)
    >>> overlap([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    function: Callable[..., Any]
    vectorized: bool = False
    params: dict[str, Any] | None = field(default=None)

    @property
    def takes_any_point(self) -> bool:
        """False: a function may want what rows are, such as counts or codes."""
        return False

    @property
    def positive_semidefinite(self) -> bool:
        """False: nobody knows."""
        return False

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        params = self.params or {}
        if self.vectorized:
            K = np.asarray(self.function(X, Z, **params))
        else:
            K = pairwise.pairwise_kernels(X, Z, metric=self.function, **params)
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"The kernel function returned shape {K.shape} for {X.shape[0]} rows and "
                f"{Z.shape[0]} landmarks; it must return {(X.shape[0], Z.shape[0])}."
            )
        return np.array(K, dtype=X.dtype)  # a copy: the caller may use it up


KERNELS: dict[str, type[Kernel]] = {
    "additive_chi2": AdditiveChi2,
    "chi2": Chi2,
    "cosine": Cosine,
    "laplacian": Laplacian,
    "linear": Linear,
    "matern": Matern,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
}


def make_kernel(
    kernel: Any, function_params: dict[str, Any] | None = None, **params: Any
) -> Kernel:
    """Return the kernel that an estimator's parameters describe.

    Parameters
    ----------
    kernel : str, Kernel or callable
    function_params : dict, optional
        Keyword arguments of a kernel that is a function.
    **params
        Of a named kernel; the ones it does not have are ignored, as in scikit-learn's ``SVC``.
        An object or a function has its own, so beside it they must stand at their defaults.
    """
    # None leaves a parameter at the kernel's own default; only gamma has a None of its own.
    params = {k: v for k, v in params.items() if v is not None or k == "gamma"}
    if isinstance(kernel, str):
        if kernel in KERNELS:
            kind = KERNELS[kernel]
            known = {parameter.name for parameter in fields(kind)}
            return kind(**{name: value for name, value in params.items() if name in known})
    elif isinstance(kernel, Kernel) or callable(kernel):
        for name, value in params.items():
            if value is not None and not (isinstance(value, str) and value == "scale"):
                raise ValueError(
                    f"{name}={value!r} has no effect beside kernel={kernel!r}. Set it on the "
                    "kernel itself."
                )
        if isinstance(kernel, Kernel):
            return kernel
        return FunctionKernel(kernel, params=function_params)
    raise ValueError(
        f"kernel={kernel!r} is not known. Allowed are {sorted(KERNELS)}, a nysplus.kernels "
        "object or a function of two rows."
    )
