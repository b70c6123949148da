"""Fit teachers and their students to tables: one record a table, teacher and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._distillation.comparison import STUDENT, better_of
from nysplus.distillation import fit_student
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.measurement import measure
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    TableSplit,
    available_tables,
    load_table,
)
from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import SVC_C
from nysplus_experiments.tables.fits import Scores, in_single_threads
from nysplus_experiments.tables.pipelines import preprocessing
from nysplus_experiments.tables.systems import lightgbm

FILE, BUDGET, SEEDS = "students.csv", "16kB", (0, 1, 2)
LIGHTGBM, SVM, FOREST = "lightgbm", "svm", "forest"
N_TREES = 200
#: Tables whose training rows set the number of synthetic rows, the length of runs and their styles.
DESIGN = ("abalone3", "spambase", "wine_quality_white", "wall_robot", "wine_quality_reg")
SCORES = ("teacher_score", "fitted_score", "student_score", "kept_score")
#: In the order of their rows, of which at most 4,000 are for training.
TABLES = (
    *("concrete", "qsar_biodeg", "wine_quality_reg", "car", "segment", "splice", "abalone3"),
    *("abalone", "spambase", "wine_quality_white", "banana", "wall_robot"),
)


def _svm(regression: bool, seed: int) -> Any:
    if not regression:
        return make_pipeline(preprocessing(), SVC(C=SVC_C))
    # The tube of SVR has a width in units of the target.
    model = TransformedTargetRegressor(SVR(C=SVC_C), transformer=StandardScaler())
    return make_pipeline(preprocessing(), model)


def _forest(regression: bool, seed: int) -> Any:
    kind = RandomForestRegressor if regression else RandomForestClassifier
    return make_pipeline(preprocessing(encoding="ordinal"), kind(N_TREES, random_state=seed))


#: From whether values are predicted and a seed to an unfitted teacher.
TEACHERS: dict[str, Callable[[bool, int], Any]] = {
    LIGHTGBM: lightgbm.estimator,
    SVM: _svm,
    FOREST: _forest,
}


@dataclass(frozen=True)
class Student(Row, key="table teacher seed"):
    """One row of ``students.csv``.

    Scores are accuracies in percent, or errors (RMSE) in standard deviations of the test target:
    of the teacher, of a model fitted to y, of the student, and of the one of both that is kept.
    Those whose names begin with ``new`` are scores of the ``new_rows`` test rows that equal no
    training row, and are empty if there is none.
    ``fitted_agreement`` and ``student_agreement`` are the share of test rows in percent for which
    predictions are those of the teacher, or the RMSE between both; ``fitted_held_out`` and
    ``student_held_out`` the scores inside the fits, by which the one that is kept is chosen: an
    accuracy, or an RMSE in the unit of the target.
    """

    table: str
    teacher: str
    seed: int
    teacher_score: float
    fitted_score: float
    student_score: float
    kept_score: float
    new_teacher_score: float | None
    new_fitted_score: float | None
    new_student_score: float | None
    new_kept_score: float | None
    kept: str
    fitted_held_out: float
    student_held_out: float
    fitted_agreement: float
    student_agreement: float
    bytes: int
    student_cpu_seconds: float
    fitted_cpu_seconds: float
    rows: int
    test_rows: int
    new_rows: int


@lru_cache(maxsize=1)  # the teachers of a table follow each other
def _fitted(table: str, seed: int) -> tuple[TableSplit, Any, float]:
    """Return the rows, the model fitted to y, and the seconds of its fit."""
    split = load_table(table).split(seed)
    kind: Any = NystroemRegressor if split.regression else NystroemClassifier
    model = kind(encoder="auto", budget=BUDGET, refine=True, random_state=seed)
    measured = measure(model.fit, split.X, split.y)
    return split, measured.result, measured.cpu_seconds


def measure_student(table: str, name: str, seed: int) -> Student:
    """Fit a teacher and its student."""
    split, fitted, seconds = _fitted(table, seed)
    teacher = TEACHERS[name](split.regression, seed).fit(split.X, split.y)
    options: dict[str, Any] = {"budget": BUDGET, "encoder": "auto", "random_state": seed}
    taught = measure(fit_student, teacher, split.X, split.y, **options)
    student: Any = taught.result
    models = (teacher, fitted, student)
    predicted = {model: np.ravel(model.predict(split.X_test)) for model in models}
    agreements = [_agreement(split, predicted[m], predicted[teacher]) for m in (fitted, student)]
    kept = better_of(student, fitted)
    new = ~split.has_twin
    scores: dict[str, Any] = {}
    for title, model in zip(SCORES, (*models, kept), strict=True):
        found = Scores(split, predicted[model])
        scores[title] = found.on(np.ones_like(new))
        scores[f"new_{title}"] = found.on(new) if new.any() else None
    held_out = [fitted.report_.held_out, student.report_.held_out]
    return Student(
        *(table, name, seed),
        **scores,
        kept=STUDENT if kept is student else "fitted",
        fitted_held_out=held_out[0].value,
        student_held_out=held_out[1].value,
        fitted_agreement=agreements[0],
        student_agreement=agreements[1],
        bytes=student.model_bytes_,
        student_cpu_seconds=taught.cpu_seconds,
        fitted_cpu_seconds=seconds,
        rows=len(split.y),
        test_rows=len(split.y_test),
        new_rows=int(new.sum()),
    )


def _agreement(split: TableSplit, first: np.ndarray, second: np.ndarray) -> float:
    if split.regression:
        return float(np.sqrt(np.square(first - second).mean()) / split.y_test.std())
    return 100 * float(np.mean(first == second))


def run(options: BenchOptions) -> None:
    """Measure students. Options of this step: teachers, seeds, workers."""
    options.expect("teachers", "seeds", "workers")
    teachers = options.texts("teachers", [SVM] if options.smoke else [*TEACHERS], [*TEACHERS])
    seeds = options.integers("seeds", [0] if options.smoke else SEEDS)
    if options.smoke:
        tables = [SYNTHETIC, SYNTHETIC_REGRESSION]
    else:
        tables = available_tables(options.choose_datasets(TABLES))
    tasks = [(table, name, seed) for seed in seeds for table in tables for name in teachers]
    options.measure(FILE, Student, tasks, measure_student, **in_single_threads(options))
