"""Kernels as C statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)

# Powers are products in the header; polynomial kernels of more factors than this are not in use.
MAX_DEGREE = 64


def single(value: float) -> np.float32:
    """Return a number as the header has it: at most the largest float, and never subnormal."""
    limits = np.finfo(np.float32)
    number = np.float32(np.clip(value, limits.min, limits.max))
    # compilers warn of subnormal literals, and many processors have no such numbers
    return number if abs(number) >= limits.tiny else np.float32(0.0)


def literal(value: float) -> str:
    """Return the shortest float literal that is read back as the same number."""
    text = str(single(value))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def number(value: float) -> str:
    """Return the mark of a number in statements (see :func:`in_real`)."""
    return f"`{float(value)!r}`"


def in_real(text: str, real: str) -> str:
    """Return statements for a type of real numbers, "float" or "double".

    In statements and templates, everything that depends on the type is between backquotes: the
    type itself, functions of libm, and numbers.
    """

    def written(mark: re.Match[str]) -> str:
        if mark[1] == "float":
            return real
        if mark[1] in ("exp", "cos", "sin"):
            return f"{mark[1]}f" if real == "float" else mark[1]
        return literal(float(mark[1])) if real == "float" else repr(float(mark[1]))

    text = re.sub("`([^`]+)`", written, text)
    return text if real == "float" else text.replace("@_sqrt(", "@_root(")


def in_type(U: Float, value: float) -> Any:
    """Return a number in the type of U, as the header has it."""
    return single(value) if U.dtype == np.float32 else value


@dataclass(frozen=True)
class CKernel:
    """The C statements of ``k(u, z)``: a sum over the r coordinates, then a number from the sum.

    Attributes
    ----------
    formula : str
        For the comment at the top of the header.
    terms : str
        Statements for coordinate j that add a term of ``u[j]`` and ``z`` to ``sum``.
    value : str
        Expression for the kernel's value, of ``sum`` and the variables of `final`.
    matrix : callable
        The same arithmetic in NumPy: kernel values of rows U and Z, in their type.
    start, final : str
        Statements before and after the loop over the coordinates.
    helpers : tuple of str
        Templates of the functions that the statements call.
    """

    formula: str
    terms: str
    value: str
    matrix: Callable[[Float, Float], Float]
    start: str = "`float` sum = `0.0`;"
    final: str = ""
    helpers: tuple[str, ...] = ()


def _sum(U: Float, Z: Float, term: Callable[[Float, Float], Float]) -> Float:
    """Return ``Σ_j term(u_j, z_j)`` for all pairs of rows, added one after the other."""
    total = np.zeros((len(U), len(Z)), dtype=U.dtype)
    for u, z in zip(U.T, Z.T, strict=True):
        total += term(u[:, None], z)
    return total


def _squares(U: Float, Z: Float) -> Float:
    return _sum(U, Z, lambda u, z: (u - z) ** 2)


def _products(U: Float, Z: Float) -> Float:
    return _sum(U, Z, lambda u, z: u * z)


def _chi2_distances(U: Float, Z: Float) -> Float:
    def term(u: Float, z: Float) -> Float:
        s = u + z
        return np.divide((u - z) ** 2, s, out=np.zeros_like(s), where=s != 0)

    return _sum(U, Z, term)


_DIFFERENCE = "const `float` t = u[j] - z;\nsum += t * t;"
_CHI2 = "const `float` t = u[j] - z, s = u[j] + z;\nif (s != `0.0`) sum += t * t / s;"


def _rbf(kernel: RBF) -> CKernel:
    return CKernel(
        "exp(-g |u - z|^2)",
        _DIFFERENCE,
        f"`exp`({number(-kernel.width)} * sum)",
        lambda U, Z: np.exp(in_type(U, -kernel.width) * _squares(U, Z)),
    )


def _matern(kernel: Matern) -> CKernel:
    factor = {
        0.5: "",
        1.5: "(`1.0` + s) * ",
        2.5: f"(`1.0` + s + s * s * {number(1.0 / 3.0)}) * ",
    }[kernel.nu]
    polynomial = {0.5: "", 1.5: "(1 + s) ", 2.5: "(1 + s + s^2 / 3) "}[kernel.nu]

    def matrix(U: Float, Z: Float) -> Float:
        s = np.sqrt(in_type(U, 4.0 * kernel.nu * kernel.width) * _squares(U, Z))
        factors = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s * in_type(U, 1.0 / 3.0)}
        K: Float = factors[kernel.nu] * np.exp(-s)
        return K

    return CKernel(
        f"{polynomial}exp(-s), s = sqrt({4 * kernel.nu:g} g) |u - z|",
        _DIFFERENCE,
        f"{factor}`exp`(-s)",
        matrix,
        final=f"const `float` s = @_sqrt({number(4.0 * kernel.nu * kernel.width)} * sum);",
        helpers=("sqrt",),
    )


def _laplacian(kernel: Laplacian) -> CKernel:
    return CKernel(
        "exp(-g |u - z|_1)",
        "const `float` t = u[j] - z;\nsum += t < `0.0` ? -t : t;",
        f"`exp`({number(-kernel.width)} * sum)",
        lambda U, Z: np.exp(in_type(U, -kernel.width) * _sum(U, Z, lambda u, z: np.abs(u - z))),
    )


def _polynomial(kernel: Polynomial) -> CKernel:
    if not float(kernel.degree).is_integer() or not 0 <= kernel.degree <= MAX_DEGREE:
        raise ValueError(
            f"degree={kernel.degree!r} has no C export, which multiplies instead of calling powf. "
            f"Whole numbers from 0 to {MAX_DEGREE} have one."
        )
    degree = int(kernel.degree)

    def matrix(U: Float, Z: Float) -> Float:
        base = in_type(U, kernel.width) * _products(U, Z) + in_type(U, kernel.coef0)
        power: Float = base**degree
        return power

    return CKernel(
        f"(g u.z + {kernel.coef0:g})^{degree}",
        "sum += u[j] * z;",
        "power",
        matrix,
        final=f"const `float` base = {number(kernel.width)} * sum + {number(kernel.coef0)};\n"
        "`float` power = `1.0`;\n"
        f"for (int p = 0; p < {degree}; p++) power *= base;",
    )


def _sigmoid(kernel: Sigmoid) -> CKernel:
    # tanh(t) = 1 - 2 / (exp(2t) + 1)
    slope, start = 2.0 * kernel.width, 2.0 * kernel.coef0

    def matrix(U: Float, Z: Float) -> Float:
        exponents = in_type(U, slope) * _products(U, Z) + in_type(U, start)
        K: Float = 1.0 - 2.0 / (np.exp(exponents) + 1.0)
        return K

    return CKernel(
        f"tanh(g u.z + {kernel.coef0:g})",
        "sum += u[j] * z;",
        f"`1.0` - `2.0` / (`exp`({number(slope)} * sum + {number(start)}) + `1.0`)",
        matrix,
    )


def _linear(kernel: Linear) -> CKernel:
    return CKernel("u.z", "sum += u[j] * z;", "sum", _products)


def _cosine(kernel: Cosine) -> CKernel:
    def matrix(U: Float, Z: Float) -> Float:
        U, Z = U.astype(np.float64), Z.astype(np.float64)
        norms = np.outer(np.linalg.norm(U, axis=1), np.linalg.norm(Z, axis=1))
        return np.divide(U @ Z.T, norms, out=np.zeros_like(norms), where=norms > 0)

    # squares of floats may exceed the range of float, but not that of double
    return CKernel(
        "u.z / (|u| |z|), 0 for u = 0 or z = 0",
        "uz += (double)u[j] * z;\nuu += (double)u[j] * u[j];\nzz += (double)z * z;",
        "norms > 0.0 ? (`float`)(uz / norms) : `0.0`",
        matrix,
        start="double uz = 0.0, uu = 0.0, zz = 0.0;",
        final="const double norms = @_root(uu) * @_root(zz);",
        helpers=("root",),
    )


def _chi2(kernel: Chi2) -> CKernel:
    return CKernel(
        "exp(-g sum (u - z)^2 / (u + z))",
        _CHI2,
        f"`exp`({number(-kernel.width)} * sum)",
        lambda U, Z: np.exp(in_type(U, -kernel.width) * _chi2_distances(U, Z)),
    )


def _additive_chi2(kernel: AdditiveChi2) -> CKernel:
    formula = "-sum (u - z)^2 / (u + z)"
    return CKernel(formula, _CHI2, "-sum", lambda U, Z: -_chi2_distances(U, Z))


# By the class itself: a subclass may compute its matrix differently.
_KERNELS: dict[type[Kernel], Callable[[Any], CKernel]] = {
    AdditiveChi2: _additive_chi2,
    Chi2: _chi2,
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _linear,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    Sigmoid: _sigmoid,
}


def c_kernel(kernel: Kernel) -> CKernel:
    """Return the C statements of a kernel, or raise if it has none."""
    if type(kernel) not in _KERNELS:
        raise ValueError(
            f"kernel={kernel!r} has no C export. Kernels that have one: "
            f"{', '.join(sorted(known.__name__ for known in _KERNELS))}."
        )
    return _KERNELS[type(kernel)](kernel)
