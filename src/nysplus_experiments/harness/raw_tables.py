"""Ordinary tables as pandas frames with numbers, categories and gaps, neither scaled nor encoded.

A table is a file of the folder NYSPLUS_DATA with ``X`` (categories as whole codes, NaN for gaps),
``y`` and, unless all columns are numbers, ``cat`` (which columns are nominal) and ``names``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from nysplus_experiments.harness.datasets import DATASETS, DatasetNotFound, find
from nysplus_experiments.harness.datasets.splits import row_keys

TEST_SHARE = 0.3
#: Tables that need no files, for tests and smoke runs.
SYNTHETIC, SYNTHETIC_REGRESSION = "synthetic", "synthetic_regression"


@dataclass(frozen=True)
class TableSource:
    """File of a table, below NYSPLUS_DATA and without its suffix; synthetic tables have none."""

    file: str
    regression: bool = False


_CLASSIFICATION = (
    *("abalone3", "adult", "artificial_characters", "banana", "car", "churn", "credit_default"),
    *("dry_bean", "eeg_eye_state", "hr_job_change", "jm1", "kr_vs_kp", "krkopt", "mammography"),
    *("mfeat_fourier", "mfeat_karhunen", "online_shoppers", "plant_margin", "qsar_biodeg"),
    *("segment", "spambase", "splice", "vehicle_coupon", "wall_robot", "waveform_40"),
    "wine_quality_white",
)
_REGRESSION = (
    *("abalone", "concrete", "cpu_act", "diamonds", "elevators", "fried", "house_16h", "kin8nm"),
    *("miami_housing", "parkinsons", "puma32h", "seoul_bike", "sml", "wine_quality_reg"),
)
TABLES = {
    **{name: TableSource(f"tables/{name}") for name in _CLASSIFICATION},
    "magic": TableSource("magic_gamma"),
    "a9a": TableSource("a9a"),
    **{name: TableSource(f"tables/{name}", regression=True) for name in _REGRESSION},
    "california": TableSource("california_housing", regression=True),
}
#: The datasets of the paper, and Pendigits: all columns are numbers.
PAPER_SETS = {
    name: TableSource(name)
    for name in (
        *("letter", "pendigits", "usps", "mnist", "cod_rna", "ijcnn1", "shuttle", "covtype"),
        *("har", "buzz", "svhn"),
    )
}
SOURCES = (
    TABLES
    | PAPER_SETS
    | {
        SYNTHETIC: TableSource(""),
        SYNTHETIC_REGRESSION: TableSource("", regression=True),
    }
)


@dataclass(frozen=True)
class TableSplit:
    """Training and test rows; ``has_twin`` marks test rows that equal a training row."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    has_twin: np.ndarray
    regression: bool


@dataclass(frozen=True)
class Table:
    """A frame of raw columns with its target: class codes, or numbers for regression."""

    frame: pd.DataFrame
    y: np.ndarray
    regression: bool

    def split(
        self, seed: int, max_train: int | None = None, max_test: int | None = None
    ) -> TableSplit:
        """Return shuffled rows, 30 % of them for testing, with the shares of the classes kept."""
        rows = np.arange(len(self.y))
        groups = None if self.regression else self.y
        train, test = train_test_split(
            rows, test_size=TEST_SHARE, random_state=seed, stratify=groups
        )
        train, test = train[:max_train], test[:max_test]
        keys = row_keys(_matrix(self.frame))
        frame, y = self.frame, self.y
        return TableSplit(
            *(frame.iloc[train].reset_index(drop=True), y[train]),
            *(frame.iloc[test].reset_index(drop=True), y[test]),
            has_twin=np.isin(keys[test], keys[train]),
            regression=self.regression,
        )


def load_table(name: str) -> Table:
    """Return a table with nominal columns as categories of strings such as "level 3"."""
    source = SOURCES[name]
    if not source.file:
        return _synthetic(source.regression)
    path = Path(os.environ.get("NYSPLUS_DATA", ".")).expanduser() / f"{source.file}.npz"
    if source.file in DATASETS:  # also in the user's cache, where `nysplus datasets fetch` puts it
        path = find(source.file) or path
    if not path.is_file():
        raise DatasetNotFound(f"{path} does not exist. Set NYSPLUS_DATA to the folder of the data.")
    with np.load(path, allow_pickle=False) as arrays:
        if "X" in arrays:
            X, y = arrays["X"], arrays["y"]
        else:  # the publisher's two parts
            X = np.concatenate([arrays["X_train"], arrays["X_test"]])
            y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        nominal = arrays["cat"] if "cat" in arrays else np.zeros(X.shape[1], bool)
        names = arrays["names"].astype(str) if "names" in arrays else _numbered(X.shape[1])
    return table_of(X, y, nominal, list(names), source.regression)


def available_tables(names: Iterable[str]) -> list[str]:
    """Return the tables that can be loaded; print the reason for each of the others."""
    found = []
    for name in names:
        try:
            load_table(name)
            found.append(name)
        except DatasetNotFound as error:
            print(f"{name} is skipped. {error}")
    return found


def table_of(
    X: np.ndarray, y: np.ndarray, nominal: np.ndarray, names: list[str], regression: bool
) -> Table:
    """Return a table of numbers and of codes, which become levels in the order of the codes."""
    columns = {
        name: _levels(column) if is_nominal else column.astype(np.float64)
        for name, column, is_nominal in zip(names, X.T, nominal, strict=True)
    }
    y = y.astype(np.float64) if regression else np.unique(y, return_inverse=True)[1]
    return Table(pd.DataFrame(columns), y, regression)


def _levels(codes: np.ndarray) -> pd.Categorical:
    levels, position = np.unique(codes, return_inverse=True)  # NaN is the last level
    position = np.where(np.isnan(codes), -1, position)
    texts = [f"level {level:.0f}" for level in levels[~np.isnan(levels)]]
    return pd.Categorical.from_codes(position, categories=texts)


def level_codes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of numbers: categories as the positions of their levels, NaN for gaps."""
    codes = {
        name: frame[name].astype("category").cat.codes.astype(np.float64).where(frame[name].notna())
        for name in nominal_columns(frame)
    }
    return frame.assign(**codes)


def nominal_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that are not numbers."""
    return list(frame.select_dtypes(exclude="number").columns)


def _matrix(frame: pd.DataFrame) -> np.ndarray:
    """Return the rows as numbers that can be compared bytewise."""
    rows = level_codes(frame).to_numpy(np.float64, copy=True)
    rows[np.isnan(rows)] = np.nan  # one of the many bit patterns of NaN
    return rows


def _numbered(count: int) -> list[str]:
    return [f"x{number}" for number in range(count)]


def _synthetic(regression: bool) -> Table:
    """Return 500 rows of three numbers and two nominal columns with gaps, some rows twice."""
    rng = np.random.default_rng(0)
    rows, nominal = 450, np.array([False, False, False, True, True])
    X = rng.standard_normal((rows, 3)) * [1.0, 100.0, 0.01]
    X = np.column_stack([X, rng.integers(0, 3, rows), rng.integers(0, 12, rows)])
    score = np.sin(2 * X[:, 0]) + X[:, 1] / 100 + (X[:, 3] == 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    X, score = np.concatenate([X, X[:50]]), np.concatenate([score, score[:50]])
    y = score if regression else np.digitize(score, [-0.3, 0.9])
    return table_of(X, y, nominal, _numbered(5), regression)
