"""Measure exported models: bytes, speed and agreement; and models made smaller by compression."""

from __future__ import annotations

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _exports(options: BenchOptions) -> None:
    from nysplus_experiments.formats.exports import run

    run(options)


def _compress(options: BenchOptions) -> None:
    from nysplus_experiments.formats.compress import run

    run(options)


STEPS: dict[str, BenchStep] = {"exports": _exports, "compress": _compress}
