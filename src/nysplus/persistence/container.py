"""Fitted models in files: safetensors with a JSON header, never pickle.

A file consists of

- 8 bytes: the length of the header, little-endian;
- the header: JSON, as safetensors has it. It names the tensors, and its ``__metadata__`` has one
  entry, "nysplus": JSON text again, with everything that is not a tensor and a checksum;
- the tensors, without gaps: "landmarks" (for CSR landmarks "landmarks.data", "landmarks.indices"
  and "landmarks.indptr"), "dual_coef", "intercept" and, where there is a learned map,
  "projection"; for int8 numbers also "landmarks.scale" and so on.

So the size of a file is ``8 + length of the header + model.model_bytes_``, exactly.

Kept are the fitted function, the parameters, the classes, the names of features and the numbers
that the fit reports. Sums of `partial_fit` are not: a loaded model predicts, and `partial_fit`
starts new sums with its landmarks, kernel and ridge, as after `fit`. Nothing in a file names code:
classes are looked up in a fixed list, and functions cannot be saved.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import reprlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as serialized
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import Columns, FittedModel
from nysplus._ridge.probability import Scaling
from nysplus._rows.target_codes import CODES, TargetCode
from nysplus._runtime.atomic_file import write_whole
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion
from nysplus.kernels import Kernel, Matern
from nysplus.persistence.parameters import (
    CSR_PARTS,
    csr_of,
    entry,
    made,
    params_out,
    require,
    value_in,
    value_out,
)

# Raised whenever a file of the new kind would be misread by the code before.
FORMAT = 1
# As safetensors allows.
MAX_HEADER_BYTES = 100_000_000
# Types of tensors, as safetensors names them.
TYPES = {
    "BOOL": "bool",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "I8": "int8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "U8": "uint8",
}
# Estimators that `load` may make; they enter themselves with `loadable`.
MODELS: dict[str, type] = {}

__all__ = ["FORMAT", "load", "loadable", "save"]

Tensors = dict[str, npt.NDArray[Any]]

Model = TypeVar("Model", bound=type)


def loadable(model: Model) -> Model:
    """Let :func:`load` make models of this class. A decorator."""
    MODELS[model.__name__] = model
    return model


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, which :func:`load` reads.

    The file is written under a temporary name in the same folder and moved into place, so that
    there is never half a file under `path`.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted.
    path : str or path
        Replaced if it exists.
    """
    if MODELS.get(type(model).__name__) is not type(model):
        raise TypeError(
            f"A {type(model).__name__} cannot be saved. Allowed are {sorted(MODELS)}, and not "
            "classes derived from them."
        )
    check_is_fitted(model)
    write_whole(path, _content(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that :func:`save` has written to a file.

    Its predictions are those of the saved one, bit for bit, on the same machine. Everything in the
    file is checked, and nothing in it is executed: files of strangers do no harm. A file that is
    damaged or no model raises a ValueError that says why.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    NystroemClassifier or NystroemRegressor
    """
    path = Path(path)
    try:
        header, tensors = _read(path)
        return _restored(header, tensors)
    # what readers make of content that is not as they expect
    except (ValueError, TypeError, OverflowError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error


# Writing


def _content(model: Any) -> bytes:
    """Return the bytes of the file."""
    fitted: FittedModel = model._model
    tensors, layout = _expansion_out(fitted.expansion)
    header = {
        "format": FORMAT,
        "version": _version(),
        "class": type(model).__name__,
        "params": params_out(model),
        "expansion": layout,
        "targets": _code_out(fitted.code),
        "n_features_in": int(fitted.columns.n_features),
        "feature_names_in": None,
        "scaling": None,
        "fitted": _reports_out(fitted),
    }
    if fitted.columns.names is not None:
        header["feature_names_in"] = [str(name) for name in fitted.columns.names]
    if fitted.scaling is not None:
        scaling = fitted.scaling
        header["scaling"] = {"slope": scaling.slope, "multilabel": scaling.multilabel}
    text = json.dumps({**header, "sha256": _checksum(header, tensors)}, sort_keys=True)
    content = serialized(tensors, {"nysplus": text})
    if len(content) - sum(tensor.nbytes for tensor in tensors.values()) > MAX_HEADER_BYTES:
        raise ValueError(
            f"The parameters and classes of the model take more than {MAX_HEADER_BYTES} bytes. "
            "Set parameters that are large arrays, such as selection, to their defaults first."
        )
    return content


def _version() -> str:
    try:
        return importlib.metadata.version("nysplus")
    except importlib.metadata.PackageNotFoundError:  # run from its source
        return "unknown"


def _checksum(header: dict[str, Any], tensors: Tensors) -> str:
    """Return a hash of everything: a flipped bit is found, whatever it would have meant."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.name} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()


def _expansion_out(expansion: KernelExpansion) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of an expansion, and what else is to be known."""
    arrays: dict[str, Any]
    storage, csr = expansion.packed, None
    names = [f.name for f in fields(PackedExpansion) if getattr(expansion, f.name) is not None]
    if storage is not None:
        arrays = {name: getattr(storage, name).values for name in names}
        scales = {f"{name}.scale": getattr(storage, name).scale for name in names}
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
        "stored": storage is not None,
        "csr": csr,
        # products of matrices round differently in another order
        "fortran": [name for name, array in arrays.items() if _is_fortran(array)],
    }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}, layout


def _is_fortran(array: npt.NDArray[Any]) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def _code_out(code: TargetCode) -> dict[str, Any]:
    """Return the kind and the fields of a code."""
    values = {name: value_out(getattr(code, name), name) for name in _code_fields(type(code))}
    return {"kind": code.kind, **values}


def _code_fields(code: type[Any]) -> list[str]:
    return [field.name for field in fields(code)]


# Reading


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    """Return header and tensors of a file, with the checksum checked."""
    size = path.stat().st_size
    require(size >= 8, f"it has {size} bytes, which is no safetensors file.")
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        require(
            length <= min(size - 8, MAX_HEADER_BYTES),
            f"its header should have {length} bytes, more than the file or the limit of "
            f"{MAX_HEADER_BYTES}: it is truncated, or no safetensors file.",
        )
        file.seek(0)
        content = file.read()
    try:
        outer = json.loads(content[8 : 8 + length])
        header = json.loads(outer["__metadata__"]["nysplus"])
        number = header["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError("it has no nysplus header: it is damaged or of another origin.") from error
    require(
        type(number) is int and number >= 1, f"format={reprlib.repr(number)} is no format number."
    )
    require(
        number <= FORMAT,
        f"it has format {number} of nysplus {reprlib.repr(header.get('version'))}; this version "
        f"reads formats up to {FORMAT}. Upgrade nysplus.",
    )
    tensors = {}
    # safetensors has no types for it
    for name, view in deserialize(content):  # type: ignore[no-untyped-call]  # it has no types
        require(view["dtype"] in TYPES, f"tensor {name!r} has the type {view['dtype']}.")
        flat = np.frombuffer(view["data"], dtype=np.dtype(TYPES[view["dtype"]]).newbyteorder("<"))
        tensors[name] = flat.astype(TYPES[view["dtype"]]).reshape(view["shape"])
    checksum = header.pop("sha256", None)
    require(checksum == _checksum(header, tensors), "its checksum is wrong: the file is damaged.")
    return header, tensors


def _restored(header: dict[str, Any], tensors: Tensors) -> Any:
    """Return the model, with everything checked that it consists of."""
    name = entry(header, "class", str)
    require(name in MODELS, f"class={reprlib.repr(name)} is not known. Known are {sorted(MODELS)}.")
    model = made(MODELS[name], entry(header, "params", dict))
    n_features = entry(header, "n_features_in", int)
    require(n_features >= 1, f"n_features_in={n_features} must be at least 1.")
    expansion = _expansion_in(entry(header, "expansion", dict), tensors, n_features)
    code = _code_in(entry(header, "targets", dict))
    discrete = model._kind == "classes"
    require(code.discrete == discrete, f"its targets are of another kind than those of a {name}.")
    require(
        expansion.dual_coef.shape[1] == code.n_outputs,
        f"its coefficients have {expansion.dual_coef.shape[1]} outputs, its targets "
        f"{code.n_outputs}.",
    )
    scaling = entry(header, "scaling", dict, type(None))
    require((scaling is not None) == discrete, "scaling belongs to classifiers, and only there.")
    model._adopt(
        FittedModel(
            expansion,
            code,
            Columns(n_features, _names_in(header, n_features)),
            None if scaling is None else _scaling_in(scaling, code),
            **_reports_in(entry(header, "fitted", dict), expansion),
        )
    )
    return model


def _names_in(header: dict[str, Any], n_features: int) -> npt.NDArray[Any] | None:
    names = entry(header, "feature_names_in", list, type(None))
    if names is None:
        return None
    require(
        len(names) == n_features and all(type(name) is str for name in names),
        f"feature_names_in must be {n_features} texts.",
    )
    return np.array(names, dtype=object)


def _reports_out(fitted: FittedModel) -> dict[str, Any]:
    """Return the numbers that a fit reports, under the names of the estimator's attributes."""
    known = {name: getattr(fitted, name.removesuffix("_")) for name in REPORTS}
    # row numbers are always known: None says that landmarks are no rows
    return {
        name: value_out(value, name)
        for name, value in known.items()
        if value is not None or name == "landmark_indices_"
    }


def _reports_in(fitted: dict[str, Any], expansion: KernelExpansion) -> dict[str, Any]:
    """Return the numbers that a fit reports, checked, under the names of `FittedModel`."""
    found = {}
    for name, value in fitted.items():
        require(name in REPORTS, f"the attribute {name!r} is not known. Upgrade nysplus.")
        value = value_in(value)
        require(REPORTS[name](value, expansion), f"{name}={reprlib.repr(value)} is not possible.")
        found[name.removesuffix("_")] = value
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value))


