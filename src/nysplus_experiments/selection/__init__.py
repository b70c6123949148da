"""Which landmarks, and how many: selectors, widths, metrics, calibration, landmark curves."""

from __future__ import annotations

from importlib import import_module

from nysplus_experiments.harness.bench import BenchOptions, BenchStep


def _step(module: str) -> BenchStep:
    def run(options: BenchOptions) -> None:
        import_module(f"{__name__}.{module}").run(options)

    return run


STEPS: dict[str, BenchStep] = {
    name: _step(name)
    for name in ("selectors", "gamma", "metric", "ablation", "calibration", "curve")
}
