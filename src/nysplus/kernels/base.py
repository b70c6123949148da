"""The base class of kernels, and the base class of kernels with a width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator, clone
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from nysplus._rows.blocks import RowBlocks
from nysplus._rows.slicing import float_dtype
from nysplus._typing import Float

# Rows for the median heuristic, which needs a typical distance: they have half a million pairs.
MEDIAN_ROWS = 1000
# Kernel values of a piece of a block: few enough to stay in the cache between the product and the
# exponential, many enough for the product not to pack the landmarks again and again.
CACHED_VALUES = 2**20


def squared_distances(X: Any, Z: Any, direct: bool = False) -> Float:
    """Return ``‖x_i − z_j‖²`` by one matrix product, of shape (rows of X, rows of Z).

    The mean of Z is first subtracted from dense rows. The distances do not change, but
    ``‖x‖² + ‖z‖² − 2xz`` would cancel if all rows lay far from the origin. Rows of X whose squares
    overflow are infinitely far from all rows of Z.

    Parameters
    ----------
    X, Z : ndarray or CSR matrix
    direct : bool, default=False
        Sum the squares of differences instead, which takes several times as long: the distance of
        close rows is then right even if all others are much further apart. For dense rows.
    """
    if direct:
        squares: Float = cdist(X, Z, "sqeuclidean").astype(X.dtype, copy=False)
        return squares
    if not sp.issparse(X) and not sp.issparse(Z):
        shift = Z.mean(axis=0)
        X, Z = X - shift, Z - shift
    with np.errstate(over="ignore", invalid="ignore"):
        norms = row_norms(X, squared=True)
        D: Float = safe_sparse_dot(X, Z.T, dense_output=True)
        D *= -2.0
        D += norms[:, None]
        D += row_norms(Z, squared=True)[None, :]
    D[~np.isfinite(norms)] = np.inf
    return np.maximum(D, 0.0, out=D)


@dataclass(repr=False, eq=False)
class Kernel(BaseEstimator):
    """Base class: a subclass fills a block of the kernel matrix in :meth:`evaluate`."""

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every matrix ``K(Z, Z)`` is positive semidefinite; False if not known."""
        return True

    @property
    def may_be_positive_semidefinite(self) -> bool:
        """Whether the kernel is positive semidefinite, or not known not to be."""
        return self.positive_semidefinite

    @property
    def unit_diagonal(self) -> bool:
        """Whether ``k(x, x)`` is 1 for every x."""
        return False

    @property
    def differentiable(self) -> bool:
        """Whether :meth:`slopes` gives the kernel's gradients."""
        return False

    @property
    def of_differences(self) -> bool:
        """Whether the value depends on ``x − z`` alone, so that rows may be moved together."""
        return False

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """How the value follows from those of :meth:`per_feature`; None if it does not."""
        return None

    @property
    def is_tuned(self) -> bool:
        """Whether the width is chosen with the targets."""
        return False

    @property
    def takes_any_point(self) -> bool:
        """Whether means of rows may be landmarks; False if landmarks must be rows."""
        return True

    def __call__(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix of shape (rows of X, rows of Z); integers become float64."""
        X = X if sp.issparse(X) else np.asarray(X)
        Z = Z if sp.issparse(Z) else np.asarray(Z)
        dtype = np.result_type(float_dtype(X.dtype), float_dtype(Z.dtype))
        return self.evaluate(X.astype(dtype, copy=False), Z.astype(dtype, copy=False))

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return ``k(x_i, z_j)`` for floating rows X (b × d) and Z (n × d) of one type.

        The matrix is new: the caller may overwrite it.
        """
        raise NotImplementedError

    def bind(self, Z: Any) -> Callable[[Any], Float]:
        """Return ``X ↦ K(X, Z)`` for one Z and many X, both floating and of one type."""
        return lambda X: self.evaluate(X, Z)

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return σ with ``∇_x k(x_i, z_j) = σ_ij (x_i − z_j)``, of shape (rows of X, rows of Z).

        For floating rows of one type, and for a `differentiable` kernel: a function of the
        Euclidean distance that is smooth at 0.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no slopes. RBF has slopes, and Matern with nu=1.5 or 2.5."
        )

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return the values of each feature, of shape (d, rows of X, rows of Z).

        For dense floating rows of one type, and for a `separable` kernel: the product, or the sum,
        over the first axis is :meth:`evaluate`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} is neither a product nor a sum over features."
        )

    def resolve(self, blocks: RowBlocks, rng: np.random.RandomState) -> Kernel:
        """Return this kernel with every parameter that depends on the data set to a number."""
        return self


def feature_pairs(X: Float, Z: Float) -> tuple[Float, Float]:
    """Return rows with axes for (d, rows of X, rows of Z), to be broadcast against each other."""
    return X.T[:, :, None], Z.T[:, None, :]


@dataclass(repr=False, eq=False)
class ValuesOnly(Kernel):
    """A kernel of which nothing is known but its values between rows."""

    @property
    def takes_any_point(self) -> bool:
        """False: means of rows may be no rows, where rows are counts or numbers of rows."""
        return False

    @property
    def positive_semidefinite(self) -> bool:
        """False: it is not known."""
        return False

    @property
    def may_be_positive_semidefinite(self) -> bool:
        """True: it is not known."""
        return True


@dataclass(repr=False, eq=False)
class _Width(Kernel):
    """A kernel with a ``gamma``.

    Parameters
    ----------
    gamma : "scale", "median", "auto", None or float
        "scale" as in scikit-learn's ``SVC``; "median" from the median distance between rows;
        "auto" chosen with the targets; None as in scikit-learn's kernel functions.
    """

    gamma: float | str | None = "scale"

    @property
    def is_tuned(self) -> bool:
        """Whether ``gamma`` is "auto"."""
        return isinstance(self.gamma, str) and self.gamma == "auto"

    @property
    def width(self) -> float:
        """``gamma`` as a number, which it must be when the kernel is evaluated."""
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
            f"gamma='median' needs a kernel of distances, and {type(self).__name__} is not. "
            "Pass 'scale' or a number."
        )


def _median_distance(blocks: RowBlocks, rng: np.random.RandomState, metric: str) -> float:
    """Return the median of the positive distances between at most 1000 rows, or 0."""
    X = blocks.gather(blocks.sample(MEDIAN_ROWS, rng)).X.astype(np.float64)
    distances = pdist(X.toarray() if sp.issparse(X) else X, metric)
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 0.0
