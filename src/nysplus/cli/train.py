"""``nysplus train``: a model from a file, judged on rows that it was not fitted to."""

from __future__ import annotations

import os
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
from nysplus.cli import options
from nysplus.cli.errors import CommandError, stopped_after
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
from nysplus.cli.output import Output
from nysplus.cli.targets import TargetValues, choose_task, target_values
from nysplus.encoding import TableEncoder
from nysplus.encoding.schema import TableSchema
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.report.description import chosen_text, entries, size_line
from nysplus.report.evidence import Evidence, Sample, raw_rows
from nysplus.report.page import check_jinja2
from nysplus.report.scores import Task, confused, confusion_text
from nysplus.report.writing import write_page

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
    report: Annotated[
        Path | None,
        typer.Option(help="Page about the model; by default beside it, as in model_report.html."),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Train a small model of a table, judge it, and write it to a file.

    Texts are categories; missing values and dates may stay as they are. The model is judged on rows
    that it was not fitted to, and the file has exactly this model. Rows without a target are left
    out. The same data and seed give the same file, unless there is a time limit. A page beside the
    model tells its result, its data and what was tried.

    Example: nysplus train churn.csv --target churned --budget 16kB --out churn.nys
    """
    output = Output(json, quiet, no_color)
    within = _budget(size, budget)
    estimator = {"n_components": size} if size else {"budget": within}
    limit = options.seconds(time_limit)
    _check_shares(holdout, test)
    check_writable(out, data, test)
    page = _page(out, report, no_report, data, test)
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

    with stopped_after(out), output.progress("judging"):
        evidence = _evidence(problem, model, out, data, rows.target, output.notes, seed)
        result: dict[str, Any] = {"task": chosen, "reason": reason, "rows": len(problem.y)}
        lines = _judge(problem, evidence, result) if evidence.test else []
        if page is not None:
            write_page(evidence, page)
    lines += [("tried", note) for note in tried]
    lines += [
        ("chosen", chosen_text(model)),
        ("training", f"{seconds:.1f} s"),
        ("model", size_line(model, out)),
        *([] if page is None else [("report", str(page))]),
    ]
    output.pairs(lines)
    output.result(
        **result,
        seconds=seconds,
        file=str(out),
        report=None if page is None else str(page),
        seed=seed,
        tried=tried,
        model=entries(model, out),
    )


def _page(
    out: Path, report: Path | None, no_report: bool, data: Path, test: Path | None
) -> Path | None:
    """Return the file of the report, checked; None if there is none."""
    if no_report:
        if report is not None:
            raise CommandError("--report and --no-report exclude each other. Give one of them.")
        return None
    check_jinja2()
    path = report or out.with_name(f"{out.stem}_report.html")
    check_writable(path, data, test, out, option="--report")
    os.environ.setdefault("MPLBACKEND", "agg")  # figures go to files, never to windows
    return path


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


def holdout_positions(y: Array, task: Task, share: float | int, seed: int) -> tuple[Array, Array]:
    """Return the positions of training and held-out rows, each in order.

    `share` is a part of the rows between 0 and 1, or a number of rows.
    """
    groups = None
    if task == "classify":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        held_out = share if isinstance(share, int) else share * len(y)
        enough = min(held_out, len(y) - held_out) >= len(counts)
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
        # tables of files are read in chunks, of which the fit keeps no rows to compare others with
        model._compare_with(problem.X, problem.y)
    return model, [note for note in notes if " passes over " not in note]


def _heading(data: Path, rows: Rows, found: TargetValues, problem: Problem, reason: str) -> str:
    what = "values"
    if problem.task == "classify":
        what = f"{len(np.unique(found.y)):,} classes"
    return (
        f"{data}: {rows.n_rows:,} rows, {rows.X.shape[1]:,} columns; {rows.target} has {what}, "
        f"because {reason}"
    )


def _evidence(
    problem: Problem,
    model: Any,
    out: Path,
    data: Path,
    target: str,
    notes: list[str],
    seed: int,
) -> Evidence:
    """Return the model with the rows that it was fitted to and those that it is judged on."""
    test = None
    if problem.test is not None:
        assert problem.y_test is not None
        test = Sample(problem.on_test(model, raw_rows), problem.y_test)
    return Evidence(
        model,
        test,
        Sample(model._apply(problem.X, raw_rows), problem.y),
        problem.X,
        f"{target}, predicted from {data.name}",
        target,
        out,
        tuple(note for note in notes if not note.startswith("The column")),
        seed,
    )


def _judge(problem: Problem, evidence: Evidence, result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return lines with the scores of the model and of simple models, and add them to a result."""
    assert evidence.test is not None
    score, y = evidence.score, evidence.test.y
    result["score"] = score.entries
    which = "test" if isinstance(problem.test, Path) else "held-out"
    lines = [(f"on {score.n_rows:,} {which} rows", str(score))]
    for name, other in evidence.baselines:
        result[name.replace(" ", "_")] = other.entries
        lines.append((name, other.short))
    if problem.task == "classify":
        result["confused"] = confused(y, evidence.predicted)
        if text := confusion_text(y, evidence.predicted):
            lines.append(("most confused", text))
    return lines
