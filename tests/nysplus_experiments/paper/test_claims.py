"""Claims are judged from intervals of paired differences, on results made up for each case."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.statistics import Estimate, estimate
from nysplus_experiments.paper import evidence as measure
from nysplus_experiments.paper.claims import VERDICTS, evaluate, summary
from nysplus_experiments.paper.evidence import At, NotTestable
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.rules import (
    SOME_RANGE,
    WIDE_RANGE,
    Better,
    Between,
    Evidence,
    NoGain,
    judge,
    trials_to_exclude,
)
from nysplus_experiments.paper.runs import Curve, Runs

PLUS, PLAIN = Curve("Nys+"), Curve("Nys")


def rows(dataset, method, n, accuracies, n_initial=None, d=8, outputs=1, **extra):
    """Return one result a trial; trials are numbered from 0, and a None is a failed one."""
    return [
        Result(
            dataset=dataset,
            method=method,
            n=n,
            n_initial=n_initial,
            trial=trial,
            seed=trial,
            status="ok" if value is not None else "error",
            error="" if value is not None else "MemoryError",
            accuracy=value,
            paper_bytes=n * (d + outputs) * 8,
            **extra,
        )
        for trial, value in enumerate(accuracies)
    ]


def claim(results, text, subject):
    found = [c for c in evaluate(results) if text in c.text and c.subject == subject]
    assert len(found) == 1
    return found[0]


def evidence(low, high, cells=(), trials=5):
    return Evidence(Estimate((low + high) / 2, low, high, trials), tuple(cells), "")


# -- estimates -----------------------------------------------------------------------------------


def test_estimate_is_students_interval():
    values = [93.1, 94.0, 92.7, 93.6]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    found = estimate(values)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.trials == 4


def test_one_trial_has_no_interval():
    found = estimate([93.0])
    assert found.mean == 93.0
    assert math.isnan(found.low)
    assert not found.has_interval


def test_differences_pair_equal_trials_only():
    results = [
        *rows("letter", "Nys+", 10, [90.0, 95.0, 80.0], n_initial=10),
        *rows("letter", "Nys", 10, [89.0, None, 78.0]),
    ]
    gaps = Runs(results).differences("letter", PLUS, PLAIN)[10]
    assert gaps.dropna().to_dict() == {0: 1.0, 2: 2.0}


def test_differences_change_sign_when_swapped():
    results = [
        *rows("usps", "KRR", 7291, [95.0]),
        *rows("usps", "Nys", 10, [90.0, 91.0]),
    ]
    runs, full = Runs(results), Curve("KRR")
    assert runs.differences("usps", PLAIN, full).to_dict() == {10: {0: -5.0, 1: -4.0}}
    assert runs.differences("usps", full, PLAIN).to_dict() == {10: {0: 5.0, 1: 4.0}}


def test_one_full_machine_stands_for_all_trials_of_a_fixed_split_only():
    for dataset, trials in (("usps", {0, 1, 2}), ("digits", {0})):
        results = [*rows(dataset, "KRR", 100, [95.0]), *rows(dataset, "Nys", 10, [90, 91, 92])]
        gaps = Runs(results).differences(dataset, PLAIN, Curve("KRR"))[10]
        assert set(gaps.dropna().index) == trials


def test_the_last_of_two_equal_runs_counts():
    results = [*rows("letter", "Nys", 10, [90.0]), *rows("letter", "Nys", 10, [91.0])]
    assert Runs(results).table("letter", PLAIN).to_dict() == {10: {0: 91.0}}


def test_curves_choose_n_initial():
    results = [
        *rows("letter", "Nys+", 10, [1.0], n_initial=10),
        *rows("letter", "Nys+", 10, [2.0], n_initial=500),
        *rows("letter", "Nys+", 20, [3.0], n_initial=500),
        *rows("letter", "Nys+", 20, [4.0], n_initial=20),
    ]
    runs = Runs(results)
    assert runs.table("letter", Curve("Nys+")).to_dict() == {10: {0: 1.0}, 20: {0: 4.0}}
    assert runs.table("letter", Curve("Nys+", 500)).to_dict() == {10: {0: 2.0}, 20: {0: 3.0}}
    assert runs.table("letter", Curve("Nys+", "largest")).to_dict() == {10: {0: 2.0}, 20: {0: 3.0}}
    assert runs.fixed_n_initials("letter") == [500]


def test_sizes_that_are_being_run_are_left_out():
    results = [
        *rows("letter", "Nys", 10, [90.0] * 5),
        *rows("letter", "Nys", 20, [91.0] * 4),
        *rows("letter", "Nys", 30, [None, *[92.0] * 4]),  # failed, not unfinished
        *rows("letter", "KRR", 15000, [95.0]),
        *rows("usps", "Nys", 20, [91.0] * 4),
    ]
    runs = Runs(results)
    assert list(runs.table("letter", PLAIN)) == [10, 30]
    assert list(runs.table("usps", PLAIN)) == [20]
    assert runs.methods("letter") == ["Nys", "KRR"]


# -- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "size", "verdict", "smaller"),
    [
        (0.1, 0.3, None, "held", False),
        (-0.3, -0.1, None, "not held", False),
        (-0.1, 0.1, None, "undecided", False),
        (0.3, 0.6, 0.44, "held", False),
        (0.5, 0.6, 0.44, "held", False),
        (0.1, 0.3, 0.44, "not held", True),
        (-0.1, 0.3, 0.44, "not held", False),
        (-0.1, 0.5, 0.44, "undecided", False),
        (-0.5, -0.1, 0.44, "not held", False),
        (0.1, 0.436, 0.44, "held", False),  # the paper rounds to two decimals
    ],
)
def test_better(low, high, size, verdict, smaller):
    found = judge(Better(size), evidence(low, high))
    assert (found.verdict, found.smaller) == (verdict, smaller)


@pytest.mark.parametrize(
    ("rule", "intervals"),
    [
        (Between(high=0.12), {"held": (0.0, 0.1), "not held": (0.2, 0.3), "undecided": (0.0, 0.3)}),
        (Between(low=1.5), {"held": (1.6, 2.0), "not held": (1.0, 1.2), "undecided": (1.2, 1.8)}),
        (NoGain(), {"held": (-0.2, 0.05), "not held": (0.01, 0.05), "undecided": (-0.1, 0.2)}),
        (Between(0.5, 2), {"held": (0.9, 1.1), "not held": (2.1, 3.0), "undecided": (1.5, 2.5)}),
    ],
)
def test_other_rules(rule, intervals):
    for verdict, (low, high) in intervals.items():
        assert judge(rule, evidence(low, high)).verdict == verdict


def test_ranges_count_cells():
    up, down, flat = (Estimate(m, m - 0.1, m + 0.1, 5) for m in (1.0, -1.0, 0.0))
    cases = [
        ([up, up, flat, flat, flat], "undecided", "held"),
        ([up, up, up, down, flat], "held", "held"),
        ([up, up, up, down, down], "not held", "held"),
        ([up, down, down, down, flat], "not held", "not held"),
    ]
    for cells, wide, some in cases:
        assert judge(WIDE_RANGE, evidence(0, 1, cells)).verdict == wide
        assert judge(SOME_RANGE, evidence(0, 1, cells)).verdict == some


@pytest.mark.parametrize("bound", [0.0, 0.35, 0.6])
def test_the_trials_that_exclude_a_bound(bound):
    values = [0.9, -0.2, 0.4, 0.1, 0.3]
    mean, deviation = np.mean(values), np.std(values, ddof=1)

    def excludes(n):
        low, high = stats.t.interval(0.95, n - 1, mean, deviation / np.sqrt(n))
        return not low <= bound <= high

    needed = trials_to_exclude(estimate(values), bound)
    assert needed > 5
    assert excludes(int(needed))
    assert not excludes(int(needed) - 1)


def test_a_mean_on_the_bound_is_never_excluded():
    assert trials_to_exclude(estimate([-1.0, 1.0]), 0.0) == math.inf
    assert trials_to_exclude(estimate([1.0, 1.0]), 0.0) == 2


def spread_of(mean, n=5):
    """Return an estimate of which the interval's half width is one."""
    return Estimate(mean, mean - 1.0, mean + 1.0, n)


