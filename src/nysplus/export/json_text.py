"""Write a fitted function as JSON: numbers and formulas.

The text is one object:

===================  ===========================================================================
key                  value
===================  ===========================================================================
``format``           "nysplus-json"
``format_version``   1, 2 with a centre, 3 with an encoder, 4 with a linear term, or 5 with an
                     encoder of images
``formula``          "f(x) = k(x P, Z) A + b", with a centre "f(x) = k((x - c) P, Z) A + b", with
                     a linear term "f(x) = k(x P, Z) A + x B + b", and with an encoder E(x) in
                     place of x
``kernel``           object: ``name``, ``formula`` of k(x, z), and its parameters as numbers
``n_features``       d, the length of x
``inputs``           only with an encoder: null, or for each number of x its ``name``, ``kind``
                     ("number", "category", "date") and ``levels``; see below
``encoder``          only with an encoder: E, see below. In what follows, d is then its length
``center``           only with a centre: c, d numbers to subtract from x in double precision
``projection``       P: null (then x P is x), d numbers (multiply feature by feature), or d rows
``landmarks``        Z: n rows of r numbers; for sparse ones an object with ``shape`` and, for
                     every row, ``indices`` of the columns that are not zero and their ``values``
``dual_coef``        A: n rows of L numbers
``linear``           only with a linear term: B, d rows of L numbers
``intercept``        b: L numbers
``dtype``            type that the library itself computes in, "float64" or "float32"
``targets``          "classes", "labels", "values", or "scores" where only a function was given
``classes``          null, or the classes: f has a column for each, or one for two classes
``decision``         how a prediction follows from the scores f
``slope``            β of the probabilities, or null
``probability``      how probabilities follow from the scores, or null
``feature_names``    null, or a name for each number of x
``explanation``      only with `explain`: an object with the ``background``, rows like x where null
                     is a gap, and the ``formula`` of the Shapley values phi of x; where the model
                     is a product over features, also ``nodes`` and ``weights`` of a quadrature
                     that gives the exact values
``prediction_set``   only with a confidence, for classes: ``confidence``, ``bounds`` (one for all
                     classes, or one for each), and the ``rule``
``interval``         only with a confidence, for values: ``confidence``, ``bounds`` (one for each
                     output), and the ``rule``
``novelty``          only with a confidence, where the model has a novelty: ``similarities``,
                     ``levels`` and the ``rule``; for a model with a map also ``directions``, an
                     object with ``center``, ``weights`` and ``distances``
===================  ===========================================================================

A model with an encoder of tables takes a row x of a table: numbers, dates as seconds since 1970 in
UTC, and categories as positions in ``levels``, with −1 for any other level. A gap in any column is
NaN.
``encoder`` is an object: E(x) consists of the columns of all its ``terms``, one after the other.
Each term has a ``kind``, the number ``column`` of x that it reads, and the names in the formula of
its kind, which is in ``formulas``. Levels of which the raw data has numbers are texts as well, such
as "3".

A model with an encoder of images takes an image x, flattened in C order. ``encoder`` has its
``shape`` (height h, width w and number of channels), ``n_cosines`` k, and the ``formula`` of E(x),
which is flattened in the same order: cosines along the height, along the width, channels.

Numbers have as many digits as it takes to read the same double again. A model that is stored in
fewer bits is written with the unpacked numbers that it computes with.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.atomic_file import write_whole
from nysplus.conformal import NOVELTY_LEVELS, Novelty
from nysplus.encoding import code as encoding
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.schema import TableSchema
from nysplus.expansion import KernelExpansion
from nysplus.export.contents import trust_of, without_linear_term
from nysplus.export.explanation import explanation_numbers
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
from nysplus.pipelines import as_model

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

_FILLED = "where x = knots[gap] for a gap"
# Kinds of terms of a code, and the columns that they make of a number x.
TERMS: dict[type[encoding.Term], tuple[str, str]] = {
    encoding.Circle: (
        "circle",
        "cos(a), sin(a) with a = 2 * pi * (x - origin) / period; 0, 0 for a gap",
    ),
    encoding.Curve: (
        "curve",
        f"linear between (knots[k], values[k]) and constant beyond them, {_FILLED}",
    ),
    encoding.Linear: ("linear", "(x - offset) * scale, where x = fill for a gap"),
    encoding.Lookup: (
        "lookup",
        "table[x] for x = 0, 1, ..., length - 3; the last row but one for any other level, and the "
        "last row for a gap",
    ),
    encoding.Missing: ("missing", "missing for a gap, else present"),
    encoding.OneHot: (
        "one_hot",
        "1 if x = i else 0, for i = 0, ..., n_levels - 1; then, if gaps, 1 for a gap, else 0",
    ),
    encoding.Power: (
        "power",
        "(t - offset) * scale with u = (x - origin) * unit, where x = fill for a gap, and "
        "b(u, e) = (u^e - 1) / e, or log(u) for e = 0: t = b(u, exponent) if not signed, "
        "t = b(1 + u, exponent) if signed and u >= 0, else t = -b(1 - u, 2 - exponent)",
    ),
    encoding.Ramps: (
        "ramps",
        "height * min(max((x - knots[k]) / (knots[k + 1] - knots[k]), 0), 1) for k = 0, 1, ..., "
        f"{_FILLED}",
    ),
}

# The code of images.
COSINES = (
    "E[a, b, c] = sum over i, j of M(i, a, h) * x[i, j, c] * M(j, b, w) with M(i, a, n) = "
    "sqrt((2 if a > 0 else 1) / n) * cos(pi * (i + 1/2) * a / n), for a < min(n_cosines, h) and "
    "b < min(n_cosines, w)"
)

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


# Prediction sets, intervals and novelty.
SET = "class i is in the set if 1 - p[i] <= bounds[i], or bounds[0] if there is one bound"
INTERVAL = "from f[i] - bounds[i] to f[i] + bounds[i]"
NOVELTY = (
    "s = the largest k(x P, Z[i]); linear between (similarities[j], levels[j]) and constant beyond "
    "them: the share of training rows that are more similar to a landmark"
)
DIRECTIONS = (
    "; the larger of this and the same function of (distances[j], levels[j]) for t = "
    "sum(((x - center) weights)^2), where x - center is 0 for a gap; x is the row before E"
)


def to_json(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    explain: Any = False,
    confidence: float | None = None,
) -> str:
    """Return a fitted model as JSON text, and write it to a file if there is a `path`.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor, Pipeline or KernelExpansion
        Fitted. A pipeline becomes one model, see :func:`~nysplus.from_pipeline`.
    path : str or path, optional
    explain : bool or rows, as for `predict`, default=False
        Rows, a few typical ones: the text has these and the formula of Shapley values against them.
        True: one row, the mean of the landmarks; of a table, the entries that fill gaps and the
        most frequent levels.
    confidence : float, optional
        Adds the numbers of prediction sets or intervals at this confidence, and of the novelty.

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
    model = as_model(model)
    expansion = model if isinstance(model, KernelExpansion) else getattr(model, "expansion_", None)
    if expansion is None:
        raise TypeError(
            f"to_json takes a fitted NystroemClassifier or NystroemRegressor, or its expansion_, "
            f"got {type(model).__name__}. Fit the model first."
        )
    expansion = without_linear_term(expansion)
    P, c, B, code = expansion.projection, expansion.center, expansion.linear, expansion.encoder
    fitted = getattr(model, "_model", None)  # a function alone has none
    schema = None if fitted is None else fitted.columns.schema
    x = "x" if code is None else "E(x)"
    content = {
        "format": "nysplus-json",
        "format_version": _format_version(expansion),
        "formula": f"f(x) = k({x if c is None else f'({x} - c)'} P, Z) A"
        f"{'' if B is None else f' + {x} B'} + b",
        "kernel": _kernel(expansion.kernel),
        "n_features": _n_features(expansion),
        **({} if code is None else {"inputs": _inputs(schema), "encoder": _encoder(code)}),
        **({} if c is None else {"center": c.tolist()}),
        "projection": None if P is None else P.tolist(),
        "landmarks": _landmarks(expansion.landmarks),
        "dual_coef": expansion.dual_coef.tolist(),
        **({} if B is None else {"linear": B.tolist()}),
        "intercept": expansion.intercept.tolist(),
        "dtype": expansion.dual_coef.dtype.name,
        **_targets(getattr(fitted, "code", None), getattr(fitted, "scaling", None)),
        "feature_names": _names(model, schema),
        **({} if explain is False else {"explanation": explanation_numbers(model, explain)}),
        **({} if confidence is None else _trust(model, confidence)),
    }
    text = json.dumps(content, allow_nan=False)
    if path is not None:
        write_whole(path, text.encode())
    return text


