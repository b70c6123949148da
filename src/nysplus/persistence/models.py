"""Fitted estimators as a JSON header and tensors, and back, with everything checked."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nysplus._fit.model import Columns, FittedModel
from nysplus._ridge.probability import Scaling
from nysplus._rows.target_codes import CODES, TargetCode
from nysplus.expansion import KernelExpansion
from nysplus.persistence.calibration import (
    calibration_in,
    calibration_out,
    directions_out,
    novelty_in,
    novelty_out,
)
from nysplus.persistence.codes import check_together
from nysplus.persistence.expansions import expansion_in, expansion_out, is_number
from nysplus.persistence.parameters import (
    entry,
    made,
    params_out,
    require,
    value_in,
    value_out,
)
from nysplus.persistence.tables import Tensors, schema_in, schema_out

# Estimators that `load` may make; they enter themselves with `loadable`.
MODELS: dict[str, type] = {}


Model = TypeVar("Model", bound=type)


def loadable(model: Model) -> Model:
    """Let :func:`load` make models of this class. A decorator."""
    MODELS[model.__name__] = model
    return model


def _code_out(code: TargetCode) -> dict[str, Any]:
    """Return the kind and the fields of a code."""
    values = {name: value_out(getattr(code, name), name) for name in _code_fields(type(code))}
    return {"kind": code.kind, **values}


def _code_fields(code: type[Any]) -> list[str]:
    return [field.name for field in fields(code)]


def model_out(model: Any) -> tuple[dict[str, Any], Tensors]:
    """Return the header and the tensors of a fitted estimator."""
    fitted: FittedModel = model._model
    tensors, layout = expansion_out(fitted.expansion)
    names, scaling = fitted.columns.names, fitted.scaling
    header = {
        "class": type(model).__name__,
        "params": params_out(model),
        "expansion": layout,
        "targets": _code_out(fitted.code),
        "n_features_in": int(fitted.columns.n_features),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "scaling": None if scaling is None else asdict(scaling),
        "fitted": _reports_out(fitted),
        "calibration": calibration_out(fitted.calibration),
        "novelty": novelty_out(fitted.familiar),
    }
    directions = directions_out(fitted.familiar)
    if directions is not None:
        header["directions"] = directions
    if fitted.columns.schema is not None:
        header["schema"] = schema_out(fitted.columns.schema)
    return header, tensors


def model_in(header: dict[str, Any], tensors: Tensors) -> Any:
    """Return the estimator of a header and tensors, each part of which is checked."""
    name = entry(header, "class", str)
    require(name in MODELS, f"class={reprlib.repr(name)} is not known. Known are {sorted(MODELS)}.")
    model = made(MODELS[name], entry(header, "params", dict))
    n_features = entry(header, "n_features_in", int)
    require(n_features >= 1, f"n_features_in={n_features} must be at least 1.")
    expansion = expansion_in(entry(header, "expansion", dict), tensors, n_features)
    code = _code_in(entry(header, "targets", dict))
    discrete = model._kind == "classes"
    require(code.discrete == discrete, f"its targets are of another kind than those of a {name}.")
    require(
        expansion.dual_coef.shape[1] == code.n_outputs,
        f"its coefficients have {expansion.dual_coef.shape[1]} outputs, its targets "
        f"{code.n_outputs}.",
    )
    scaling = entry(header, "scaling", dict, type(None))
    # a classifier of from_svc may have none
    require(scaling is None or discrete, "scaling belongs to classifiers only.")
    columns = _columns_in(header, expansion)
    model._adopt(
        FittedModel(
            expansion,
            code,
            columns,
            None if scaling is None else _scaling_in(scaling, code),
            # files of earlier versions have neither
            calibration_in(header, code),
            novelty_in(header, len(columns.numeric)),
            **_reports_in(entry(header, "fitted", dict), expansion),
        )
    )
    return model


def _columns_in(header: dict[str, Any], expansion: KernelExpansion) -> Columns:
    n_features, schema = header["n_features_in"], None
    if "schema" in header:
        schema = schema_in(entry(header, "schema", dict), n_features)
    check_together(expansion.encoder, schema, n_features)
    return Columns(n_features, _names_in(header, n_features), schema=schema)


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


def _is_count(value: Any, expansion: KernelExpansion) -> bool:
    return isinstance(value, (int, np.integer)) and bool(value >= 0)


def _is_indices(value: Any, expansion: KernelExpansion) -> bool:
    if value is None:
        return True
    shape = (expansion.landmarks.shape[0],)
    return isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.shape == shape


# Attributes that a fit reports beside the function, and the values that they may have.
REPORTS: dict[str, Callable[[Any, KernelExpansion], bool]] = {
    "alpha_": lambda value, _: is_number(value) and value >= 0,
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
    require(is_number(slope) and slope > 0, f"slope={slope!r} must be positive and finite.")
    multilabel = entry(scaling, "multilabel", bool)
    require(multilabel == (code.kind == "labels"), "multilabel must be as the targets are.")
    return Scaling(slope, multilabel)
