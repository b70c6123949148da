"""``nysplus inspect``: what a file of a model contains."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Any

from nysplus.cli import options
from nysplus.cli.files import read_model
from nysplus.cli.output import Output
from nysplus.report.description import chosen_text, columns_text, entries
from nysplus.report.wording import as_texts, few, size_text


def inspect(
    model_file: options.ModelFile,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Show what a model is: classes, columns, bytes, kernel, landmarks, versions.

    Example: nysplus inspect churn.nys
    """
    output = Output(json, quiet, no_color)
    model = read_model(model_file)
    header = _header(model_file)
    whole = model_file.stat().st_size
    output.line(f"{model_file}: {type(model).__name__}", "bold")
    lines = []
    if hasattr(model, "classes_"):
        lines.append(("classes", few(as_texts(model.classes_))))
    lines += columns_text(model)
    lines.append(("function", chosen_text(model)))
    lines.append(("format", f"{header['format']}, written by nysplus {header['version']}"))
    output.pairs(lines)
    rows = [(part.name, f"{part.n_bytes:,}", part.type_name) for part in model.report_.parts]
    rows.append(("model_bytes_", f"{model.model_bytes_:,}", ""))
    rows.append(("file, with names and parameters", f"{whole:,}", f"= {size_text(whole)}"))
    output.line("")
    output.table(("part", "bytes", "type"), rows)
    output.result(**header, **entries(model, model_file))


def _header(path: Path) -> dict[str, Any]:
    """Return the format and the version of a file that was loaded before."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json_text.loads(file.read(length))
    own = json_text.loads(header["__metadata__"]["nysplus"])
    return {"format": own["format"], "version": own["version"]}
