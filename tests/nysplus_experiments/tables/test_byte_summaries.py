"""The benchmark of bytes: what is compared, ranks, fronts, margins, the page and a second run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import RESULTS, BenchOptions
from nysplus_experiments.harness.raw_tables import PAPER_SETS, TABLES
from nysplus_experiments.tables import again, comparison, fits, page, summaries
from nysplus_experiments.tables.systems import all_systems

SIZES = list(fits.SIZES)
BOOSTING = list(comparison.BOOSTING)


def _fit(table, system, size, seed, score, n_bytes=None, **columns):
    limit = fits.SIZES[size] or 10**6
    row = fits.TableFit(
        *(table, system, size, seed, score, score, None, int(n_bytes or limit)),
        *(2.0, 0.1, 5.0, 5000, 1000, 10, 3, "", "library 1"),
    )
    return replace(row, **columns)


def _bench(scores, **columns):
    """Return the benchmark of ``{(table, system): scores}``, one score a size or one for all."""
    rows = []
    for (table, system), own in scores.items():
        for size, score in zip(SIZES, own if isinstance(own, list) else [own] * 6, strict=True):
            rows.append(_fit(table, system, size, 0, score, **columns))
    return comparison.Benchmark.of(_frame(rows))


def _frame(rows):
    found = records.frame(rows, fits.TableFit)
    return found.astype(dict.fromkeys(["score", "log_loss", "bytes", "fit_mb"], float))


def _lines(table):
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


# -- what is compared ----------------------------------------------------------------------------


def test_an_unfinished_run_compares_systems_with_nine_tenths_of_the_tables():
    names = fits.BENCHMARK[:10]
    scores = {(t, s): 90.0 for t in names for s in ("nysplus", "constant")}
    scores |= {(t, "tree"): 90.0 for t in names[:9]}
    scores |= {(t, "lightgbm"): 91.0 for t in names[:8]} | {("segment", "tree"): 80.0}
    bench = _bench(scores)
    assert "segment" not in names
    assert bench.tables == names[:9]
    assert bench.systems == ("nysplus", "constant", "tree")
    rows = [_fit("churn", s, size, 0, 90.0) for s in ("nysplus", "constant") for size in SIZES]
    rows += [_fit("banana", "nysplus", size, 0, 90.0) for size in SIZES[:-1]]
    assert comparison.Benchmark.of(_frame(rows)).tables == ("churn",)


def test_seeds_are_those_that_all_systems_have():
    rows = [
        _fit("churn", system, size, seed, 80.0 + 10 * seed)
        for system, seeds in (("nysplus", (0, 1)), ("constant", (0, 1, 2)), ("tree", (0,)))
        for seed in seeds
        for size in SIZES
    ]
    bench = comparison.Benchmark.of(_frame(rows))
    assert set(bench.fits["seed"]) == {0}
    assert bench.wide("4 kB").loc["churn", "nysplus"] == 80.0
    assert "1 of 5 splits of 1 table, 18 fits" in summaries.state(bench)


def test_a_size_without_a_model_counts_as_the_constant():
    scores = {("churn", "nysplus"): 90.0, ("churn", "constant"): 70.0}
    bench = _bench(scores | {("churn", "tree"): [None, 85.0, 85.0, 85.0, 85.0, 85.0]})
    assert bench.wide("0.25 kB").loc["churn", "tree"] == 70.0
    assert not bench.wide("0.25 kB", "model").loc["churn", "tree"]
    line = {line[0]: line for line in _lines(summaries.at_size(bench, "0.25 kB"))}
    assert line["decision tree"][-1] == "1"
    assert line["nysplus"][-1] == "0"


def test_design_tables_are_among_the_tables():
    assert len(set(comparison.DESIGN)) == len(comparison.DESIGN) == 25
    assert set(comparison.DESIGN) <= set(fits.BENCHMARK)
    assert set(fits.BENCHMARK) == (set(TABLES) | set(PAPER_SETS)) - {"a9a"}


# -- ranks, fronts and margins -------------------------------------------------------------------


def test_ranks_and_the_critical_difference():
    scores = {
        ("churn", "nysplus"): 90.0, ("churn", "tree"): 80.0, ("churn", "linear"): 80.0,
        ("abalone", "nysplus"): 0.5, ("abalone", "tree"): 0.6, ("abalone", "linear"): 0.4,
    }  # fmt: skip
    scores |= {("churn", "constant"): 50.0, ("abalone", "constant"): 1.0}
    found = comparison.ranks(_bench(scores), "4 kB")
    assert found.loc["churn"].to_dict() == {"nysplus": 1.0, "tree": 2.5, "linear": 2.5}
    assert found.loc["abalone"].to_dict() == {"nysplus": 2.0, "tree": 3.0, "linear": 1.0}
    # Demšar (2006), table 5: q of 0.05 is 1.960 for two and 2.728 for five classifiers.
    assert comparison.critical_difference(2, 100) == pytest.approx(1.960 * 0.1, rel=1e-3)
    assert comparison.critical_difference(5, 100) == pytest.approx(2.728 * 5**0.5 / 10, rel=1e-3)


def test_the_front_has_models_that_nothing_beats_in_bytes_and_score():
    ours = [80.0, 85.0, 84.0, 90.0, 90.0, 90.0]
    tree = [79.0, 86.0, 86.0, 86.0, 86.0, 91.0]
    scores = {("churn", "nysplus"): ours, ("churn", "tree"): tree, ("churn", "constant"): 95.0}
    found = comparison.front(_bench(scores), "churn")
    assert list(found.index) == [
        ("0.25 kB", "nysplus"), ("1 kB", "tree"), ("16 kB", "nysplus"), ("unlimited", "tree"),
    ]  # fmt: skip
    shares = {line[0]: line[1:3] for line in _lines(summaries.fronts(_bench(scores)))}
    assert shares == {"nysplus": ["100 %", "50 %"], "decision tree": ["100 %", "50 %"]}


def test_wins_and_losses_leave_small_differences_aside():
    assert [comparison.better(a, 90.0, False) for a in (90.3, 90.1, 89.9, 89.7)] == [1, 0, 0, -1]
    assert [comparison.better(a, 1.0, True) for a in (0.98, 0.995, 1.005, 1.02)] == [1, 0, 0, -1]
    scores = {("churn", "nysplus"): 90.0, ("churn", "tree"): 90.1, ("churn", "constant"): 50.0}
    scores |= {("car", "nysplus"): 90.0, ("car", "tree"): 91.0, ("car", "constant"): 50.0}
    scores |= {("churn", "linear"): 80.0, ("car", "linear"): 80.0}
    bench = _bench(scores)
    assert comparison.outcomes(bench, "1 kB", "tree").to_dict() == {"car": -1, "churn": 0}
    found = comparison.not_behind(bench, "1 kB")
    assert found["tree"].to_dict() == {"car": False, "churn": True}
    lines = _lines(summaries.unbeaten_cells(bench))
    every = [(*line[1:4], *set(line[4:])) for line in lines]
    both = [("any", "any other system", "50 %"), ("any", "one other, mean", "75 %")]
    assert every[:4] == [(ours, *line) for ours in summaries.OUR_MODELS for line in both]
    assert {line[1:] for line in every[4:6]} == {
        ("clear", "any other system", "–"),  # one split has no interval
        ("clear", "one other, mean", "–"),
    }
    assert [line[3] for line in every[6:10]] == ["0 %", "50 %"] * 2  # churn is a design table
    lost = _lines(summaries.losses(bench))
    assert lost[0] == [
        "0.25 kB",
        "car",
        "90.00",
        "decision tree",
        "91.00",
        "−1.00 points",
        "−1.00 points",
    ]


def test_a_lead_is_clear_if_its_interval_lies_beyond_a_tie():
    def bench(table, ours, tree):
        rows = [
            _fit(table, system, size, seed, score)
            for system, scores in (("nysplus", ours), ("tree", tree), ("constant", (50, 50, 50)))
            for seed, score in enumerate(scores)
            for size in SIZES
        ]
        return comparison.Benchmark.of(_frame(rows))

    for table, ours, tree, not_behind in (
        ("churn", (80, 85, 90), (81.0, 86.1, 90.9), False),  # +1.0 in every split
        ("churn", (80, 85, 90), (80.3, 85.3, 90.2), True),  # more than a tie, but not clearly
        ("churn", (80, 85, 90), (83, 84, 91), True),
        ("abalone", (0.6, 0.8, 1.0), (0.57, 0.77, 0.95), False),
        ("abalone", (0.6, 0.8, 1.0), (0.5, 0.9, 0.9), True),
        ("abalone", (0.57, 0.77, 0.95), (0.6, 0.8, 1.0), True),
    ):
        found = comparison.not_clearly_behind(bench(table, ours, tree), "4 kB")
        assert found.loc[table].to_dict() == {"tree": not_behind}


def test_our_front_has_the_best_model_up_to_a_size():
    scores = {("car", "nysplus"): [70.0, 92.0, 90.0, 91.0, 93.0, 80.0], ("car", "constant"): 50.0}
    scores |= {("abalone", "nysplus"): [0.7, 0.6, 0.65, 0.5, 0.55, 0.4]}
    scores |= {("abalone", "constant"): 1.0, ("car", "tree"): 91.0, ("abalone", "tree"): 0.61}
    bench = _bench(scores)
    fronts = pd.DataFrame({size: comparison.own_front(bench, size) for size in SIZES})
    assert fronts.loc["car"].to_list() == [70.0, 92.0, 92.0, 92.0, 93.0, 93.0]
    assert fronts.loc["abalone"].to_list() == [0.7, 0.6, 0.6, 0.5, 0.5, 0.4]
    assert not comparison.not_behind(bench, "4 kB")["tree"].any()
    assert comparison.not_behind(bench, "4 kB", fronts["4 kB"])["tree"].all()


def test_margins_over_defaults():
    scores = {("churn", "nysplus"): 91.0, ("abalone", "nysplus"): 0.4}
    scores |= {("churn", "constant"): 50.0, ("abalone", "constant"): 1.0}
    for system, accuracy, error in zip(BOOSTING, (90.0, 93.0, 89.0), (0.5, 0.8, 0.25), strict=True):
        scores |= {("churn", system): [60.0] * 5 + [accuracy]}
        scores |= {("abalone", system): [0.9] * 5 + [error]}
    lines = {tuple(line[:3]): line for line in _lines(summaries.against_defaults(_bench(scores)))}
    first = lines["LightGBM, defaults", "4 kB", "all"]
    assert first[3:] == ["2", "+1.00", "+1.00", "+1.00 (churn *)", "1, 0, 0",
                         "0.800", "0.800", "0.800 (abalone *)", "1, 0, 0"]  # fmt: skip
    best = lines["best of three, defaults", "64 kB", "all"]
    assert (best[4], best[8]) == ("−2.00", "1.600")
    assert lines["LightGBM, defaults", "4 kB", "others"][3:5] == ["0", "–"]
    text = summaries.headline(_bench(scores))
    assert "**64 kB against LightGBM, defaults**: +1.00 points" in text


def test_normalised_scores_are_shares_of_the_best_gain():
    scores = {("churn", "nysplus"): [40.0, 75.0] + [90.0] * 4, ("churn", "constant"): 50.0}
    bench = _bench(scores | {("churn", "tree"): 70.0})
    found = comparison.normalised(bench)["nysplus"]
    values = [found["churn", size] for size in SIZES]
    assert values == pytest.approx([0.0, 25 / 40, 1.0, 1.0, 1.0, 1.0])


def test_log_losses_leave_out_systems_with_few_models_of_a_size():
    tables, rows = ("banana", "adult", "churn"), []
    losses = {"nysplus": [0.1, 0.2, 0.6], "linear": [0.3, 0.4, None], "tree": [None, None, 0.5]}
    for i, table in enumerate(tables):
        for name in ("constant", *losses):
            for size in SIZES:
                loss = losses.get(name, [0.7] * 3)[i] if size == "1 kB" else 0.5
                score = None if loss is None else 80.0
                rows.append(_fit(table, name, size, 0, score, log_loss=loss))
    bench = comparison.Benchmark.of(_frame(rows))
    assert bench.with_models("1 kB") == ["nysplus", "linear"]
    assert bench.with_models("4 kB") == ["nysplus", "linear", "tree"]
    found = {line[0]: line[2] for line in _lines(summaries.log_losses(bench))}
    assert (found["nysplus"], found["logistic / ridge regression"]) == ("0.150", "0.350")
    assert (found["decision tree"], found["*tables*"]) == ("–", "2")


# -- the page ------------------------------------------------------------------------------------


def _invent(folder, systems, tables, seeds=2):
    rng = np.random.default_rng(0)
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    for system in systems:
        path = folder / "tables" / fits.file_of(system)
        records.begin(path, fits.TableFit, known | {"threads": 1})
        for table in tables:
            low, high = (0.2, 0.4) if TABLES[table].regression else (80, 90)
            for size in SIZES:
                for seed in range(seeds):
                    score = rng.uniform(low, high) if system != "constant" else 2 * low
                    loss = None if TABLES[table].regression else 0.3
                    row = _fit(table, system, size, seed, score, log_loss=loss)
                    records.append(path, row)


@pytest.mark.parametrize("systems", [tuple(all_systems()), ("nysplus", "constant", "linear")])
def test_the_page_of_all_systems_and_of_an_unfinished_run(systems, tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, systems, ("banana", "adult", "abalone", "fried"))
    parts = page.parts(tmp_path)
    for name, text in parts.items():
        assert not {"nan", "None", "<NA>"} & set(text.replace("|", " ").split()), name
    assert len(_lines(parts["classes-1-kb"])) == len(_lines(parts["numbers-16-kb"])) == 2
    assert len(_lines(parts["at-64-kb"])) == len(systems) - 1
    assert len(_lines(parts["coverage"])) == len(all_systems())
    page.draw(tmp_path, tmp_path)
    assert [p.name for p in (tmp_path / "results" / "figures").iterdir()] == ["tables.png"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no results")
def test_no_committed_model_exceeds_its_size():
    found = comparison.read(RESULTS)
    limits = found["size"].map(fits.SIZES)
    assert (found["bytes"].fillna(0) <= limits.fillna(np.inf).astype(float)).all()
    assert not found.duplicated(again.KEY).any()


# -- a second run --------------------------------------------------------------------------------


def test_a_tenth_of_the_fits_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, ("nysplus", "constant"), ("banana", "abalone"))
    found = comparison.read(tmp_path)
    none, some = found.iloc[:0], found.iloc[::20]
    keys = again.drawn(found, none, 0, 0.1)
    assert len(keys) == 5 == len(set(keys))
    assert keys == again.drawn(found.sample(frac=1.0, random_state=1), none, 0, 0.1)
    assert keys != again.drawn(found, none, 1, 0.1)
    assert set(keys) <= set(found[again.KEY].itertuples(index=False, name=None))
    # what was made again before counts, and is not drawn once more
    assert len(some) == 3
    more = again.drawn(found, some, 0, 0.5)
    assert len(more) == 21
    assert set(more).isdisjoint(some[again.KEY].itertuples(index=False, name=None))
    assert again.drawn(found, some, 0, 0.05) == []


def test_systems_that_are_not_installed_are_not_fitted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, ("nysplus", "tree"), ("banana",))
    known = again.all_systems()
    absent = {"tree": replace(known["tree"], library="no_such_library")}
    monkeypatch.setattr(again, "all_systems", lambda: known | absent)
    asked = []

    def measure(self, file, row_class, tasks, *_, **__):
        asked.extend(tasks)

    monkeypatch.setattr(BenchOptions, "measure", measure)
    again.run(BenchOptions("tables", tmp_path, extra={"share": "1"}))
    assert {system for _, system, _, _ in asked} == {"nysplus"}


def test_some_of_the_drawn_systems_are_fitted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, ("nysplus", "linear", "tree"), ("banana", "churn"))
    asked = []
    monkeypatch.setattr(
        BenchOptions, "measure", lambda self, file, row, tasks, *_, **__: asked.append(tasks)
    )
    for systems in ({}, {"systems": "tree,linear"}):
        again.run(BenchOptions("tables", tmp_path, extra={"share": "0.5"} | systems))
    drawn, some = asked
    assert some == [cell for cell in drawn if cell[1] != "nysplus"] != drawn


def test_a_second_run_is_compared_with_the_first(tmp_path):
    first = [_fit("churn", "nysplus", "4 kB", seed, 90.0) for seed in range(4)]
    second = [first[0], replace(first[1], score=91.0), replace(first[2], score=95.0)]
    second += [replace(first[3], score=None, bytes=None)]
    nothing = _fit("churn", "nysplus", "1 kB", 0, None, bytes=None)
    first, second = [*first, nothing], [*second, nothing]
    for file, rows in ((fits.file_of("nysplus"), first), (again.FILE, second)):
        path = tmp_path / "tables" / file
        records.begin(path, fits.TableFit, None)
        for row in rows:
            records.append(path, row)
    both = again.read(tmp_path)
    assert both["interval"].iloc[0] == pytest.approx(196 * np.sqrt(0.09 / 1000))
    # of five fits one is equal, one more is within 1.86 points, one has no model any more, and one
    # has none in both runs
    line = _lines(again.summary(both))[-1]
    assert line == ["all", "5", "1", "1", "1", "2", "5.00", "+2.00 [−4.57, +8.57]"]
