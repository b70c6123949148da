"""Rows of the experiment, as frames: random splits, foreign rows, and columns in another order.

Publishers' splits are not used: their test rows often come from other people or times, and a
coverage is promised for rows of the same distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from nysplus_experiments.harness import problems
from nysplus_experiments.harness.raw_tables import (
    SOURCES,
    TABLES,
    load_table,
    nominal_columns,
)

MAX_TRAIN_ROWS, MAX_TEST_ROWS = 5_000, 10_000
TEST_SHARE = 0.4
#: Datasets of numbers on one scale, which need no encoder; the paper's six come first.
PROBLEMS = (
    *("usps", "letter", "cod_rna", "ijcnn1-resplit", "mnist", "covtype"),
    *("pendigits", "shuttle", "kin40k"),
)
DATASETS = (*TABLES, *PROBLEMS)
#: Tables whose rows are foreign to all others: the first one, or the second for the first itself.
DONORS = ("segment", "spambase")


@dataclass(frozen=True)
class Split:
    """Training and test rows of a dataset; ``encoder`` is that of its models."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    regression: bool
    encoder: str | None


@lru_cache(maxsize=1)  # the models of a split follow each other
def split_of(dataset: str, seed: int, max_train: int = MAX_TRAIN_ROWS) -> Split:
    """Return a random split."""
    if dataset in SOURCES:
        found = load_table(dataset).split(seed, max_train)
        X_test, y_test = found.X_test[:MAX_TEST_ROWS], found.y_test[:MAX_TEST_ROWS]
        return Split(found.X, found.y, X_test, y_test, found.regression, "auto")
    problem = problems.load_problem(dataset, seed, max_train, MAX_TEST_ROWS)
    X = pd.DataFrame(np.concatenate([problem.X, problem.X_test])).rename(columns=str)
    y = np.concatenate([problem.y, problem.y_test])
    parts = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    X, X_test, y, y_test = parts
    X, y, regression = X[:max_train], y[:max_train], problems.SOURCES[dataset].regression
    if not regression:  # a class without a training row is not known to the model
        known = np.isin(y_test, y)
        X_test, y_test = X_test[known], y_test[known]
    return Split(X, y, X_test, y_test, regression, None)


def swapped(frame: pd.DataFrame, rng: np.random.RandomState) -> pd.DataFrame | None:
    """Return rows whose columns of numbers are in another order; None if there is one at most."""
    names = [name for name in frame if name not in nominal_columns(frame)]
    if len(names) < 2:
        return None
    order = rng.permutation(len(names))
    values = {names[i]: frame[names[j]] for i, j in zip(order, np.roll(order, 1), strict=True)}
    return frame.assign(**values)


def foreign(
    frame: pd.DataFrame, dataset: str, rng: np.random.RandomState, training: pd.DataFrame | None
) -> pd.DataFrame | None:
    """Return rows of another table, by default as they are; None if there are no numbers.

    Columns of numbers come from the other table, nominal ones from rows of this one at random.
    Given training rows, numbers are scaled to the mean and the standard deviation of each column.
    """
    donor = load_table(DONORS[dataset == DONORS[0]]).frame.to_numpy(np.float64)
    if training is not None:
        donor = (donor - donor.mean(axis=0)) / np.maximum(donor.std(axis=0), 1e-12)
    donor = donor[rng.randint(len(donor), size=len(frame))]
    nominal, columns = nominal_columns(frame), {}
    if len(nominal) == frame.shape[1]:
        return None
    for position, name in enumerate(frame):
        if name in nominal:
            columns[name] = frame[name].sample(frac=1.0, random_state=rng).to_numpy()
            continue
        columns[name] = donor[:, position % donor.shape[1]]
        if training is not None:
            columns[name] = training[name].mean() + training[name].std() * columns[name]
    return pd.DataFrame(columns, index=frame.index).astype(frame.dtypes)
