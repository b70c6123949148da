"""Read the table of datasets, ``registry.toml``: publishers, licences, counts, gamma, splits."""

from __future__ import annotations

import os
import tomllib
import urllib.parse
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from nysplus_experiments.harness.datasets import formats
from nysplus_experiments.harness.datasets.formats import Parser


@dataclass(frozen=True)
class RemoteFile:
    """One file of a publisher: its address, its checksum, and other names it goes by."""

    url: str
    sha256: str | None = None
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name, the last part of its address."""
        return urllib.parse.unquote(self.url.rsplit("/", 1)[-1])

    def locate(self, folder: Path) -> Path | None:
        """Return this file in ``folder`` under any of its names, compressed or not."""
        for name in (self.name, *self.also):
            stem, suffix = os.path.splitext(name)
            plain = stem if suffix in formats.COMPRESSED else name
            for candidate in (name, plain, *(plain + end for end in formats.COMPRESSED)):
                if (folder / candidate).is_file():
                    return folder / candidate
        return None


@dataclass(frozen=True)
class Source:
    """The files of one publication and their parser; ``note`` is told as a deviation."""

    files: tuple[RemoteFile, ...]
    parse: Parser
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One row of the table.

    ``rows`` are the publisher's counts (train and test, or all), ``counts`` those of the split in
    use, ``paper`` those of the paper's tables. The first source is the one that is downloaded.
    ``split`` "resplit" pools the publisher's two parts and draws again for each trial. ``unique``
    drops rows whose features occurred before. ``notes`` say what differs from the paper.
    """

    name: str
    title: str
    sources: tuple[Source, ...]
    licence: str
    n_features: int
    n_classes: int
    rows: tuple[int, ...]
    counts: tuple[int, int]
    paper: tuple[int, int] | None
    gamma: float
    scaling: Literal["global", "feature"]
    split: Literal["fixed", "random", "resplit"] = "fixed"
    unique: bool = False
    notes: tuple[str, ...] = ()


def _source(name: str, entry: dict[str, Any], n_features: int) -> Source:
    parse = formats.libsvm(n_features) if name == "libsvm" else getattr(formats, name)
    files = (RemoteFile(**file | {"also": tuple(file.get("also", ()))}) for file in entry["files"])
    return Source(tuple(files), parse, entry.get("note", ""))


def _dataset(name: str, entry: dict[str, Any]) -> Dataset:
    sources = (_source(s["parser"], s, entry["n_features"]) for s in entry.pop("sources"))
    row = {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items()}
    defaults: dict[str, Any] = {"counts": row["rows"], "paper": None}
    return Dataset(name=name, sources=tuple(sources), **defaults | row)


_TABLE = tomllib.loads(resources.files(__package__).joinpath("registry.toml").read_text("utf-8"))
DATASETS: dict[str, Dataset] = {name: _dataset(name, entry) for name, entry in _TABLE.items()}
