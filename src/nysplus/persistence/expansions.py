"""Kernel expansions as tensors and their layout, and back, with everything checked."""

from __future__ import annotations

import reprlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion
from nysplus.kernels import Kernel, Matern
from nysplus.persistence.parameters import (
    CSR_PARTS,
    csr_of,
    entry,
    require,
    value_in,
    value_out,
)
from nysplus.persistence.tables import Tensors, code_in, code_out, split_tensors

# Tensors that not every expansion has.
OPTIONAL = {"projection", "center", "linear"}


def expansion_out(expansion: KernelExpansion) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of an expansion, and their layout as JSON."""
    arrays: dict[str, Any]
    packed, csr = expansion.packed, None
    names = [f.name for f in fields(PackedExpansion) if getattr(expansion, f.name) is not None]
    if packed is not None:
        arrays = {name: getattr(packed, name).values for name in names}
        scales = {f"{name}.scale": getattr(packed, name).scale for name in names}
        arrays |= {name: scale for name, scale in scales.items() if scale is not None}
    else:
        arrays = {name: getattr(expansion, name) for name in names}
    Z = arrays["landmarks"]
    if sp.issparse(Z):
        csr = {"shape": list(Z.shape), "array": isinstance(Z, sp.sparray)}
        del arrays["landmarks"]
        arrays |= {f"landmarks.{part}": getattr(Z, part) for part in CSR_PARTS}
    layout = {
        "kernel": value_out(expansion.kernel, "kernel"),
        "stored": packed is not None,
        "csr": csr,
        # products of matrices round differently in another order
        "fortran": [name for name, array in arrays.items() if _is_fortran(array)],
    }
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if expansion.encoder is not None:
        more, layout["encoder"] = code_out(expansion.encoder)
        tensors |= more
    return tensors, layout


def _is_fortran(array: npt.NDArray[Any]) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value))


def expansion_in(layout: dict[str, Any], tensors: Tensors, n_features: int) -> KernelExpansion:
    """Return the expansion of which :func:`expansion_out` has written tensors and layout.

    Without an encoder it is a function of `n_features` features.
    """
    if "encoder" not in layout:
        return _function_in(layout, tensors, n_features)
    own, others = split_tensors(tensors)
    code = code_in(entry(layout, "encoder", dict), own)
    require(layout.get("csr") is None, "CSR landmarks cannot have an encoder.")
    return replace(_function_in(layout, others, code.n_columns), encoder=code)


def _function_in(layout: dict[str, Any], tensors: Tensors, n_features: int) -> KernelExpansion:
    """Return the function of features, or of code columns."""
    kernel = _kernel_in(value_in(entry(layout, "kernel", dict)))
    is_stored = entry(layout, "stored", bool)
    csr = entry(layout, "csr", dict, type(None))
    require(not (is_stored and csr), "CSR landmarks cannot be packed.")
    known = {"landmarks", "dual_coef", "intercept"} | OPTIONAL & set(tensors)
    if csr is not None:
        known = known - {"landmarks"} | {f"landmarks.{part}" for part in CSR_PARTS}
    small = {name for name in known if is_stored and f"{name}.scale" in tensors}
    known |= {f"{name}.scale" for name in small}
    require(
        known == set(tensors), f"its tensors are {sorted(tensors)}, expected are {sorted(known)}."
    )
    for name, tensor in tensors.items():
        require(np.isfinite(tensor).all(), f"tensor {name!r} has numbers that are not finite.")
    tensors = dict(tensors)
    for name in entry(layout, "fortran", list):
        require(name in tensors, f"fortran={reprlib.repr(name)} is no tensor.")
        tensors[name] = np.asfortranarray(tensors[name])
    parts: dict[str, Any] = {
        name: tensors.get(name) for name in ("dual_coef", "intercept", *sorted(OPTIONAL))
    }
    Z = tensors["landmarks"] if csr is None else _csr_in(csr, tensors)
    _check_shapes(Z, n_features=n_features, **parts)
    if is_stored:
        kept = {
            name: _packed_in(name, tensor, tensors.get(f"{name}.scale"))
            for name, tensor in {"landmarks": Z, **parts}.items()
            if tensor is not None
        }
        return KernelExpansion.unpacked(kernel, PackedExpansion(**kept))
    for name, part in parts.items():
        require(
            part is None or part.dtype in (np.float64, np.float32),
            f"tensor {name!r} must have float64 or float32.",
        )
    return KernelExpansion(kernel, Z, **parts)


def _check_shapes(
    Z: Any,
    dual_coef: Any,
    intercept: Any,
    projection: Any,
    center: Any,
    linear: Any,
    n_features: int,
) -> None:
    """Raise unless Z, A, b, P, c and B fit each other and the rows."""
    fits = Z.ndim == 2 and min(Z.shape) >= (1 if linear is None else 0) and Z.shape[1] >= 1
    require(fits, f"its landmarks have the shape {Z.shape}.")
    n, r = Z.shape
    fits = dual_coef.ndim == 2 and len(dual_coef) == n and dual_coef.shape[1] >= 1
    require(fits, f"its coefficients have the shape {dual_coef.shape} for {n} landmarks.")
    fits = intercept.shape == dual_coef.shape[1:]
    require(fits, f"its intercept has the shape {intercept.shape}, not {dual_coef.shape[1:]}.")
    fits = linear is None or linear.shape == (n_features, *intercept.shape)
    require(fits, f"its linear term does not have the shape {(n_features, *intercept.shape)}.")
    fits = center is None or center.shape == (n_features,)
    require(fits, f"its center does not have the shape {(n_features,)}.")
    if projection is None:
        require(r == n_features, f"its landmarks have {r} features, its rows {n_features}.")
        return
    fits = projection.shape == (n_features, r) or projection.shape == (n_features,) == (r,)
    require(
        fits,
        f"its projection has the shape {projection.shape} between {n_features} features and "
        f"landmarks of {r}.",
    )


def _packed_in(name: str, values: npt.NDArray[Any], scale: npt.NDArray[Any] | None) -> PackedArray:
    if scale is None:
        allowed = values.dtype in (np.float64, np.float32, np.float16)
        require(allowed, f"tensor {name!r} has {values.dtype} without a scale.")
        return PackedArray(values)
    require(values.dtype == np.int8, f"tensor {name!r} has a scale, but is not int8.")
    fits = scale.dtype == np.float32 and scale.shape == values.shape[1:]
    require(fits and (scale >= 0).all(), f"the scale of {name!r} must be a float32 per column.")
    packed = PackedArray(values, scale)
    with np.errstate(over="ignore"):
        require(np.isfinite(packed.unpacked()).all(), f"the scale of {name!r} is too large.")
    return packed


def _csr_in(csr: dict[str, Any], tensors: Tensors) -> Any:
    """Return CSR landmarks whose numbers of columns and rows are in range."""
    shape = entry(csr, "shape", list)
    make = sp.csr_array if entry(csr, "array", bool) else sp.csr_matrix
    return csr_of(make, [tensors[f"landmarks.{part}"] for part in CSR_PARTS], shape)


def _kernel_in(kernel: Any) -> Kernel:
    """Return a kernel after checking that its parameters are numbers it can have."""
    require(isinstance(kernel, Kernel), f"{kernel!r} is no kernel.")
    for name, value in kernel.get_params().items():
        allowed = is_number(value) and (name != "gamma" or value > 0)
        require(allowed, f"{name}={value!r} of {type(kernel).__name__} is not possible.")
    if isinstance(kernel, Matern):
        require(kernel.nu in (0.5, 1.5, 2.5), f"nu={kernel.nu!r} of Matern is not possible.")
    checked: Kernel = kernel
    return checked
