"""Shapley values in exported models: the background, and what can be explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.estimators.base import KernelMachine
from nysplus.expansion import KernelExpansion
from nysplus.explain.function import raw_rows
from nysplus.pipelines import as_model

# The integral of docs/guide/explain.md, for readers of the text.
FORMULA = (
    "phi_i = sum over landmarks j of A_j * mean over background rows r of (p_i - q_i) * sum over "
    "nodes t with weights w of w * product over k != i of (t * p_k + (1 - t) * q_k), where p_k and "
    "q_k are the factors of k((x - c) P, z_j) and of k((r - c) P, z_j) in feature k; f(x) is the "
    "mean of f over the background plus the sum of phi"
)


def background_rows(model: Any, explain: Any) -> Float:
    """Return the background of a model whose export explains itself.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor, Pipeline or KernelExpansion
        Fitted.
    explain : True or rows, as for `predict`
        True: one row, the mean of the landmarks.

    Returns
    -------
    ndarray of shape (m, n_features)
    """
    model = as_model(model)
    h: KernelExpansion = model if isinstance(model, KernelExpansion) else model.expansion_
    _check(h)
    if explain is True:
        Z = h.origins()
        mean = np.asarray(Z.mean(axis=0), dtype=np.float64).reshape(1, -1)
        return mean if h.center is None else mean + h.center
    if isinstance(model, KernelMachine):
        return raw_rows(model, explain, "explain")
    return np.asarray(explain, dtype=np.float64)


def _check(h: KernelExpansion) -> None:
    """Raise unless Shapley values can be exported."""
    if h.encoder is not None:
        reason = "encodes its rows"
    elif h.projection is not None and h.projection.ndim == 2:
        reason = "has a map that mixes features"
    elif h.linear is not None:
        reason = "has a linear term"
    elif h.kernel.separable != "product":
        reason = f"has the kernel {h.kernel!r}, which is no product over features"
    else:
        return
    raise ValueError(
        f"explain: the model {reason}. Exports explain models of rows of numbers, with an RBF, "
        "Laplacian or chi-squared kernel, without a map or with a diagonal one. Leave explain out, "
        "or use nysplus.explain.shapley_values."
    )
