"""Kernel-machine accuracy in kilobytes, on a laptop, behind the scikit-learn API."""

from nysplus._checkpoint import Checkpoint
from nysplus._feature_map import EnsembleMap, RandomizedMap, StandardMap
from nysplus._from_sklearn import from_svc
from nysplus._metric import LearnedMetric
from nysplus._refine import Refinement
from nysplus.curve import LandmarkCurve, landmark_curve
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.persistence import load
from nysplus.plots import LandmarkCurveDisplay
from nysplus.transformer import Nystroem

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "EnsembleMap",
    "LandmarkCurve",
    "LandmarkCurveDisplay",
    "LearnedMetric",
    "Nystroem",
    "NystroemClassifier",
    "NystroemRegressor",
    "RandomizedMap",
    "Refinement",
    "StandardMap",
    "from_svc",
    "landmark_curve",
    "load",
]
