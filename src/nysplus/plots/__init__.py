"""Displays in the style of scikit-learn. They need matplotlib: ``nysplus[plot]``."""

from nysplus.plots.boundary import LandmarkBoundaryDisplay
from nysplus.plots.calibration import ReliabilityDisplay
from nysplus.plots.confusion import ConfusionSharesDisplay
from nysplus.plots.history import RefinementDisplay
from nysplus.plots.images import LandmarkImagesDisplay
from nysplus.plots.importance import ImportanceDisplay
from nysplus.plots.landmark_curve import LandmarkCurveDisplay
from nysplus.plots.margins import MarginDisplay
from nysplus.plots.residuals import ResidualDisplay
from nysplus.plots.shapley import (
    ShapleyBarDisplay,
    ShapleyBeeswarmDisplay,
    ShapleyWaterfallDisplay,
)
from nysplus.plots.shapley_images import ShapleyImagesDisplay
from nysplus.plots.sizes import BudgetCurve, BudgetCurveDisplay

__all__ = [
    "BudgetCurve",
    "BudgetCurveDisplay",
    "ConfusionSharesDisplay",
    "ImportanceDisplay",
    "LandmarkBoundaryDisplay",
    "LandmarkCurveDisplay",
    "LandmarkImagesDisplay",
    "MarginDisplay",
    "RefinementDisplay",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "ShapleyBarDisplay",
    "ShapleyBeeswarmDisplay",
    "ShapleyImagesDisplay",
    "ShapleyWaterfallDisplay",
]
