"""`distill` as users see it: progress, time limits, and errors before any long work."""

from __future__ import annotations

import io
import re
import sys
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from nysplus import distill

LIMIT = 0.5


class Counting(ClassifierMixin, BaseEstimator):
    """Two classes by the sign of the first of three columns; counts the rows that it predicts."""

    def __init__(self):
        self.classes_ = np.array([0, 1])
        self.n_rows = 0

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        """Return probabilities."""
        p = 1.0 / (1.0 + np.exp(-5.0 * self._columns(X)[:, 0]))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        """Return classes."""
        return (self._columns(X)[:, 0] > 0).astype(int)

    def _columns(self, X):
        X = np.asarray(X, dtype=float)
        if X.shape[1] != 3:
            raise ValueError(f"X has {X.shape[1]} columns, but 3 are expected.")
        self.n_rows += len(X)
        return X


@pytest.fixture
def rows(rng):
    return rng.standard_normal((400, 3))


class WithoutScores(BaseEstimator):
    """A fitted transformer."""

    def transform(self, X):
        """Return the rows."""
        return X


@pytest.mark.parametrize("encoder", [None, "auto"])
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"teacher": WithoutScores()}, TypeError, "WithoutScores, which cannot predict. Pass"),
        ({"X": np.ones((400, 5))}, ValueError, "cannot predict the first rows of X: X has 5"),
        ({"budget": 10}, ValueError, r"budget=10 has no room .* takes \d+ bytes"),
    ],
    ids=["no scores", "other columns", "budget"],
)
def test_errors_come_before_the_teacher_scores_all_rows(rows, change, error, text, encoder):
    teacher = Counting()
    arguments = {"teacher": teacher, "X": rows, "encoder": encoder, **change}
    with pytest.raises(error, match=text):
        distill(**arguments)
    assert teacher.n_rows <= 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (1, True)])
def test_progress_on_a_terminal(rows, monkeypatch, verbose, shown):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    distill(
        *(Counting(), rows, "1kB"),
        n_synthetic=100, max_seconds=LIMIT, random_state=0, verbose=verbose,
    )  # fmt: skip
    text = terminal.getvalue()
    assert ("the teacher has scored 400 rows and 100 synthetic rows" in text) is shown
    assert bool(re.search(r"refine: ━+ [\d,]+ of [\d,]+ rows, [\d.]+ s", text)) is shown


def test_a_time_limit_covers_student_and_comparison(rows):
    teacher = Counting()
    y = teacher.predict(rows)
    start, teacher.n_rows = time.process_time(), 0
    distill(teacher, rows, "4kB", y, encoder="auto", max_seconds=LIMIT, random_state=0)
    # models that are not refined come on top; without a limit it takes four seconds
    assert time.process_time() - start < 4 * LIMIT
    # fewer than eight synthetic rows for each row
    assert teacher.n_rows < 4 * len(rows)
