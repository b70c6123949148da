"""The row of ``speed.csv``, which `speed` writes and `benchmark_page` reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"

Cell = tuple[str, str, str, int | None]


@dataclass(frozen=True)
class Measurement:
    """One row of ``speed.csv``.

    Attributes
    ----------
    dataset, system, dtype, n, repeat
        What was measured: ``dtype`` is the type of the rows, ``n`` counts landmarks or random
        features.
    status : "ok", "time limit" or "error"
    note : str
        The error, or the first warning.
    accuracy : float
        Test rows classified right, in percent.
    model_bytes : int
        What a user has to store to predict.
    peak_mb, predict_peak_mb : float
        Largest resident memory during fit and predict beyond what was resident before the fit
        (interpreter, libraries, data), in MiB.
    objective : float
        Value of the training problem at the fitted model, where it is the same problem.
    solver : str
        nysplus' own word for the way it solved the problem.
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
        """What the row is about, whatever the repeat."""
        return self.dataset, self.system, self.dtype, self.n
