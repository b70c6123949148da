"""Small models taught by gradient boosting, support vector machines and random forests."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(__name__, {"students": "students"})
