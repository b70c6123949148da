"""``nysplus train``: a model from a file, judged on rows that it was not fitted to."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.model_selection import train_test_split

from nysplus._bytes.budget import make_budget
from nysplus._learning.refinement import Refinement
from nysplus._rows.opening import schema_of
from nysplus.cli import options
from nysplus.cli.description import chosen_text, entries, size_line
from nysplus.cli.errors import CommandError
from nysplus.cli.files import (
    Rows,
    applied,
    check_columns,
    check_writable,
    checked_format,
    is_sparse,
    joined,
    read_rows,
    read_target,
)
from nysplus.cli.judging import Score, accuracy, confused, confusion_text, r2
from nysplus.cli.output import Output
from nysplus.cli.peers import RawColumns, baseline, linear
from nysplus.cli.targets import TargetValues, Task, choose_task, target_values
from nysplus.encoding import TableEncoder
from nysplus.encoding.schema import TableSchema
from nysplus.estimators import NystroemClassifier, NystroemRegressor

Array = npt.NDArray[Any]

# The size of a model where none is given.
DEFAULT_BUDGET = "64kB"
# Rows that are too few to train a model with and to judge it.
MIN_ROWS = 20


@dataclass(frozen=True)
class Problem:
    """Rows to train a model with, and rows to judge it.

    Attributes
    ----------
    task : {"classify", "regress"}
    X, y : rows and their targets
    test : rows in memory, the path of a file, or None
    y_test : ndarray or None
    test_known : ndarray of bool, or None
        Which rows of a test file have a target.
    """

    task: Task
    X: Any
    y: Array
    test: Any = None
    y_test: Array | None = None
    test_known: npt.NDArray[np.bool_] | None = None

    def score(self, predicted: Array) -> Score:
        """Return the score of predictions for the test rows."""
        assert self.y_test is not None
        return (accuracy if self.task == "classify" else r2)(self.y_test, predicted)

    def on_test(self, model: Any, function: Any) -> Any:
        """Return a function of the fitted model and of the test rows."""
        if not isinstance(self.test, Path):
            return model._apply(self.test, function)
        return joined(list(applied(model, self.test, function)))[self.test_known]


def train(
    data: options.DataFile,
    target: options.Target = None,
    size: Annotated[int | None, typer.Option(help="Number of landmarks.", min=1)] = None,
    budget: Annotated[
        str | None, typer.Option(help="Size of the model, e.g. 4kB; 64kB by default.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="File of rows to judge the model on.")] = None,
    holdout: Annotated[
        float | None,
        typer.Option(help="Share of the rows to judge it on; 0.2 by default, 0 for none."),
    ] = None,
    task: Annotated[str, typer.Option(help="auto, classify or regress.")] = "auto",
    refine: Annotated[
        bool, typer.Option("--refine/--no-refine", help="Learn the landmarks, or select rows.")
    ] = True,
    time_limit: options.Time = None,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option(help="File of the model.")] = Path("model.nys"),
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Train a small model of a table, judge it, and write it to a file.

    Texts are categories; missing values and dates may stay as they are. The model is judged on rows
    that it was not fitted to, and the file has exactly this model. Rows without a target are left
    out. The same data and seed give the same file, unless there is a time limit.

    Example: nysplus train churn.csv --target churned --budget 16kB --out churn.nys
    """
    output = Output(json, quiet, no_color)
    within = _budget(size, budget)
    estimator = {"n_components": size} if size else {"budget": within}
    limit = options.seconds(time_limit)
    _check_shares(holdout, test)
    check_writable(out, data, test)
    rows = read_rows(data, target)
    found = target_values(rows.target, rows.y)
    chosen, reason = choose_task(found, task)
    _note_missing(output, data, found)
    problem = split(rows, found, chosen, 0.2 if holdout is None else holdout, test, target, seed)
    _check_rows(data, problem)
    schema = note_columns(output, problem.X)
    if test is not None:
        check_columns(test, checked_format(test), schema)
    output.line(_heading(data, rows, found, problem, reason), "bold")

    start = time.perf_counter()
    learn: bool | Refinement = Refinement(max_seconds=limit) if refine and limit else refine
    model, tried = fit(output, problem, {**estimator, "refine": learn}, seed, limit)
    seconds = time.perf_counter() - start
    model.save(out)

    result: dict[str, Any] = {"task": chosen, "reason": reason, "rows": len(problem.y)}
    lines: list[tuple[str, str]] = []
    if problem.test is not None:
        predicted = problem.on_test(model, lambda fitted, X: fitted.predict(X))
        _judge(problem, model, predicted, seed, result, lines)
    lines += [("tried", note) for note in tried]
    lines += [
        ("chosen", chosen_text(model)),
        ("training", f"{seconds:.1f} s"),
        ("model", size_line(model, out)),
    ]
    output.pairs(lines)
    output.result(
        **result, seconds=seconds, file=str(out), seed=seed, tried=tried, model=entries(model, out)
    )


