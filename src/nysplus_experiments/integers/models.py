"""Models of datasets whose features are integers, fitted once and kept in ``build/models``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import nysplus
from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus_experiments.harness.bench import ROOT, BenchOptions
from nysplus_experiments.harness.datasets import load
from nysplus_experiments.harness.problems import available

# Datasets with the largest integer of their features; images have a shape.
LARGEST = {"digits": 16, "letter": 15, "mnist": 255}
SHAPES = {"mnist": (28, 28)}
BUDGETS = ("4kB", "16kB", "64kB")
INPUT_TYPE = "uint8"
MODELS = ROOT / "build" / "models" / "integers"


@dataclass(frozen=True)
class IntegerProblem:
    """Rows of integers of the first trial, with their classes."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@lru_cache(maxsize=1)
def integer_problem(dataset: str) -> IntegerProblem:
    """Return the rows of a dataset as integers: the loader scales them to [0, 1]."""
    split, largest = load(dataset, 0), LARGEST[dataset]
    rows = [np.rint(largest * X) for X in (split.X_train, split.X_test)]
    assert np.abs(rows[0] - largest * split.X_train).max() < 1e-3
    return IntegerProblem(rows[0], split.y_train, rows[1], split.y_test)


def fitted(dataset: str, budget: str) -> Any:
    """Return a refined model within a budget; it is fitted if its file is missing."""
    path = MODELS / f"{dataset}-{budget}.safetensors"
    if not path.is_file():
        problem = integer_problem(dataset)
        encoder = ImageEncoder(SHAPES[dataset]) if dataset in SHAPES else None
        model = NystroemClassifier(budget=budget, refine=True, encoder=encoder, random_state=0)
        model.fit(problem.X.astype(np.float32), problem.y)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return nysplus.load(path)


def chosen(options: BenchOptions) -> list[str]:
    """Return the datasets to measure: digits alone for a smoke run."""
    if options.smoke:
        return ["digits"]
    return available(options.choose_datasets(tuple(LARGEST)))


def compiled(command: Iterable[str], folder: Path) -> None:
    """Run a compiler in a folder; its messages are part of the error."""
    done = subprocess.run(list(command), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{next(iter(command))} failed: {done.stderr[-300:]}")


def source(name: str) -> str:
    """Return the path of a C program of this package."""
    return os.fspath(Path(__file__).with_name(name))
