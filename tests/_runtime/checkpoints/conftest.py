"""Let the test files of this folder import the helpers beside them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import sklearn

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Passes of several blocks, and no waiting for the disk after each of them."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    with sklearn.config_context(working_memory=0.1):
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"