@pytest.mark.parametrize(
    ("rule", "mean", "bound"),
    [
        (Better(), 0.5, 0.0),
        (Better(), -0.5, 0.0),
        (Better(0.9), 0.5, 0.0),  # zero is farther from the mean than the claimed size
        (Better(0.9), 0.2, 0.895),
        (NoGain(), -0.3, 0.1),
        (NoGain(), 0.3, 0.0),
        (Between(low=0.0, high=2.0), 1.6, 2.0),  # inside: the nearer bound comes last
        (Between(low=0.0), -0.4, 0.0),
    ],
)
def test_a_rule_asks_for_the_trials_of_its_bound(rule, mean, bound):
    found = Evidence(spread_of(mean), (), "")
    assert judge(rule, found).verdict == "undecided"
    assert rule.trials_needed(found) == trials_to_exclude(spread_of(mean), bound)


def test_ratios_are_extrapolated_as_logs():
    ratio = spread_of(math.log(1.4)).map(math.exp)
    found = Evidence(ratio, (), "", unit="times")
    expected = trials_to_exclude(spread_of(math.log(1.4)), math.log(1.5))
    assert Between(low=1.5).trials_needed(found) == expected


def test_a_range_needs_the_trials_of_its_last_cell():
    means = [2.0, 0.5, 0.4, 0.1]  # one is clear, a second one makes half of them
    cells = tuple(spread_of(mean) for mean in means)
    found = Evidence(spread_of(0.75), cells, "")
    assert judge(WIDE_RANGE, found).verdict == "undecided"
    assert WIDE_RANGE.trials_needed(found) == trials_to_exclude(cells[1], 0.0)
    reverse = Evidence(spread_of(-0.75), tuple(spread_of(-mean) for mean in means[1:]), "")
    assert WIDE_RANGE.trials_needed(reverse) == trials_to_exclude(cells[1], 0.0)
    nothing = Evidence(spread_of(0.0), (spread_of(0.0),), "")
    assert WIDE_RANGE.trials_needed(nothing) == math.inf


