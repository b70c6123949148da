"""The function ``F = φ(‖(x − μ)P − z‖²) A + b`` and the gradients of its losses.

Gradients are written out by hand in one floating type. A batch costs six matrix products, one
exponential and one elementwise product, and a few more elementwise products for Matérn kernels. The
kernel has width one: P and Z contain the width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._bytes.budget import PartBits
from nysplus._learning.losses import LEAST_EXPONENT, Loss
from nysplus._typing import Float
from nysplus.kernels import RBF, Kernel, Matern

# Overwrites −‖u − z‖² in the first matrix with φ(‖u − z‖²), and writes −φ'(‖u − z‖²) to the second.
Profile = Callable[[Float, Float], None]


def _gaussian(K: Float, S: Float) -> None:
    """Fill K for ``exp(−‖u − z‖²)``, where φ = −φ': S must be the matrix K."""
    np.clip(K, LEAST_EXPONENT, 0.0, out=K)
    np.exp(K, out=K)


def _matern(K: Float, S: Float, nu: float) -> None:
    """Fill K and S for the Matérn kernel with ν = 3/2 or 5/2, where ``s² = 4ν‖u − z‖²``."""
    K *= -4.0 * nu
    np.clip(K, 0.0, LEAST_EXPONENT**2, out=K)
    s = np.sqrt(K, out=K)
    np.negative(s, out=S)
    np.exp(S, out=S)
    if nu == 1.5:
        # (1 + s) exp(−s) and 2ν exp(−s)
        K += 1.0
        K *= S
        S *= 2.0 * nu
    else:
        # (1 + s + s²/3) exp(−s) and 2ν (1 + s)/3 exp(−s)
        last = s**2
        last *= S
        last /= 3.0
        K += 1.0
        K *= S
        np.multiply(K, 2.0 * nu / 3.0, out=S)
        K += last


UNIT_RBF = RBF(1.0)


@dataclass(frozen=True, eq=False)
class Scales:
    """The bits of the numbers of P, Z and A, and the scale of each of their columns.

    Attributes
    ----------
    bits : PartBits
    map, landmarks, coefficients : ndarray of float32, of shape (r,), (r,) and (L,)
        The scales of the map are those of features in their own units.
    """

    bits: PartBits
    map: Float
    landmarks: Float
    coefficients: Float


@dataclass(frozen=True)
class Parameters:
    """P, Z and A as views of one flat array, which the optimiser changes.

    Attributes
    ----------
    flat : ndarray of shape (d r + n r + n L,)
    d, r, n, L : int
        Features, directions, landmarks, outputs.
    kernel : RBF, or Matern with nu=1.5 or 2.5
        Of width one.
    scales : Scales, optional
        Where the numbers are multiples of scales.
    """

    flat: Float
    d: int
    r: int
    n: int
    L: int
    kernel: Kernel = UNIT_RBF
    scales: Scales | None = None
    P: Float = field(init=False, repr=False)
    Z: Float = field(init=False, repr=False)
    A: Float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first, second = self.d * self.r, (self.d + self.n) * self.r
        views = {
            "P": self.flat[:first].reshape(self.d, self.r),
            "Z": self.flat[first:second].reshape(self.n, self.r),
            "A": self.flat[second:].reshape(self.n, self.L),
        }
        for name, view in views.items():
            object.__setattr__(self, name, view)

    @classmethod
    def of(
        cls, P: Float, Z: Float, A: Float, dtype: npt.DTypeLike, kernel: Kernel = UNIT_RBF
    ) -> Parameters:
        """Return parameters with copies of P, Z and A."""
        flat = np.concatenate([P.ravel(), Z.ravel(), A.ravel()]).astype(dtype, copy=False)
        return cls(flat, P.shape[0], P.shape[1], Z.shape[0], A.shape[1], kernel)

    def like(self, flat: Float) -> Parameters:
        """Return parameters of the same shapes with other numbers."""
        return Parameters(flat, self.d, self.r, self.n, self.L, self.kernel)


