"""``nysplus compress``: a smaller model of a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nysplus._bytes.budget import NoRoomError, make_budget
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import check_writable, read_model, read_rows
from nysplus.cli.output import Output
from nysplus.cli.targets import target_values
from nysplus.report.description import chosen_text, entries, size_line
from nysplus.report.wording import size_text


def compress(
    model_file: options.ModelFile,
    out: Annotated[Path, typer.Option(help="File of the smaller model.", show_default=False)],
    budget: Annotated[str, typer.Option(help="Size of the model, e.g. 4kB.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Typical rows, such as those of training.")
    ] = None,
    target: options.Target = None,
    time_limit: options.Time = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Write a smaller model, without training from scratch.

    With typical rows and their target, the smaller model loses less.

    Example: nysplus compress churn.nys --budget 4kB --out small.nys --data a.csv --target churned
    """
    output = Output(json, quiet, no_color)
    make_budget(budget)
    limit = options.seconds(time_limit)
    check_writable(out, data, model_file)
    model = read_model(model_file)
    X = y = None
    if data is not None:
        rows = read_rows(data, target)
        found = target_values(rows.target, rows.y)
        X, y = rows.take(np.flatnonzero(found.known)), _known_labels(model, found.y, data)
    elif target is not None:
        raise CommandError("--target names a column of --data. Give both or none.")
    start = time.perf_counter()
    try:
        with output.noting_warnings(), output.progress("compressing", limit):
            small = model.compress(X=X, y=y, budget=budget, max_seconds=limit)
    except NoRoomError as error:
        raise CommandError(
            f"{model_file} cannot be compressed to {budget}: its map and its encoder stay as they "
            f"are. Train a model of this size instead: nysplus train --budget {budget}. ({error})"
        ) from error
    seconds = time.perf_counter() - start
    small.save(out)
    output.pairs(
        [
            ("before", f"{size_text(model.model_bytes_)} of numbers"),
            ("after", chosen_text(small)),
            ("compressing", f"{seconds:.1f} s"),
            ("model", size_line(small, out)),
        ]
    )
    output.result(
        bytes_before=model.model_bytes_, seconds=seconds, file=str(out), model=entries(small, out)
    )


def _known_labels(model: Any, y: Any, data: Path) -> Any:
    """Return targets with the type that those of training have."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        if y.dtype.kind not in "if":
            raise CommandError(f"The target of {data} contains no numbers. Name another column.")
        return y.astype(np.float64)
    return y.astype(str) if classes.dtype.kind == "U" else y
