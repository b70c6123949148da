"""Rows of ``results.csv``, one a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nysplus_experiments.harness import records


class Key(NamedTuple):
    """Dataset, method, sizes and trial of a row; unique in a finished experiment."""

    dataset: str
    method: str
    n: int
    n_initial: int | None
    trial: int


@dataclass(frozen=True)
class Result(records.Row, key="dataset method n n_initial trial"):
    """One row of ``results.csv``: a fitted model, with the columns below.

    - dataset, method, trial, status ("ok" or "error") and error, its message;
    - n, the paper's n_f (random features, or all training rows), and n_initial, its n_0;
    - seed of all draws, from dataset, trial and the size of the first stage, so that methods are
      compared on the same draws;
    - accuracy in percent;
    - first_stage_seconds, steps 1 and 2 of Algorithm 1 (support centroids: 1 to 4), repeated by
      rows that share them; final_stage_seconds, steps 3 to 6, or the whole fit of a one-stage
      method; predict_seconds of all test rows;
    - paper_bytes, ``n (d + L) · 8`` or 8 bytes for every stored number; stored_bytes, those of
      the fitted arrays; kernel_evaluations of training;
    - peak_rss_mb, the largest resident memory of the process during fit and prediction, in MiB;
    - n_train, n_test, n_features, n_outputs; python, numpy, scipy, sklearn, nysplus, machine.
    """

    dataset: str
    method: str
    n: int
    n_initial: int | None
    trial: int
    seed: int
    status: Literal["ok", "error"]
    error: str = ""
    accuracy: float | None = None
    first_stage_seconds: float | None = None
    final_stage_seconds: float | None = None
    predict_seconds: float | None = None
    paper_bytes: int | None = None
    stored_bytes: int | None = None
    kernel_evaluations: int | None = None
    peak_rss_mb: float | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    n_outputs: int | None = None
    python: str = ""
    numpy: str = ""
    scipy: str = ""
    sklearn: str = ""
    nysplus: str = ""
    machine: str = ""

    @property
    def ok(self) -> bool:
        """Whether the row has numbers."""
        return self.status == "ok"


def read_results(path: Path) -> list[Result]:
    """Read a results file; of a failed row and its retry the last counts."""
    return records.read_last(path, Result)
