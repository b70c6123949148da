"""Measure exported models: bytes, speed and agreement; and models made smaller by compression."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _run(module: str, options: BenchOptions) -> None:
    import_module(f"{__name__}.{module}").run(options)


STEPS: dict[str, BenchStep] = {
    "exports": partial(_run, "exports"),
    "compress": partial(_run, "compress"),
}
