"""``nysplus distill``: a small model of the predictions of another model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nysplus._bytes.budget import make_budget
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import check_writable, is_sparse, read_rows, read_table
from nysplus.cli.output import Output
from nysplus.cli.targets import TargetValues, target_values
from nysplus.distillation import distill as distilled
from nysplus.report.description import chosen_text, entries, size_line
from nysplus.report.wording import as_texts, few

# Columns of the file of `nysplus predict --proba`.
PREDICTION, PROBABILITY = "prediction", "probability_"


def distill(
    data: options.DataFile,
    scores: Annotated[
        Path,
        typer.Option(
            help="Predictions of the other model for the rows of DATA: a column of probabilities "
            "for each class, or one column of values.",
            show_default=False,
        ),
    ],
    target: options.Target = None,
    budget: Annotated[str, typer.Option(help="Size of the model, e.g. 4kB.")] = "16kB",
    time_limit: options.Time = None,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option(help="File of the model.")] = Path("model.nys"),
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Train a small model to predict as another model does, and write it to a file.

    The other model is given by its predictions, in the order of the rows of DATA. A model of the
    target alone is written instead if it is better on held-out rows.

    Example: nysplus distill churn.csv --target churned --scores teacher.csv --budget 16kB
    """
    output = Output(json, quiet, no_color)
    make_budget(budget)
    limit = options.seconds(time_limit)
    check_writable(out, data, scores)
    rows = read_rows(data, target)
    found = target_values(rows.target, rows.y)
    teacher, y = _teacher(scores, rows.n_rows, found)
    known = np.flatnonzero(found.known)
    start = time.perf_counter()
    with output.noting_warnings(), output.progress("training", limit):
        model = distilled(
            *(teacher.take(known), rows.take(known), budget, y),
            encoder=None if is_sparse(rows.X) else "auto",
            max_seconds=limit,
            random_state=seed,
        )
    seconds = time.perf_counter() - start
    model.save(out)
    (kept,) = (each for each in model.report_.choices if each.name == "distillation")
    output.pairs(
        [
            ("kept", kept.value.removesuffix(" kept")),
            ("because", kept.reason),
            ("chosen", chosen_text(model)),
            ("training", f"{seconds:.1f} s"),
            ("model", size_line(model, out)),
        ]
    )
    output.result(
        kept=kept.value.removesuffix(" kept"),
        reason=kept.reason,
        seconds=seconds,
        file=str(out),
        seed=seed,
        model=entries(model, out),
    )


def _teacher(path: Path, n_rows: int, found: TargetValues) -> tuple[Any, Any]:
    """Return the predictions as a table whose columns are named by the classes, and the target."""
    table = read_table(path)
    if len(table) != n_rows:
        raise CommandError(
            f"{path} has {len(table):,} rows, and the data have {n_rows:,}. Write one line of "
            "predictions for each row, in the same order."
        )
    names = [name for name in table.column_names if name != PREDICTION]
    if not names:
        raise CommandError(f"{path} has no column beside {PREDICTION!r}. Add probabilities.")
    table = table.select(names)
    if len(names) == 1:
        if found.y.dtype.kind not in "if":
            raise CommandError(
                f"{path} has one column of values, and the target {found.name!r} contains no "
                "numbers. Give a column of probabilities for each class."
            )
        return table, found.y.astype(np.float64)
    y = as_texts(found.y)
    classes = [name.removeprefix(PROBABILITY) for name in names]
    lacking = np.setdiff1d(y, classes)
    if len(lacking):
        raise CommandError(
            f"{path} has no columns for the classes {few(lacking)} of the target {found.name!r}. "
            f"Its columns are: {few(names)}."
        )
    return table.rename_columns(classes), y
