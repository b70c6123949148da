"""Measure fits to rows larger than memory, and fits on a Dask cluster."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"passes": "passes", "out-of-core": "out_of_core", "cluster": "cluster"})
