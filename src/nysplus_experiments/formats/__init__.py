"""Measure exported models: bytes, speed and agreement; and models made smaller by compression."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"exports": "exports", "compress": "compress"})
