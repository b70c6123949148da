"""Accuracy of models of a few kilobytes, against a full SVM, gradient boosting and Nystroem."""

from __future__ import annotations

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _fits(options: BenchOptions) -> None:
    from nysplus_experiments.kilobytes.fits import run

    run(options)


STEPS: dict[str, BenchStep] = {"fits": _fits}
