"""Kernel machines with few landmarks: a classifier and a regressor."""

from nysplus.estimators.classifier import NystroemClassifier
from nysplus.estimators.regressor import NystroemRegressor

__all__ = ["NystroemClassifier", "NystroemRegressor"]
