"""Kernels as C statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def literal(value: float) -> str:
    """Return the shortest float literal that is read back as the same number."""
    single = np.float32(value)
    # compilers warn of subnormal literals, and many processors have no such numbers
    if abs(single) < np.finfo(np.float32).tiny:
        return "0.0f"
    text = str(single)
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


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
    start, final : str
        Statements before and after the loop over the coordinates.
    root : bool
        Whether the statements call the square root function.
    """

    formula: str
    terms: str
    value: str
    start: str = ""
    final: str = ""
    root: bool = False


_DIFFERENCE = "const float t = u[j] - z;\nsum += t * t;"
_CHI2 = "const float t = u[j] - z, s = u[j] + z;\nif (s != 0.0f) sum += t * t / s;"


def _rbf(kernel: RBF) -> CKernel:
    return CKernel("exp(-g |u - z|^2)", _DIFFERENCE, f"expf({literal(-kernel.width)} * sum)")


def _matern(kernel: Matern) -> CKernel:
    factor = {
        0.5: "",
        1.5: "(1.0f + s) * ",
        2.5: f"(1.0f + s + s * s * {literal(1.0 / 3.0)}) * ",
    }[kernel.nu]
    polynomial = {0.5: "", 1.5: "(1 + s) ", 2.5: "(1 + s + s^2 / 3) "}[kernel.nu]
    return CKernel(
        f"{polynomial}exp(-s), s = sqrt({4 * kernel.nu:g} g) |u - z|",
        _DIFFERENCE,
        f"{factor}expf(-s)",
        final=f"const float s = @_sqrt({literal(4.0 * kernel.nu * kernel.width)} * sum);",
        root=True,
    )


def _laplacian(kernel: Laplacian) -> CKernel:
    terms = "const float t = u[j] - z;\nsum += t < 0.0f ? -t : t;"
    return CKernel("exp(-g |u - z|_1)", terms, f"expf({literal(-kernel.width)} * sum)")


def _polynomial(kernel: Polynomial) -> CKernel:
    degree = float(kernel.degree)
    if not degree.is_integer() or not 0 <= degree <= MAX_DEGREE:
        raise ValueError(
            f"degree={kernel.degree!r} has no C export, which multiplies instead of calling powf. "
            f"Whole numbers from 0 to {MAX_DEGREE} have one."
        )
    return CKernel(
        f"(g u.z + {kernel.coef0:g})^{int(degree)}",
        "sum += u[j] * z;",
        "power",
        final=f"const float base = {literal(kernel.width)} * sum + {literal(kernel.coef0)};\n"
        "float power = 1.0f;\n"
        f"for (int p = 0; p < {int(degree)}; p++) power *= base;",
    )


def _sigmoid(kernel: Sigmoid) -> CKernel:
    return CKernel(
        f"tanh(g u.z + {kernel.coef0:g})",
        "sum += u[j] * z;",
        # tanh(t) = 1 - 2 / (exp(2t) + 1)
        f"1.0f - 2.0f / (expf({literal(2.0 * kernel.width)} * sum + "
        f"{literal(2.0 * kernel.coef0)}) + 1.0f)",
    )


def _linear(kernel: Linear) -> CKernel:
    return CKernel("u.z", "sum += u[j] * z;", "sum")


def _cosine(kernel: Cosine) -> CKernel:
    return CKernel(
        "u.z / (|u| |z|), 0 for u = 0 or z = 0",
        "sum += u[j] * z;\nuu += u[j] * u[j];\nzz += z * z;",
        "norms > 0.0f ? sum / norms : 0.0f",
        start="float uu = 0.0f, zz = 0.0f;",
        final="const float norms = @_sqrt(uu) * @_sqrt(zz);",
        root=True,
    )


def _chi2(kernel: Chi2) -> CKernel:
    formula = "exp(-g sum (u - z)^2 / (u + z))"
    return CKernel(formula, _CHI2, f"expf({literal(-kernel.width)} * sum)")


def _additive_chi2(kernel: AdditiveChi2) -> CKernel:
    return CKernel("-sum (u - z)^2 / (u + z)", _CHI2, "-sum")


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
