"""``nysplus evaluate``: the score of a model on the rows of a file."""

from __future__ import annotations

import numpy as np

from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import applied, read_model, read_target
from nysplus.cli.output import Output
from nysplus.cli.targets import target_values
from nysplus.report.scores import accuracy, confused, confusion_text, r2
from nysplus.report.wording import as_texts, few


def evaluate(
    model_file: options.ModelFile,
    data: options.DataFile,
    target: options.Target = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Judge a model on rows whose target is known.

    Rows without a target are left out.

    Example: nysplus evaluate churn.nys last_month.csv --target churned
    """
    output = Output(json, quiet, no_color)
    model = read_model(model_file)
    column, name = read_target(data, target)
    found = target_values(name, column)
    if found.n_missing:
        output.note(f"{found.n_missing:,} rows of {data} have no {name!r}, and are left out.")
    classes = getattr(model, "classes_", None)
    if classes is None and found.y.dtype.kind not in "if":
        raise CommandError(
            f"The target {name!r} contains no numbers, and {model_file} predicts values. Name "
            "another column."
        )
    with output.noting_warnings():
        chunks = applied(model, data, lambda fitted, X: fitted.predict(X))
        predicted = np.concatenate(list(chunks))[found.known]
    if classes is None:
        score = r2(found.y, predicted)
        output.pairs([(f"on {score.n_rows:,} rows", str(score))])
        output.result(score=score.entries)
        return
    new = sorted({*as_texts(found.y).tolist()} - {*as_texts(classes).tolist()})
    if new:
        output.note(f"The target has classes that the model does not know: {few(new)}.")
    score = accuracy(found.y, predicted)
    lines = [(f"on {score.n_rows:,} rows", str(score))]
    _, counts = np.unique(found.y, return_counts=True)
    lines.append(("most frequent class", f"{100 * counts.max() / len(found.y):.1f} %"))
    if text := confusion_text(found.y, predicted):
        lines.append(("most confused", text))
    output.pairs(lines)
    output.result(score=score.entries, confused=confused(found.y, predicted))
