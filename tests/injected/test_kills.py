"""Processes that are killed at random moments lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nysplus

SOURCE = Path(nysplus.__file__).parent.parent
PROGRAM = Path(__file__).with_name("kills.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]


def _kill(scene, kills):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), scene, "--kills", str(kills)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{scene}: {kills} kills (")


# A run of the paper's experiments that is killed is among the tests of the commands.
@pytest.mark.parametrize(("scene", "kills"), [("save", 3), ("fit", 2)])
def test_some_moments(scene, kills):
    _kill(scene, kills)


@pytest.mark.all_combinations
@pytest.mark.parametrize("scene", ["save", "fit", "reproduce"])
def test_fifty_moments(scene):
    _kill(scene, 50)
