"""Kernels: each a small object that fills a matrix ``K(X, Z)``.

A kernel is a dataclass and a :class:`~sklearn.base.BaseEstimator`, so ``clone``,
``set_params``, ``repr`` and grid search work on it. Data-dependent widths (``gamma="scale"``,
``"median"``) become numbers when a fit calls :meth:`Kernel.resolve`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from nysplus._validation import advice
from nysplus.kernels.base import Kernel
from nysplus.kernels.l1 import Laplacian
from nysplus.kernels.others import (
    AdditiveChi2,
    Chi2,
    Cosine,
    FunctionKernel,
    Linear,
    Polynomial,
    Sigmoid,
)
from nysplus.kernels.radial import RBF, Matern

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
        Parameters of a named kernel; unknown ones are ignored, as in scikit-learn's ``SVC``. For a
        kernel object or a function they must have their defaults.
    """
    # None stands for the kernel's default; only for gamma is None a value
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
        f"{advice(kernel, KERNELS)}"
    )