def test_the_outlook_of_undecided_claims():
    found = judge(Better(), Evidence(spread_of(0.5), (), ""))
    needed = trials_to_exclude(spread_of(0.5), 0.0)
    assert found.outlook == f"About {needed:.0f} trials would decide it."
    assert judge(Better(), Evidence(spread_of(1.5), (), "")).outlook == ""
    small = Estimate(0.0, -0.09, 0.09, 30)
    assert judge(Better(), Evidence(small, (), "")).outlook == (
        "10,000 trials would not decide it. A mean difference of 0.1 points is excluded."
    )
    assert "excluded" not in judge(Better(), Evidence(small, (), "", unit="%")).outlook
    far = judge(Better(), Evidence(spread_of(0.071), (), "")).outlook
    assert far.removeprefix("About ").split()[0] == "500"  # two digits are known at best


# -- measures ------------------------------------------------------------------------------------


def test_sizes_may_have_more_trials_than_all_have_in_common():
    results = [
        row
        for method, gain in (("Nys+", 1.0), ("Nys", 0.0))
        for n, trials in ((10, 7), (20, 5))
        for row in rows("letter", method, n, [90.0 + gain] * trials, 10 if gain else None)
    ]
    found = measure.gap(Runs(results), "letter", Curve("Nys+", 10), PLAIN)
    assert [cell.trials for cell in found.cells] == [7, 5]
    assert found.total.trials == 5
    assert found.text.endswith("; 5 to 7 trials")


