"""Read the table of datasets, ``registry.toml``, and find their files on this machine."""

from __future__ import annotations

import os
import sys
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

    def count_notes(self, n_train: int, n_test: int) -> list[str]:
        """Return a sentence on counts that differ from the paper's."""
        if self.paper is None or (n_train, n_test) == self.paper:
            return []
        return [
            f"{self.title} has {n_train} training and {n_test} test rows here, "
            f"{self.paper[0]} and {self.paper[1]} in the paper."
        ]


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


class DatasetNotFound(FileNotFoundError):
    """A dataset is in none of the places that were looked at."""


@dataclass(frozen=True)
class Presence:
    """Where a dataset is: "NYSPLUS_DATA", "cache", "scikit-learn", or "" when absent."""

    dataset: Dataset
    where: str

    @property
    def present(self) -> bool:
        """Whether `load` needs no download."""
        return bool(self.where)


def cache_folder() -> Path:
    """Return the user's cache folder for datasets; it need not exist yet."""
    if chosen := os.environ.get("NYSPLUS_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "nysplus"


def _places() -> list[tuple[str, Path]]:
    data = os.environ.get("NYSPLUS_DATA")
    named = [("NYSPLUS_DATA", Path(data).expanduser())] if data else []
    return [*named, ("cache", cache_folder())]


def row_of(name: str) -> Dataset:
    """Return the row of the table of datasets."""
    if name not in DATASETS:
        raise ValueError(f"Unknown dataset {name!r}. Known names: {', '.join(DATASETS)}.")
    return DATASETS[name]


def find(name: str) -> Path | None:
    """Return the ``.npz`` file of a dataset, or None; never touches the network."""
    row_of(name)
    paths = (folder / f"{name}.npz" for _, folder in _places())
    return next((path for path in paths if path.is_file()), None)


def describe() -> list[Presence]:
    """Return one record a dataset, in the table's order, with where its data are."""
    result = []
    for name, row in DATASETS.items():
        path = find(name)
        where = next((w for w, folder in _places() if path and path.parent == folder), "")
        builtin = not path and not row.sources[0].files
        result.append(Presence(row, "scikit-learn" if builtin else where))
    return result


def not_found(row: Dataset, reason: str) -> DatasetNotFound:
    """Return the error that says where a dataset was looked for and how to get it."""
    looked = "; ".join(
        f"{folder} ({label}{'' if folder.is_dir() else ', no such folder'})"
        for label, folder in _places()
    )
    files = " and ".join(f"{file.name} from {file.url}" for file in row.sources[0].files)
    return DatasetNotFound(
        f"{row.title} is not available: {reason}. Looked for {row.name}.npz in {looked}. "
        f"Put {row.name}.npz into one of these folders (NYSPLUS_DATA can name another), or get "
        f"{files} into a folder DIR and run `nysplus datasets prepare DIR`, which writes "
        f"{cache_folder() / (row.name + '.npz')}."
    )
