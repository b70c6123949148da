"""Which landmarks, and how many: selectors, widths, metrics, calibration, landmark curves."""

from nysplus_experiments.harness.bench import steps

_MODULES = ("selectors", "gamma", "metric", "ablation", "calibration", "curve")
STEPS = steps(__name__, {name: name for name in _MODULES})
