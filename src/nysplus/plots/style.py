"""Colours, fonts and axes that all displays share."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nysplus._typing import Float

# Okabe and Ito's colours, apart for every kind of colour vision; blue and vermilion also in grey.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#767676"
CLASS_COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY)
# One fewer than colours, so that pairs of both repeat only after all combinations.
MARKERS = "os^Dv<"
# Points that stay legible at half the size of the figure.
LABEL_SIZE, TICK_SIZE = 13, 12


def check_matplotlib() -> None:
    """Raise if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(
            'Figures need matplotlib, which is not installed. Run pip install "nysplus[plot]".'
        )


def axes_or_new(ax: Any, width: float = 6.4, height: float = 4.2) -> Any:
    """Return the given axes, or those of a new figure of a size in inches."""
    check_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def label(ax: Any, x: str, y: str) -> None:
    """Name both axes, in a legible size."""
    ax.set_xlabel(x, fontsize=LABEL_SIZE)
    ax.set_ylabel(y, fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=TICK_SIZE)


def legend_above(ax: Any, n_columns: int) -> None:
    """Put the legend above the axes, where it covers nothing."""
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=n_columns,
        fontsize=TICK_SIZE,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def kilobytes(size: float) -> str:
    """Return a number of bytes in kilobytes."""
    return f"{size / 1024:.1f}" if size < 10 * 1024 else f"{size / 1024:,.0f}"


def legible(sizes: Any) -> list[int]:
    """Return the positions of the sizes that get a tick, so that their labels do not overlap.

    Sizes ascend, and their axis is logarithmic.
    """
    shown, whole = [len(sizes) - 1], math.log(sizes[-1] / sizes[0])
    for i in range(len(sizes) - 2, -1, -1):
        # a label of four digits takes a tenth of the axis
        if math.log(sizes[shown[-1]] / sizes[i]) > 0.1 * whole:
            shown.append(i)
    return shown[::-1]


def landmark_rows(estimator: Any, X: Any = None) -> Float:
    """Return landmarks in the space of the rows; behind a map, rows that are mapped to them.

    Many rows are mapped to the same landmark. Given rows X, as the model sees them behind its
    encoder, the result is the most likely one under a normal distribution with their mean μ and
    covariance Σ, ``μ + (z − (μ − c)P)(PᵀΣP)⁻¹PᵀΣ``; otherwise the one closest to the centre c.
    """
    check_is_fitted(estimator)
    expansion = estimator.expansion_
    if expansion.landmarks.shape[0] == 0:
        raise ValueError("The model is a linear function and has no landmarks to show.")
    P = estimator.projection_
    if X is None or P is None:
        Z = expansion.origins()
        rows: Float = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
        return rows if expansion.center is None else rows + expansion.center
    mean, S = X.mean(axis=0), np.cov(X, rowvar=False) @ P
    about = mean if expansion.center is None else mean - expansion.center
    likely: Float = mean + (expansion.landmarks - about @ P) @ np.linalg.pinv(P.T @ S) @ S.T
    return likely
