"""Accuracy per byte on tables with raw columns, against gradient boosting and pipelines."""

from nysplus_experiments.harness.bench import steps

STEPS = steps(
    __name__,
    {
        "bytes": "fits",
        "again": "again",
        "seconds": "seconds",
        "csv": "csv_files",
        "exports": "exports",
        "walk": "walk",
    },
)