def _is_count(value: Any, expansion: KernelExpansion) -> bool:
    return isinstance(value, (int, np.integer)) and bool(value >= 0)


def _is_indices(value: Any, expansion: KernelExpansion) -> bool:
    if value is None:
        return True
    shape = (expansion.landmarks.shape[0],)
    return isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.shape == shape


# Attributes that a fit reports beside the function, and the values that they may have.
REPORTS: dict[str, Callable[[Any, KernelExpansion], bool]] = {
    "alpha_": lambda value, _: _is_number(value) and value >= 0,
    "landmark_indices_": _is_indices,
    "n_kernel_evaluations_": _is_count,
    "n_passes_": _is_count,
    "refined_": lambda value, _: isinstance(value, bool),
    "solver_": lambda value, _: isinstance(value, str),
}


# The fields of codes of targets, and what JSON has for them.
CODE_TYPES: dict[str, type] = {"classes": dict, "n_outputs": int, "flat": bool}


def _code_in(targets: dict[str, Any]) -> TargetCode:
    """Return the code of which :func:`_code_out` has written kind and fields."""
    kind = entry(targets, "kind", str)
    require(kind in CODES, f"targets of the kind {reprlib.repr(kind)} are not known.")
    names = _code_fields(CODES[kind])
    code = CODES[kind](*(value_in(entry(targets, name, CODE_TYPES[name])) for name in names))
    code.check()
    return code


