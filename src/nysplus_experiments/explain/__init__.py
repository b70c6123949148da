"""Measure Shapley values: against all coalitions, in time, and against shap."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"exactness": "exactness", "time": "times", "peers": "peers"})
