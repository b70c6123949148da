"""Ways to train, compared with each other and with the unrefined model on rows held out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._blocks import Block
from nysplus._expansion import KernelExpansion, fit_expansion
from nysplus._gradients import Parameters
from nysplus._learner import Learner
from nysplus._targets import DiscreteTargets, Float
from nysplus._threads import in_threads, thread_count
from nysplus._training import Recipe, train
from nysplus.landmarks import LandmarkSelector, Problem, select_landmarks

# Rows that are held out: a fifth, or a tenth of many rows, at most so many. Up to `FEW_ROWS` rows
# every one of them is held out once.
FOLDS, MANY_FOLDS, JUDGED_ROWS = 5, 10, 5000
FEW_ROWS, MANY_ROWS = 5000, 10_000
# Candidates are told apart after this share of a run, where there are rows enough for a long one.
TRIED_SHARE = 0.25
# A model with more rows than this many for each landmark is as good on its own rows as on others.
HONEST_RATIO = 50
# Standard errors by which the learned model must be better. More of them where rows are few: the
# best of all candidates has been chosen by the same rows.
NEEDED, FEW_NEEDED = 1.0, 1.5
# Between these, other rows are held out as well, so many times in all at most.
UNCERTAIN, MOST_SPLITS = (-1.0, 2.0), 3
# The model that was judged goes on with the rows that judged it for this share of the steps, at
# this share of their size: as good as training on all rows from the start, and much faster.
MORE_STEPS, MORE_RATE = 0.2, 0.3
# Shares of the time that is left, where it is limited.
FEW_TIME, TRIED_TIME, BEST_TIME = 0.8, 0.35, 0.5


@dataclass(frozen=True)
class Candidate:
    """A way to train.

    Attributes
    ----------
    width : float
        To start with (see :meth:`~nysplus._learner.Learner.first`).
    recipe : Recipe
    """

    width: float
    recipe: Recipe

    def shortened(self) -> Candidate:
        """Return a trial of the same."""
        return Candidate(self.width, self.recipe.scaled(TRIED_SHARE, 1.0))


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
class Verdict:
    """What rows that were held out say of the learned model and of the one it started from.

    Attributes
    ----------
    before, after : float
        Accuracy of the two.
    fixed, broken : float
        Weight of the rows that only the second, or only the first gets right.
    errors : float
        The difference of these two, in its standard errors.
    needed : float
        How many of them make the learned model the better one.
    n_rows : int
        How many rows were held out.
    """

    before: float
    after: float
    fixed: float
    broken: float
    errors: float
    needed: float
    n_rows: int

    @classmethod
    def of(
        cls,
        before: npt.NDArray[np.bool_],
        after: npt.NDArray[np.bool_],
        weight: Float,
        needed: float,
    ) -> Verdict:
        """Compare the rows that two models get right."""
        fixed, broken = weight[after & ~before], weight[before & ~after]
        mass, difference = float(weight.sum()), float(fixed.sum() - broken.sum())
        error = float(np.sqrt((fixed**2).sum() + (broken**2).sum()))
        return cls(
            float(weight @ before) / mass,
            float(weight @ after) / mass,
            float(fixed.sum()),
            float(broken.sum()),
            difference / error if error > 0 else 0.0,
            needed,
            len(weight),
        )

    @property
    def better(self) -> bool:
        """Whether the learned model is better by more than chance would make it."""
        return self.errors >= self.needed

    @property
    def uncertain(self) -> bool:
        """Whether more rows might say something else."""
        return UNCERTAIN[0] <= self.errors < UNCERTAIN[1]

    def __str__(self) -> str:
        kept = "the learned model is kept" if self.better else "the model stays as it was"
        return (
            f"refine: {100 * self.before:.2f} % before, {100 * self.after:.2f} % after on "
            f"{self.n_rows:,} held-out rows; {kept}"
        )


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to judge by, and the unrefined model of the former.

    Attributes
    ----------
    held, others : ndarray of int
        Positions of the rows that judge, and of those that are learned from.
    landmarks : ndarray or CSR matrix of shape (n, d)
        Of the unrefined model.
    hits : ndarray of bool
        Which of the rows that judge it gets right.
    """

    held: npt.NDArray[np.intp]
    others: npt.NDArray[np.intp]
    landmarks: Any
    hits: npt.NDArray[np.bool_]


# A trained model, and its scores of the rows that were held out.
Run = tuple[Parameters, Float]


@dataclass(frozen=True)
class Held:
    """What models make of rows that they have not seen.

    Attributes
    ----------
    labels : ClassTargets or IndicatorTargets
        Of these rows.
    weight : ndarray of shape (rows,)
    scores : ndarray of shape (rows, L)
    before : ndarray of bool
        Which of the rows the unrefined model gets right.
    models : tuple of Parameters
        One for each split.
    """

    labels: DiscreteTargets
    weight: Float
    scores: Float
    before: npt.NDArray[np.bool_]
    models: tuple[Parameters, ...]

    @classmethod
    def joined(cls, rows: Block, splits: list[Split], runs: list[Run]) -> Held:
        """Join what was found on several splits of some rows."""
        held = np.concatenate([split.held for split in splits])
        return cls(
            rows.labels.take(held),
            rows.weight[held],
            np.concatenate([scores for _, scores in runs]),
            np.concatenate([split.hits for split in splits]),
            tuple(model for model, _ in runs),
        )

    @property
    def hits(self) -> npt.NDArray[np.bool_]:
        """Which of the rows the learned models get right."""
        return self.labels.hits(self.scores)

    @property
    def accuracy(self) -> float:
        """Share of the weight that is right."""
        return float(self.weight @ self.hits / self.weight.sum())

    def verdict(self, needed: float) -> Verdict:
        """Compare with the unrefined model."""
        return Verdict.of(self.before, self.hits, self.weight, needed)


