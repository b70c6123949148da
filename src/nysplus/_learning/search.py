"""Ways to train, compared with each other and with the unrefined model on rows held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._bytes.budget import Size
from nysplus._bytes.quantise import quantise, representable_types
from nysplus._holdout import PairedComparison
from nysplus._learning.gradients import Parameters
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import Recipe, train
from nysplus._learning.validation import Run, Split, ValidationScores
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.projected import projected
from nysplus._runtime.threads import in_threads, thread_count
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import LandmarkSelector, Problem, select_landmarks

# Rows that are held out: a fifth, or a tenth of many rows, at most so many. Up to `FEW_ROWS` rows
# every one of them is held out once.
FOLDS, MANY_FOLDS, JUDGED_ROWS = 5, 10, 5000
FEW_ROWS, MANY_ROWS = 5000, 10_000
# Candidates are told apart after this share of a run, where rows are more than so many and a whole
# run takes more operations than that: seconds. Short runs prefer small models, and with few rows,
# which are often noisy, only whole runs show which one is best.
TRIED_SHARE, TRIED_ROWS, TRIED_COST = 0.25, 20_000, 1e11
# Standard errors by which another way must be better than the first, which most often is.
CONVINCING = 1.0
# A run that is longer by less than this is not worth another one.
WORTH_WHILE = 1.3
# A model with more rows than this many for each landmark is as good on its own rows as on others.
HONEST_RATIO = 50
# Standard errors by which the learned model must be better. More of them where rows are few: the
# best of all candidates has been chosen by the same rows.
NEEDED, FEW_NEEDED = 1.0, 2.5
# Where it is uncertain, other rows are held out as well, so many times in all at most.
MOST_SPLITS = 3
# The model that was judged goes on with the rows that judged it for this share of the steps, at
# this share of their size: as good as training on all rows from the start, and much faster.
MORE_STEPS, MORE_RATE = 0.2, 0.3
# Under a size, fewer landmarks are tried as well: this share of them.
FEWER = 0.3
# Rows that landmarks are chosen from to start with: this many, or so many for each landmark.
START_ROWS, START_RATIO = 10_000, 10
# Shares of the time that is left, where it is limited.
SIZE_TIME, FEW_TIME, TRIED_TIME, BEST_TIME = 0.2, 0.8, 0.35, 0.5


@dataclass(frozen=True)
class Way:
    """A way to train.

    Attributes
    ----------
    width : float
        To start with (see :meth:`~nysplus._learning.setup.TrainingSetup.first`).
    recipe : Recipe
    longer : float
        How many times as long a run may be, if that helps.
    """

    width: float
    recipe: Recipe
    longer: float = 1.0

    def scaled(self, steps: float, rate: float) -> Way:
        """Return the same with a share of the steps, at a share of their size."""
        return replace(self, recipe=self.recipe.scaled(steps, rate))


@dataclass(frozen=True)
class Candidate:
    """A model of some size, trained in some way."""

    size: Size
    way: Way

    @property
    def n_rows(self) -> int:
        """How many rows training uses."""
        return self.way.recipe.n_rows

    def cost(self, d: int, L: int) -> float:
        """Return the operations of a run, for rows of d features with L outputs."""
        n, r = self.size.n, self.size.rank or 0
        return float(self.n_rows) * (6.0 * n * (r + L) + 4.0 * d * r)

    def shortened(self) -> Candidate:
        """Return a trial of the same."""
        return replace(self, way=self.way.scaled(TRIED_SHARE, 1.0))


@dataclass
class Clock:
    """What is left of the time that was given; None for any time."""

    seconds: float | None
    _begin: float = field(default_factory=time.perf_counter)

    def share(self, share: float) -> float | None:
        """Return a share of what is left, which is never nothing."""
        if self.seconds is None:
            return None
        return max(share * (self.seconds - (time.perf_counter() - self._begin)), 1e-3)


@dataclass(frozen=True)
class Choice:
    """The best candidate.

    Attributes
    ----------
    candidate : Candidate
        Its size has one type at most.
    row_scores : tuple of float
        Of all candidates on held-out rows, after a trial.
    held : ValidationScores
    verdict : PairedComparison
    judged : Run
        The model that was judged, or one of them.
    """

    candidate: Candidate
    row_scores: tuple[float, ...]
    held: ValidationScores
    verdict: PairedComparison
    judged: Run


@dataclass(frozen=True)
class Trial:
    """Training on some rows, judged on others.

    Attributes
    ----------
    problem : Problem
    selector : LandmarkSelector
        That chose the landmarks of `start`, and chooses others without the rows that judge.
    start : KernelExpansion
        The unrefined model.
    rows : Block
        All of them.
    learner : TrainingSetup
        Of the same rows.
    seed : int
        Every run draws its rows in the same order, so that chance prefers none.
    clock : Clock
    dtype : str, optional
        What the numbers of the unrefined model are stored in.
    """

    problem: Problem
    selector: LandmarkSelector
    start: KernelExpansion
    rows: Block
    learner: TrainingSetup
    seed: int
    clock: Clock
    dtype: str | None = None

    @property
    def few(self) -> bool:
        """Whether every row judges once."""
        return len(self.rows) <= FEW_ROWS

    @property
    def _rng(self) -> np.random.RandomState:
        return np.random.RandomState(self.seed)

    def folds(self) -> list[npt.NDArray[np.intp]]:
        """Part the rows, each class on its own, into those that are held out together."""
        N = len(self.rows)
        assert self.rows.targets is not None
        order = self._rng.permutation(N)
        order = order[np.argsort(self.rows.targets.groups(N)[order], kind="stable")]
        folds = FOLDS if N <= MANY_ROWS else max(MANY_FOLDS, -(-N // JUDGED_ROWS))
        return [np.sort(order[i::folds]) for i in range(folds)]

    def split(self, held: npt.NDArray[np.intp]) -> Split:
        """Hold rows out, and fit the unrefined model without them if it has adapted to them.

        Landmarks that are centroids of a few rows each serve these rows better than others.
        """
        mask = np.ones(len(self.rows), dtype=bool)
        mask[held] = False
        others, judged = np.flatnonzero(mask), self.rows.take(held)
        model, n = self.start, self.start.landmarks.shape[0]
        if self.problem.blocks.n_rows < HONEST_RATIO * n:
            some, problem = self._blocks(others), self.problem
            model = fit_expansion(
                some,
                self._selected(some, n),
                problem.kernel,
                problem.approximation,
                problem.alphas,
                self._rng,
            ).expansion
            if self.dtype is not None:
                model = quantise(model, self.dtype, some, self._rng)
        assert judged.targets is not None
        return Split(held, others, model.landmarks, judged.targets.row_scores(model(judged.X)))

    def _blocks(self, some: npt.NDArray[np.intp]) -> Blocks:
        # small fits, of which nothing is told
        return self.rows.take(some).blocks()

    def _selected(self, blocks: RowBlocks, n: int) -> Any:
        """Return landmarks; fewer where there are not as many rows, of which it would warn."""
        problem = replace(self.problem, blocks=blocks)
        return select_landmarks(
            self.selector, problem, min(n, blocks.n_candidates), self._rng
        ).points

    def choose(self, sizes: list[Size], ways: list[Way]) -> Choice:
        """Find the best size by the first way, the best way, and compare it with the start."""
        folds = self.folds()
        splits = [self.split(fold) for fold in (folds if self.few else folds[:1])]
        size = self._best_size(sizes, ways[0], splits)
        candidates = [Candidate(size, way) for way in ways]
        if size.dtypes and len(ways) > 1:
            fewer = replace(size, n=max(1, int(FEWER * size.n)))
            candidates.append(Candidate(fewer, ways[0]))
        tried = self._tried(candidates)
        found = self._runs(tried, splits, FEW_TIME if self.few else TRIED_TIME)
        held = [ValidationScores.joined(self.rows, splits, runs) for runs in found]
        row_scores = [each.merit for each in held]
        i = int(np.argmax(row_scores))
        if not held[i].better_than(held[0], CONVINCING):
            i = 0
        best, runs = tried[i], found[i]
        if not self.few:
            best, runs = self._best_length(candidates[i], best, splits, runs)
        best, runs = self._stored(best, splits, runs)
        judged = ValidationScores.joined(self.rows, splits, runs)
        needed = FEW_NEEDED if self.few else NEEDED
        for fold in [] if self.few else folds[1:MOST_SPLITS]:
            if not judged.verdict(needed).uncertain:
                break
            splits = [*splits, self.split(fold)]
            (more,) = self._runs([best], splits[-1:], BEST_TIME)
            runs = [*runs, *self._stored(best, splits[-1:], more)[1]]
            judged = ValidationScores.joined(self.rows, splits, runs)
        return Choice(best, tuple(row_scores), judged, judged.verdict(needed), runs[0])

    def _best_size(self, sizes: list[Size], way: Way, splits: list[Split]) -> Size:
        """Return the size that serves best."""
        if len(sizes) == 1:
            return sizes[0]
        candidates = [Candidate(size, way) for size in sizes]
        if self.few:  # five splits make up for short runs
            tried = [candidate.shortened() for candidate in candidates]
        else:
            tried = self._tried(candidates)
        found = self._runs(tried, splits, SIZE_TIME)
        row_scores = [ValidationScores.joined(self.rows, splits, runs).merit for runs in found]
        return sizes[int(np.argmax(row_scores))]

    def _tried(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates, or shorter runs of all of them where these take long."""
        d, L = self.learner.basis.shape[0], len(self.learner.b)
        cost = max(candidate.cost(d, L) for candidate in candidates)
        if len(candidates) == 1 or len(self.rows) <= TRIED_ROWS or cost <= TRIED_COST:
            return candidates
        return [candidate.shortened() for candidate in candidates]

    def _best_length(
        self, full: Candidate, tried: Candidate, splits: list[Split], runs: list[Run]
    ) -> tuple[Candidate, list[Run]]:
        """Lengthen the best trial as long as that helps: with noisy targets it may not."""
        best, merit = tried, ValidationScores.joined(self.rows, splits, runs).merit
        length = 1.0 if tried is full else 0.5
        while min(2.0 * length, full.way.longer) >= WORTH_WHILE * length:
            length = min(2.0 * length, full.way.longer)
            candidate = replace(full, way=full.way.scaled(length, 1.0))
            (longer,) = self._runs([candidate], splits, BEST_TIME)
            reached = ValidationScores.joined(self.rows, splits, longer).merit
            if reached < merit:
                break
            best, runs, merit = candidate, longer, reached
        return best, runs

    def _stored(
        self, candidate: Candidate, splits: list[Split], runs: list[Run]
    ) -> tuple[Candidate, list[Run]]:
        """Return the runs with numbers in the type that serves best, and this type."""
        found = []
        for dtype in representable_types(runs[0].model, candidate.size.dtypes):
            kept = []
            for split, run in zip(splits, runs, strict=True):
                model = quantise(run.model, dtype, self._blocks(split.others), self._rng)
                kept.append(replace(run, scores=model(self.rows.X[split.held])))
            found.append((ValidationScores.joined(self.rows, splits, kept).merit, dtype, kept))
        if not found:
            return candidate, runs
        # of equal ones the smallest, which comes first
        _, dtype, kept = max(found, key=lambda each: each[0])
        return replace(candidate, size=replace(candidate.size, dtypes=(dtype,))), kept

    def _runs(
        self, candidates: list[Candidate], splits: list[Split], share: float
    ) -> list[list[Run]]:
        """Train every candidate on every split, in a share of the time that is left."""
        runs = [(candidate, split) for candidate in candidates for split in splits]
        seconds = self.clock.share(share * min(thread_count(), len(runs)) / len(runs))
        found: list[Run] = []
        total = sum(candidate.n_rows for candidate, _ in runs)
        alone = len(runs) == 1  # in this thread, which may tell how far it is
        count = None if alone else len(runs)
        with self.problem.blocks.progress.stage("refine", total, count) as advance:
            starts = self._starts(candidates, splits)

            def run(item: tuple[Candidate, Split]) -> Run:
                candidate, split = item
                learner = self._learner(candidate.size)
                points = starts[candidate.size, int(split.held[0])]
                first = learner.first(points, candidate.way.width)
                p = self._train(first, candidate, split.others, seconds, advance if alone else None)
                model = learner.expansion(p, self.problem.blocks.dtype)
                return Run(p, model, model(self.rows.X[split.held]))

            for (candidate, _), one in zip(runs, in_threads(run, runs), strict=True):
                found.append(one)
                if not alone:
                    advance(candidate.n_rows)
        return [found[i : i + len(splits)] for i in range(0, len(found), len(splits))]

    def _learner(self, size: Size) -> TrainingSetup:
        assert size.rank is not None
        return self.learner.narrowed(size.rank)

    def _starts(
        self, candidates: list[Candidate], splits: list[Split]
    ) -> dict[tuple[Size, int], Any]:
        """Return landmarks to start from for every size and split, by the split's first row."""
        sizes = dict.fromkeys(candidate.size for candidate in candidates)
        items = [(size, split) for size in sizes for split in splits]

        def start(item: tuple[Size, Split]) -> Any:
            size, split = item
            return self._points(size, split.others, split.landmarks)

        keys = [(size, int(split.held[0])) for size, split in items]
        return dict(zip(keys, in_threads(start, items), strict=True))

    def _points(self, size: Size, used: npt.NDArray[np.intp], landmarks: Any) -> Any:
        """Return the given landmarks, or others where the size is to be found."""
        if not size.dtypes:
            return landmarks
        basis = self._learner(size).basis
        some = self._rng.permutation(used)[: max(START_ROWS, START_RATIO * size.n)]
        points = self._selected(projected(self._blocks(np.sort(some)), basis), size.n)
        # the basis is orthonormal: from the features it leads back to the same points
        return points @ basis.T

    def _train(
        self,
        first: Parameters,
        candidate: Candidate,
        used: npt.NDArray[np.intp],
        seconds: float | None,
        advance: Callable[[int], None] | None,
    ) -> Parameters:
        rows, recipe = self.learner.rows, candidate.way.recipe
        return train(rows, used, first, self.learner.b, recipe, self.seed, seconds, advance)

    def final(self, choice: Choice) -> KernelExpansion:
        """Train on all rows; where they are many, go on from a model that was judged."""
        candidate, everything = choice.candidate, np.arange(len(self.rows))
        # in limited time there may be none left to train from the start
        if self.few and self.clock.seconds is None:
            points = self._points(candidate.size, everything, self.start.landmarks)
            first = self._learner(candidate.size).first(points, candidate.way.width)
        else:
            first = choice.judged.parameters
            candidate = replace(candidate, way=candidate.way.scaled(MORE_STEPS, MORE_RATE))
        with self.problem.blocks.progress.stage("refine", candidate.n_rows, None) as advance:
            p = self._train(first, candidate, everything, self.clock.share(1.0), advance)
        unit = choice.held.score_unit
        return self._learner(candidate.size).expansion(p, self.problem.blocks.dtype, unit)
