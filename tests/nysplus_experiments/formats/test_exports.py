"""Tables of export formats, their guide, and the measurement itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

import nysplus.export
from nysplus_experiments.formats import compress, exports, page
from nysplus_experiments.harness import records

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "formats.md"


def export(dataset, storage, name, *numbers):
    return exports.Export(dataset, storage, name, 20, 4, 3, *numbers, 98.765, 1)


# Two datasets, two types and three formats, with numbers that are easy to read.
ROWS = [
    export("digits", "float32", "Python", 4096, 1.0, 100.0, 0.0),
    export("digits", "float32", "safetensors", 5120, None, None, None),
    export("digits", "float32", "C", 4096, 12.0, 12.0, 2e-5),
    export("digits", "int8", "Python", 1024, 1.5, 80.0, 0.0),
    export("digits", "int8", "safetensors", 2048, None, None, None),
    export("digits", "int8", "C", 1024, 18.0, 18.0, 3.4e-5),
    export("digits", "int4", "Python", 512, 1.25, 90.0, 0.0),
    export("digits", "int4", "safetensors", 1536, None, None, None),
    export("digits", "int4", "C", 512, 24.0, 24.0, 1e-5),
    export("usps", "float32", "Python", 8192, 2.0, 100.0, 0.0),
    export("usps", "float32", "safetensors", 8192 + 512, None, None, None),
    export("usps", "float32", "C", 8192, 20.0, 20.0, 0.0),
]


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no pages")
def test_the_guide_names_every_export():
    text = GUIDE.read_text()
    for name in (*nysplus.export.__all__, "load", "save", "compress", "from_svc"):
        assert f"{name}(" in text


def test_a_line_has_all_types_side_by_side():
    header, _, *lines = page.export_table(records.frame(ROWS, exports.Export)).splitlines()
    assert header.startswith(
        "| data | format | kB: float32 | kB: int8 | kB: int4 | µs per row, all at once: "
    )
    assert lines == [
        "| digits | Python | 4.0 | 1.0 | 0.5 | 1.0 | 1.5 | 1.2 | 100 | 80 | 90 | 0 |",
        "| digits | safetensors | 5.0 | 2.0 | 1.5 | – | – | – | – | – | – | – |",
        "| digits | C | 4.0 | 1.0 | 0.5 | 12 | 18 | 24 | 12 | 18 | 24 | 3e-05 |",
        "| USPS | Python | 8.0 | – | – | 2.0 | – | – | 100 | – | – | 0 |",
        "| USPS | safetensors | 8.5 | – | – | – | – | – | – | – | – | – |",
        "| USPS | C | 8.0 | – | – | 20 | – | – | 20 | – | – | 0 |",
    ]


def test_accuracies_are_those_of_the_models():
    assert page.accuracy_table(records.frame(ROWS[:9], exports.Export)).splitlines()[2:] == [
        "| digits | 98.77 | 98.77 | 98.77 |"
    ]


def test_compressed_models_show_medians_and_the_range():
    rows = [
        compress.Compression("letter", repeat, "large", 10, 80, accuracy, float("nan"), seconds)
        for repeat, (accuracy, seconds) in enumerate(((90.0, 1.0), (92.0, 2.0), (97.0, 9.0)))
    ]
    assert page.compress_table(records.frame(rows, compress.Compression)).splitlines()[2:] == [
        "| Letter | large | 10 | 80 | 92.00 [90.00, 97.00] | 2.0 |"
    ]
    merged = compress.Compression("letter merging", 0, "merged", 10, 80, 90.0, 0.25, 1.0)
    assert "| 90.00 | 0.250 | 1.0 |" in page.compress_table(
        records.frame([merged], compress.Compression)
    )


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_every_format_agrees_with_python(monkeypatch):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.setattr(exports, "MAX_TEST_ROWS", 100)
    monkeypatch.setattr(exports, "REPEATS", 1)
    rows = {row.format: row for row in exports.measure("digits", "int8", 300)}
    assert list(rows) == list(exports.FORMATS)
    assert all(rows[name].change < 1e-4 for name in ("ONNX", "C"))
    assert rows["safetensors"].bytes > rows["Python"].bytes
