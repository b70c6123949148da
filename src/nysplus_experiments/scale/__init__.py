"""Measure fits to rows larger than memory, and fits on a Dask cluster."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _run(module: str, options: BenchOptions) -> None:
    import_module(f"{__name__}.{module}").run(options)


STEPS: dict[str, BenchStep] = {
    "passes": partial(_run, "passes"),
    "out-of-core": partial(_run, "out_of_core"),
    "cluster": partial(_run, "cluster"),
}
