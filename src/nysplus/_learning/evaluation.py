"""Train candidates without held-out rows, and score them on these rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._bytes.budget import Budget
from nysplus._holdout import Positions, stratified_folds
from nysplus._learning.candidates import DEFAULT_RULES, Candidate, Deadline, SearchRules
from nysplus._learning.validation import HeldOutFold, TrainedModel, ValidationScores
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.projected import projected
from nysplus._runtime.record import Trial
from nysplus._runtime.threads import free_threads, in_threads
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import LandmarkSelector, Problem, select_landmarks


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A candidate trained without each of several folds.

    Attributes
    ----------
    candidate : Candidate
    folds : tuple of HeldOutFold
    models : tuple of TrainedModel
        One for each fold.
    scores : ValidationScores
        Of the rows of all folds.
    """

    candidate: Candidate
    folds: tuple[HeldOutFold, ...]
    models: tuple[TrainedModel, ...]
    scores: ValidationScores

    def trial(self, step: str) -> Trial:
        """Return the record of the comparison with others."""
        scores, candidate = self.scores, self.candidate
        return Trial.of(
            "refinement",
            candidate.description,
            scores.accuracy,
            scores.targets.discrete,
            len(scores.rows),
            step,
            n_landmarks=candidate.size.n,
        )


@dataclass(frozen=True)
class HeldOutSearch(ABC):
    """A search that trains candidates without held-out rows.

    Attributes
    ----------
    problem : Problem
    selector : LandmarkSelector
        The selector of the unrefined model; it selects landmarks again without held-out rows.
    start : KernelExpansion
        The unrefined model, with the map of a metric, if there is one.
    rows : Block
        The rows that candidates are compared on.
    seed : int
        Every run draws rows in the same order, so that chance favours no candidate.
    deadline : Deadline
    budget : Budget or None
        Of the learned model.
    rules : SearchRules
    """

    problem: Problem
    selector: LandmarkSelector
    start: KernelExpansion
    rows: Block
    seed: int
    deadline: Deadline
    budget: Budget | None = None
    rules: SearchRules = DEFAULT_RULES

    @abstractmethod
    def _starts(
        self, candidates: list[Candidate], folds: Sequence[HeldOutFold], seconds: float | None
    ) -> Mapping[tuple[Candidate, int], Any]:
        """Return the starting point of each candidate and held-out fold, by the number of the fold.

        Parameters
        ----------
        candidates : list of Candidate
        folds : sequence of HeldOutFold
        seconds : float or None
            Time limit of one run, which the preparation of a start should not exceed by much.
        """

    @abstractmethod
    def _trained(
        self,
        candidate: Candidate,
        fold: HeldOutFold,
        start: Any,
        seconds: float | None,
        advance: Callable[[int], None] | None,
    ) -> TrainedModel:
        """Train a candidate from its start, without the rows of a fold."""

    # -- held-out rows -----------------------------------------------------------------------------

    @property
    def _rng(self) -> np.random.RandomState:
        return np.random.RandomState(self.seed)

    def folds(self) -> list[Positions]:
        """Return the positions of the rows of each fold; rows that were made are in none."""
        targets = self.rows.targets
        assert targets is not None
        given = np.arange(len(self.rows))
        if targets.origin is not None:
            given = np.flatnonzero((targets.origin == targets.origin[:, :1]).all(axis=1))
        n_folds = self.rules.count_folds(len(given))
        folds = stratified_folds(targets.take(given), n_folds, self._rng)
        return [given[fold] for fold in folds]

    def hold_out(self, held_out: Positions) -> HeldOutFold:
        """Hold a fold out, and fit the unrefined model without it where it could overfit.

        A landmark that is the centroid of few rows predicts these rows better than new rows.
        """
        others = self._others(held_out)
        model, n = self.start, self.start.landmarks.shape[0]
        if self.problem.blocks.n_rows < self.rules.honest_ratio * n:
            blocks = self._blocks(others)
            landmarks = self._select(blocks, n)
            model = replace(self.problem, blocks=blocks).fit(landmarks, self._rng).expansion
            model = replace(model, projection=self.start.projection)
        outputs = model(self.rows.X[held_out])
        return HeldOutFold(held_out, others, model.landmarks, outputs)

    def _others(self, held_out: Positions) -> Positions:
        """Return the positions of the rows that are not held out, nor made of such rows."""
        mask = np.ones(len(self.rows), dtype=bool)
        mask[held_out] = False
        assert self.rows.targets is not None
        origin = self.rows.targets.origin
        if origin is not None:
            mask &= ~np.isin(origin, origin[held_out]).any(axis=1)
        return np.flatnonzero(mask)

    def hold_out_in_time(self, positions: Sequence[Positions]) -> list[HeldOutFold]:
        """Hold out folds, at least one, and as many as there is time for."""
        folds = []
        for fold in positions:
            folds.append(self.hold_out(fold))
            if self.deadline.used > self.rules.fold_time:
                break
        return folds

    def _blocks(self, positions: Positions) -> RowBlocks:
        """Return some rows as the kernel of the unrefined model sees them.

        Fits to them are small, and are not reported.
        """
        return projected(self.rows.take(positions).blocks(), self.start.projection)

    def _select(self, blocks: RowBlocks, n: int) -> Any:
        """Return selected landmarks; fewer where rows are fewer, without a warning."""
        problem = replace(self.problem, blocks=blocks)
        return select_landmarks(
            self.selector, problem, min(n, blocks.n_candidates), self._rng
        ).points

    # -- training ----------------------------------------------------------------------------------

    def _evaluate(
        self,
        candidates: list[Candidate],
        folds: Sequence[HeldOutFold],
        time_share: float,
        step: str = "",
    ) -> list[Evaluation]:
        """Train every candidate without each fold, in a share of the remaining time.

        The scores are recorded under the name of the step.
        """
        runs = [(candidate, i) for candidate in candidates for i in range(len(folds))]
        limit = Deadline(self.deadline.share(time_share))
        parallel = min(free_threads(), len(runs)) / len(runs)
        alone = len(runs) == 1  # in this thread, which may report progress within the run
        n_rows = sum(candidate.options.n_rows for candidate, _ in runs)
        models: list[TrainedModel] = []
        stage = self.problem.blocks.progress.stage("refine", n_rows, None if alone else len(runs))
        with stage as advance:
            starts = self._starts(candidates, folds, limit.share(parallel))
            seconds = limit.share(parallel)

            def train(run: tuple[Candidate, int]) -> TrainedModel:
                candidate, i = run
                report = advance if alone else None
                return self._trained(candidate, folds[i], starts[run], seconds, report)

            with closing(in_threads(train, runs)) as trained:
                for (candidate, _), model in zip(runs, trained, strict=True):
                    models.append(model)
                    if not alone:
                        advance(candidate.options.n_rows)
        k = len(folds)
        found = [
            self._evaluation(candidate, tuple(folds), tuple(models[i * k : (i + 1) * k]))
            for i, candidate in enumerate(candidates)
        ]
        self.problem.blocks.progress.record.add(*(each.trial(step) for each in found))
        return found

    def _evaluation(
        self,
        candidate: Candidate,
        folds: tuple[HeldOutFold, ...],
        models: tuple[TrainedModel, ...],
    ) -> Evaluation:
        scores = ValidationScores.of(self.rows, folds, models)
        return Evaluation(candidate, folds, models, scores)
