from __future__ import annotations

import gzip
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

spec = importlib.util.spec_from_file_location(
    "command_line", Path(__file__).with_name("command_line.py")
)
command_line = importlib.util.module_from_spec(spec)
sys.modules["command_line"] = command_line
spec.loader.exec_module(command_line)


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """Deliveries with texts, gaps, dates and a column without entries, 600 rows."""
    rng = np.random.RandomState(0)
    n = 600
    distance = (40 * rng.rand(n)).round(1)
    vehicle = rng.choice(["bike", "van", "Lkw, groß"], n)
    hours = rng.randint(0, 365 * 24, n)
    late = (distance > 20) ^ (vehicle == "bike")
    ordered = np.datetime64("2025-01-01T00:00:00") + hours * np.timedelta64(1, "h")
    return command_line.write_csv(
        tmp_path_factory.mktemp("table") / "deliveries.csv",
        weight=["" if rng.rand() < 0.1 else round(float(w), 2) for w in np.exp(rng.randn(n))],
        distance=distance,
        vehicle=vehicle,
        ordered=[str(day).replace("T", " ") for day in ordered],
        note=[""] * n,
        late=np.where(late, "yes", "no"),
    )


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Two classes of 120 rows: x, kind and y."""
    return command_line.write_csv(tmp_path_factory.mktemp("small") / "small.csv", **_small())


def _small():
    rng = np.random.RandomState(0)
    x = rng.randn(120).round(3)
    kind = rng.choice(["a", "b"], 120)
    return {"x": x, "kind": kind, "y": np.where((x > 0) ^ (kind == "a"), "yes", "no")}


@pytest.fixture
def write_as(tmp_path):
    """Return a function that writes 120 rows in a format: the path, and the target or None."""
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    def write(ending):
        path, columns = tmp_path / f"rows{ending}", _small()
        rows = pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
        X = np.column_stack([columns["x"], columns["kind"] == "a"]).astype(float)
        y = (columns["y"] == "yes").astype(int)
        if ending == ".tsv":
            csv.write_csv(rows, path, csv.WriteOptions(delimiter="\t"))
        elif ending == ".parquet":
            parquet.write_table(rows, path)
        elif ending == ".feather":
            feather.write_feather(rows, str(path))
        elif ending == ".csv.gz":
            plain = command_line.write_csv(tmp_path / "plain.csv", **columns)
            path.write_bytes(gzip.compress(plain.read_bytes()))
        elif ending == ".npz":
            np.savez(path, X=X, y=y)
        else:
            lines = (f"{c} 1:{a} 2:{b}" for c, (a, b) in zip(y, X, strict=True))
            path.write_text("\n".join(lines))
        return path, None if ending in (".npz", ".svm") else "y"

    return write


@pytest.fixture(scope="session")
def model(table, tmp_path_factory):
    """A model of `table`."""
    path = tmp_path_factory.mktemp("model") / "late.nys"
    command_line.run(
        *("train", table, "--target", "late", "--budget", "8kB", "--no-refine"), out=path
    )
    return path
