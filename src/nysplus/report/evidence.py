"""The rows behind a report: training and test rows, and the scores of simple models on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.opening import schema_of
from nysplus._typing import Float
from nysplus.encoding.schema import TableColumn
from nysplus.report.baselines import RawColumns, baseline, linear
from nysplus.report.columns import columns_of
from nysplus.report.scores import Score, Task, accuracy, r2
from nysplus.report.wording import as_texts

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """Rows as a model reads them, with their targets.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Raw numbers of tables (:meth:`nysplus.encoding.schema.TableSchema.read`), other rows as
        given.
    y : ndarray of shape (n_rows,)
    """

    X: Any
    y: Array

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> Sample:
        """Return rows that are given as `predict` takes them."""
        code = model._model.code
        if code.kind == "labels" or (code.kind == "values" and code.n_outputs > 1):
            what = "labels" if code.kind == "labels" else "values"
            raise ValueError(
                f"The model predicts {code.n_outputs} {what} for each row, and a report is about "
                "one target. Fit a model for each of them, and write its report."
            )
        sample = cls(model._apply(X, raw_rows), np.asarray(y))
        if sample.y.ndim != 1 or len(sample.y) != sample.X.shape[0]:
            raise ValueError(
                f"y has the shape {sample.y.shape}, and X has {sample.X.shape[0]} rows. A report "
                "needs one target: pass a class or a value for each row."
            )
        return sample

    def some(self, most: int, rng: np.random.RandomState) -> tuple[Float, Array]:
        """Return at most so many rows, dense and in their order, and their targets."""
        rows = np.arange(len(self.y))
        if len(rows) > most:
            rows = np.sort(rng.permutation(len(rows))[:most])
        X = self.X[rows]
        return np.asarray(X.toarray() if sp.issparse(X) else X), self.y[rows]


def raw_rows(fitted: Any, X: Any) -> Any:
    """Return rows as they are; a function to apply with `_apply`."""
    return X


@dataclass(frozen=True)
class Evidence:
    """A fitted model, the rows that it is judged on, and those that it was fitted to.

    Attributes
    ----------
    model : NystroemClassifier or NystroemRegressor
    test, train : Sample or None
    table : rows in memory as given to `fit`, or None
        For the landmark curve.
    title, target : str
        Name of the report, and of the column that is predicted.
    model_file : Path or None
    notes : tuple of str
        Remarks on the data.
    seed : int
        Of samples and permutations.
    """

    model: Any
    test: Sample | None = None
    train: Sample | None = None
    table: Any = None
    title: str = ""
    target: str = "the target"
    model_file: Path | None = None
    notes: tuple[str, ...] = ()
    seed: int = 0

    @property
    def task(self) -> Task:
        """Whether the model predicts classes or values."""
        return "classify" if hasattr(self.model, "classes_") else "regress"

    @property
    def rng(self) -> np.random.RandomState:
        """New random numbers, the same at every use."""
        return np.random.RandomState(self.seed)

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns that the model uses."""
        return columns_of(self.model)

    @cached_property
    def classes(self) -> Array:
        """Names of the classes."""
        return as_texts(self.model.classes_)

    @cached_property
    def outputs(self) -> Float:
        """Scores of the test rows, of shape (n_rows, L)."""
        assert self.test is not None
        scores: Float = self.model._model.expansion(self.test.X)
        return scores

    @cached_property
    def predicted(self) -> Array:
        """Predictions of the test rows."""
        return np.asarray(self.model._model.code.decode(self.outputs, np.dtype(np.float64)))

    @cached_property
    def score(self) -> Score:
        """Score of the model on the test rows."""
        return self._score(self.predicted)

    @cached_property
    def baselines(self) -> tuple[tuple[str, Score], ...]:
        """Names and scores of simple models, fitted to the training rows."""
        if self.test is None or self.train is None:
            return ()
        columns = RawColumns.of(schema_of(self.model), self.model.n_features_in_)
        found = []
        for peer in (baseline(self.task), linear(self.task)):
            fitted = peer.fit(self.train.X, self.train.y, columns, self.seed)
            found.append((peer.name, self._score(fitted.predict(self.test.X))))
        return tuple(found)

    def _score(self, predicted: Array) -> Score:
        assert self.test is not None
        return (accuracy if self.task == "classify" else r2)(self.test.y, predicted)

    @cached_property
    def codes(self) -> npt.NDArray[np.intp]:
        """Positions of the classes of the test rows, −1 for classes that the model lacks."""
        assert self.test is not None
        place = {name: i for i, name in enumerate(self.classes.tolist())}
        return np.array([place.get(name, -1) for name in as_texts(self.test.y).tolist()])
