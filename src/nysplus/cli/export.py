"""``nysplus export``: a model for other languages and programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from nysplus._runtime.atomic_file import write_whole
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import check_writable, read_model
from nysplus.cli.output import Output
from nysplus.export import to_c, to_html, to_json, to_onnx
from nysplus.report.wording import size_text


@dataclass(frozen=True)
class Export:
    """A format to export to.

    Attributes
    ----------
    ending : str
        Of the file, where none is named.
    content : callable
        From a model and a name for it to the bytes of the file.
    """

    ending: str
    content: Callable[[Any, str], bytes]


def _onnx(model: Any, name: str) -> bytes:
    content: bytes = to_onnx(model).SerializeToString(deterministic=True)
    return content


EXPORTS = {
    "onnx": Export(".onnx", _onnx),
    "c": Export(".h", lambda model, name: to_c(model, name=name).encode()),
    "c-int": Export(".h", lambda model, name: to_c(model, name=name, arithmetic="int").encode()),
    "json": Export(".json", lambda model, name: to_json(model).encode()),
    "html": Export(".html", lambda model, name: to_html(model, title=name).encode()),
}


def export(
    model_file: options.ModelFile,
    to: Annotated[str, typer.Option(help=f"{', '.join(EXPORTS)}.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="File to write; beside the model by default.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Write a model for other programs: an ONNX graph, a C header, JSON, or a page that runs it.

    The code of the table is part of it: it takes rows as the model does.

    Example: nysplus export churn.nys --to c --out churn.h
    """
    output = Output(json, quiet, no_color)
    if to not in EXPORTS:
        raise CommandError(f"--to {to} is not known. Allowed are {', '.join(EXPORTS)}.")
    path = out or model_file.with_suffix(EXPORTS[to].ending)
    check_writable(path, model_file)
    model = read_model(model_file)
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    name = name if re.match(r"[A-Za-z]", name) else f"model_{name}"
    with output.noting_warnings():
        write_whole(path, EXPORTS[to].content(model, name))
    n_bytes = path.stat().st_size
    output.line(f"{path}: {size_text(n_bytes)}")
    output.result(file=str(path), format=to, bytes=n_bytes)
