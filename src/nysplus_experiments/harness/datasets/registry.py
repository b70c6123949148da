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
    """The files of one publication and the parser that reads them, in the same order.

    ``note`` is kept with the converted data and told as a deviation.
    """

    files: tuple[RemoteFile, ...]
    parse: Parser
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One row of the table.

    Attributes
    ----------
    name, title : str
        The key of the row, and the name that the paper prints.
    sources : tuple of Source
        Publications that can be converted; the first is the one that is downloaded. Data that
        come with scikit-learn have a source without files.
    licence : str
        The licence that the publisher states.
    n_features, n_classes : int
    rows : tuple of int
        The publisher's counts: train and test, or all rows where the publisher does not split.
    counts : tuple of int
        Training and test rows of the split in use.
    paper : tuple of int or None
        The same counts in the paper's tables 1 and 2; None for data that are not in them.
    gamma : float
        The paper's; ours where ``notes`` say so.
    scaling : {"global", "feature"}
        One range for the whole training matrix, or one a column.
    split : {"fixed", "random", "resplit"}
        The publisher's split, one drawn for each trial, or the publisher's two parts pooled and
        drawn again for each trial.
    unique : bool
        Whether rows whose features occurred before are dropped.
    notes : tuple of str
        What differs from the paper, whatever the trial.
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
