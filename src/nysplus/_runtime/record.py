"""A record of the models that a fit compared, and of the seconds of its stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

ACCURACY, RMSE = "accuracy", "root mean squared error"


@dataclass(frozen=True)
class Trial:
    """A model that a fit has compared with others.

    Attributes
    ----------
    stage : {"metric", "kernel", "code", "size", "refinement", "linear"}
        The choice that it was a candidate of.
    model : str
        A description, which tells it from the other candidates.
    metric : str
        Name of the score. "accuracy" is better if it is larger, errors if they are smaller.
    score : float
        On rows that the model was not fitted to.
    n_rows : int
        Number of these rows.
    step : str
        Part of the stage: scores of the same step compare models of the same kind and on the same
        rows.
    n_landmarks, n_bytes : int or None
        Size of the model, where it was known.
    chosen : bool
        Whether it was chosen.
    """

    stage: str
    model: str
    metric: str
    score: float
    n_rows: int
    step: str = ""
    n_landmarks: int | None = None
    n_bytes: int | None = None
    chosen: bool = False

    @classmethod
    def of(
        cls,
        stage: str,
        model: str,
        mean: float,
        discrete: bool,
        n_rows: int,
        step: str = "",
        n_landmarks: int | None = None,
        n_bytes: int | None = None,
        chosen: bool = False,
    ) -> Trial:
        """Return the trial of a mean row score: an accuracy, or minus a mean squared error."""
        metric, score = (ACCURACY, mean) if discrete else (RMSE, max(-mean, 0.0) ** 0.5)
        return cls(stage, model, metric, score, n_rows, step, n_landmarks, n_bytes, chosen)


@dataclass
class FitRecord:
    """The trials of a fit so far, and the seconds of its stages.

    Attributes
    ----------
    trials : list of Trial
    seconds : dict from str to float
        Wall-clock time of each stage.
    """

    trials: list[Trial] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, *trials: Trial) -> None:
        """Add trials."""
        self.trials.extend(trials)

    def choose(self, stage: str, model: str) -> None:
        """Mark the latest trial of a model as chosen."""
        for i in reversed(range(len(self.trials))):
            trial = self.trials[i]
            if (trial.stage, trial.model) == (stage, model):
                self.trials[i] = replace(trial, chosen=True)
                return

    def keep(self, stage: str) -> None:
        """Forget the trials of all other stages, because these stages are run again."""
        self.trials = [trial for trial in self.trials if trial.stage == stage]

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time until the end of the block to a stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - begin
            self.seconds[stage] = self.seconds.get(stage, 0.0) + passed
