"""Write a fitted function as JSON: numbers and formulas.

The text is one object:

===================  ===========================================================================
key                  value
===================  ===========================================================================
``format``           "nysplus-json"
``format_version``   1, or 2 with a centre
``formula``          "f(x) = k(x P, Z) A + b", with a centre "f(x) = k((x - c) P, Z) A + b"
``kernel``           object: ``name``, ``formula`` of k(x, z), and its parameters as numbers
``n_features``       d, the length of x
``center``           c: d numbers to subtract from x in double precision; only in version 2
``projection``       P: null (then x P is x), d numbers (multiply feature by feature), or d rows
``landmarks``        Z: n rows of r numbers; for sparse ones an object with ``shape`` and, for
                     every row, ``indices`` of the columns that are not zero and their ``values``
``dual_coef``        A: n rows of L numbers
``intercept``        b: L numbers
``dtype``            type that the library itself computes in, "float64" or "float32"
``targets``          "classes", "labels", "values", or "scores" where only a function was given
``classes``          null, or the classes: f has a column for each, or one for two classes
``decision``         how a prediction follows from the scores f
``slope``            β of the probabilities, or null
``probability``      how probabilities follow from the scores, or null
``feature_names``    null or d names
===================  ===========================================================================

Numbers have as many digits as it takes to read the same double again. A model that is stored in
fewer bits is written with the unpacked numbers that it computes with.
"""

from __future__ import annotations

import json
import os
from typing import Any

import scipy.sparse as sp

from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.atomic_file import write_whole
from nysplus.expansion import KernelExpansion
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

__all__ = ["to_json"]

FORMULAS: dict[type[Kernel], tuple[str, str]] = {
    AdditiveChi2: ("additive_chi2", "-sum((x - z)^2 / (x + z)), where 0/0 is 0"),
    Chi2: ("chi2", "exp(-gamma * sum((x - z)^2 / (x + z))), where 0/0 is 0"),
    Cosine: ("cosine", "sum(x * z) / sqrt(sum(x^2) * sum(z^2)), where 0/0 is 0"),
    Laplacian: ("laplacian", "exp(-gamma * sum(|x - z|))"),
    Linear: ("linear", "sum(x * z)"),
    Polynomial: ("polynomial", "(gamma * sum(x * z) + coef0)^degree"),
    RBF: ("rbf", "exp(-gamma * sum((x - z)^2))"),
    Sigmoid: ("sigmoid", "tanh(gamma * sum(x * z) + coef0)"),
}
# With s = sqrt(4 nu gamma sum((x - z)^2)).
MATERN = {0.5: "exp(-s)", 1.5: "(1 + s) * exp(-s)", 2.5: "(1 + s + s^2 / 3) * exp(-s)"}

# How predictions and probabilities follow from the scores f, for each kind of targets.
RULES: dict[str, tuple[str, str | None]] = {
    "classes": ("classes[i] of the first largest f[i]", "p = softmax(slope * f)"),
    "two classes": (
        "classes[1] if f[0] > 0 else classes[0]",
        "p = softmax([-slope * f[0], slope * f[0]])",
    ),
    "labels": ("label i if f[i] > 0", "p[i] = 1 / (1 + exp(-2 * slope * f[i]))"),
    "values": ("f", None),
    "scores": ("f", None),
}


def to_json(model: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Return a fitted model as JSON text, and write it to a file if there is a `path`.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or KernelExpansion
        Fitted.
    path : str or path, optional

    Returns
    -------
    str
        See :mod:`nysplus.export.json_text` for what is in it.

    Examples
    --------
    >>> import json
    >>> from nysplus import NystroemRegressor
    >>> from nysplus.export import to_json
    >>> model = NystroemRegressor(n_components=2, random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> json.loads(to_json(model))["kernel"]["formula"]
    'exp(-gamma * sum((x - z)^2))'
    """
    expansion = model if isinstance(model, KernelExpansion) else getattr(model, "expansion_", None)
    if expansion is None:
        raise TypeError(
            f"to_json takes a fitted NystroemClassifier or NystroemRegressor, or its expansion_, "
            f"got {type(model).__name__}. Fit the model first."
        )
    P, c = expansion.projection, expansion.center
    fitted = getattr(model, "_model", None)  # a function alone has none
    names = getattr(model, "feature_names_in_", None)
    content = {
        "format": "nysplus-json",
        "format_version": 1 if c is None else 2,
        "formula": f"f(x) = k({'x' if c is None else '(x - c)'} P, Z) A + b",
        "kernel": _kernel(expansion.kernel),
        "n_features": int(expansion.landmarks.shape[1] if P is None else P.shape[0]),
        **({} if c is None else {"center": c.tolist()}),
        "projection": None if P is None else P.tolist(),
        "landmarks": _landmarks(expansion.landmarks),
        "dual_coef": expansion.dual_coef.tolist(),
        "intercept": expansion.intercept.tolist(),
        "dtype": expansion.dual_coef.dtype.name,
        **_targets(getattr(fitted, "code", None), getattr(fitted, "scaling", None)),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    text = json.dumps(content, allow_nan=False)
    if path is not None:
        write_whole(path, text.encode())
    return text


def _kernel(kernel: Kernel) -> dict[str, Any]:
    kind = type(kernel)
    if kind not in FORMULAS and kind is not Matern:
        raise ValueError(
            f"{kernel!r} has no formula that could be written down. Use a kernel of this library "
            "that is no function."
        )
    params = {name: float(value) for name, value in kernel.get_params().items()}
    if kind is Matern:
        formula = f"{MATERN[params['nu']]} with s = sqrt(4 * nu * gamma * sum((x - z)^2))"
        return {"name": "matern", "formula": formula, **params}
    name, formula = FORMULAS[kind]
    return {"name": name, "formula": formula, **params}


def _landmarks(Z: Any) -> Any:
    if not sp.issparse(Z):
        return Z.tolist()
    rows = [slice(*bounds) for bounds in zip(Z.indptr[:-1], Z.indptr[1:], strict=True)]
    return {
        "shape": list(Z.shape),
        "indices": [Z.indices[row].tolist() for row in rows],
        "values": [Z.data[row].tolist() for row in rows],
    }


def _targets(code: TargetCode | None, scaling: Any) -> dict[str, Any]:
    """Return the meaning of the columns of the scores."""
    kind = "scores" if code is None else code.kind
    two_classes = code is not None and code.kind == "classes" and code.n_outputs == 1
    decision, probability = RULES["two classes" if two_classes else kind]
    slope = None if scaling is None else float(scaling.slope)
    return {
        "targets": kind,
        "classes": code.classes.tolist() if code is not None and code.discrete else None,
        "decision": decision,
        "slope": slope,
        "probability": None if slope is None else probability,
    }