def test_sizes_within_three_percent_count_as_run():
    gaps, kb = pd.DataFrame({1250: [1.0], 2000: [3.0]}), {1250: 410.2, 2000: 656.3}
    assert At(kb=406).choose(gaps, kb) == [1250]
    assert At(kb=500).choose(gaps, kb) == []
    assert At(n=2000).choose(gaps, kb) == [2000]
    assert At(above_kb=400).choose(gaps, kb) == [1250, 2000]
    assert At(largest_gain=True).choose(gaps, kb) == [2000]


def test_saving_to_a_full_machine():
    results = rows("usps", "KSVM", 7291, [94.0])
    for n, plus, plain in ((100, 90, 89), (200, 94, 92), (400, 95, 94)):
        results += rows("usps", "Nys+", n, [plus, plus + 0.1], n_initial=n)
        results += rows("usps", "Nys", n, [plain, plain + 0.1])
    found = measure.saving_to_full(Runs(results), "usps", PLUS, PLAIN, "KSVM")
    assert found.total.mean == pytest.approx(50.0)
    assert "n = 200 against 400" in found.text


def test_stage_ratio_is_geometric():
    results = [
        *rows("letter", "Nys+", 10, [90.0, 90.0], 10, first_stage_seconds=1, final_stage_seconds=4),
        *rows("letter", "Nys+", 20, [91.0, 91.0], 20, first_stage_seconds=4, final_stage_seconds=1),
    ]
    found = measure.stage_ratio(Runs(results), "letter", (PLUS,))
    assert found.total.mean == pytest.approx(1.0)


def test_equal_time_interpolates_in_log_time():
    results = [
        *rows("letter", "Nys", 10, [80.0, 80.0], final_stage_seconds=1.0),
        *rows("letter", "Nys", 20, [90.0, 90.0], final_stage_seconds=100.0),
        *rows("letter", "KNys", 10, [84.0, 84.0], final_stage_seconds=10.0),
        *rows("letter", "KNys", 5, [70.0, 70.0], final_stage_seconds=0.1),
    ]
    found = measure.gap_at_equal_time(Runs(results), "letter", PLAIN, Curve("KNys"))
    assert len(found.cells) == 1
    assert found.total.mean == pytest.approx(85.0 - 84.0)


def test_rows_without_seconds_leave_claims_about_times_alone():
    timed = [
        *rows("letter", "Nys", 10, [80.0, 80.0], final_stage_seconds=1.0),
        *rows("letter", "Nys", 20, [90.0, 90.0], final_stage_seconds=100.0),
        *rows("letter", "KNys", 10, [84.0, 84.2], final_stage_seconds=10.0),
    ]
    more = [
        *rows("letter", "Nys", 10, [None, None, 70.0]),
        *rows("letter", "KNys", 10, [None, None, 60.0]),
        *rows("letter", "KNys", 20, [99.0, 99.0, 99.0]),
    ]
    curves = (PLAIN, Curve("KNys"))
    for measured in (measure.gap_at_equal_time, measure.time_ratio):
        with_times = measured(Runs(timed), "letter", *curves)
        assert measured(Runs([*timed, *(r for r in more if r.ok)]), "letter", *curves) == with_times


def test_the_best_rival_is_compared():
    results = [
        *rows("letter", "KNys", 10, [90.0, 90.2]),
        *rows("letter", "Nys", 10, [88.0, 88.4]),
        *rows("letter", "ENys", 10, [91.0, 91.4]),
    ]
    others = (PLAIN, Curve("ENys"))
    found = measure.lead_over_best(Runs(results), "letter", Curve("KNys"), others, At())
    assert found.total.mean == pytest.approx(-1.1)
    assert "ENys" in found.text


