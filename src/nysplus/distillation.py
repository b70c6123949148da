"""Distillation: a fitted model of any kind teaches a small one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from nysplus._bytes.budget import ModelShape, most_landmarks
from nysplus._distillation.comparison import STUDENT, better_of, noted
from nysplus._distillation.synthetic import SyntheticRows, synthetic_rows
from nysplus._distillation.teachers import Teacher, teacher_of
from nysplus._distillation.training import StudentRefinement
from nysplus._fit.linear import check_room
from nysplus._fit.model import Columns, FittedModel
from nysplus._fit.parameters import EncoderLike, RandomStateLike
from nysplus._fit.pipeline import fit_model
from nysplus._fit.plan import Plan
from nysplus._fit.table import table_of
from nysplus._learning.candidates import Deadline
from nysplus._learning.refinement import Refinement
from nysplus._ridge.probability import fit_scaling
from nysplus._rows.blocks import Blocks
from nysplus._rows.frames import split_frame
from nysplus._rows.opening import RowsToOpen, TargetSpec, is_elsewhere, open_rows
from nysplus._rows.target_codes import TargetCode
from nysplus._rows.targets import Targets
from nysplus._rows.taught_targets import TaughtClasses, TaughtValues
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress, progress_of
from nysplus._typing import Float
from nysplus._validation import check_count, check_positive
from nysplus.encoding.frames import is_frame
from nysplus.encoding.parameter import table_encoder
from nysplus.estimators import NystroemClassifier, NystroemRegressor


@dataclass(frozen=True)
class DistillationRules:
    """The numbers that steer a distillation, and the reason for each."""

    # Synthetic rows for each given row, as long as all rows together are at most this many. With
    # eight instead of two, a student predicts the validation rows of wine_quality_white that equal
    # no training row better by two points, and is level on all of them together.
    synthetic_share: float = 8.0
    max_rows: int = 30_000
    # Under a time limit, there are no more synthetic rows than this many for each second of it:
    # making 26,000 rows of wall_robot takes 0.6 seconds, scoring them by a forest 0.4, and fits of
    # the unrefined model to them come on top.
    rows_per_second: float = 2000.0
    # Share of y in the targets of given rows. A teacher that was fitted to these rows predicts
    # little else than y there.
    label_share: float = 0.5


DEFAULT_RULES = DistillationRules()
# Share of a time limit for the student, where a model is fitted to y as well.
STUDENT_SHARE = 0.5


def distill(
    teacher: Any,
    X: Any,
    budget: int | str = "16kB",
    y: Any = None,
    *,
    n_synthetic: int | str = "auto",
    encoder: EncoderLike = None,
    max_seconds: float | None = None,
    random_state: RandomStateLike = None,
    verbose: int = 0,
) -> NystroemClassifier | NystroemRegressor:
    """Train a small model to predict as a fitted model of any kind does.

    The student learns the probabilities of the teacher, or its values, by gradient descent on
    their cross-entropy or squared error. A teacher is too sure of rows that it was fitted to, so it
    also scores synthetic rows between neighbouring rows.

    Parameters
    ----------
    teacher : estimator, or predictions for X
        A fitted classifier with `predict_proba`, `decision_function` or `predict`, or a fitted
        regressor; pipelines get X as it is. Probabilities are preferred to scores, whose slope is
        fitted to y or to the teacher's classes, and scores to classes. Predictions are a data frame
        of probabilities with a column for each class, or an array of values, and cannot teach
        synthetic rows.
    X : array-like, sparse matrix or data frame, in memory
        Rows that the teacher accepts: its training rows, or others like them. Rows that it was not
        fitted to teach more.
    budget : int or str, default="16kB"
        Largest size of the student in bytes.
    y : array-like of shape (n_rows,), optional
        Targets of the rows. They are mixed into the targets that the student learns; choices
        inside the fit go by the accuracy or the squared error on held-out rows; and a model fitted
        to y alone is returned in place of the student if it is better on held-out rows, by more
        than a quarter of a standard error. Without y, the predictions of the teacher take its
        place, and nothing is compared with the student.
    n_synthetic : int or "auto", default="auto"
        Number of synthetic rows. "auto": eight for each row of X, as long as there are at most
        30,000 rows in total, and fewer where `max_seconds` is short; 0 for images, for frames of
        other libraries than pandas, and where `teacher` is given by predictions.
    encoder : None, "auto", TableEncoder or ImageEncoder, default=None
        As for :class:`NystroemClassifier`: "auto" for tables with categories, gaps or columns on
        different scales. Teacher and encoder see the same rows.
    max_seconds : float, optional
        Approximate time limit of the training of student and comparison together. Results then
        depend on the machine.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress on a terminal, 2 also in pipes and log files.

    Returns
    -------
    NystroemClassifier or NystroemRegressor
        Fitted, with the classes of the teacher. The entry "distillation" of `report_` says whether
        the student or the model fitted to y was kept, and why.

    Notes
    -----
    A synthetic row is made of a row and one of its five nearest neighbours of any class. A number
    becomes the value of its column nearest to a random point between the two; categories, and
    numbers of at most ten values, are taken from one of them. Synthetic rows are never held out.
    They are not trained on where one of these two rows, or of the three given rows nearest to them,
    is held out: a teacher that was fitted to a row has learned its target for the neighbourhood.
    Still, the comparison with y favours the student if the teacher was fitted to X, most of all for
    values: compare the teacher with a model fitted to y on rows that neither was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from nysplus import distill
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> student = distill(forest, X, budget="2kB", encoder="auto", random_state=0)
    >>> bool(student.model_bytes_ <= 2048), bool((student.predict(X) == y).mean() > 0.95)
    (True, True)
    """
    X, y = _in_memory(X, y)
    if max_seconds is not None:
        check_positive("max_seconds", max_seconds)
    deadline = Deadline(max_seconds)
    options: dict[str, Any] = {
        "budget": budget,
        "encoder": encoder,
        "random_state": random_state,
        "verbose": verbose,
    }
    seconds = deadline.share(1.0 if y is None else STUDENT_SHARE)
    student = fit_student(teacher, X, y, n_synthetic, seconds, **options)
    if y is None:
        noted(student, STUDENT, "there is no y to fit another model to")
        return student
    refine = True if max_seconds is None else Refinement(max_seconds=deadline.share(1.0))
    fitted = type(student)(refine=refine, **options).fit(X, y)
    better: NystroemClassifier | NystroemRegressor
    better = better_of(student, fitted.set_params(refine=True))
    return better


def fit_student(
    teacher: Any,
    X: Any,
    y: Any = None,
    n_synthetic: int | str = "auto",
    seconds: float | None = None,
    **options: Any,
) -> NystroemClassifier | NystroemRegressor:
    """Return the student of a teacher, compared with no other model.

    Parameters
    ----------
    teacher, X, y, n_synthetic
        As for :func:`distill`; X is an array, a CSR matrix or a frame.
    seconds : float, optional
        Time limit of its training.
    **options
        Other parameters of the student.
    """
    n = _count(n_synthetic)
    taught = teacher_of(teacher, X, y)
    kind: Any = NystroemClassifier if taught.code.discrete else NystroemRegressor
    student: NystroemClassifier | NystroemRegressor = kind(refine=True, **options)
    task = _Task.of(student, taught, X, y, n)
    student._adopt(task.fit(seconds))
    return student


def _in_memory(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows as a frame, an array or a CSR matrix, and targets as an array."""
    is_arrow = hasattr(X, "column_names")
    if is_elsewhere(X) and not is_arrow:
        raise TypeError(
            f"X is a {type(X).__name__} outside memory, which a teacher cannot predict. Pass an "
            "array, a sparse matrix or a data frame, such as a sample of the rows."
        )
    if not is_arrow:
        X, y, _ = split_frame(X, y)
    if sp.issparse(X):
        X = sp.csr_matrix(X)
    elif not is_frame(X):
        X = np.asarray(X)
    return X, None if y is None else np.asarray(y)


