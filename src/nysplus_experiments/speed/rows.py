"""The row of ``speed.csv``."""

from __future__ import annotations

from dataclasses import dataclass

#: Dataset, system, type of the rows, number of landmarks or random features.
Cell = tuple[str, str, str, int | None]


@dataclass(frozen=True)
class Measurement:
    """One fit of one system, and its predictions.

    Attributes
    ----------
    dataset, system, dtype, n, repeat
        ``dtype`` is the type of the rows, ``n`` counts landmarks or random features.
    status : "ok", "time limit" or "error"
    note : str
        The error, or the first warning.
    accuracy : float
        Test rows classified correctly, in percent.
    model_bytes : int
        Bytes to store for predictions.
    peak_mb, predict_peak_mb : float
        Peak memory during fit and predict beyond the resident memory before the fit
        (interpreter, libraries, data), in MiB.
    objective : float
        Training objective at the fitted model, for systems that solve the same problem.
    solver : str
        ``solver_`` of a nysplus model.
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

    @property
    def key(self) -> tuple[str, str, str, int | None, int]:
        """The cell and the repeat."""
        return *self.cell, self.repeat