def test_nobody_is_the_best_of_methods_that_were_not_run():
    results = [*rows("letter", "KNys", 10, [90.0, 90.2]), *rows("letter", "Nys", 10, [88.0, 88.4])]
    best, missing = Curve("KNys"), Curve("RNys")
    with pytest.raises(NotTestable, match="no results of RNys"):
        measure.lead_over_best(Runs(results), "letter", best, (PLAIN, missing), At())
    results += rows("letter", "RNys", 20, [99.0, 99.0])
    with pytest.raises(NotTestable, match="not run with all methods"):
        measure.lead_over_best(Runs(results), "letter", best, (PLAIN, missing), At())


def test_growth_compares_the_ends_of_the_range():
    results = []
    for n, gain in ((10, 9.0), (3000, 0.1), (5000, 0.3)):
        results += rows("covtype", "SC", n, [90.0 + gain, 91.0 + gain], n, d=54, outputs=7)
        results += rows("covtype", "Nys", n, [90.0, 91.0], d=54, outputs=7)
    found = measure.growth(Runs(results), "covtype", Curve("SC"), PLAIN, above_kb=1000)
    assert found.total.mean == pytest.approx(0.2)
    with pytest.raises(NotTestable, match="two sizes"):
        measure.growth(Runs(results), "covtype", Curve("SC"), PLAIN, above_kb=2000)


def test_gain_of_gains_subtracts_the_mean_of_the_others():
    results = []
    for method, plain, plus in (("Nys", 90.0, 91.0), ("ENys", 89.0, 89.2), ("RNys", 88.0, 88.4)):
        results += rows("cod_rna", method, 10, [plain, plain + 1])
        results += rows("cod_rna", method + "+", 10, [plus, plus + 1], n_initial=10)
    pairs = [(Curve(name + "+"), Curve(name)) for name in ("Nys", "ENys", "RNys")]
    found = measure.gain_of_gains(Runs(results), "cod_rna", pairs[0], pairs[1:])
    assert found.total.mean == pytest.approx(1.0 - 0.3)


def test_levels_report_the_highest_mean():
    results = [*rows("ijcnn1", "Nys", 10, [98.0, 98.2]), *rows("ijcnn1", "Nys", 20, [99.2, 99.4])]
    found = measure.level(Runs(results), "ijcnn1", (PLAIN, Curve("KNys")), threshold=99.0)
    assert found.total.mean == pytest.approx(99.3)
    assert [cell.mean > 0 for cell in found.cells] == [False, True]


def test_saving_to_saturation_counts_from_the_best_end():
    results = []
    for n, plus, plain in ((10, 90.0, 80.0), (20, 96.0, 90.0), (40, 96.0, 96.0)):
        results += rows("cod_rna", "Nys+", n, [plus, plus + 0.1], n_initial=n)
        results += rows("cod_rna", "Nys", n, [plain, plain + 0.1])
    found = measure.saving_to_saturation(Runs(results), "cod_rna", PLUS, (PLAIN,))
    assert found.total.mean == pytest.approx(50.0)


def test_time_ratio_compares_equal_sizes():
    results = [
        *rows("covtype", "KNys", 10, [80.0, 80.0], final_stage_seconds=3.0),
        *rows("covtype", "Nys", 10, [80.0, 80.0], final_stage_seconds=1.0),
        *rows("covtype", "Nys", 20, [80.0, 80.0], final_stage_seconds=9.0),
    ]
    found = measure.time_ratio(Runs(results), "covtype", Curve("KNys"), PLAIN)
    assert found.total.mean == pytest.approx(3.0)
    assert len(found.cells) == 1


def test_what_is_missing_is_named():
    runs = Runs(rows("letter", "Nys", 10, [90.0]))
    with pytest.raises(NotTestable, match="no results on USPS"):
        measure.gap(runs, "usps", PLUS, PLAIN, At())
    with pytest.raises(NotTestable, match=r"no results of Nys\+"):
        measure.gap(runs, "letter", PLUS, PLAIN, At())


# -- claims --------------------------------------------------------------------------------------

