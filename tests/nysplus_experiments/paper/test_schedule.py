"""Rows are chosen for undecided claims, on results made up for each case."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nysplus_experiments.paper.results import Key, Result
from nysplus_experiments.paper.schedule import Batch, undecided

RNA = "far ahead of standard"
TRIALS = 8
#: Differences at n = 10 that contradict the paper, agree with it, or do neither.
REVERSED, HELD, OPEN = [-1.0, -1.1, -1.2], [9.3, 9.4, 9.2], [9.0, -3.0, 4.0]


def tasks_of(dataset: str, cells: list[tuple[str, int, int | None]]) -> list[Key]:
    return [Key(dataset, *cell, trial) for trial in range(TRIALS) for cell in cells]


COD_RNA = tasks_of(
    "cod_rna",
    [
        *(("Nys", n, None) for n in (10, 20)),
        *(("Nys+", n, 500) for n in (10, 20)),
        ("Fourier", 10, None),
    ],
)


def results_of(tasks: list[Key], gains: list[float], trials: int) -> list[Result]:
    """Return results in which Nys+ is ahead by one gain after the other, trial by trial."""
    return [
        Result(
            *task,
            seed=0,
            status="ok",
            accuracy=80.0 + (gains[task.trial % len(gains)] if task.method == "Nys+" else 0.0),
            paper_bytes=72 * task.n,
        )
        for task in tasks
        if task.trial < trials
    ]


def batch_of(batches: list[Batch], text: str, subject: str) -> Batch | None:
    found = [b for b in batches if text in b.claim.text and b.claim.subject == subject]
    assert len(found) <= 1
    return found[0] if found else None


def cells_of(batch: Batch | None) -> set[tuple[str, int, int | None]]:
    return {task[1:4] for task in batch.tasks} if batch else set()


def trials_of(batch: Batch | None) -> list[int]:
    return sorted({task.trial for task in batch.tasks}) if batch else []


def test_five_trials_of_the_cells_of_a_claim_come_first() -> None:
    batch = batch_of(undecided(COD_RNA, []), RNA, "COD-RNA, n = 10")
    assert cells_of(batch) == {("Nys", 10, None), ("Nys+", 10, 500)}
    assert trials_of(batch) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("gains", [HELD, REVERSED])
def test_a_claim_that_five_trials_decide_gets_no_more(gains: list[float]) -> None:
    batches = undecided(COD_RNA, results_of(COD_RNA, gains, trials=5))
    assert batch_of(batches, RNA, "COD-RNA, n = 10") is None


def test_an_undecided_claim_gets_all_other_trials() -> None:
    batches = undecided(COD_RNA, results_of(COD_RNA, OPEN, trials=5))
    batch = batch_of(batches, RNA, "COD-RNA, n = 10")
    assert cells_of(batch) == {("Nys", 10, None), ("Nys+", 10, 500)}
    assert trials_of(batch) == [5, 6, 7]


def test_a_claim_is_not_judged_between_five_trials_and_all() -> None:
    results = results_of(COD_RNA, [9.0, -1.0, 5.0, 9.0, -1.0, 9.3, 9.3], trials=7)
    batch = batch_of(undecided(COD_RNA, results), RNA, "COD-RNA, n = 10")
    assert batch is not None
    assert batch.claim.verdict == "held"
    assert trials_of(batch) == [7]


def test_a_claim_that_more_trials_made_undecided_is_filled() -> None:
    results = results_of(COD_RNA, HELD, trials=5)
    results += [row for row in results_of(COD_RNA, [-90.0], trials=7) if row.trial >= 5]
    batch = batch_of(undecided(COD_RNA, results), RNA, "COD-RNA, n = 10")
    assert batch is not None
    assert batch.claim.verdict == "undecided"
    assert trials_of(batch) == [7]


def test_nothing_is_left_when_all_trials_are_there() -> None:
    assert undecided(COD_RNA, results_of(COD_RNA, OPEN, trials=TRIALS)) == []


def test_failed_rows_are_fitted_again() -> None:
    rows = results_of(COD_RNA, OPEN, trials=TRIALS)
    failed = rows[0].key
    rows[0] = Result(*failed, seed=0, status="error", error="MemoryError")
    batches = undecided(COD_RNA, rows)
    assert batches
    assert all(batch.tasks == (failed,) for batch in batches)


def test_the_cheapest_claim_comes_first() -> None:
    batches = undecided(COD_RNA, [])
    seconds = [batch.seconds for batch in batches]
    assert len(batches) > 2
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]
    assert {task.n for task in batches[0].tasks} == {10}


def test_sizes_come_from_the_claim() -> None:
    cells = [(m, n, n_0) for n in (500, 1000, 1250) for m, n_0 in (("Nys", None), ("Nys+", n))]
    usps = tasks_of("usps", [*cells, ("KRR", 7291, None)])
    batches = undecided(usps, [])
    at_size = batch_of(batches, "best supervised variant", "USPS, Nys+ − Nys")
    assert cells_of(at_size) == {("Nys", 1000, None), ("Nys+", 1000, 1000)}
    everywhere = batch_of(batches, "Support vector selection improves", "USPS, Nys+ − Nys")
    assert cells_of(everywhere) == set(cells)
    full = batch_of(batches, "than full kernel ridge", "USPS, n = 1250")
    assert cells_of(full) == {("Nys+", 1250, 1250), ("KRR", 7291, None)}
    assert batch_of(batches, "best of all seven", "USPS, Nys+") is None  # not in the experiment


def test_the_largest_gain_needs_all_sizes() -> None:
    cells = [(m, n, n_0) for n in (500, 1000) for m, n_0 in (("Nys", None), ("Nys+", 500))]
    mnist = tasks_of("mnist", cells)
    batch = batch_of(undecided(mnist, []), "small first stage already", "MNIST, n_0 = 500")
    assert cells_of(batch) == set(cells)


def test_sizes_that_are_compared_get_the_trials_that_all_of_them_have() -> None:
    sizes = {2100: TRIALS, 4000: 6}
    cells = {n: [("Nys", n, None), ("SC", n, n)] for n in sizes}
    covtype = [
        task for n in sizes for task in tasks_of("covtype", cells[n]) if task.trial < sizes[n]
    ]
    results = results_of(covtype, [0.0], trials=5)
    growth = batch_of(undecided(covtype, results), "grows with the model", "CovType, against Nys")
    assert trials_of(growth) == [5]
    assert cells_of(growth) == {*cells[2100], *cells[4000]}
    by_size = batch_of(undecided(covtype, results), "a wide range", "CovType, against Nys")
    assert trials_of(by_size) == [5, 6, 7]


def test_claims_about_times_are_left_to_a_quiet_machine() -> None:
    cells = [(m, n, None) for n in (100, 300) for m in ("Nys", "KNys")]
    batches = undecided(tasks_of("ijcnn1", cells), [])
    assert [batch.claim.text for batch in batches] == [
        "The baselines are above 99 % for the most part."
    ]


def test_two_looks_at_a_difference_of_zero() -> None:
    """A claim is judged on five trials and on thirty: docs/results/paper.md has the share."""
    draws = np.random.default_rng(0).normal(size=(20_000, 30))
    found = np.zeros(len(draws), dtype=bool)
    for n in (5, 30):
        half = stats.t.ppf(0.975, n - 1) * draws[:, :n].std(axis=1, ddof=1) / np.sqrt(n)
        found |= np.abs(draws[:, :n].mean(axis=1)) > half
    assert found.mean() == pytest.approx(0.09, abs=0.008)
