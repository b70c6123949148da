"""Kernel expansions as tensors and their layout, and back, with everything checked."""

from __future__ import annotations

import math
import reprlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._bytes.bit_stream import pack_bits, unpack_bits
from nysplus.expansion import (
    MAX_BITS,
    MIN_BITS,
    KernelExpansion,
    PackedArray,
    PackedExpansion,
    bits_in_bytes,
    largest_integer,
)
from nysplus.kernels import Kernel, Matern
from nysplus.persistence.codes import code_in, code_out
from nysplus.persistence.parameters import (
    CSR_PARTS,
    csr_of,
    entry,
    require,
    value_in,
    value_out,
)
from nysplus.persistence.tables import Tensors, split_tensors

# Tensors that not every expansion has.
OPTIONAL = {"projection", "center", "linear"}


def expansion_out(expansion: KernelExpansion) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of an expansion, and their layout as JSON."""
    arrays: dict[str, Any]
    packed, csr = expansion.packed, None
    few_bits: dict[str, PackedArray] = {}
    names = [f.name for f in fields(PackedExpansion) if getattr(expansion, f.name) is not None]
    if packed is not None:
        parts = {name: getattr(packed, name) for name in names}
        arrays = {name: part.values for name, part in parts.items()}
        for kind in ("scale", "offset"):
            found = {f"{name}.{kind}": getattr(part, kind) for name, part in parts.items()}
            arrays |= {name: array for name, array in found.items() if array is not None}
        few_bits = {name: part for name, part in parts.items() if part.bits < MAX_BITS}
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
    tensors: Tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    if few_bits:
        for name, part in few_bits.items():
            tensors[name] = pack_bits(part.values, part.bits)
        layout["few_bits"] = {
            name: {"bits": part.bits, "shape": list(part.values.shape)}
            for name, part in few_bits.items()
        }
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
    small = _check_names(set(tensors), is_stored, csr is not None)
    for name, tensor in tensors.items():
        require(np.isfinite(tensor).all(), f"tensor {name!r} has numbers that are not finite.")
    tensors = dict(tensors)
    few_bits = entry(layout, "few_bits", dict) if "few_bits" in layout else {}
    for name, record in few_bits.items():
        require(name in small, f"few_bits of {reprlib.repr(name)} is of no tensor with a scale.")
        tensors[name] = _integers_in(name, tensors[name], record)
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
            name: PackedArray(
                tensor,
                tensors.get(f"{name}.scale"),
                few_bits[name]["bits"] if name in few_bits else MAX_BITS,
                tensors.get(f"{name}.offset"),
            )
            for name, tensor in {"landmarks": Z, **parts}.items()
            if tensor is not None
        }
        for name, part in kept.items():
            _check_packed(name, part)
        return KernelExpansion.unpacked(kernel, PackedExpansion(**kept))
    for name, part in parts.items():
        require(
            part is None or part.dtype in (np.float64, np.float32),
            f"tensor {name!r} must have float64 or float32.",
        )
    return KernelExpansion(kernel, Z, **parts)


def _check_names(found: set[str], is_stored: bool, is_csr: bool) -> set[str]:
    """Raise unless the tensors are those of an expansion; return those that have a scale."""
    known = {"landmarks", "dual_coef", "intercept"} | OPTIONAL & found
    if is_csr:
        known = known - {"landmarks"} | {f"landmarks.{part}" for part in CSR_PARTS}
    small = {name for name in known if is_stored and f"{name}.scale" in found}
    known |= {f"{name}.scale" for name in small}
    known |= {f"{name}.offset" for name in small if f"{name}.offset" in found}
    require(known == found, f"its tensors are {sorted(found)}, expected are {sorted(known)}.")
    return small


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


def _integers_in(
    name: str, stream: npt.NDArray[Any], record: dict[str, Any]
) -> npt.NDArray[np.int8]:
    """Return the integers of a stream of bits, after a check of their number and range."""
    bits, shape = entry(record, "bits", int), entry(record, "shape", list)
    allowed = MIN_BITS <= bits < MAX_BITS
    require(allowed, f"bits={bits} of {name!r} must be {MIN_BITS} to {MAX_BITS - 1}.")
    allowed = 1 <= len(shape) <= 2 and all(type(size) is int and size >= 0 for size in shape)
    require(allowed, f"the shape {reprlib.repr(shape)} of {name!r} must be one or two sizes.")
    n_bytes = bits_in_bytes(math.prod(shape), bits)
    require(
        stream.dtype == np.uint8 and stream.shape == (n_bytes,),
        f"tensor {name!r} must be {n_bytes} uint8, which {shape} integers of {bits} bits take.",
    )
    values = unpack_bits(stream, bits, tuple(shape))
    fits = values.max(initial=0) <= largest_integer(bits)
    require(fits, f"tensor {name!r} has a code that integers of {bits} bits do not have.")
    fits = np.array_equal(pack_bits(values, bits), stream)
    require(fits, f"tensor {name!r} has bits that belong to no integer.")
    return values


def _check_packed(name: str, packed: PackedArray) -> None:
    """Raise unless types and shapes of values, scale and offset fit, and all numbers are finite."""
    values = packed.values
    if packed.scale is None:
        allowed = values.dtype in (np.float64, np.float32, np.float16)
        require(allowed, f"tensor {name!r} has {values.dtype} without a scale.")
        return
    require(values.dtype == np.int8, f"tensor {name!r} has a scale, but is not int8.")
    for part, numbers in {"scale": packed.scale, "offset": packed.offset}.items():
        if numbers is not None:
            fits = numbers.dtype in (np.float32, np.float16) and numbers.shape == values.shape[1:]
            require(fits, f"the {part} of {name!r} must be a float32 or float16 per column.")
    require((packed.scale >= 0).all(), f"the scale of {name!r} must not be negative.")
    with np.errstate(over="ignore"):
        finite = np.isfinite(packed.unpacked()).all()
    require(finite, f"the scale or offset of {name!r} is too large.")


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
