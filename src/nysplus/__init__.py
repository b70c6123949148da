"""Kernel-machine accuracy in kilobytes, on a laptop, behind the scikit-learn API."""

from nysplus._learning.refinement import Refinement
from nysplus._ridge.feature_map import EnsembleMap, RandomizedMap, StandardMap
from nysplus._runtime.checkpoint import Checkpoint
from nysplus._tuning.metric import LearnedMetric
from nysplus.curve import LandmarkCurve, landmark_curve
from nysplus.distillation import distill
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.from_sklearn import from_svc
from nysplus.persistence import load, save
from nysplus.pipelines import from_pipeline
from nysplus.plots import LandmarkCurveDisplay
from nysplus.transformer import Nystroem

__version__ = "0.2.0"

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
    "distill",
    "from_pipeline",
    "from_svc",
    "landmark_curve",
    "load",
    "save",
]
