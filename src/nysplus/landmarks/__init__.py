"""Landmark selectors: how the points that an input is compared with are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._validation import advice
from nysplus.landmarks.auto import Auto
from nysplus.landmarks.base import (
    GivenLandmarks,
    Landmarks,
    LandmarkSelector,
    Problem,
    select_landmarks,
)
from nysplus.landmarks.class_centroids import ClassCentroids
from nysplus.landmarks.pickers import CholeskyPicker, FarthestPicker, Picker
from nysplus.landmarks.supervised import (
    NegativeMargin,
    Residual,
    SupervisedKMeans,
    SupportCentroids,
)
from nysplus.landmarks.unsupervised import KMeans, LeverageScores, RPCholesky, Uniform

__all__ = [
    "SELECTORS",
    "Auto",
    "CholeskyPicker",
    "ClassCentroids",
    "FarthestPicker",
    "GivenLandmarks",
    "KMeans",
    "LandmarkSelector",
    "Landmarks",
    "LeverageScores",
    "NegativeMargin",
    "Picker",
    "Problem",
    "RPCholesky",
    "Residual",
    "SupervisedKMeans",
    "SupportCentroids",
    "Uniform",
    "make_selector",
    "select_landmarks",
]

SELECTORS: dict[str, type[LandmarkSelector]] = {
    "auto": Auto,
    "class-centroids": ClassCentroids,
    "kmeans": KMeans,
    "leverage": LeverageScores,
    "negative-margin": NegativeMargin,
    "residual": Residual,
    "rpcholesky": RPCholesky,
    "supervised-kmeans": SupervisedKMeans,
    "support-centroids": SupportCentroids,
    "uniform": Uniform,
}


def make_selector(selection: Any) -> LandmarkSelector:
    """Return the selector that the parameter `selection` names, or is.

    Parameters
    ----------
    selection : str, LandmarkSelector or landmarks as an array
    """
    if isinstance(selection, LandmarkSelector):
        return selection
    if isinstance(selection, str):
        if selection in SELECTORS:
            return SELECTORS[selection]()
    elif len(getattr(selection, "shape", np.shape(selection))) == 2:
        return GivenLandmarks(selection)
    raise ValueError(
        f"selection={selection!r} is not known. Allowed are {sorted(SELECTORS)}, "
        "a nysplus.landmarks object, or an array of landmarks with a row each."
        f"{advice(selection, SELECTORS)}"
    )
