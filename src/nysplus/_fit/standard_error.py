"""Score models on held-out rows, with the standard errors of the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.metrics import r2_score

from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion


def scores_with_errors(expansions: Sequence[KernelExpansion], rows: Block) -> tuple[Float, Float]:
    """Return the accuracy or R² of each function on some rows, and the standard errors."""
    targets, weight = rows.targets, rows.counts
    if targets is not None and targets.discrete:
        hits = targets.labels.hits
        pairs = [accuracy_with_error(hits(expansion(rows.X)), weight) for expansion in expansions]
    else:
        pairs = [r2_with_error(rows.Y, expansion(rows.X), weight) for expansion in expansions]
    scores, errors = np.array(pairs).T
    return scores, errors


def accuracy_with_error(hits: npt.NDArray[np.bool_], weight: Float) -> tuple[float, float]:
    """Return the accuracy and its binomial standard error."""
    total = weight.sum()
    share = min(1.0, float(weight @ hits / total))  # sums of weights may round to just above
    return share, float(np.sqrt(share * (1.0 - share) * (weight**2).sum()) / total)


def r2_with_error(Y: Float, predicted: Float, weight: Float) -> tuple[float, float]:
    """Return R², averaged over the outputs, and its standard error by the delta method.

    One minus R² is a ratio of two means: of squared errors, and of squares about the mean. To first
    order a row changes the ratio by its part of the first mean minus the ratio times its part of
    the second mean.
    """
    score = float(r2_score(Y, predicted, sample_weight=weight))
    total = weight.sum()
    squares = (Y - weight @ Y / total) ** 2
    errors = (Y - predicted) ** 2
    scatter = weight @ squares
    varying = scatter > 0
    ratio = np.divide(weight @ errors, scatter, out=np.zeros_like(scatter), where=varying)
    scale = np.divide(total, scatter, out=np.zeros_like(scatter), where=varying)
    influence = ((errors - ratio * squares) * scale).mean(axis=1)
    return score, float(np.sqrt((weight**2) @ influence**2) / total)
