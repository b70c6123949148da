"""Measure speed against other libraries, how costs grow, overhead, and how exact fits are."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _run(module: str, options: BenchOptions) -> None:
    import_module(f"{__name__}.{module}").run(options)


#: The first five write results; the others print their findings.
STEPS: dict[str, BenchStep] = {
    "peers": partial(_run, "peer_comparison"),
    "crossover": partial(_run, "crossover"),
    "growth": partial(_run, "growth"),
    "overhead": partial(_run, "overhead"),
    "sweep": partial(_run, "sweep"),
    "exactness": partial(_run, "exactness"),
    "reference-figures": partial(_run, "reference_figures"),
    "floor": partial(_run, "blas_floor"),
}
