"""The row of ``speed.csv``."""

from __future__ import annotations

from dataclasses import dataclass

from nysplus_experiments.harness.records import Row

#: Dataset, system, type of the rows, number of landmarks or random features.
Cell = tuple[str, str, str, int | None]


@dataclass(frozen=True)
class Measurement(Row, key="dataset system dtype n repeat"):
    """One fit of one system, and its predictions.

    ``status`` is "ok", "time limit" or "error", ``note`` the error or first warning. Accuracy is
    in percent. Memory is the peak beyond the resident memory before the fit, in MiB.
    """

    dataset: str
    system: str
    dtype: str
    n: int | None
    rows: int
    test_rows: int
    features: int
    repeat: int
    status: str
    note: str = ""
    fit_seconds: float | None = None
    fit_cpu_seconds: float | None = None
    predict_seconds: float | None = None
    predict_cpu_seconds: float | None = None
    accuracy: float | None = None
    model_bytes: int | None = None
    peak_mb: float | None = None
    predict_peak_mb: float | None = None
    objective: float | None = None
    solver: str = ""
    threads: int = 0

    @property
    def cell(self) -> Cell:
        """Everything that identifies the measurement but the repeat."""
        return self.dataset, self.system, self.dtype, self.n