@dataclass(frozen=True)
class Choice:
    """The best way to train.

    Attributes
    ----------
    candidate : Candidate
    accuracies : tuple of float
        Of all candidates on held-out rows, after a trial.
    held : Held
    verdict : Verdict
    """

    candidate: Candidate
    accuracies: tuple[float, ...]
    held: Held
    verdict: Verdict


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
    learner : Learner
        Of the same rows.
    seed : int
        Every run draws its rows in the same order, so that chance prefers none.
    clock : Clock
    """

    problem: Problem
    selector: LandmarkSelector
    start: KernelExpansion
    rows: Block
    learner: Learner
    seed: int
    clock: Clock

    @property
    def few(self) -> bool:
        """Whether every row judges once."""
        return len(self.rows) <= FEW_ROWS

    def folds(self) -> list[npt.NDArray[np.intp]]:
        """Part the rows, each class on its own, into those that are held out together."""
        N = len(self.rows)
        order = np.random.RandomState(self.seed).permutation(N)
        order = order[np.argsort(self.rows.labels.groups(N)[order], kind="stable")]
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
            rng = np.random.RandomState(self.seed)
            some = self.rows.take(others).blocks(self.problem.blocks.progress.aside())
            problem = replace(self.problem, blocks=some)
            # fewer where there are not as many rows, of which the selection would warn
            Z = select_landmarks(self.selector, problem, min(n, some.n_candidates), rng).points
            model = fit_expansion(
                some, Z, problem.kernel, problem.approximation, problem.alphas, rng
            ).expansion
        return Split(held, others, model.landmarks, judged.labels.hits(model(judged.X)))

    def choose(self, candidates: list[Candidate]) -> Choice:
        """Try all candidates, and compare the best one with the unrefined model."""
        folds = self.folds()
        splits = [self.split(fold) for fold in (folds if self.few else folds[:1])]
        tried = candidates if self.few else [candidate.shortened() for candidate in candidates]
        runs = self._runs(tried, splits, FEW_TIME if self.few else TRIED_TIME)
        held = [Held.joined(self.rows, splits, runs[i]) for i in range(len(tried))]
        accuracies = tuple(one.accuracy for one in held)
        best = int(np.argmax(accuracies))
        if self.few:
            verdict = held[best].verdict(FEW_NEEDED)
            return Choice(tried[best], accuracies, held[best], verdict)
        (full,) = self._runs([candidates[best]], splits, BEST_TIME)
        # where targets are noisy, a long run may end with a worse model than a short one
        chosen, found = tried[best], runs[best]
        if Held.joined(self.rows, splits, full).accuracy >= accuracies[best]:
            chosen, found = candidates[best], full
        judged = Held.joined(self.rows, splits, found)
        for fold in folds[1:MOST_SPLITS]:
            if not judged.verdict(NEEDED).uncertain:
                break
            more = self.split(fold)
            found = found + self._runs([chosen], [more], BEST_TIME)[0]
            splits = [*splits, more]
            judged = Held.joined(self.rows, splits, found)
        return Choice(chosen, accuracies, judged, judged.verdict(NEEDED))

    def _runs(
        self, candidates: list[Candidate], splits: list[Split], share: float
    ) -> list[list[Run]]:
        """Train every candidate on every split, in a share of the time that is left."""
        runs = [(candidate, split) for candidate in candidates for split in splits]
        seconds = self.clock.share(share * min(thread_count(), len(runs)) / len(runs))

        def run(item: tuple[Candidate, Split]) -> Run:
            candidate, split = item
            first = self.learner.first(split.landmarks, candidate.width)
            p = self._train(first, candidate.recipe, split.others, seconds)
            model = self.learner.expansion(p, self.problem.blocks.dtype)
            return p, model(self.rows.X[split.held])

        found = []
        total = sum(candidate.recipe.n_rows for candidate, _ in runs)
        with self.problem.blocks.progress.stage("refine", total, len(runs)) as advance:
            for (candidate, _), one in zip(runs, in_threads(run, runs), strict=True):
                found.append(one)
                advance(candidate.recipe.n_rows)
        return [found[i : i + len(splits)] for i in range(0, len(found), len(splits))]

    def _train(
        self,
        first: Parameters,
        recipe: Recipe,
        used: npt.NDArray[np.intp],
        seconds: float | None,
    ) -> Parameters:
        return train(self.learner.rows, used, first, self.learner.b, recipe, self.seed, seconds)

    def final(self, choice: Choice) -> Parameters:
        """Train on all rows; where they are many, go on from a model that was judged."""
        recipe = choice.candidate.recipe
        if self.few:
            first = self.learner.first(self.start.landmarks, choice.candidate.width)
        else:
            first, recipe = choice.held.models[0], recipe.scaled(MORE_STEPS, MORE_RATE)
        with self.problem.blocks.progress.stage("refine", recipe.n_rows, 1) as advance:
            p = self._train(first, recipe, np.arange(len(self.rows)), self.clock.share(1.0))
            advance(recipe.n_rows)
        return p
