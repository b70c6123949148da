"""Options that several commands share."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from nysplus.cli.errors import CommandError

DataFile = Annotated[
    Path,
    typer.Argument(help="CSV, TSV, Parquet, Arrow, libsvm or npz file.", show_default=False),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File of `nysplus train`.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option(help="Column to predict. npz files have y, libsvm files their own."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR set.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0, max=2**32 - 1)]
Time = Annotated[
    str | None,
    typer.Option("--time", help="Limit of the refinement, e.g. 60s. Results then vary."),
]

UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(time: str | None) -> float | None:
    """Return a time limit in seconds; None without one."""
    if time is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", time.lower())
    value = float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else math.nan
    if not value > 0:
        raise CommandError(f"--time {time} is not a time. Give for example 60s, 5m or 1h.")
    return value
