"""Accuracy of models of a few kilobytes, against a full SVM, gradient boosting and Nystroem."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"fits": "fits"})
