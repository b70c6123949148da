"""Kernel-machine accuracy in kilobytes, on a laptop, behind the scikit-learn API."""

from nysplus._checkpoint import Checkpoint
from nysplus._feature_map import EnsembleMap, RandomizedMap, StandardMap
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.transformer import Nystroem

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "EnsembleMap",
    "Nystroem",
    "NystroemClassifier",
    "NystroemRegressor",
    "RandomizedMap",
    "StandardMap",
]
