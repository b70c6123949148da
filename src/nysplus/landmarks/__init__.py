"""Landmark selectors: how the points that an input is compared with are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus.landmarks.base import (
    GivenLandmarks,
    Landmarks,
    LandmarkSelector,
    Problem,
    select_landmarks,
)
from nysplus.landmarks.supervised import NegativeMargin, SupervisedKMeans, SupportCentroids
from nysplus.landmarks.unsupervised import KMeans, Uniform

__all__ = [
    "SELECTORS",
    "GivenLandmarks",
    "KMeans",
    "LandmarkSelector",
    "Landmarks",
    "NegativeMargin",
    "Problem",
    "SupervisedKMeans",
    "SupportCentroids",
    "Uniform",
    "make_selector",
    "select_landmarks",
]

SELECTORS: dict[str, type[LandmarkSelector]] = {
    "kmeans": KMeans,
    "negative-margin": NegativeMargin,
    "supervised-kmeans": SupervisedKMeans,
    "support-centroids": SupportCentroids,
    "uniform": Uniform,
}


def make_selector(selection: Any, labelled: bool) -> LandmarkSelector:
    """Return the selector that the parameter `selection` names, or is.

    Parameters
    ----------
    selection : str, LandmarkSelector or landmarks as an array
        "auto" is the paper's rule where there are labels and uniform rows elsewhere.
    labelled : bool
        Whether there are classes to choose by.
    """
    if isinstance(selection, LandmarkSelector):
        return selection
    if isinstance(selection, str):
        if selection == "auto":
            return NegativeMargin() if labelled else Uniform()
        if selection in SELECTORS:
            return SELECTORS[selection]()
    elif len(getattr(selection, "shape", np.shape(selection))) == 2:
        return GivenLandmarks(selection)
    raise ValueError(
        f"selection={selection!r} is not known. Allowed are {['auto', *sorted(SELECTORS)]}, "
        "a nysplus.landmarks object, or an array of landmarks with a row each."
    )
