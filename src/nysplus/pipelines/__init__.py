"""Fold the preprocessing of scikit-learn's pipelines into a model."""

from nysplus.pipelines.folding import as_model, fold_steps, from_pipeline

__all__ = ["as_model", "fold_steps", "from_pipeline"]
