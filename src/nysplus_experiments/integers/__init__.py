"""Measure models in integer arithmetic: bits, accuracy, and bytes on microcontrollers."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(
    __name__,
    {"agreement": "agreement", "targets": "targets", "simulators": "simulators", "peers": "peers"},
)
