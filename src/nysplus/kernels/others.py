"""Kernels of inner products and histograms, and kernels that are functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise

from nysplus._rows.blocks import RowBlocks
from nysplus._typing import Float
from nysplus.kernels.base import MEDIAN_ROWS, Kernel, ValuesOnly, _Width, feature_pairs


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
        """Whether all coefficients of the expanded power are positive."""
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

    The feature map uses the absolute values of its negative eigenvalues, as scikit-learn's
    ``Nystroem`` does.

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
        K: Float = pairwise.cosine_similarity(_near_one(X), _near_one(Z), dense_output=True)
        return K


def _near_one(X: Any) -> Any:
    """Return the rows, each times a power of two, so that the largest entry is in [0.5, 1).

    The angles stay the same to the last bit. scikit-learn takes rows that are shorter than 2e-15
    for zeros, and squares of very large entries overflow.
    """
    if sp.issparse(X):
        exponents = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
        data = np.ldexp(X.data, -np.repeat(exponents, np.diff(X.indptr)))
        return type(X)((data, X.indices, X.indptr), X.shape)
    exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))[1]
    scaled: Float = np.ldexp(X, -exponents)
    return scaled


@dataclass(repr=False, eq=False)
class Linear(Kernel):
    """Linear kernel ``xz``."""

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """A sum over the features."""
        return "sum"

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return ``xz`` of each feature."""
        x, z = feature_pairs(X, Z)
        products: Float = x * z
        return products

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


def _chi2_distances(X: Float, Z: Float) -> Float:
    """Return ``(x − z)² / (x + z)`` of each feature, where 0/0 is 0."""
    x, z = feature_pairs(X, Z)
    total = x + z
    return np.divide((x - z) ** 2, total, out=np.zeros_like(total), where=total != 0)


@dataclass(repr=False, eq=False)
class Chi2(_Width):
    """Chi-squared kernel ``exp(−γ Σ (x − z)² / (x + z))`` of non-negative features.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale" and "median": one over the mean or median chi-squared distance of at most 1000
        rows; None: 1, as in scikit-learn's ``chi2_kernel``.
    """

    @property
    def unit_diagonal(self) -> bool:
        """True."""
        return True

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """A product over the features."""
        return "product"

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return ``exp(−γ(x − z)² / (x + z))`` of each feature."""
        _require_histograms(X, self)
        factors: Float = np.exp(-self.width * _chi2_distances(X, Z))
        return factors

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

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """A sum over the features."""
        return "sum"

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return ``−(x − z)² / (x + z)`` of each feature."""
        _require_histograms(X, self)
        return -_chi2_distances(X, Z)

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        _require_histograms(X, self)
        K: Float = pairwise.additive_chi2_kernel(X, Z)
        return K


@dataclass(repr=False, eq=False)
class FunctionKernel(ValuesOnly):
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

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        params = self.params or {}
        if self.vectorized:
            K = self.function(X, Z, **params)
            K = K.toarray() if sp.issparse(K) else np.asarray(K)
        else:
            K = pairwise.pairwise_kernels(X, Z, metric=self.function, **params)
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"The kernel function returned shape {K.shape} for {X.shape[0]} rows and "
                f"{Z.shape[0]} landmarks; it must return {(X.shape[0], Z.shape[0])}."
            )
        return np.array(K, dtype=X.dtype)  # a copy, which the caller may overwrite
