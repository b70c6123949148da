"""From an estimator's parameters and rows to a fitted model."""
