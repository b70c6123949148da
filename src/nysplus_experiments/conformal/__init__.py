"""Coverage and size of prediction sets and intervals, and the novelty of foreign rows."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"coverage": "coverage", "peers": "peers", "cost": "cost"})
