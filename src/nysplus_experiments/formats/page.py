"""Write docs/formats.md from a template and the CSV files, and nothing else.

python benchmarks/formats_page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

import csv_rows
import pages
from compress import Row, compress_table
from exports import (
    LANDMARKS,
    MAX_TEST_ROWS,
    MAX_TRAIN_ROWS,
    REPEATS,
    SINGLE_ROWS,
    STORAGE,
    Export,
    exports_table,
    scientific,
)
from selection import SOURCES
from selection_page import machine

TEMPLATE = Path(__file__).with_name("formats.template.md")
LARGE, SMALL = STORAGE
Key = tuple[str, str]  # format and storage


def extent(ratios: Iterable[float]) -> str:
    """Write the smallest and the largest of some ratios, or one number where they look the same.

    >>> extent([3.84, 3.66]), extent([2.01, 1.99])
    ('3.7 to 3.8', '2.0')
    """
    numbers = sorted(ratios)
    return " to ".join(dict.fromkeys(f"{number:.1f}" for number in (numbers[0], numbers[-1])))


def times(rows: Sequence[Export], column: str, one: Key, other: Key) -> str:
    """Write how many times as large a column is, over the datasets.

    Parameters
    ----------
    rows : sequence of Export
    column : str
    one, other : Key
        What is divided, and what it is divided by.
    """
    found = {(row.dataset, row.format, row.storage): getattr(row, column) for row in rows}
    datasets = dict.fromkeys(row.dataset for row in rows)
    return extent(found[dataset, *one] / found[dataset, *other] for dataset in datasets)


def more_kilobytes(rows: Sequence[Export], name: str) -> str:
    """Write what files of a format take beside the numbers, in kB."""
    numbers = {row.key: row.bytes for row in rows if row.format == "Python"}
    return extent((row.bytes - numbers[row.key]) / 1024 for row in rows if row.format == name)


def noise(rows: Sequence[Export]) -> str:
    """Write the largest ratio of two times of Python on a dataset, which should be the same."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        for column in ("batch_us", "single_us") if row.format == "Python" else ():
            found.setdefault((row.dataset, column), []).append(getattr(row, column))
    return f"{max(max(pair) / min(pair) for pair in found.values()):.1f}"


def accuracies(rows: Sequence[Export]) -> str:
    """Write how often the models are right, by dataset and storage."""
    right = {(row.dataset, row.storage): row.accuracy for row in rows}
    return "; ".join(
        f"{SOURCES[dataset].title} "
        + ", ".join(f"{right[dataset, storage]:.2f} % in {storage}" for storage in STORAGE)
        for dataset in dict.fromkeys(row.dataset for row in rows)
    )


def values(results: Path) -> dict[str, str]:
    """Return everything that the template leaves open."""
    rows = csv_rows.read(results / "exports.csv", Export)
    known = json.loads((results / "exports.json").read_text(encoding="utf-8"))
    compressed = [
        row
        for row in csv_rows.read(results / "compress.csv", Row)
        if not row.dataset.endswith("merging")
    ]
    trials = len({row.repeat for row in compressed})
    return {
        "compress_table": compress_table(compressed),
        "compress_trials": f"median of {trials} trials" if trials > 1 else "one trial",
        "exports_table": "\n".join(exports_table(rows)),
        "accuracies": accuracies(rows),
        "largest_change": scientific(max(row.change or 0.0 for row in rows)),
        "smaller": times(rows, "bytes", ("safetensors", LARGE), ("safetensors", SMALL)),
        "json_large": times(rows, "bytes", ("JSON", LARGE), ("safetensors", LARGE)),
        "json_small": times(rows, "bytes", ("JSON", SMALL), ("safetensors", SMALL)),
        "safetensors_more": more_kilobytes(rows, "safetensors"),
        "onnx_more": more_kilobytes(rows, "ONNX"),
        "noise": noise(rows),
        "onnx_single": times(rows, "single_us", ("Python", LARGE), ("ONNX", LARGE)),
        "c_single": times(rows, "single_us", ("Python", LARGE), ("C", LARGE)),
        "c_batch": times(rows, "batch_us", ("C", LARGE), ("Python", LARGE)),
        "c_int8": times(rows, "batch_us", ("C", SMALL), ("C", LARGE)),
        "landmarks": str(LANDMARKS),
        "train_rows": f"{MAX_TRAIN_ROWS:,}",
        "test_rows": f"{MAX_TEST_ROWS:,}",
        "single_rows": str(SINGLE_ROWS),
        "repeats": str(REPEATS),
        "threads": str(known["threads"]),
        "machine": machine(known),
    }


def write_page(results: Path, docs: Path) -> Path:
    """Write the page; return it."""
    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values(results))
    return pages.write(docs / "formats.md", filled)


if __name__ == "__main__":
    pages.main(__doc__, write_page)
