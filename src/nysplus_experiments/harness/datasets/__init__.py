"""The paper's datasets: where they are published, how they are split, scaled and looked up.

A dataset is looked for as ``<name>.npz`` in the folder that the environment variable
``NYSPLUS_DATA`` names, then in the user's cache (``NYSPLUS_CACHE``, or the platform's own place),
and is then downloaded from its publisher. The paper says only that features were scaled to [0, 1];
here images share one range ("global") and all other data have one range a column ("feature"),
both taken from the training rows, so that test values may lie outside [0, 1].

>>> from nysplus_experiments.harness import datasets
>>> split = datasets.load("digits", trial=3)
>>> split.X_train.shape, split.X_test.shape
((1297, 64), (500, 64))
"""

from __future__ import annotations

from nysplus_experiments.harness.datasets.formats import DatasetError
from nysplus_experiments.harness.datasets.publishers import fetch, prepare
from nysplus_experiments.harness.datasets.registry import (
    DATASETS,
    Dataset,
    DatasetNotFound,
    Presence,
    RemoteFile,
    Source,
    cache_folder,
    describe,
    find,
)
from nysplus_experiments.harness.datasets.splits import Scaling, Split, load

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "DatasetNotFound",
    "Presence",
    "RemoteFile",
    "Scaling",
    "Source",
    "Split",
    "cache_folder",
    "describe",
    "fetch",
    "find",
    "load",
    "prepare",
]