def _budget(size: int | None, budget: str | None) -> str:
    """Return the size of the model, checked."""
    if size and budget:
        raise CommandError("--size and --budget exclude each other. Give one of them.")
    budget = budget or DEFAULT_BUDGET
    make_budget(budget)
    return budget


def _check_shares(holdout: float | None, test: Path | None) -> None:
    if holdout is not None and test is not None:
        raise CommandError("--holdout and --test exclude each other. Give one of them.")
    if holdout is not None and not 0 <= holdout < 1:
        raise CommandError(f"--holdout {holdout} is no share. Give a number from 0 to 0.9.")


def _check_rows(data: Path, problem: Problem) -> None:
    if len(problem.y) < MIN_ROWS:
        raise CommandError(
            f"{data} leaves {len(problem.y)} rows to train with. Give at least {MIN_ROWS}."
        )


def _note_missing(output: Output, data: Path, found: TargetValues) -> None:
    if found.n_missing:
        output.note(f"{found.n_missing:,} rows of {data} have no {found.name!r}, and are left out.")


def split(
    rows: Rows,
    found: TargetValues,
    task: Task,
    holdout: float,
    test: Path | None,
    target: str | None,
    seed: int,
) -> Problem:
    """Return the rows to train with and those to judge the model on."""
    numbers = np.flatnonzero(found.known)
    y = found.y if task == "classify" else found.y.astype(np.float64)
    if test is not None:
        other = target_values(*reversed(read_target(test, target)))
        if task == "regress" and other.y.dtype.kind not in "if":
            raise CommandError(f"The target of {test} contains no numbers, that of training does.")
        return Problem(task, rows.take(numbers), y, test, other.y, other.known)
    if holdout == 0:
        return Problem(task, rows.take(numbers), y)
    first, second = holdout_positions(y, task, holdout, seed)
    return Problem(task, rows.take(numbers[first]), y[first], rows.take(numbers[second]), y[second])


def holdout_positions(y: Array, task: Task, share: float, seed: int) -> tuple[Array, Array]:
    """Return the positions of training and held-out rows, each in order."""
    groups = None
    if task == "classify":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        enough = min(share, 1 - share) * len(y) >= len(counts)
        groups = codes if counts.min() > 1 and enough else None
    first, second = train_test_split(
        np.arange(len(y)), test_size=share, stratify=groups, random_state=seed
    )
    return np.sort(first), np.sort(second)


def table_schema(X: Any) -> TableSchema | None:
    """Return the columns of a table; None for sparse rows."""
    if is_sparse(X):
        return None
    encoder = TableEncoder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # notes say the same
        return encoder.schema(encoder.summary(X))


def note_columns(output: Output, X: Any) -> TableSchema | None:
    """Print notes on columns that are left out, and on texts that are numbers or dates.

    The columns that are used are returned; None for sparse rows.
    """
    schema = table_schema(X)
    if schema is not None:
        for dropped in schema.dropped:
            output.note(str(dropped))
        for note in schema.notes:
            output.note(note.partition(" Convert it")[0] + " They count as categories.")
    return schema


def fit(
    output: Output, problem: Problem, parameters: dict[str, Any], seed: int, limit: float | None
) -> tuple[Any, list[str]]:
    """Return a model of the training rows, and what the fit tells of its choices."""
    kind: Any = NystroemClassifier if problem.task == "classify" else NystroemRegressor
    model = kind(encoder="auto", random_state=seed, **parameters)
    with output.noting_warnings(), output.progress("training", limit) as notes:
        model.fit(problem.X, problem.y)
    return model, [note for note in notes if " passes over " not in note]


def _heading(data: Path, rows: Rows, found: TargetValues, problem: Problem, reason: str) -> str:
    what = "values"
    if problem.task == "classify":
        what = f"{len(np.unique(found.y)):,} classes"
    return (
        f"{data}: {rows.n_rows:,} rows, {rows.X.shape[1]:,} columns; {rows.target} has {what}, "
        f"because {reason}"
    )


def _judge(
    problem: Problem,
    model: Any,
    predicted: Array,
    seed: int,
    result: dict[str, Any],
    lines: list[tuple[str, str]],
) -> None:
    """Add the scores of the model and of simple models on the test rows."""
    assert problem.y_test is not None
    score = problem.score(predicted)
    result["score"] = score.entries
    which = "test" if isinstance(problem.test, Path) else "held-out"
    lines.append((f"on {score.n_rows:,} {which} rows", str(score)))
    raw, raw_test = model._apply(problem.X, _raw), problem.on_test(model, _raw)
    columns = RawColumns.of(schema_of(model), model.n_features_in_)
    for peer in (baseline(problem.task), linear(problem.task)):
        other = problem.score(peer.fit(raw, problem.y, columns, seed).predict(raw_test))
        result[peer.name.replace(" ", "_")] = other.entries
        lines.append((peer.name, other.short))
    if problem.task == "classify":
        result["confused"] = confused(problem.y_test, predicted)
        if text := confusion_text(problem.y_test, predicted):
            lines.append(("most confused", text))


def _raw(fitted: Any, X: Any) -> Any:
    return X
