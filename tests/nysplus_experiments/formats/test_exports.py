"""The page on formats says what the committed measurements say, and leaves no format out.

The page's Python blocks are run with those of all documents, in test_readme.py.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nysplus.export

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "formats.md"

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")


@pytest.fixture
def formats_page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("formats_page")


@pytest.fixture
def made(formats_page):
    """Two datasets, two types and three formats, with numbers that are easy to divide."""

    def row(dataset, storage, name, *numbers):
        return formats_page.Export(dataset, storage, name, 20, 4, 3, *numbers, 98.765, 1)

    return [
        row("digits", "float32", "Python", 4096, 1.0, 100.0, 0.0),
        row("digits", "float32", "safetensors", 5120, None, None, None),
        row("digits", "float32", "C", 4096, 12.0, 12.0, 2e-5),
        row("digits", "int8", "Python", 1024, 1.5, 80.0, 0.0),
        row("digits", "int8", "safetensors", 2048, None, None, None),
        row("digits", "int8", "C", 1024, 18.0, 18.0, 3.4e-5),
        row("usps", "float32", "Python", 8192, 2.0, 100.0, 0.0),
        row("usps", "float32", "safetensors", 8192 + 512, None, None, None),
        row("usps", "float32", "C", 8192, 20.0, 20.0, 0.0),
    ]


def test_the_page_is_made_from_the_measurements(tmp_path):
    script = ROOT / "benchmarks" / "formats_page.py"
    subprocess.run([sys.executable, script, "--docs", tmp_path], check=True, capture_output=True)
    assert os.listdir(tmp_path) == ["formats.md"]
    assert (tmp_path / "formats.md").read_text() == PAGE.read_text()


def test_the_page_names_every_way_out():
    text = PAGE.read_text()
    for name in (*nysplus.export.__all__, "load", "save", "compress", "from_svc"):
        assert f"{name}(" in text


def test_a_line_has_both_types_side_by_side(formats_page, made):
    header, _, *lines = formats_page.exports_table(made)
    assert header.startswith("| data | format | kB: float32 | kB: int8 | µs a row, all at once: fl")
    assert lines == [
        "| digits | Python | 4.0 | 1.0 | 1.0 | 1.5 | 100 | 80 | 0 |",
        "| digits | safetensors | 5.0 | 2.0 | – | – | – | – | – |",
        "| digits | C | 4.0 | 1.0 | 12 | 18 | 12 | 18 | 3e-05 |",
        "| USPS | Python | 8.0 | – | 2.0 | – | 100 | – | 0 |",
        "| USPS | safetensors | 8.5 | – | – | – | – | – | – |",
        "| USPS | C | 8.0 | – | 20 | – | 20 | – | 0 |",
    ]


def test_ratios_are_over_the_datasets(formats_page, made):
    C, python = ("C", "float32"), ("Python", "float32")
    assert formats_page.times(made, "batch_us", C, python) == "10.0 to 12.0"
    assert formats_page.times(made, "bytes", C, python) == "1.0"
    assert formats_page.times(made[:6], "single_us", ("C", "int8"), C) == "1.5"


def test_what_comes_on_top_of_the_numbers(formats_page, made):
    assert formats_page.more_kilobytes(made, "safetensors") == "0.5 to 1.0"
    assert formats_page.more_kilobytes(made, "C") == "0.0"


def test_noise_is_the_largest_ratio_of_the_same_work(formats_page, made):
    assert formats_page.noise(made) == "1.5"  # 1.0 and 1.5; 100 and 80 are closer


def test_accuracies_are_those_of_the_models(formats_page, made):
    assert formats_page.accuracies(made[:6]) == "digits 98.77 % in float32, 98.77 % in int8"
