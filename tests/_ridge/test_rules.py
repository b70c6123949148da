"""The page on numerics states the numbers of the rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nysplus._ridge.feature_map import MAX_NOISE
from nysplus._ridge.rules import DEFAULT_RULES

PAGE = Path(__file__).parents[2] / "docs" / "background" / "numerics.md"
NUMBER = r"([\d.,]+(?:e[+-]?\d+)?)"
STATED = {
    "tolerance": rf"to a relative gap of {NUMBER},",
    "safety": rf"If {NUMBER} times the ",
    "max_float32_gap": rf"\+ α\) ≤ {NUMBER}`",
    "max_gram_error": rf"expected error is at most {NUMBER} s_min",
    "fine_tolerance": rf"stop when it is below {NUMBER} of the objective",
    "max_correction": rf"above {NUMBER} of the objective the solver fails",
    "sketch_ratio": r"until (\d+)n rows remain",
    "typical_iterations": rf"in about {NUMBER} iterations",
    "validation_rows": rf"or on {NUMBER} rows drawn uniformly",
}


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
@pytest.mark.parametrize("name", STATED)
def test_the_page_states_the_rule(name):
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    (stated,) = re.findall(STATED[name], text)
    assert float(stated.replace(",", "")) == getattr(DEFAULT_RULES, name)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
def test_the_page_states_the_noise_of_features():
    (stated,) = re.findall(rf"in float32 if `δ < {NUMBER}`", PAGE.read_text(encoding="utf-8"))
    assert float(stated) == MAX_NOISE