def _count(n: Any) -> int | None:
    """Return the number of synthetic rows; None for "auto"."""
    if isinstance(n, str) and n == "auto":
        return None
    if isinstance(n, str):
        raise ValueError(f"n_synthetic={n!r} is not known. Allowed are 'auto' or an integer.")
    check_count("n_synthetic", n, at_least=0)
    return int(n)


@dataclass(frozen=True)
class _Task:
    """A student to fit, and the rows and the teacher that it learns from.

    Attributes
    ----------
    student : NystroemClassifier or NystroemRegressor
    teacher : Teacher
    X : ndarray, CSR matrix or data frame
        As the teacher sees the rows.
    truth : Targets or None
        The targets y.
    rows : RowsToOpen
        As the student sees the rows.
    plan : Plan
    columns : estimator
        With the columns of the rows.
    n_synthetic : int or None
        None for a number that follows from the rules.
    rules : DistillationRules
    """

    student: Any
    teacher: Teacher
    X: Any
    truth: Targets | None
    rows: RowsToOpen
    plan: Plan
    columns: Any
    n_synthetic: int | None
    rules: DistillationRules = DEFAULT_RULES

    @classmethod
    def of(cls, student: Any, teacher: Teacher, X: Any, y: Any, n_synthetic: int | None) -> _Task:
        """Check all parameters and rows, before any long work."""
        columns, encoder = copy(student), table_encoder(student.encoder)
        rows = open_rows(columns, X, None, None, TargetSpec(None), encoder=encoder)
        rows = replace(rows, kind=student._kind)
        plan = student._plan(rows)
        truth = None if y is None else _encoded(teacher.code, y, X.shape[0])
        if plan.budget is not None and encoder is None and not sp.issparse(X):
            shape = ModelShape(rows.n_features, teacher.code.n_outputs, ())
            plan.budget.checked_sizes(shape, most_landmarks(X.shape[0]))
        task = cls(student, teacher, X, truth, rows, plan, columns, n_synthetic)
        if n_synthetic and task._no_synthetic is not None:
            raise ValueError(f"n_synthetic={n_synthetic}, but {task._no_synthetic}. Pass 0.")
        return task

    def fit(self, seconds: float | None) -> FittedModel:
        """Fit the student to given and synthetic rows."""
        rng, deadline = check_random_state(self.student.random_state), Deadline(seconds)
        with progress_of(self.student, self.X, None) as progress:
            opened, _ = self.rows.open(progress, Journal())
            blocks = opened.gather(np.arange(opened.n_rows)).blocks(progress)
            columns = Columns.of(self.columns)
            table = table_of(self.plan, columns.schema, blocks)
            if table is not None and self.plan.budget is not None:
                check_room(table, self.plan.budget, self.teacher.code.n_outputs)
            scores = self.teacher.scores(self.X)
            made = self._synthetic(seconds, rng)
            n, n_made = blocks.n_rows, 0 if made is None else len(made.origin)
            blocks = self._joined(blocks, scores, made)
            progress.note(f"the teacher has scored {n:,} rows and {n_made:,} synthetic rows")
            limit = deadline.share(1.0)
            learning = StudentRefinement(max_seconds=limit, n_given=n, n_rows=n + n_made)
            plan = replace(self.plan, refinement=learning, linear=False)
            model = fit_model(plan, blocks, self.teacher.code, columns, rng)
        return model if model.refined else _calibrated(model, blocks)

    def _synthetic(self, seconds: float | None, rng: np.random.RandomState) -> SyntheticRows | None:
        """Return synthetic rows, by default as many as the rules say; None for none."""
        n, n_given, rules = self.n_synthetic, self.X.shape[0], self.rules
        if n is None:
            possible = self._no_synthetic is None and self.plan.image is None
            most = min(rules.synthetic_share * n_given, rules.max_rows - n_given)
            if seconds is not None:
                most = min(most, rules.rows_per_second * seconds)
            n = max(0, int(most)) if possible else 0
        return synthetic_rows(self.X, n, rng) if n else None

    @property
    def _no_synthetic(self) -> str | None:
        """The reason why there cannot be synthetic rows; None if there can."""
        if not self.teacher.scores_any_rows:
            return "the teacher is given by its predictions for X, and cannot score other rows"
        if is_frame(self.X) and not hasattr(self.X, "iloc"):
            return f"X is a {type(self.X).__name__}, and synthetic rows are made of pandas frames"
        return None

    def _joined(self, blocks: Blocks, scores: Float, made: SyntheticRows | None) -> Blocks:
        """Return all rows as the student sees them, with the targets that it learns."""
        own, m = np.arange(blocks.n_rows), 1 if made is None else made.origin.shape[1]
        targets = self._targets(scores, np.repeat(own[:, None], m, axis=1), self.truth)
        if made is None:
            return replace(blocks, targets=targets)
        more = open_rows(self.columns, made.X, None, None, TargetSpec(None), reset=False)
        other, _ = more.open(Progress(), Journal())
        assert isinstance(other, Blocks)
        stack: Any = partial(sp.vstack, format="csr") if sp.issparse(blocks.X) else np.vstack
        taught = self._targets(self.teacher.scores(made.X), made.origin, None)
        return replace(blocks, X=stack([blocks.X, other.X]), targets=targets.joined(taught))

    def _targets(
        self, scores: Float, origin: npt.NDArray[np.intp], truth: Targets | None
    ) -> TaughtClasses | TaughtValues:
        """Return the targets of rows that the teacher has scored."""
        share = self.rules.label_share
        if not self.teacher.code.discrete:
            values = scores if truth is None else truth.coded()
            return TaughtValues((1.0 - share) * scores + share * values, values, origin)
        n_classes = len(self.teacher.code.classes)
        codes = scores.argmax(axis=1) if truth is None else truth.class_codes
        assert codes is not None
        P = scores if truth is None else (1.0 - share) * scores + share * np.eye(n_classes)[codes]
        return TaughtClasses(codes, n_classes, P, origin)


def _calibrated(model: FittedModel, blocks: Blocks) -> FittedModel:
    """Return a model with the probabilities of the teacher.

    Leave-one-out scores of a model that was not refined are calibrated by the most probable classes
    alone.
    """
    if not blocks.discrete:
        return model
    block = blocks.block(slice(None))
    return replace(model, scaling=fit_scaling(model.expansion(block.X), block.labels, block.weight))


def _encoded(code: TargetCode, y: npt.NDArray[Any], n_rows: int) -> Targets:
    """Return the targets y, or raise if they are not those of the teacher."""
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} rows, and X has {n_rows}. Pass one target for each row.")
    if code.discrete:
        unknown = np.setdiff1d(y, code.classes) if y.ndim == 1 else np.array(["several columns"])
        if len(unknown):
            raise ValueError(
                f"y contains {unknown.tolist()[:10]}, and the classes of the teacher are "
                f"{code.classes.tolist()[:10]}. Pass the targets that the teacher was fitted to, "
                "or leave y out."
            )
    return code.encode(y)
