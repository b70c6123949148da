"""Measure fits to rows larger than memory, and fits on a Dask cluster."""

from __future__ import annotations

from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _step(module: str) -> BenchStep:
    """Return the step of a module, which is imported when the step runs."""

    def run(options: BenchOptions) -> None:
        import_module(f"{__name__}.{module}").run(options)

    return run


STEPS: dict[str, BenchStep] = {
    "passes": _step("passes"),
    "out-of-core": _step("out_of_core"),
    "cluster": _step("cluster"),
}
