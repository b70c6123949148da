from __future__ import annotations

import pytest

from nysplus_experiments.harness import tables
from nysplus_experiments.harness.statistics import estimate, median_range


def test_numbers_as_text() -> None:
    assert tables.spread([]) == tables.percent(float("nan")) == tables.size(float("inf")) == "–"
    assert tables.spread([2.0]) == "2.0"
    assert tables.spread([1.0, 10.0, 2.0]) == "2.0 [1.0, 10]"
    assert tables.percent(98.765) == "98.77"
    assert tables.short(0) == "0"


def test_intervals_as_text() -> None:
    wide, small = estimate([1.0, 2.0, 3.0]), estimate([0.01, 0.012])
    assert tables.interval(wide) == "2.00 [-0.48, 4.48]"
    assert tables.interval(wide, 1, sign=True, unit="%") == "+2.0 % [-0.5, +4.5]"
    assert tables.interval(estimate([2.0])) == "2.00"
    assert tables.interval(small).startswith("0.011 [")


def test_tables_in_markdown() -> None:
    pandas = pytest.importorskip("pandas")
    text = "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |"
    assert tables.markdown(("a", "b"), [("x", "1"), ("y", "2")]) == text
    frame = pandas.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    assert tables.frame_markdown(frame) == text
    assert tables.frame_markdown(frame.set_index("a"), index=True) == text


def test_no_values() -> None:
    with pytest.raises(ValueError, match="no value"):
        estimate([])
    assert all(x != x for x in median_range([]))
