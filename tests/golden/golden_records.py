"""Everything that a fitted model can be compared by, and comparisons bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import safe_open

import nysplus
from nysplus import export

OUTPUTS = ("decision_function", "predict_proba", "predict_log_proba", "predict", "transform")
ATTRIBUTES = (
    "alpha_",
    "classes_",
    "component_indices_",
    "components_",
    "dual_coef_",
    "feature_names_in_",
    "gamma_",
    "intercept_",
    "landmark_indices_",
    "landmarks_",
    "model_bytes_",
    "n_features_in_",
    "n_kernel_evaluations_",
    "n_passes_",
    "projection_",
    "refined_",
    "solver_",
)
# Header fields that may differ between versions; the checksum covers the version.
VERSIONED = ("version", "sha256")

Items = dict[str, np.ndarray]


@dataclass(frozen=True)
class Fit:
    """A fitted model, or any other result, and how to compare it.

    Attributes
    ----------
    model : estimator or None
    rows : Any
        Test rows.
    saved : bool
        Whether to save the model.
    exported : bool
        Whether to export the model to JSON, C and ONNX.
    extra : dict
        Other results: numbers, text, arrays, or tuples of them.
    """

    model: Any = None
    rows: Any = None
    saved: bool = True
    exported: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def record(fit: Fit, path: Path) -> Items:
    """Return all results of a fit as arrays, and save the model to `path`."""
    found = dict(fit.extra)
    model = fit.model
    if model is not None:
        found |= outputs(model, fit.rows)
        found |= {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
        if fit.saved and hasattr(model, "save"):
            model.save(path)
        if hasattr(model, "get_feature_names_out"):
            found["feature_names_out"] = model.get_feature_names_out()
    if fit.exported:
        found["json"] = export.to_json(model)
        found["c"] = export.to_c(model, name="golden")
        for dtype in ("float32", "float64"):
            graph = export.to_onnx(model, dtype=dtype, scores=hasattr(model, "classes_"))
            found[f"onnx_{dtype}"] = graph.SerializeToString(deterministic=True)
    return {key: item for name, value in found.items() for key, item in _flat(name, value)}


def outputs(model: Any, rows: Any) -> dict[str, Any]:
    """Return what the methods of a model make of some rows."""
    return {name: computed(getattr(model, name)(rows)) for name in OUTPUTS if hasattr(model, name)}


def computed(value: Any) -> Any:
    """Return an array, after computing it if it is a lazy Dask collection or a list of them."""
    if isinstance(value, list):
        return np.concatenate([part.compute() for part in value])
    return value.compute() if hasattr(value, "compute") else value


def _flat(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a value as arrays without Python objects, which `np.savez` would pickle."""
    if sp.issparse(value):
        yield f"{name}.type", np.array(type(value).__name__)
        for part in ("data", "indices", "indptr", "shape"):
            yield f"{name}.{part}", np.asarray(getattr(value, part))
    elif isinstance(value, tuple):
        for number, part in enumerate(value):
            yield from _flat(f"{name}.{number}", part)
    elif isinstance(value, bytes):
        yield name, np.frombuffer(value, dtype=np.uint8)
    else:
        array = np.asarray("None" if value is None else value)
        yield name, array.astype(str) if array.dtype.kind == "O" else array


def differences(expected: Items, got: Items) -> list[str]:
    """Return a sentence for every item that is not equal bit by bit."""
    found = []
    for name in sorted(expected.keys() | got.keys()):
        if name not in got or name not in expected:
            found.append(f"{name} is {'missing' if name not in got else 'new'}")
        elif (what := _difference(expected[name], got[name])) is not None:
            found.append(f"{name} {what}")
    return found


def _difference(a: np.ndarray, b: np.ndarray) -> str | None:
    """Say how two arrays differ, the first being expected; None if they do not."""
    if a.dtype.kind == b.dtype.kind == "U":
        if a.shape == b.shape and (a == b).all():
            return None
        return f"is {_short(b)}, expected {_short(a)}"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"is {b.dtype}{b.shape}, expected {a.dtype}{a.shape}"
    if a.tobytes() == b.tobytes():
        return None
    if a.dtype.kind not in "fiub":
        return f"is {_short(b)}, expected {_short(a)}"
    gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    largest, size = float(gap.max()), float(np.abs(a.astype(np.float64)).max())
    share = largest / size if size > 0 else np.inf
    return f"differs by {largest:.3g} ({share:.1g} of the largest) in {np.sum(a != b)} of {a.size}"


def _short(value: np.ndarray) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def file_differences(expected: Path, got: Path) -> list[str]:
    """Compare two saved models by their tensors and headers.

    The version is not compared, and parameters that the older file does not know may be None.
    """
    if not expected.exists() and not got.exists():
        return []
    if not got.exists() or not expected.exists():
        return [f"the file is {'missing' if expected.exists() else 'new'}"]
    (old, old_tensors), (new, new_tensors) = _contents(expected), _contents(got)
    found = differences(old_tensors, new_tensors)
    params = new.get("params")
    if isinstance(params, dict):
        known = old.get("params", {})
        new["params"] = {
            name: value for name, value in params.items() if name in known or value is not None
        }
    for name in sorted((old.keys() | new.keys()) - set(VERSIONED)):
        if old.get(name) != new.get(name):
            found.append(f"header {name} is {new.get(name)!r:.60}, expected {old.get(name)!r:.60}")
    return [f"file: {what}" for what in found]


def _contents(path: Path) -> tuple[dict[str, Any], Items]:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["nysplus"])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def loaded_differences(path: Path, rows: Any, expected: Items) -> list[str]:
    """Load a recorded file, and compare its predictions with the recorded ones."""
    if not path.exists():
        return []
    got = outputs(nysplus.load(path), rows)
    flat = {key: item for name, value in got.items() for key, item in _flat(name, value)}
    return [f"loaded: {what}" for what in differences({k: expected[k] for k in flat}, flat)]
