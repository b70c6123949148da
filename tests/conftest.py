from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits, make_moons

# `make test` runs the same few examples of every property each time; `make test-all` runs
# `--hypothesis-profile=thorough`.
settings.register_profile("sample", max_examples=10, derandomize=True, deadline=None, database=None)
settings.register_profile("thorough", max_examples=150, deadline=None, print_blob=True)
settings.load_profile("sample")


# Tests with a long setup run first: at the end, one worker would wait for the other.
FIRST = (
    "tests/test_site.py",
    "tests/_rows/on_dask/",
    "tests/_runtime/checkpoints/test_going_on.py",
    "tests/cli/test_page.py",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def _make_importable(name):
    """Make a file beside this one importable by its name from every test file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_make_importable("exported")
_make_importable("extended")
_make_importable("reference")
_make_importable("factories")
_make_importable("forged")
_make_importable("sampling")
_make_importable("table_views")
_make_importable("full_disk")
_make_importable("browser")
_make_importable("web_models")


@pytest.fixture(scope="session")
def digits():
    """Scaled digits, 1797 × 64, ten classes."""
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="session")
def moons():
    """Two classes that a line cannot part, 300 × 2."""
    return make_moons(300, noise=0.2, random_state=0)


@pytest.fixture
def rng():
    return np.random.RandomState(0)
