"""Rows of ``results.csv``, one a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nysplus_experiments.harness import records


class Key(NamedTuple):
    """What a row is about; no two rows of a finished experiment share it."""

    dataset: str
    method: str
    n: int
    n_initial: int | None
    trial: int


@dataclass(frozen=True)
class Result:
    """One row of ``results.csv``; the attributes are its columns, in this order.

    Attributes
    ----------
    dataset, method : str
        Keys of `datasets.DATASETS` and `methods.METHODS`.
    n : int
        Landmarks of the final model (the paper's n_f), random features, or all training rows.
    n_initial : int or None
        Landmarks of the first stage (the paper's n_0); None for one-stage methods.
    trial : int
    seed : int
        Where all random draws of the row start; depends on dataset, trial and the size of the
        first stage only, so methods are compared on the same draws.
    status : {"ok", "error"}
    error : str
        What went wrong, on one line; empty where nothing did.
    accuracy : float or None
        Test rows classified right, in percent.
    first_stage_seconds : float or None
        Steps 1 and 2 of Algorithm 1; None for one-stage methods. Rows that share a first stage
        repeat its time. Support centroids are clustered, scored and chosen in one call, which
        counts here as a whole (steps 1 to 4).
    final_stage_seconds : float or None
        Steps 3 to 6 for two-stage methods, the whole fit for all others.
    predict_seconds : float or None
        Classifying all test rows.
    paper_bytes : int or None
        Model size as the paper counts it: ``n (d + L) · 8``, one output for two classes. Random
        features and full machines: 8 bytes for every number they store.
    stored_bytes : int or None
        Bytes of the fitted arrays, intercepts included.
    kernel_evaluations : int or None
        Both stages, training only; None where the solver does not tell.
    peak_rss_mb : float or None
        Largest resident memory of the process in MiB during the row's fit and prediction:
        interpreter, data and what the allocator kept of earlier rows included. Linux only, where
        the mark can be reset for each row; None elsewhere, because the mark of the whole
        process never falls and would say nothing about the row.
    n_train, n_test, n_features, n_outputs : int or None
    python, numpy, scipy, sklearn, nysplus, machine : str
        Versions and processor.
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

    @property
    def key(self) -> Key:
        """What the row is about."""
        return Key(self.dataset, self.method, self.n, self.n_initial, self.trial)


def read_results(path: Path) -> list[Result]:
    """Read a results file; of rows that share a key (a failed row and its retry) the last counts.

    Raises
    ------
    ResultsError
        Where the file has other columns or values.
    """
    return records.last_of_each(records.read(path, Result), lambda row: row.key)
