"""Find the file of a dataset on this machine; say where else it could be."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from nysplus_experiments.harness.datasets.registry import DATASETS, Dataset


class DatasetNotFound(FileNotFoundError):
    """A dataset is in none of the places that were looked at."""


@dataclass(frozen=True)
class Presence:
    """Where a dataset is: "NYSPLUS_DATA", "cache", "scikit-learn", or "" when absent."""

    dataset: Dataset
    where: str
    path: Path | None

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
        result.append(Presence(row, "scikit-learn" if builtin else where, path))
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
