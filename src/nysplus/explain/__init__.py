"""Explain predictions: Shapley values, the landmarks of a score, and the importance of columns."""

from nysplus.explain.importance import FeatureImportance, feature_importance
from nysplus.explain.landmarks import LandmarkAttribution, landmark_attribution
from nysplus.explain.shapley import shapley_values
from nysplus.explain.values import ShapleyValues

__all__ = [
    "FeatureImportance",
    "LandmarkAttribution",
    "ShapleyValues",
    "feature_importance",
    "landmark_attribution",
    "shapley_values",
]
