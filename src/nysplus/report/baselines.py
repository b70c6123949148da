"""Simple models to compare with: the majority class or the mean, and a linear model.

They get the raw numbers of a table (:meth:`nysplus.encoding.schema.TableSchema.read`): numbers and
dates as they are, categories as positions among their levels, NaN for missing values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from nysplus.encoding.schema import TableSchema
from nysplus.report.scores import Task

# Rows that a linear model is fitted to at most: more take minutes and change little.
MAX_LINEAR_ROWS = 50_000
ITERATIONS = 1000


@dataclass(frozen=True)
class RawColumns:
    """The kinds of the columns of raw numbers; `is_sparse` rows have numbers only."""

    categories: tuple[int, ...]
    numbers: tuple[int, ...]
    is_sparse: bool = False

    @classmethod
    def of(cls, schema: TableSchema | None, n_features: int = 0) -> RawColumns:
        """Return the kinds of the columns of a table, or of rows without a schema."""
        if schema is None:
            return cls((), tuple(range(n_features)), True)
        kinds = [column.kind for column in schema.columns]
        categories = tuple(i for i, kind in enumerate(kinds) if kind == "category")
        return cls(categories, tuple(i for i in range(len(kinds)) if i not in categories))

    def one_hot(self) -> Any:
        """Return unfitted preprocessing: scaled numbers without gaps, a column for each level."""
        if self.is_sparse:
            return MaxAbsScaler()
        numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True))
        numbers.steps.append(("scale", StandardScaler()))
        levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2)
        parts = [("numbers", numbers, self.numbers), ("levels", levels, self.categories)]
        return ColumnTransformer([part for part in parts if part[2]])


@dataclass(frozen=True)
class Peer:
    """A model to compare with.

    Attributes
    ----------
    name : str
    make : callable
        From the columns and the seed to an unfitted model.
    max_rows : int or None
        Rows that it is fitted to at most.
    """

    name: str
    make: Callable[[RawColumns, int], Any]
    max_rows: int | None = None

    def fit(self, X: Any, y: Any, columns: RawColumns, seed: int) -> Any:
        """Return the fitted model."""
        if self.max_rows is not None and X.shape[0] > self.max_rows:
            rows = np.random.RandomState(seed).permutation(X.shape[0])[: self.max_rows]
            X, y = X[rows], y[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)  # on levels, and names of columns
            return self.make(columns, seed).fit(X, y)


def baseline(task: Task) -> Peer:
    """Return the majority class, or the mean."""
    if task == "classify":
        return Peer("majority class", lambda columns, seed: DummyClassifier())
    return Peer("mean of the training rows", lambda columns, seed: DummyRegressor())


def linear(task: Task) -> Peer:
    """Return logistic or ridge regression on one-hot columns."""

    def make(columns: RawColumns, seed: int) -> Any:
        if task == "classify":
            model: Any = LogisticRegression(max_iter=ITERATIONS)
        else:
            model = Ridge()
        return make_pipeline(columns.one_hot(), model)

    name = "logistic regression" if task == "classify" else "ridge regression"
    return Peer(name, make, MAX_LINEAR_ROWS)
