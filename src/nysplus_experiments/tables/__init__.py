"""Accuracy on ordinary tables with raw columns, against gradient boosting and pipelines."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(
    __name__,
    {
        "peers": "peers",
        "ours": "ours",
        "seconds": "seconds",
        "csv": "csv_files",
        "exports": "exports",
        "walk": "walk",
    },
)
