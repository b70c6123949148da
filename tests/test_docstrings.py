"""Defaults in docstrings are the defaults of the code."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import nysplus
from nysplus import encoding, kernels, landmarks
from nysplus._ridge.feature_map import APPROXIMATIONS

CLASSES = {
    value
    for module in (nysplus, encoding, kernels, landmarks)
    for value in vars(module).values()
    if inspect.isclass(value)
} | {*APPROXIMATIONS.values()}
DEFAULT = re.compile(r"^(?P<names>\w+(?:, \w+)*) : .*\bdefault=(?P<value>.+)$", re.M)


def documented(cls):
    """Return the defaults of parameters by the docstring of a class, where they are literals."""
    found = {}
    for match in DEFAULT.finditer(inspect.getdoc(cls) or ""):
        for name in match["names"].split(", "):
            try:
                found[name] = ast.literal_eval(match["value"])
            except (SyntaxError, ValueError):
                continue
    return found


@pytest.mark.parametrize("cls", sorted(CLASSES, key=lambda cls: cls.__name__))
def test_documented_defaults_are_those_of_the_signature(cls):
    known = inspect.signature(cls).parameters
    for name, value in documented(cls).items():
        if name in known:
            assert known[name].default == value, name


def test_defaults_are_found():
    assert documented(landmarks.ClassCentroids)["max_iter"] == 6
    assert sum(len(documented(cls)) for cls in CLASSES) > 50
