"""The page of benchmarks says what the committed measurements say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
def test_the_page_is_made_from_the_measurements(tmp_path):
    script = ROOT / "benchmarks" / "benchmark_page.py"
    subprocess.run([sys.executable, script, "--docs", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "benchmarks.md").read_text() == PAGE.read_text()
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert figures <= {path.name for path in (PAGE.parent / "figures").iterdir()}