class Gradient:
    """Gradients with respect to P, Z and A on batches of rows, in memory allocated once.

    O(rows · (6 n r + 6 n L + 4 d r)) for each batch.

    Parameters
    ----------
    parameters : Parameters
        Read again for each batch.
    b : ndarray of shape (L,)
    n_rows : int
        Rows of the largest batch.
    shift : ndarray of shape (d,), optional
        μ of sparse rows; the mean of dense rows is already subtracted.
    """

    def __init__(
        self, parameters: Parameters, b: Float, n_rows: int, shift: Float | None = None
    ) -> None:
        p, dtype = parameters, parameters.flat.dtype
        self.parameters, self.b, self.shift = parameters, b.astype(dtype), shift
        self.gradient = p.like(np.zeros_like(p.flat))
        self._U = np.ones((n_rows, p.r + 2), dtype)  # [U, 1, ‖u‖²]
        self._C = np.full((p.n, p.r + 2), -1.0, dtype)  # [2Z, −‖z‖², −1]
        self._Z = np.ones((p.n, p.r + 1), dtype)  # [Z, 1]
        self._K, self._H = np.empty((2, n_rows, p.n), dtype)
        self._profile: Profile = _gaussian
        self._slopes = self._K
        if isinstance(p.kernel, Matern):
            self._profile = partial(_matern, nu=p.kernel.nu)
            self._slopes = np.empty_like(self._K)
        self._F = np.empty((n_rows, p.L), dtype)
        self._V = np.empty((n_rows, p.r + 1), dtype)
        self._S = np.empty((p.n, p.r + 2), dtype)

    def scores(self, X: Any) -> Float:
        """Return the scores F of a batch; the next batch overwrites them."""
        p, B = self.parameters, X.shape[0]
        U, K, F = self._U[:B], self._K[:B], self._F[:B]
        if self.shift is None:
            np.matmul(X, p.P, out=U[:, : p.r])
        else:
            U[:, : p.r] = X @ p.P
            U[:, : p.r] -= self.shift @ p.P
        np.einsum("ij,ij->i", U[:, : p.r], U[:, : p.r], out=U[:, p.r + 1])
        np.multiply(p.Z, 2.0, out=self._C[:, : p.r])
        np.einsum("ij,ij->i", p.Z, p.Z, out=self._C[:, p.r])
        # np.negative of NumPy 2.4 gives wrong numbers in a column of four, on some processors
        self._C[:, p.r] *= -1.0
        # −‖u − z‖² = [u, 1, ‖u‖²] · [2z, −‖z‖², −1]
        np.matmul(U, self._C.T, out=K)
        self._profile(K, self._slopes[:B])
        np.matmul(K, p.A, out=F)
        F += self.b
        return F

    def __call__(self, X: Any, loss: Loss, weight: Float | float, smoothing: float) -> Parameters:
        """Return the gradient of ``Σ_i w_i loss_i``; the next batch overwrites it.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (rows, d)
        loss : Loss
            Of the same rows.
        weight : ndarray of shape (rows, 1), or a number
            w.
        smoothing : float
            Label smoothing.
        """
        p, g, B = self.parameters, self.gradient, X.shape[0]
        G = loss.slopes(self.scores(X), smoothing)
        G *= weight
        U, K, H, V = self._U[:B], self._K[:B], self._H[:B], self._V[:B]
        np.matmul(K.T, G, out=g.A)
        # H = −(G Aᵀ) ∘ φ'; HᵀU and Hᵀ1 in one product, HZ and H1 in another
        np.multiply(G, p.A.T, out=H) if p.L == 1 else np.matmul(G, p.A.T, out=H)
        H *= self._slopes[:B]
        np.matmul(H.T, U, out=self._S)
        np.multiply(self._S[:, p.r, None], p.Z, out=g.Z)
        np.subtract(self._S[:, : p.r], g.Z, out=g.Z)
        g.Z[:] *= 2.0
        self._Z[:, : p.r] = p.Z
        np.matmul(H, self._Z, out=V)
        # ∂u_i = 2 [(HZ)_i − (H1)_i u_i]
        dU = V[:, : p.r]
        U[:, : p.r] *= V[:, p.r, None]
        dU -= U[:, : p.r]
        dU *= 2.0
        if sp.issparse(X):
            g.P[:] = X.T @ dU
        else:
            np.matmul(X.T, dU, out=g.P)
        if self.shift is not None:
            g.P[:] -= np.outer(self.shift, dU.sum(axis=0))
        return g

    def outer_product(self, X: Any) -> Float:
        """Return ``Σ_i Σ_l g_il g_ilᵀ`` of a batch, for the gradients g of scores by xP.

        O(rows · n r L).
        """
        p, B = self.parameters, X.shape[0]
        self.scores(X)
        U, H, V = self._U[:B, : p.r], self._H[:B], self._V[:B]
        self._Z[:, : p.r] = p.Z
        total = np.zeros((p.r, p.r))
        for coefficients in p.A.T:
            np.multiply(self._slopes[:B], coefficients, out=H)
            np.matmul(H, self._Z, out=V)
            g = 2.0 * (V[:, : p.r] - V[:, p.r, None] * U)
            total += g.T @ g
        return total
