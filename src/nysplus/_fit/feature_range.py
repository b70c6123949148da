"""Refuse features that are too large or too small to compute with."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nysplus._bytes.quantise import FLOAT32_RANGE
from nysplus._fit.plan import Plan
from nysplus._rows.blocks import RowBlocks
from nysplus._typing import Float
from nysplus.kernels import AdditiveChi2, Linear

# Standard deviations of features whose squares, and sums of squares, float64 can represent.
FLOAT64_RANGE = (1e-152, 1e152)
# Rows that the message is made from.
SHOWN_ROWS = 10_000


def check_range(plan: Plan, blocks: RowBlocks) -> None:
    """Raise if squares of features would overflow, or vanish where a fit depends on them.

    Parameters
    ----------
    plan : Plan
    blocks : RowBlocks
        The rows as given.
    """
    deviation = float(np.sqrt(blocks.variance()))
    if not deviation <= FLOAT64_RANGE[1]:
        raise _out_of_range(blocks, "Their squares exceed the range of float64.")
    if plan.budget is not None and deviation > FLOAT32_RANGE[1]:
        raise _out_of_range(
            blocks, "Under a budget numbers are float32 or smaller, and squares exceed its range."
        )
    if deviation < FLOAT64_RANGE[0] and _needs_squares(plan) and _differ(blocks):
        raise _out_of_range(blocks, "Their squares vanish in float64.")
    if plan.budget is not None and deviation < FLOAT32_RANGE[0] and _differ(blocks):
        raise _out_of_range(
            blocks, "Under a budget numbers are float32 or smaller, in which squares vanish."
        )


def _needs_squares(plan: Plan) -> bool:
    """Return whether a fit depends on squares of features, however small they are.

    With a width given as a number, a kernel of small features is rightly constant.
    """
    measured = isinstance(getattr(plan.kernel, "gamma", None), str)
    return plan.metric is not None or measured or isinstance(plan.kernel, (Linear, AdditiveChi2))


def _limits(blocks: RowBlocks) -> Float:
    """Return the smallest and the largest number of each feature in some of the rows."""
    rows = blocks.sample(min(SHOWN_ROWS, blocks.n_candidates), np.random.RandomState(0))
    X = blocks.gather(rows).X
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.array([low, high], dtype=np.float64)


def _differ(blocks: RowBlocks) -> bool:
    """Return whether numbers differ at all: a variance of zero may be that of a constant."""
    low, high = _limits(blocks)
    return bool(low.min() < high.max())


def _out_of_range(blocks: RowBlocks, reason: str) -> ValueError:
    """Return the error, with the range of the feature that has the largest numbers."""
    low, high = _limits(blocks)
    i = int(np.maximum(np.abs(low), np.abs(high)).argmax())
    return ValueError(
        f"Feature {i} has values from {low[i]:.3g} to {high[i]:.3g}, the largest of all features. "
        f"{reason} Scale the features, for example with sklearn.preprocessing.StandardScaler."
    )
