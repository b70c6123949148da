"""Other models for comparison: baselines, linear models, support vectors, gradient boosting.

They get the raw numbers of a table (:meth:`nysplus.encoding.schema.TableSchema.read`): numbers and
dates as they are, categories as positions among their levels, NaN for missing values.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from nysplus.cli.targets import Task
from nysplus.encoding.schema import TableSchema

# Rows that a linear model is fitted to at most: more take minutes and change little.
MAX_LINEAR_ROWS = 50_000
# Rows above which support vector machines take too long.
MAX_SVC_ROWS = 20_000
# Levels that HistGradientBoosting takes as categories at most.
MAX_LEVELS = 255
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


def support_vectors(task: Task) -> Peer:
    """Return a support vector machine on one-hot columns."""

    def make(columns: RawColumns, seed: int) -> Any:
        if task == "classify":
            return make_pipeline(columns.one_hot(), SVC())
        # the tube of SVR has a width in units of the target
        model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        return make_pipeline(columns.one_hot(), model)

    return Peer("SVC" if task == "classify" else "SVR", make)


def _frequent(X: Any, categories: tuple[int, ...] = ()) -> Any:
    """Return raw numbers with the levels that HistGradientBoosting takes; others are missing."""
    X = np.array(X, dtype=np.float64)
    for column in categories:
        levels = X[:, column]
        levels[(levels < 0) | (levels >= MAX_LEVELS)] = np.nan
    return X


def _hist_boosting(task: Task) -> Peer:
    def make(columns: RawColumns, seed: int) -> Any:
        kind = HistGradientBoostingClassifier if task == "classify" else None
        model = (kind or HistGradientBoostingRegressor)(
            categorical_features=list(columns.categories), random_state=seed
        )
        levels = FunctionTransformer(_frequent, kw_args={"categories": columns.categories})
        return make_pipeline(levels, model)

    return Peer("HistGradientBoosting", make)


def _lightgbm(task: Task) -> Peer:
    def make(columns: RawColumns, seed: int) -> Any:
        import lightgbm

        kind = lightgbm.LGBMClassifier if task == "classify" else lightgbm.LGBMRegressor
        levels = ",".join(map(str, columns.categories))
        return kind(random_state=seed, verbose=-1, n_jobs=1, categorical_feature=levels)

    return Peer("LightGBM", make)


def peers(task: Task, n_rows: int, columns: RawColumns) -> tuple[list[Peer], list[str]]:
    """Return the models that suit the rows, and the reasons why others are left out."""
    chosen, notes = [baseline(task), linear(task)], []
    if n_rows <= MAX_SVC_ROWS:
        chosen.append(support_vectors(task))
    else:
        notes.append(f"Support vector machines are left out above {MAX_SVC_ROWS:,} rows.")
    if columns.is_sparse:
        notes.append("HistGradientBoosting is left out: it takes no sparse rows.")
    else:
        chosen.append(_hist_boosting(task))
    if importlib.util.find_spec("lightgbm") is None:
        notes.append("LightGBM is left out: it is not installed (pip install lightgbm).")
    else:
        chosen.append(_lightgbm(task))
    return chosen, notes
