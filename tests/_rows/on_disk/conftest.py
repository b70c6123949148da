"""Let the test files of this folder import the helpers beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nysplus._rows.on_disk import ChunkRules, using_chunk_rules

sys.path.insert(0, str(Path(__file__).parent))

from row_stores import CHUNK  # the line above makes it importable


@pytest.fixture(autouse=True)
def _small_chunks():
    """Many chunks of few rows, so that sums over chunks are sums over several."""
    with using_chunk_rules(ChunkRules(max_rows=CHUNK)):
        yield
