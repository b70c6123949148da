"""Data of a trial under changed conditions, and its pilot model on uniform landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import ExpansionFit
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Problem
from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import Scaling, Split
from nysplus_experiments.paper.trial import ALPHA, Codes, Trial, codes_of

# All rows of MNIST and IJCNN would take eight and sixteen times as long; the effect of the number
# of rows is measured as a condition of its own.
MAX_TRAIN_ROWS, MAX_TEST_ROWS = 7_500, 10_000
TRIALS = 4
SMOKE = "digits"  # comes with scikit-learn
NEIGHBOURS = 10
# Rows whose distances are computed at once.
NEIGHBOUR_BLOCK = 1_000


@dataclass(frozen=True)
class Conditions:
    """Conditions of a comparison; by default those of the paper, on at most 7,500 rows.

    ``gamma`` is a factor of the dataset's γ, and ``balanced`` weights rows by the inverse of the
    share of their class.
    """

    gamma: float = 1.0
    rho: float = ALPHA
    scaling: Scaling | None = None
    balanced: bool = False
    rows: int = MAX_TRAIN_ROWS


@lru_cache(maxsize=2)
def load_split(
    dataset: str, trial: int, rows: int = MAX_TRAIN_ROWS, scaling: Scaling | None = None
) -> Split:
    """Return a random subset of the rows of a trial.

    With another scaling, γ is changed such that its product with the mean squared distance between
    training rows stays the same.
    """
    split = datasets.load(dataset, trial, scaling=scaling)
    rng = np.random.RandomState(trial)
    train = _subset(len(split.X_train), rows, rng)
    test = _subset(len(split.X_test), MAX_TEST_ROWS, rng)
    split = replace(
        split,
        X_train=split.X_train[train],
        y_train=split.y_train[train],
        X_test=split.X_test[test],
        y_test=split.y_test[test],
    )
    if scaling is None:
        return split
    own = load_split(dataset, trial, rows)
    factor = own.X_train.var(axis=0).sum() / split.X_train.var(axis=0).sum()
    return replace(split, gamma=split.gamma * float(factor))


def _subset(count: int, most: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
    """Return the numbers of `most` rows in random order, or of all rows in their own order."""
    return rng.permutation(count)[:most] if most < count else np.arange(count)


def changed_trial(dataset: str, number: int, conditions: Conditions) -> tuple[Trial, Problem]:
    """Return the data of a trial, and the problem of a selector under some conditions."""
    split = load_split(dataset, number, conditions.rows, conditions.scaling)
    trial = Trial(replace(split, gamma=conditions.gamma * split.gamma), number)
    problem = replace(trial.problem(StandardMap()), alphas=(conditions.rho,))
    if conditions.balanced:
        counts = np.bincount(trial.targets.codes)
        weights = len(trial.targets.codes) / (len(counts) * counts)
        blocks = replace(trial.blocks, class_weight=weights[trial.targets.codes])
        problem = replace(problem, blocks=blocks)
    return trial, problem


@dataclass(frozen=True)
class Pilot:
    """The first stage of Algorithm 1, a model on uniform landmarks.

    ``margins`` are the negative margins of all training rows, ``hits`` whether their classes are
    predicted right.
    """

    trial: Trial
    problem: Problem
    rows: npt.NDArray[np.intp]
    fit: ExpansionFit
    margins: Float
    hits: npt.NDArray[np.bool_]
    rng: np.random.RandomState

    @property
    def codes(self) -> Codes:
        """Class numbers of the training rows."""
        return self.trial.targets.codes


def fit_pilot(trial: Trial, problem: Problem, n: int) -> Pilot:
    """Fit the pilot with the seed that the reproduction of the paper has."""
    rng = np.random.RandomState(trial.seed(n))
    rows = problem.blocks.sample(n, rng)
    fit = problem.fit(trial.split.X_train[rows], rng)
    scores = fit.expansion(trial.split.X_train)
    margins, hits = trial.targets.negative_margins(scores), trial.targets.hits(scores)
    return Pilot(trial, problem, rows, fit, margins, hits, rng)


@dataclass(frozen=True)
class TestScores:
    """Accuracy on the test rows in percent, and the mean over classes of their accuracies."""

    accuracy: float
    balanced: float
    hits: npt.NDArray[np.bool_]


def score(trial: Trial, expansion: KernelExpansion) -> TestScores:
    """Return the accuracies of a model on the test rows."""
    predicted = trial.classes[codes_of(expansion(trial.split.X_test))]
    hits = predicted == trial.split.y_test
    by_class = [hits[trial.split.y_test == name].mean() for name in np.unique(trial.split.y_test)]
    accuracy, balanced = (round(100 * float(np.mean(x)), 4) for x in (hits, by_class))
    return TestScores(accuracy, balanced, hits)


def agreement(X: Float, codes: Codes, queries: Float | None, own: Codes) -> Float:
    """Return the share of the ten nearest rows of X that have a query's own class.

    Without queries the rows of X are taken, and none is a neighbour of itself.
    """
    X = np.asarray(X, dtype=np.float32)
    rows = X if queries is None else np.asarray(queries, dtype=np.float32)
    norms = np.einsum("ij,ij->i", X, X)
    shares = np.empty(len(rows))
    for begin in range(0, len(rows), NEIGHBOUR_BLOCK):
        part = slice(begin, min(begin + NEIGHBOUR_BLOCK, len(rows)))
        distances = norms - 2.0 * (rows[part] @ X.T)
        if queries is None:
            distances[np.arange(part.stop - begin), np.arange(begin, part.stop)] = np.inf
        nearest = np.argpartition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        shares[part] = (codes[nearest] == own[part, None]).mean(axis=1)
    return shares


@lru_cache(maxsize=1)
def neighbour_agreement(dataset: str, number: int) -> tuple[Float, Float]:
    """Return the agreement of the training rows and of the test rows with their neighbours."""
    split = load_split(dataset, number)
    classes, codes = np.unique(split.y_train, return_inverse=True)
    test_codes = np.searchsorted(classes, split.y_test)
    X: Any = split.X_train
    return agreement(X, codes, None, codes), agreement(X, codes, split.X_test, test_codes)


def chosen_datasets(options: BenchOptions, default: tuple[str, ...]) -> list[str]:
    """Return the datasets to measure: digits alone for a smoke run."""
    return [SMOKE] if options.smoke else options.choose_datasets((*default, SMOKE), default)


def n_trials(options: BenchOptions) -> int:
    """Return the number of trials, an option of every step."""
    return options.integer("trials", 1 if options.smoke else TRIALS)
