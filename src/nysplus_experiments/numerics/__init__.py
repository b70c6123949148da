"""Measure rounding errors against extended precision."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"truth": "truth"})
