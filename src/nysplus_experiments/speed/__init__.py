"""Measure speed against other libraries, how costs grow, overhead, and how exact fits are."""

from __future__ import annotations

from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _step(module: str) -> BenchStep:
    """Return the step of a module, which is imported when the step runs."""

    def run(options: BenchOptions) -> None:
        import_module(f"{__name__}.{module}").run(options)

    return run


#: The first five write results; the others print their findings.
STEPS: dict[str, BenchStep] = {
    "peers": _step("peer_comparison"),
    "crossover": _step("crossover"),
    "growth": _step("growth"),
    "overhead": _step("overhead"),
    "sweep": _step("sweep"),
    "exactness": _step("exactness"),
    "reference-figures": _step("reference_figures"),
    "floor": _step("blas_floor"),
}
