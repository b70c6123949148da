"""``nysplus predict``: labels or values of the rows of a file, chunk by chunk."""

from __future__ import annotations

import csv
import io
import json as json_text
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nysplus._fit.model import FittedModel
from nysplus._runtime.atomic_file import atomic_write
from nysplus._typing import Float
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import applied, check_writable, read_model
from nysplus.cli.output import Output
from nysplus.report.wording import as_texts

DELIMITERS = {".csv": ",", ".tsv": "\t", ".jsonl": ""}


def predict(
    model_file: options.ModelFile,
    data: options.DataFile,
    proba: Annotated[bool, typer.Option("--proba", help="Add probabilities of classes.")] = False,
    sets: Annotated[
        float | None,
        typer.Option(
            help="Add prediction sets of classes, or the ends of intervals, at a confidence "
            "such as 0.9."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .csv, .tsv or .jsonl; standard output by default."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a row.")] = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Predict the rows of a file, in their order.

    Columns are found by name, in any order, and additional ones are ignored. Categories may have
    new levels. Rows are read and written chunk by chunk.

    Example: nysplus predict churn.nys customers.csv --proba --out predictions.csv
    """
    output = Output(False, quiet, no_color)
    mark = "" if json else _delimiter(out)
    if out is not None:
        check_writable(out, data, model_file)
    model = read_model(model_file)
    if proba and not hasattr(model, "predict_proba"):
        raise CommandError(f"{model_file} has no probabilities. Leave --proba out.")
    names = ["prediction", *(_probability_names(model) if proba else ())]
    bounds = None
    if sets is not None:
        bounds = _bounds(model, sets)
        names += ["set"] if model._model.code.discrete else ["low", "high"]
    with output.noting_warnings():
        chunks = applied(model, data, _scores)
        lines = _lines(model._model, chunks, names, mark, bounds)
        if out is None:
            for text, _ in lines:
                sys.stdout.write(text)
            return
        n_rows = 0
        with atomic_write(out) as file:
            for text, n in lines:
                file.write(text.encode())
                n_rows += n
    output.line(f"{n_rows:,} predictions in {out}")


def _delimiter(out: Path | None) -> str:
    """Return the character between the columns of a file; none for JSON."""
    if out is None:
        return ","
    if out.suffix.lower() not in DELIMITERS:
        raise CommandError(
            f"--out {out} has an unknown ending. Allowed are {', '.join(DELIMITERS)}."
        )
    return DELIMITERS[out.suffix.lower()]


def _probability_names(model: Any) -> list[str]:
    return [f"probability_{label}" for label in as_texts(model.classes_)]


def _scores(fitted: FittedModel, X: Any) -> Any:
    return fitted.expansion(X)


def _bounds(model: Any, confidence: float) -> Float:
    """Return the bounds of prediction sets or intervals, for one output or one class per row."""
    code = model._model.code
    if not code.discrete and code.n_outputs > 1:
        raise CommandError("--sets is for one output, and this model has several. Leave it out.")
    try:
        bounds: Float = model._bounds(confidence, "--sets")
    except ValueError as error:
        raise CommandError(str(error).replace("confidence=", "--sets ")) from error
    return bounds


def _set_columns(fitted: FittedModel, F: Float, bounds: Float, as_lists: bool) -> list[list[Any]]:
    """Return the sets of classes, as lists or joined by "|", or both ends of intervals."""
    if not fitted.code.discrete:
        ends = fitted.intervals_of_scores(F, bounds).reshape(len(F), 2)
        return [column.tolist() for column in ends.T]
    texts = np.asarray(as_texts(fitted.code.classes))
    chosen = [texts[row].tolist() for row in fitted.sets_of_scores(F, bounds)]
    return [chosen if as_lists else ["|".join(labels) for labels in chosen]]


def _lines(
    fitted: FittedModel,
    chunks: Iterator[Any],
    names: list[str],
    mark: str,
    bounds: Float | None = None,
) -> Iterator[tuple[str, int]]:
    """Yield the text of each chunk of scores, and its number of rows."""
    proba = any(name.startswith("probability_") for name in names)
    first = True
    for F in chunks:
        predicted = fitted.code.decode(F, np.dtype(np.float64))
        columns = [as_texts(predicted).tolist() if fitted.code.discrete else predicted.tolist()]
        if proba:
            assert fitted.scaling is not None
            columns += fitted.scaling.probabilities(F).astype(np.float64).round(6).T.tolist()
        if bounds is not None:
            columns += _set_columns(fitted, F, bounds, as_lists=not mark)
        rows = zip(*columns, strict=True)
        text = io.StringIO()
        if mark:
            writer = csv.writer(text, delimiter=mark, lineterminator="\n")
            if first:
                writer.writerow(names)
            writer.writerows(rows)
        else:
            for row in rows:
                entry = dict(zip(names, row, strict=True))
                text.write(json_text.dumps(entry, ensure_ascii=False) + "\n")
        first = False
        yield text.getvalue(), len(predicted)
