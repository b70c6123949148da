"""Knots, scales and levels of the codes of columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Ramps,
    TableCode,
)
from nysplus.encoding.fitting import DAY, WEEK, YEAR, CodeRules, fit_code
from nysplus.encoding.schema import TableColumn, TableSchema


def schema_of(*columns):
    return TableSchema(len(columns), None, tuple(columns))


def number(position=0, gaps=False):
    return TableColumn(position, f"column {position}", "number", gaps=gaps)


def category(levels, gaps=False):
    return TableColumn(0, "column 0", "category", tuple(levels), gaps=gaps)


def term_of(x, numbers, n_bins=8, rules=None):
    """Return the only term of a column of numbers."""
    raw = np.asarray(x, dtype=float)[:, None]
    (term,) = fit_code(raw, schema_of(number()), numbers, n_bins, rules=rules or CodeRules()).terms
    return term


def test_knots_are_quantiles(rng):
    x = rng.randn(500)
    term = term_of(np.r_[x, np.nan], "thermometer")
    assert isinstance(term, Ramps)
    expected = np.quantile(x, np.linspace(0, 1, 9))
    bins = np.diff(expected)
    assert (np.abs(term.knots - expected)[:-1] <= bins / 32).all()
    assert (np.abs(term.knots - expected)[1:] <= bins / 32).all()
    # gaps are at the median, and the ends of the thermometer √12 apart
    assert term.gap == 4
    ends = term.of(np.array([x.min() - 1, x.max() + 1]))
    assert np.isclose(((ends[0] - ends[1]) ** 2).sum(), np.sqrt(12))


def test_repeated_numbers_have_one_knot():
    term = term_of([0.0] * 90 + [1.0, 2.0, 3.0, 4.0] * 3, "thermometer")
    assert term.knots[0] == 0.0
    assert (np.diff(term.knots.astype(float)) > 0).all()
    assert term.n_columns < 8
    assert np.isclose(term.n_columns * term.height**2, np.sqrt(12))


def test_a_number_that_most_rows_have_takes_few_knots(rng):
    x = np.r_[np.zeros(900), 1 + rng.rand(100)]
    term = term_of(x, "thermometer", 16)
    assert term.knots[0] == 0.0
    assert term.n_columns > 8
    assert (term.knots[1:] >= 1).all()


@pytest.mark.parametrize("numbers", ["thermometer", "rank_gauss", "standard"])
def test_two_numbers(numbers):
    code = term_of([3.0, 5.0] * 20, numbers).of(np.array([3.0, 5.0]))
    assert (code[0] < code[1]).all()


@pytest.mark.parametrize("numbers", ["thermometer", "rank_gauss", "standard"])
def test_a_sample_that_does_not_vary_has_no_code(numbers):
    raw = np.array([[2.0, 0.0], [2.0, 1.0], [np.nan, 2.0]])
    code = fit_code(raw, schema_of(number(0, gaps=True), number(1)), numbers, 4)
    assert [type(term) for term in code.terms if term.column == 0] == [Missing]
    raw[:, 0] = np.nan
    assert fit_code(raw, schema_of(number(0), number(1)), numbers, 4).groups.min() == 1


def test_columns_without_any_code():
    with pytest.raises(ValueError, match=r"\['column 0'\] of X vary by less than 1e-300.* vary\."):
        fit_code(np.array([[0.0], [5e-324]]), schema_of(number()), "thermometer", 8)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 5.0, 1e4, 1e12])
def test_standard_numbers(rng, offset, unit):
    """Mean and scale may be rounded by a hundredth, wherever the numbers are."""
    x = unit * (offset + np.exp(rng.randn(200)))
    raw = np.r_[x, np.nan, np.nan][:, None]
    term, flag = fit_code(raw, schema_of(number(gaps=True)), "standard", 8).terms
    assert isinstance(term, Linear)
    assert isinstance(flag, Missing)
    code = term.of(x)
    assert abs(code.mean()) <= 0.0101
    assert abs(code.std() - 1) <= 0.0101
    assert np.isclose(term.of(np.array([np.nan]))[0, 0], np.median(code), atol=0.0201)


def test_standard_numbers_have_the_smallest_type_that_keeps_their_scale(rng):
    x = 5 + rng.randn(200)
    assert [term_of(unit * x, "standard").n_bytes for unit in (1.0, 1e9)] == [4, 8]
    assert term_of(1000 + x, "standard").n_bytes == 4 + 2
    rules = CodeRules(scaling_error=0.0)
    assert term_of(x, "standard", rules=rules).n_bytes == 8


def test_gaps_of_a_column_that_had_none_are_its_mean(rng):
    term = term_of(5 + np.exp(rng.randn(200)), "standard")
    assert term.of(np.array([np.nan]))[0, 0] == 0.0


def test_rank_gauss_is_the_normal_score_of_ranks(rng):
    x = np.exp(2 * rng.randn(2000))
    term = term_of(x, "rank_gauss")
    assert isinstance(term, Curve)
    inner = np.quantile(x, np.linspace(0, 1, 17)[1:-1])
    expected = norm.ppf(np.linspace(0, 1, 17)[1:-1])
    np.testing.assert_allclose(term.of(inner)[:, 0], expected, atol=0.02)
    assert spearmanr(x, term.of(x)[:, 0]).statistic > 0.999
    assert np.isclose(term.of(np.array([np.nan]))[0, 0], 0, atol=1e-3)


def test_many_numbers_share_the_columns(rng):
    raw = rng.randn(100, 30)
    schema = schema_of(*(number(i) for i in range(30)))
    assert fit_code(raw, schema, "thermometer", 16).n_columns == 30 * 16
    assert fit_code(raw, schema, "thermometer", 64).n_columns == 30 * (800 // 30)
    rules = CodeRules(max_columns=60)
    assert fit_code(raw, schema, "thermometer", 16, rules=rules).n_columns == 30 * rules.min_bins


@pytest.mark.parametrize(
    ("offset", "dtype"), [(0.0, np.float16), (1000.0, np.float32), (2.0**40, np.float64)]
)
def test_knots_have_the_smallest_type_that_keeps_them_apart(rng, offset, dtype):
    term = term_of(offset + rng.rand(300), "thermometer")
    assert term.knots.dtype == dtype
    assert len(np.unique(term.knots)) == 9


def test_large_and_small_numbers_keep_their_order():
    x = np.array([1e150, -1e150, 1e-300, 0.0, 5e-324, 1e100] * 5)
    ordered = np.array([-1e150, 0.0, 5e-324, 1e-300, 1e100, 1e150])
    for numbers in ("thermometer", "rank_gauss", "standard"):
        code = TableCode(1, (term_of(x, numbers),))(ordered[:, None], np.float64).sum(axis=1)
        assert np.isfinite(code).all()
        assert (np.diff(code) >= 0).all()
        assert code[0] < code[1] < code[-1]


def test_differences_without_digits_are_none():
    raw = np.column_stack([[0.0, 5e-324] * 20, np.random.RandomState(0).randn(40)])
    for numbers in ("thermometer", "rank_gauss", "standard"):
        assert set(fit_code(raw, schema_of(number(0), number(1)), numbers, 8).groups) == {1}
    raw[:, 0] = 9e-301 * (np.arange(40) % 5)
    assert set(fit_code(raw, schema_of(number(0), number(1)), "thermometer", 8).groups) == {1}


def test_levels_have_columns():
    raw = np.array([[0.0], [1.0], [2.0], [np.nan]])
    for gaps in (False, True):
        (term,) = fit_code(raw, schema_of(category("abc", gaps)), "standard", 4).terms
        assert isinstance(term, OneHot)
        assert (term.n_levels, term.gaps) == (3, gaps)
    levels = [f"level {i}" for i in range(50)]
    (term,) = fit_code(raw, schema_of(category(levels)), "standard", 4).terms
    assert term.n_levels == 32


def test_two_levels_have_one_column_between_which_others_are():
    (term,) = fit_code(np.zeros((1, 1)), schema_of(category("ab")), "standard", 4).terms
    assert isinstance(term, Lookup)
    code = term.of(np.array([0.0, 1.0, -1.0, np.nan]))[:, 0]
    assert np.isclose((code[0] - code[1]) ** 2, 2, rtol=1e-3)  # as between two columns
    np.testing.assert_array_equal(code[2:], 0)
    assert code[0] == -code[1]


def test_lookups_take_the_place_of_columns():
    lookup = Lookup(0, np.zeros((5, 1), np.float16))
    code = fit_code(np.zeros((1, 1)), schema_of(category("abc")), "standard", 4, [lookup])
    assert code.terms == (lookup,)


def dates(*stamps):
    return np.array(stamps, dtype="datetime64[s]").astype(float)


@pytest.mark.parametrize(
    ("stamps", "periods"),
    [
        (["2020-01-01", "2020-01-08"], {WEEK}),
        (["2020-01-01", "2020-07-01"], {WEEK, YEAR}),
        (["2020-01-01T03:00", "2020-01-01T09:00"], {DAY}),
        (["2020-01-01T03:00", "2022-01-04T09:00"], {DAY, WEEK, YEAR}),
    ],
)
def test_dates_have_the_circles_in_which_they_vary(stamps, periods):
    column = TableColumn(0, "column 0", "date", gaps=True)
    code = fit_code(np.r_[dates(*stamps), np.nan][:, None], schema_of(column), "thermometer", 4)
    assert isinstance(code.terms[0], Ramps)
    assert isinstance(code.terms[-1], Missing)
    assert {term.period for term in code.terms if isinstance(term, Circle)} == periods


def test_circles_meet_after_a_period():
    column = TableColumn(0, "column 0", "date")
    raw = dates("2020-01-01T03:00", "2022-01-04T09:00")[:, None]
    code = fit_code(raw, schema_of(column), "thermometer", 4)
    by_period = {term.period: term for term in code.terms if isinstance(term, Circle)}
    monday, next_monday, noon = dates("2024-01-01", "2024-01-08", "2024-01-01T12:00")
    week, day = by_period[WEEK], by_period[DAY]
    np.testing.assert_allclose(week.of(np.array([monday, next_monday])), [[1, 0]] * 2, atol=1e-6)
    np.testing.assert_allclose(day.of(np.array([monday, noon])), [[1, 0], [-1, 0]], atol=1e-6)
    year = by_period[YEAR].of(dates("1999-03-01", "2031-03-01"))
    np.testing.assert_allclose(year[0], year[1], atol=0.03)
