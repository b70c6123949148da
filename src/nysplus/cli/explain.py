"""``nysplus explain``: the part of each column in the prediction of a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nysplus._fit.model import FittedModel
from nysplus._typing import Float
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import applied, is_sparse, read_model
from nysplus.cli.output import Output
from nysplus.explain import ShapleyValues
from nysplus.explain.shapley import values_of_rows
from nysplus.report.trust import warning
from nysplus.report.wording import few

# Rows of the background: their mean score is then known to a tenth of a standard deviation.
BACKGROUND_ROWS = 100


def explain(
    model_file: options.ModelFile,
    data: options.DataFile,
    row: Annotated[int, typer.Option(help="Number of the row; 1 is the first one.", min=1)],
    background: Annotated[
        Path | None,
        typer.Option(help="File of typical rows, of which 100 are used; DATA by default."),
    ] = None,
    output_name: Annotated[
        str | None,
        typer.Option("--class", help="Class to explain; the predicted one by default."),
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Show how much each column of a row changes its score, compared with typical rows.

    The numbers are Shapley values: together they are the difference between the score of the row
    and the mean score of the typical rows. A note warns of a row that is unlike the training rows.

    Example: nysplus explain churn.nys customers.csv --row 17
    """
    output = Output(json, quiet, no_color)
    model = read_model(model_file)
    with output.noting_warnings():
        x, others = _rows(model, data, row, seed)
        if background is not None:
            others = _rows(model, background, None, seed)[1]
        found = values_of_rows(model, x, others, random_state=seed)
    predicted = model._model.predict(x)[0]
    chosen = _output(found, output_name, predicted)
    shown = found.output(chosen)
    order = np.argsort(-np.abs(shown.values[0]), kind="stable")
    novelty = None if model._model.familiar is None else float(model._model.novelty(x)[0])
    if novelty is not None and (strange := warning(novelty)):
        output.note(strange)
    _print(output, shown, order, _heading(model._model, predicted, chosen), len(others))
    error = shown.standard_error
    output.result(
        row=row,
        prediction=predicted,
        base=float(shown.base_values[0]),
        score=float(shown.base_values[0] + shown.values[0].sum()),
        exact=shown.exact,
        novelty=novelty,
        columns=[
            {
                "name": shown.feature_names[i],
                "entry": str(shown.shown_data[0, i]),
                "value": float(shown.values[0, i]),
                **({} if error is None else {"standard_error": float(error[0, i])}),
            }
            for i in order
        ],
    )


def _rows(model: Any, path: Path, row: int | None, seed: int) -> tuple[Any, Float]:
    """Return a row of a file, counted from 1, and a sample of its rows, as raw numbers."""
    rng = np.random.RandomState(seed)
    found, kept, keys, n_rows = None, [], [], 0
    for chunk in _chunks(model, path):
        if row is not None and n_rows < row <= n_rows + len(chunk):
            found = chunk[row - n_rows - 1 : row - n_rows]
        n_rows += len(chunk)
        # the rows of the smallest of random numbers are a sample of all rows so far
        kept.append(chunk)
        keys.append(rng.random_sample(len(chunk)))
        all_keys = np.concatenate(keys)
        chosen = np.sort(np.argsort(all_keys, kind="stable")[:BACKGROUND_ROWS])
        kept, keys = [np.concatenate(kept)[chosen]], [all_keys[chosen]]
    if row is not None and found is None:
        raise CommandError(f"--row {row} is not in {path}, which has {n_rows:,} rows.")
    return found, kept[0]


def _chunks(model: Any, path: Path) -> Iterator[Float]:
    yield from applied(model, path, _dense)


def _dense(fitted: FittedModel, X: Any) -> Float:
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def _output(found: ShapleyValues, name: str | None, predicted: Any) -> str | None:
    """Return the name of the output to explain; None where there is one only."""
    names = found.output_names
    if names is None:
        if name is not None:
            raise CommandError(f"--class {name}: the model has one score only. Leave --class out.")
        return None
    if name is None:
        own = str(predicted)
        return own if own in names else names[0]
    if name not in names:
        raise CommandError(f"--class {name} is not known. Allowed are {few(names)}.")
    return name


def _heading(fitted: FittedModel, predicted: Any, chosen: str | None) -> str:
    """Return the prediction, and the class whose score is explained."""
    if not fitted.code.discrete:
        shown = np.array2string(np.asarray(predicted), precision=6)
        return f"prediction: {shown}" + ("" if chosen is None else f"; values of {chosen}")
    # with two classes, there is one score: of the second class
    name = str(fitted.code.classes[1]) if chosen is None else chosen
    return f"prediction: {predicted}; values of the score of {name}"


def _print(output: Output, shown: ShapleyValues, order: Any, heading: str, n: int) -> None:
    """Print a line for each column, the largest value first."""
    error, entries = shown.standard_error, shown.shown_data[0]
    output.line(heading, "bold")
    base = float(shown.base_values[0])
    rows = [(f"mean score of {n} typical rows", "", f"{base:+.4g}")]
    for i in order:
        spread = "" if error is None else f" ± {error[0, i]:.1g}"
        entry = f"{entries[i]:g}" if isinstance(entries[i], float) else str(entries[i])
        rows.append((shown.feature_names[i], entry, f"{shown.values[0, i]:+.4g}{spread}"))
    rows.append(("score of the row", "", f"{base + shown.values[0].sum():+.4g}"))
    output.table(("column", "entry", "Shapley value"), rows)
