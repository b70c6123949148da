"""Small models that predict as other models do."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import nysplus.distillation
from nysplus import NystroemClassifier, NystroemRegressor, distill, load
from nysplus._bytes.budget import NoRoomError
from nysplus._distillation.comparison import better_of
from nysplus._fit.report import HeldOutScore
from nysplus._learning.refinement import Refinement
from nysplus.export import to_json

FAST = 1.0  # seconds of training that are enough for these rows


def rings(n_rows, seed=0):
    """Return rows of a plane, and noisy classes that depend on the distance from the middle."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-2.0, 2.0, (n_rows, 2))
    y = (np.sin(3.0 * np.hypot(*X.T)) > 0).astype(int)
    return X, np.where(rng.rand(n_rows) < 0.15, 1 - y, y)


class Ring:
    """The function behind the classes of `rings`, as a teacher."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        """Return probabilities."""
        p = 0.15 + 0.7 * (np.sin(3.0 * np.hypot(*np.asarray(X).T)) > 0)
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        """Return classes."""
        return self.predict_proba(X).argmax(axis=1)


@pytest.mark.slow
def test_a_student_agrees_with_its_teacher_more_than_a_fit_of_the_same_size():
    X, y = rings(400)
    test = rings(2000, 1)[0]
    teacher, options = Ring(), {"budget": "1kB", "random_state": 0}
    student = distill(teacher, X, n_synthetic=1000, **options)
    fitted = NystroemClassifier(refine=True, **options).fit(X, y)
    truth = teacher.predict(test)
    assert max(student.model_bytes_, fitted.model_bytes_) <= 1024
    assert (student.predict(test) == truth).mean() > (fitted.predict(test) == truth).mean() + 0.01
    # the probabilities, too, are those of the teacher
    P = teacher.predict_proba(test)
    errors = [np.abs(model.predict_proba(test) - P).mean() for model in (student, fitted)]
    assert errors[0] < 0.9 * errors[1]


def frame_and_pipeline():
    """Return a table with categories, its classes, and a pipeline fitted to it."""
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": rng.randn(300), "kind": rng.choice(["a", "b", "c"], 300)})
    y = np.where((frame["x"] > 0) ^ (frame["kind"] == "b"), "yes", "no")
    before = make_column_transformer((StandardScaler(), ["x"]), (OneHotEncoder(), ["kind"]))
    return frame, y, make_pipeline(before, RandomForestClassifier(20, random_state=0)).fit(frame, y)


@pytest.mark.parametrize("with_y", [False, True])
def test_tables_and_pipelines(with_y, tmp_path):
    frame, y, teacher = frame_and_pipeline()
    student = distill(
        *(teacher, frame, "1kB", y if with_y else None),
        encoder="auto", max_seconds=FAST, random_state=0,
    )  # fmt: skip
    assert type(student) is NystroemClassifier
    assert student.classes_.tolist() == ["no", "yes"]
    assert student.model_bytes_ <= 1024
    assert (student.predict(frame) == teacher.predict(frame)).mean() > 0.9
    path = tmp_path / "student.nys"
    student.save(path)
    np.testing.assert_array_equal(load(path).predict(frame), student.predict(frame))
    assert json.loads(to_json(student))
    (choice,) = (each for each in student.report_.choices if each.name == "distillation")
    assert choice.value.endswith(" kept")


def test_values():
    rng = np.random.RandomState(0)
    X = rng.uniform(-2.0, 2.0, (300, 2))
    teacher = RandomForestRegressor(20, random_state=0).fit(X, np.sin(2.0 * X[:, 0]) + X[:, 1])
    student = distill(teacher, X, "1kB", max_seconds=FAST, random_state=0)
    assert type(student) is NystroemRegressor
    test = rng.uniform(-2.0, 2.0, (300, 2))
    errors = student.predict(test) - teacher.predict(test)
    assert np.sqrt(np.mean(errors**2)) < 0.3 * teacher.predict(test).std()


def test_scores_without_probabilities_and_sparse_rows():
    X, y = rings(300)
    svc = SVC(C=10.0).fit(sp.csr_matrix(X), y)
    student = distill(svc, sp.csr_matrix(X), "1kB", max_seconds=FAST, random_state=0)
    assert (student.predict(sp.csr_matrix(X)) == svc.predict(sp.csr_matrix(X))).mean() > 0.85


def test_given_predictions_teach_the_given_rows():
    pd = pytest.importorskip("pandas")
    X, _ = rings(300)
    P = pd.DataFrame(Ring().predict_proba(X), columns=["out", "in"])
    student = distill(P, X, "1kB", max_seconds=FAST, random_state=0)
    assert student.classes_.tolist() == ["in", "out"]
    with pytest.raises(ValueError, match="cannot score other rows"):
        distill(P, X, n_synthetic=10)


def test_frames_without_synthetic_rows():
    pa = pytest.importorskip("pyarrow")
    X, _ = rings(200)
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})

    class OfArrow:
        """A regressor that takes tables of pyarrow."""

        def predict(self, rows):
            """Return the first column."""
            return rows.column(0).to_numpy()

    with pytest.raises(ValueError, match=r"made of pandas frames\. Pass 0"):
        distill(OfArrow(), table, encoder="auto", n_synthetic=10)
    student = distill(
        OfArrow(), table, "1kB", X[:, 0], encoder="auto", max_seconds=FAST, random_state=0
    )
    assert student.feature_names_in_.tolist() == ["a", "b"]
    assert np.corrcoef(student.predict(table), X[:, 0])[0, 1] > 0.95


@pytest.mark.slow
def test_the_same_seed_gives_the_same_student():
    X, _ = rings(100)
    first, second = (distill(Ring(), X, "1kB", n_synthetic=50, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


# -- the comparison with a fit to y ----------------------------------------------------------------


class Scored:
    """A fitted model of a held-out score, as far as `better_of` looks at it."""

    def __init__(self, model, metric, value, n_rows=100):
        self._model, self.refined_ = model._model, True
        self.held_out = HeldOutScore(metric, value, n_rows)

    @property
    def report_(self):
        """The report, with another score."""
        return replace(self._model.report, held_out=self.held_out)

    def _adopt(self, model):
        self._model = model


@pytest.mark.parametrize(
    ("metric", "student", "fitted", "kept"),
    [
        # quarters of the standard errors are 0.0075 and 0.018
        ("accuracy", 0.893, 0.90, "student"),
        ("accuracy", 0.892, 0.90, "model fitted to y"),
        ("root mean squared error", 1.017, 1.0, "student"),
        ("root mean squared error", 1.019, 1.0, "model fitted to y"),
    ],
)
def test_the_fit_to_y_is_kept_if_it_is_better(metric, student, fitted, kept):
    X, y = rings(60)
    model = NystroemClassifier(5).fit(X, y)
    better = better_of(Scored(model, metric, student), Scored(model, metric, fitted))
    assert better._model.report.choices[-1].value == f"{kept} kept"


def test_a_student_that_was_not_refined_is_not_kept():
    X, y = rings(60)
    student, fitted = (NystroemClassifier(5).fit(X, y) for _ in range(2))
    assert better_of(student, fitted) is fitted


def test_a_poor_teacher_does_no_harm(monkeypatch):
    """Random predictions: the model fitted to y is returned."""
    X, y = rings(400)
    teacher = Ring()
    rng = np.random.RandomState(0)
    monkeypatch.setattr(Ring, "predict_proba", lambda self, X: rng.dirichlet([1, 1], len(X)))
    model = distill(teacher, X, "1kB", y, max_seconds=FAST, random_state=0)
    assert model.report_.choices[-1].value == "model fitted to y kept"


# -- bad input -------------------------------------------------------------------------------------


@pytest.fixture
def no_long_work(monkeypatch):
    """Fail if a fit begins."""

    def fail(*args, **kwargs):
        pytest.fail("a fit has begun")

    monkeypatch.setattr(nysplus.distillation, "fit_model", fail)


X, Y = rings(100)
TEACHER = LogisticRegression().fit(X, Y)


@pytest.mark.usefixtures("no_long_work")
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"teacher": StandardScaler().fit(X)}, TypeError, "cannot predict"),
        ({"teacher": SVC()}, NotFittedError, "SVC is not fitted"),
        ({"X": np.ones((50, 3))}, ValueError, "cannot predict the first rows of X"),
        ({"X": "rows.csv"}, TypeError, "outside memory"),
        ({"X": np.where(X > 1.9, np.nan, X), "teacher": Ring()}, ValueError, "encoder='auto'"),
        ({"y": Y + 1}, ValueError, r"\[2\], and the classes of the teacher are \[0, 1\]"),
        ({"y": Y[:50]}, ValueError, "y has 50 rows, and X has 100"),
        ({"budget": 5}, NoRoomError, "budget=5 has no room"),
        ({"budget": "small"}, ValueError, "budget='small'"),
        ({"encoder": "hot"}, ValueError, "encoder='hot'"),
        ({"n_synthetic": -1}, ValueError, "n_synthetic=-1"),
        ({"n_synthetic": "many"}, ValueError, "n_synthetic='many'"),
        ({"max_seconds": 0}, ValueError, "max_seconds=0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input(arguments, error, text):
    given = {"teacher": TEACHER, "X": X, **arguments}
    with pytest.raises(error, match=text):
        distill(**given)


def test_parameters_of_the_student_can_be_cloned_and_saved(tmp_path):
    student = distill(TEACHER, X, "1kB", max_seconds=FAST, random_state=0)
    assert student.refine is True
    assert not isinstance(student.refine, Refinement)
    student.save(tmp_path / "student.nys")
    assert load(tmp_path / "student.nys").get_params()["budget"] == "1kB"
