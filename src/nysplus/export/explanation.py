"""Shapley values in exported models: the background, a typical row, and the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.encoding.code import Circle, Curve, Linear, Power, Ramps, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.estimators.base import KernelMachine
from nysplus.expansion import KernelExpansion
from nysplus.explain.function import raw_rows
from nysplus.explain.product import quadrature
from nysplus.export.contents import without_linear_term
from nysplus.pipelines import as_model

# The integral of docs/guide/explain.md, for readers of the text.
PRODUCT = (
    "phi_i = sum over landmarks j of A_j * mean over background rows r of (p_i - q_i) * sum over "
    "nodes t with weights w of w * product over k != i of (t * p_k + (1 - t) * q_k), where p_k and "
    "q_k are the factors of k((x - c) P, z_j) and of k((r - c) P, z_j) in feature k; f(x) is the "
    "mean of f over the background plus the sum of phi"
)
# What an encoder and a linear term add to it.
ENCODED = "; with an encoder, p_k and q_k are the products over the columns that it makes of x[k]"
LINEAR = "; a linear term adds (E(x) - mean of E(r)) B over the columns of feature i to phi_i"
ORDERS = (
    "phi_i = mean over background rows r and over all orders of the features of f(u) - f(v), where "
    "v has the features before i from x and the others from r, and u in addition feature i from x; "
    "f(x) is the mean of f over the background plus the sum of phi"
)


def background_rows(model: Any, explain: Any) -> Float:
    """Return the background of a model whose export explains itself.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor, Pipeline or KernelExpansion
        Fitted.
    explain : True or rows, as for `predict`
        True: one typical row.

    Returns
    -------
    ndarray of shape (m, n_features)
        Raw numbers; NaN is a gap of a table.
    """
    model = as_model(model)
    if explain is True:
        return typical_row(_function(model))[None]
    if isinstance(model, KernelMachine):
        return raw_rows(model, explain, "explain")
    return np.asarray(explain, dtype=np.float64)


def typical_row(h: KernelExpansion) -> Float:
    """Return a row in the middle of the training rows, as far as the model knows it.

    It is the mean of the landmarks, as an image for a model of images. In a table, numbers are
    those that fill gaps, and categories have their most frequent level.
    """
    code = h.encoder
    if isinstance(code, TableCode):
        return np.array([_typical_number(code, j) for j in range(code.n_inputs)])
    mean = np.asarray(h.origins().mean(axis=0), dtype=np.float64).reshape(-1)
    mean = mean if h.center is None else mean + h.center
    return code.images(mean[None])[0] if isinstance(code, ImageCode) else mean


def _typical_number(code: TableCode, j: int) -> float:
    """Return the raw number that fills gaps of a column; 0, the first level, of a category."""
    terms = [term for term in code.terms if term.column == j]
    for term in terms:
        if isinstance(term, (Curve, Ramps)):
            return float(term.knots[term.gap])
        if isinstance(term, (Linear, Power)):
            return float(term.fill)
    return next((float(term.origin) for term in terms if isinstance(term, Circle)), 0.0)


def explanation_numbers(model: Any, explain: Any) -> dict[str, Any]:
    """Return the background and the formula of Shapley values, for JSON.

    Models that are a product over features have the nodes of a quadrature as well.
    """
    h, background = _function(as_model(model)), background_rows(model, explain)
    rows = [[None if np.isnan(x) else x for x in row] for row in background.tolist()]
    if reason_against_products(h) is not None:
        return {"background": rows, "formula": ORDERS}
    t, w = quadrature(background.shape[1])
    formula = PRODUCT + (ENCODED if h.encoder is not None else "")
    formula += LINEAR if h.linear is not None else ""
    return {"background": rows, "nodes": t.tolist(), "weights": w.tolist(), "formula": formula}


def check_exact_in_c(model: Any) -> None:
    """Raise unless C can compute the Shapley values of a model."""
    h = _function(as_model(model))
    if h.encoder is not None:
        reason: str | None = "encodes its rows"
    elif h.linear is not None:
        reason = "has a linear term"
    else:
        reason = reason_against_products(h)
    if reason is not None:
        raise ValueError(
            f"explain: the model {reason}. C explains models of rows of numbers, with an RBF, "
            "Laplacian or chi-squared kernel, without a map or with a diagonal one. Leave explain "
            "out, or use to_json, to_html or nysplus.explain.shapley_values."
        )


def reason_against_products(h: KernelExpansion) -> str | None:
    """Return why a model is no product over features for each landmark; None if it is one."""
    if h.projection is not None and h.projection.ndim == 2:
        return "has a map that mixes features"
    if isinstance(h.encoder, ImageCode):
        return "encodes images"
    if h.kernel.separable != "product":
        return f"has the kernel {h.kernel!r}, which is no product over features"
    return None


def _function(model: Any) -> KernelExpansion:
    return without_linear_term(model if isinstance(model, KernelExpansion) else model.expansion_)