RNA = "far ahead of standard"


def cod_rna(plus, plain):
    return [
        *rows("cod_rna", "Nys+", 10, plus, n_initial=500),
        *rows("cod_rna", "Nys", 10, plain),
    ]


@pytest.mark.parametrize(
    ("plus", "plain", "verdict"),
    [
        ([93.4, 93.5, 93.3], [84.1, 84.3, 83.9], "held"),
        ([93.4, 93.5, 93.3], [91.1, 91.3, 90.9], "not held"),
        ([93.4, 93.5, 93.3], [94.1, 94.3, 93.9], "not held"),
        ([93.4, 93.5, 93.3], [70.0, 95.0, 88.0], "undecided"),
        ([93.4], [84.1], "undecided"),
    ],
)
def test_cod_rna_at_ten_landmarks(plus, plain, verdict):
    found = claim(cod_rna(plus, plain), RNA, "COD-RNA, n = 10")
    assert found.verdict == verdict
    assert found.paper == "93.4 against 84.1 (+9.3)"
    assert found.estimate is not None
    assert found.estimate.trials == len(plus)


def test_a_claim_needs_its_own_n_initial_and_size():
    results = [
        *rows("cod_rna", "Nys+", 10, [93.4, 93.5], n_initial=10),
        *rows("cod_rna", "Nys", 10, [84.0, 84.1]),
    ]
    assert claim(results, RNA, "COD-RNA, n = 10").verdict == "not testable here"
    found = claim(cod_rna([93.4, 93.5], [84.0, 84.1]), RNA, "COD-RNA, n = 20")
    assert found.verdict == "not testable here"
    assert "n = 20" in found.reason
    assert "n = 10" in found.measured  # what there is, nevertheless


def test_model_size_is_the_papers():
    results = []
    for method, n_initial, base in (
        ("Nys+", 1000, 95.1),
        ("Nys", None, 94.6),
        ("KNys", None, 94.7),
    ):
        values = [base, base + 0.1, base + 0.05]
        results += rows("usps", method, 1000, values, n_initial, d=256, outputs=10)
    found = claim(results, "best supervised variant", "USPS, Nys+ − Nys")
    assert found.verdict == "held"
    assert found.paper == "+0.44 at 2078 kB"


def test_har_and_buzz_become_testable_with_results():
    text = "for all but a few sizes"
    assert claim([], text, "HAR").verdict == "not testable here"
    results = []
    for n in (100, 200):
        results += rows("har", "Nys+", n, [95.0, 95.1, 95.2], n_initial=n)
        results += rows("har", "Nys", n, [94.0, 94.1, 94.2])
    assert claim(results, text, "HAR").verdict == "held"


def test_every_claim_has_a_row_whatever_the_results():
    without = evaluate([])
    some = evaluate(cod_rna([93.4, 93.5], [84.0, 84.1]))
    assert [(c.text, c.subject) for c in without] == [(c.text, c.subject) for c in some]
    assert len({(c.where, c.text, c.subject) for c in without}) == len(without)
    assert {c.verdict for c in without} == {"not testable here"}
    assert {c.verdict for c in some} <= set(VERDICTS)
    assert {c.dataset for c in without} == {"", *DATASETS} - {"digits"}


def test_failed_runs_are_no_evidence():
    results = cod_rna([93.4, None], [84.1, 84.2])
    found = claim(results, RNA, "COD-RNA, n = 10")
    assert found.estimate is not None
    assert found.estimate.trials == 1


def test_summary_counts_verdicts():
    assert "None of the" in summary(evaluate([]))
    claims = evaluate(cod_rna([93.4, 93.5, 93.3], [91.1, 91.3, 90.9]))
    words = summary(claims)
    held = sum(c.verdict == "held" for c in claims)
    assert f"{held} held" in words
    assert "3 trials" in words
    assert "COD-RNA" in words
    assert "claimed sign but a smaller size" in words
