"""A fixed sample of what `make fuzz` does for longer."""

from __future__ import annotations

import contextlib
import io
import random

import pytest
from bounds import violation
from mutator import Mutator
from targets import TARGETS

# Inputs of each target: some seconds altogether.
SAMPLE = 200


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_files_are_refused_in_bounded_time_and_memory(name, tmp_path):
    target = TARGETS[name]
    rng = random.Random(f"{name} 1")
    mutator, seeds = Mutator(rng, target.words), target.seeds(tmp_path)
    assert seeds
    found = []
    for number in range(SAMPLE):
        content = seeds[number] if number < len(seeds) else None
        if content is None:
            content = mutator.mutated(rng.choice(seeds), rng.choice(seeds))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            broken = violation(lambda content=content: target.run(content, tmp_path), len(content))
        if broken is not None:
            found.append((broken, content[:200]))
    assert not found


@pytest.mark.parametrize("name", TARGETS)
def test_valid_files_are_read(name, tmp_path):
    """Otherwise a sample of changed files would test the first check of a reader only."""
    for content in TARGETS[name].seeds(tmp_path):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            TARGETS[name].run(content, tmp_path)