def _scaling_in(scaling: dict[str, Any], code: TargetCode) -> Scaling:
    slope = entry(scaling, "slope", float, int)
    require(_is_number(slope) and slope > 0, f"slope={slope!r} must be positive and finite.")
    multilabel = entry(scaling, "multilabel", bool)
    require(multilabel == (code.kind == "labels"), "multilabel must be as the targets are.")
    return Scaling(slope, multilabel)


def _expansion_in(layout: dict[str, Any], tensors: Tensors, n_features: int) -> KernelExpansion:
    kernel = _kernel_in(value_in(entry(layout, "kernel", dict)))
    is_stored = entry(layout, "stored", bool)
    csr = entry(layout, "csr", dict, type(None))
    require(not (is_stored and csr), "CSR landmarks have no storage.")
    known = {"landmarks", "dual_coef", "intercept"} | {"projection"} & set(tensors)
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
        name: tensors.get(name) for name in ("dual_coef", "intercept", "projection")
    }
    Z = tensors["landmarks"] if csr is None else _csr_in(csr, tensors)
    _check_shapes(Z, n_features=n_features, **parts)
    if is_stored:
        kept = {
            name: _stored_in(name, tensor, tensors.get(f"{name}.scale"))
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


def _check_shapes(Z: Any, dual_coef: Any, intercept: Any, projection: Any, n_features: int) -> None:
    """Raise unless Z, A, b and P fit each other and the rows."""
    require(Z.ndim == 2 and min(Z.shape) >= 1, f"its landmarks have the shape {Z.shape}.")
    n, r = Z.shape
    fits = dual_coef.ndim == 2 and len(dual_coef) == n and dual_coef.shape[1] >= 1
    require(fits, f"its coefficients have the shape {dual_coef.shape} for {n} landmarks.")
    fits = intercept.shape == dual_coef.shape[1:]
    require(fits, f"its intercept has the shape {intercept.shape}, not {dual_coef.shape[1:]}.")
    if projection is None:
        require(r == n_features, f"its landmarks have {r} features, its rows {n_features}.")
        return
    fits = projection.shape == (n_features, r) or projection.shape == (n_features,) == (r,)
    require(
        fits,
        f"its projection has the shape {projection.shape} between {n_features} features and "
        f"landmarks of {r}.",
    )


def _stored_in(name: str, values: npt.NDArray[Any], scale: npt.NDArray[Any] | None) -> PackedArray:
    if scale is None:
        allowed = values.dtype in (np.float64, np.float32, np.float16)
        require(allowed, f"tensor {name!r} has {values.dtype} without a scale.")
        return PackedArray(values)
    require(values.dtype == np.int8, f"tensor {name!r} has a scale, but is not int8.")
    fits = scale.dtype == np.float32 and scale.shape == values.shape[1:]
    require(fits and (scale >= 0).all(), f"the scale of {name!r} must be a float32 per column.")
    stored = PackedArray(values, scale)
    with np.errstate(over="ignore"):
        require(np.isfinite(stored.unpacked()).all(), f"the scale of {name!r} is too large.")
    return stored


def _csr_in(csr: dict[str, Any], tensors: Tensors) -> Any:
    """Return CSR landmarks whose numbers of columns and rows are in range."""
    shape = entry(csr, "shape", list)
    make = sp.csr_array if entry(csr, "array", bool) else sp.csr_matrix
    return csr_of(make, [tensors[f"landmarks.{part}"] for part in CSR_PARTS], shape)


def _kernel_in(kernel: Any) -> Kernel:
    """Return a kernel after checking that its parameters are numbers it can have."""
    require(isinstance(kernel, Kernel), f"{kernel!r} is no kernel.")
    for name, value in kernel.get_params().items():
        allowed = _is_number(value) and (name != "gamma" or value > 0)
        require(allowed, f"{name}={value!r} of {type(kernel).__name__} is not possible.")
    if isinstance(kernel, Matern):
        require(kernel.nu in (0.5, 1.5, 2.5), f"nu={kernel.nu!r} of Matern is not possible.")
    checked: Kernel = kernel
    return checked