def _trust(model: Any, confidence: float) -> dict[str, Any]:
    """Return the numbers and rules of prediction sets or intervals, and of the novelty."""
    trust = trust_of(model, confidence)
    name, rule = ("prediction_set", SET) if model._model.code.discrete else ("interval", INTERVAL)
    found: dict[str, Any] = {
        name: {"confidence": confidence, "bounds": trust.bounds.tolist(), "rule": rule}
    }
    return found | novelty_numbers(model)


def novelty_numbers(model: Any) -> dict[str, Any]:
    """Return the entry ``novelty`` of a fitted model; nothing where there is none."""
    familiar = model._model.familiar
    return {} if familiar is None else {"novelty": _novelty(familiar)}


def _novelty(familiar: Novelty) -> dict[str, Any]:
    levels, similarities = NOVELTY_LEVELS.tolist(), familiar.similarities.tolist()
    found = {"similarities": similarities, "levels": levels, "rule": NOVELTY}
    if familiar.directions is None:
        return found
    parts = {name: array.tolist() for name, array in vars(familiar.directions).items()}
    return {**found, "directions": parts, "rule": NOVELTY + DIRECTIONS}


def _format_version(expansion: KernelExpansion) -> int:
    """Return the first version of the format that has the parts of the function."""
    if isinstance(expansion.encoder, ImageCode):
        return 5
    if expansion.linear is not None:
        return 4
    if expansion.encoder is not None:
        return 3
    return 1 if expansion.center is None else 2


def _n_features(expansion: KernelExpansion) -> int:
    if expansion.encoder is not None:
        return expansion.encoder.n_inputs
    P = expansion.projection
    return int(expansion.landmarks.shape[1] if P is None else P.shape[0])


def _names(model: Any, schema: TableSchema | None) -> list[str] | None:
    if schema is not None:
        return [column.name for column in schema.columns]
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _inputs(schema: TableSchema | None) -> list[dict[str, Any]] | None:
    if schema is None:
        return None
    return [
        {"name": column.name, "kind": column.kind, "levels": list(column.levels)}
        for column in schema.columns
    ]


def _encoder(code: encoding.Code) -> dict[str, Any]:
    if isinstance(code, ImageCode):
        return {"shape": list(code.shape), "n_cosines": code.n_cosines, "formula": COSINES}
    assert isinstance(code, encoding.TableCode)
    terms = []
    for term in code.terms:
        values = {field.name: getattr(term, field.name) for field in fields(term)}
        plain = {name: np.asarray(value).tolist() for name, value in values.items()}
        terms.append({"kind": TERMS[type(term)][0], **plain})
    formulas = dict(TERMS[type(term)] for term in code.terms)
    return {"formulas": formulas, "terms": terms}


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
