"""Why selected landmarks help on some data and not on others: which rows, and their redundancy."""

from nysplus_experiments.harness.bench import steps

_MODULES = ("landmarks", "conditions", "full_kernel")
STEPS = steps(__name__, {name: name for name in _MODULES})
