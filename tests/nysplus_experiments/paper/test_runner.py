from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from nysplus_experiments.harness import datasets, records
from nysplus_experiments.harness.bench import RESULTS
from nysplus_experiments.harness.records import ResultsError
from nysplus_experiments.paper import methods, runner
from nysplus_experiments.paper.experiment import (
    Experiment,
    ExperimentError,
    Grid,
    load_experiment,
    load_profile,
    parse_experiment,
)
from nysplus_experiments.paper.results import Key, Result, read_results
from nysplus_experiments.paper.runner import plan, read_notes, run
from nysplus_experiments.paper.trial import largest, seed_of

SMALL = """
trials = 2
[[run]]
figures = [1]
datasets = ["digits"]
methods = ["Nys", "Nys+"]
sizes = [10, 20]
n_initial = [20, 30]
[[run]]
figures = [2]
datasets = ["digits"]
methods = ["Nys", "Nys+", "RNys+", "KNys"]
sizes = [20]
"""
NOT_REPEATABLE = {
    "first_stage_seconds",
    "final_stage_seconds",
    "predict_seconds",
    "peak_rss_mb",
}


def content(rows: list[Result]) -> list[dict[str, Any]]:
    names = [f.name for f in fields(Result) if f.name not in NOT_REPEATABLE]
    return [{name: getattr(row, name) for name in names} for row in rows]


# -- experiments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smoke", "standard", "paper"])
def test_profiles_are_valid(name: str) -> None:
    experiment = load_profile(name)
    assert experiment.description
    figures = {figure for part in experiment.runs for figure in part.figures}
    assert figures == {1, 2, 3, 4, 5}
    assert all(grid.trials >= 3 for part in experiment.runs for grid in part.grids.values())


def test_the_standard_profile_has_the_sizes_of_the_paper_s_claims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = [replace(row, where="cache") for row in datasets.describe()]
    monkeypatch.setattr(datasets, "describe", lambda: everything)
    tasks = set(plan(load_profile("standard")).tasks)
    for trial in range(5):
        assert Key("cod_rna", "Nys+", 10, 500, trial) in tasks
        assert Key("cod_rna", "Nys+", 20, 500, trial) in tasks
        assert Key("usps", "Nys+", 1000, 1000, trial) in tasks
        assert Key("usps", "Nys+", 1750, 1750, trial) in tasks
        assert Key("letter", "ENys+", 2000, 2000, trial) in tasks
        assert Key("mnist", "Nys+", 2000, 500, trial) in tasks
        assert Key("ijcnn1", "SC", 1250, 1250, trial) in tasks
    assert Key("letter", "KRR", 15000, None, 0) in tasks
    largest = max(task.n for task in tasks if task.dataset == "mnist")
    assert largest == 2000
    paper = set(plan(load_profile("paper")).tasks)
    for other in ("covtype", "times"):
        assert paper > set(plan(load_profile(other)).tasks)
    assert paper > tasks
    trials = {(t.dataset, t.n, t.n_initial): t.trial + 1 for t in sorted(paper)}
    assert trials["mnist", 2000, None] == trials["mnist", 2000, 2000] == 30
    for cell in ((4000, None), (2000, 10000), (10000, 10000)):
        assert trials["mnist", *cell] == 10
    assert trials["covtype", 2100, 2100] == 30
    assert trials["covtype", 4000, 4000] == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('"digits"', '"digit"'),
            r"run 1: 'digit' is none of the datasets. Known names: usps, har",
        ),
        (('"RNys+"', '"R+"'), r"run 2: 'R\+' is none of the methods. Known names: Nys, Nys\+"),
        (("[10, 20]", "[10, 0]"), r"sizes=\[10, 0\] must be a list of positive whole numbers"),
        (("[10, 20]", "[]"), r"sizes=\[\] must be a list"),
        (("[10, 20]", "10"), r"sizes=10 must be a list"),
        (("sizes = [10, 20]", ""), r"run 1: sizes=None must be a list"),
        (("[20, 30]", '"equal"'), r"n_initial='equal' must be \"same\" or a list of positive"),
        (("trials = 2", "trials = 0"), r"trials=0 must be a positive whole number"),
        (("trials = 2", "trials = true"), r"trials=True must be a positive whole number"),
        (("figures = [1]", "figures = [6]"), r"figures=\[6\] is not allowed. .* 1 to 5"),
        (("trials = 2", "repeats = 2"), r"'repeats' is not a known key. Allowed: description, run"),
        (("figures = [1]", "figure = [1]"), r"'figure' is not a known key. Allowed: datasets"),
        (("trials = 2", "trials"), r"is not TOML"),
        (("[[run]]", "[run]"), r"is not TOML|has no \[\[run\]\]"),
        (("figures = [2]", "override.usps.sizes = [5]"), r"'usps' is not a dataset of the run"),
        (
            ("figures = [2]", "override.digits.size = [5]"),
            r"override digits: 'size' is not a known",
        ),
        (("figures = [2]", "override.digits = 5"), r"must be a table of keys and values, got 5"),
        (('"digits"', "[1]"), r"run 1: \[1\] is none of the datasets"),
        (("trials = 2", "trials = 1000000000000"), r"rows, more than 100000\. Lower trials"),
        (("trials = 2", "trials = " + "9" * 5000), r"is not TOML: Exceeds the limit"),
        (("trials = 2", "trials = " + "[" * 1000 + "]" * 1000), "values that are nested too deep"),
        (("trials = 2", "trials = " + "[" * 30 + "]" * 30), r"trials=\[+\.\.\.\]+ must be"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_wrong_descriptions_are_refused(change: tuple[str, str], message: str) -> None:
    assert change[0] in SMALL
    with pytest.raises(ExperimentError, match=message):
        parse_experiment(SMALL.replace(*change))


def test_no_run_an_unknown_profile_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"has no \[\[run\]\]"):
        parse_experiment("trials = 2")
    with pytest.raises(ExperimentError, match=r"Unknown profile 'big'\. Known profiles: smoke"):
        load_profile("big")
    with pytest.raises(ExperimentError, match=r"none\.toml could not be read: No such file"):
        load_experiment(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SMALL.encode("utf-16"), "is not UTF-8: byte 0 is 0xff. Save it as UTF-8 text"),
        (b"description = 'Nystr\xf6m'", "is not UTF-8: byte 20 is 0xf6"),
        (b"trials = " + b"{a=" * 1000, "nested too deep"),
        (b"#" * 70_000, "has more than 65536 bytes"),
        (b"\0", "is not TOML"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_files_that_are_no_experiments_are_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(ExperimentError, match=message) as caught:
        load_experiment(path)
    assert str(caught.value).startswith(str(path))


def test_overrides_apply_to_their_dataset_only() -> None:
    text = """
    [[run]]
    datasets = ["digits", "usps"]
    methods = ["Nys+"]
    sizes = [10, 20]
    [run.override.usps]
    sizes = [30]
    n_initial = [40]
    trials = 7
    """
    grids = parse_experiment(text).runs[0].grids
    assert grids["digits"] == Grid((10, 20), "same", 1)
    assert grids["usps"] == Grid((30,), (40,), 7)


def test_narrowing_keeps_figures_and_datasets() -> None:
    experiment = load_profile("standard").narrow({4}, ["usps", "shuttle"])
    assert [part.figures for part in experiment.runs] == [(4,)]
    assert set(experiment.runs[0].grids) == {"usps", "shuttle"}
    with pytest.raises(ExperimentError, match=r"Nothing is left.*figures \[1, 2, 3, 4, 5\].*usps"):
        load_profile("standard").narrow({4}, ["digits"])


# -- plans ---------------------------------------------------------------------------------------


def test_a_plan_has_each_row_once_and_trial_0_first() -> None:
    tasks = plan(parse_experiment(SMALL)).tasks
    assert len(tasks) == len(set(tasks)) == 16
    assert [task.trial for task in tasks] == [0] * 8 + [1] * 8
    assert tasks[:4] == (
        Key("digits", "Nys", 10, None, 0),
        Key("digits", "Nys", 20, None, 0),
        Key("digits", "Nys+", 10, 20, 0),
        Key("digits", "Nys+", 20, 20, 0),
    )


def test_each_first_stage_is_fitted_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fitted = []
    fit_variant = methods._fit_variant

    def spy(variant: methods.Variant, trial: methods.Trial, n: int) -> methods.Stage:
        if trial.split.name == "digits":  # and not the warm-up
            fitted.append((trial.number, variant, n))
        return fit_variant(variant, trial, n)

    monkeypatch.setattr(methods, "_fit_variant", spy)
    run(parse_experiment(SMALL), tmp_path)
    assert len(fitted) == len(set(fitted)) == 2 * 5  # Nys 10, 20, 30; RNys 20; KNys 20


def test_what_cannot_run_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    monkeypatch.setenv("NYSPLUS_CACHE", str(tmp_path))
    text = """
    [[run]]
    datasets = ["digits", "har"]
    methods = ["Nys", "Nys+"]
    sizes = [20, 1298]
    n_initial = [20, 5000]
    """
    planned = plan(parse_experiment(text))
    assert planned.tasks == (
        Key("digits", "Nys", 20, None, 0),
        Key("digits", "Nys+", 20, 20, 0),
    )
    assert planned.notes == (
        "1298 landmarks are left out on Digits, which has 1297 training rows.",
        "5000 landmarks are left out on Digits, which has 1297 training rows.",
        "HAR is skipped: har.npz is neither in NYSPLUS_DATA nor in the cache. Get it with "
        "`nysplus datasets fetch har` or `nysplus datasets prepare DIR`.",
    )


def test_full_machines_run_once_on_a_fixed_split_and_not_on_large_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = [replace(row, where="cache") for row in datasets.describe()]
    monkeypatch.setattr(datasets, "describe", lambda: everything)
    text = """
    trials = 3
    [[run]]
    datasets = ["usps", "digits", "mnist"]
    methods = ["KRR", "KSVM"]
    """
    planned = plan(parse_experiment(text))
    assert [task for task in planned.tasks if task.method == "KRR"] == [
        Key("usps", "KRR", 7291, None, 0),
        Key("digits", "KRR", 1297, None, 0),
        Key("digits", "KRR", 1297, None, 1),
        Key("digits", "KRR", 1297, None, 2),
    ]
    assert Key("mnist", "KSVM", 60000, None, 0) in planned.tasks
    assert planned.notes[0].startswith("KRR is left out on MNIST: its 60000 training rows exceed")


def test_the_estimate_counts_a_shared_first_stage_once() -> None:
    first = Key("mnist", "Nys", 1000, None, 0)
    second = Key("mnist", "Nys+", 1000, 1000, 0)
    both = sum(runner.estimate_seconds([first, second]))
    alone = sum(sum(runner.estimate_seconds([task])) for task in (first, second))
    assert 5 < both < 0.8 * alone < 60


# -- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return parse_experiment(SMALL)


@pytest.fixture(scope="module")
def finished(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished")
    run(experiment, out)
    return out


def test_rows_are_complete(finished: Path, experiment: Experiment) -> None:
    rows = read_results(finished / "results.csv")
    assert tuple(row.key for row in rows) == plan(experiment).tasks
    for row in rows:
        assert row.ok
        assert row.error == ""
        assert (row.n_train, row.n_test, row.n_features, row.n_outputs) == (1297, 500, 64, 10)
        assert 20 < row.accuracy <= 100
        assert row.paper_bytes == row.n * 74 * 8
        assert row.stored_bytes == row.paper_bytes + 80
        assert (row.first_stage_seconds is None) == (row.n_initial is None)
        assert row.final_stage_seconds > 0
        assert row.predict_seconds > 0
        assert row.machine
        assert row.python.startswith("3.")
    by_key = {row.key: row for row in rows}
    pilot = by_key["digits", "Nys", 20, None, 0]
    final = by_key["digits", "Nys+", 10, 20, 0]
    assert final.first_stage_seconds == pilot.final_stage_seconds
    assert final.seed == pilot.seed == seed_of("digits", 0, 20)


def test_the_largest_peak_of_those_known() -> None:
    assert largest(None, 3.0, 2.0) == 3.0
    assert largest(None, None) is None


@pytest.mark.parametrize("n_rows", [0, 1, 7, 15])
def test_a_run_resumes_after_a_torn_line(
    n_rows: int, finished: Path, experiment: Experiment, tmp_path: Path
) -> None:
    lines = (finished / "results.csv").read_bytes().splitlines(keepends=True)
    torn = lines[1 + n_rows][: len(lines[1 + n_rows]) // 2]
    (tmp_path / "results.csv").write_bytes(b"".join(lines[: 1 + n_rows]) + torn)
    assert len(read_results(tmp_path / "results.csv")) == n_rows
    resumed = run(experiment, tmp_path)
    assert content(resumed) == content(read_results(finished / "results.csv"))
    assert (tmp_path / "results.csv").read_bytes().count(b"\n") == len(lines)


def test_a_finished_run_fits_nothing(
    finished: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "fit_method", None)
    before = (finished / "results.csv").read_bytes()
    steps: list[runner.Step] = []
    run(experiment, finished, steps.append)
    assert (finished / "results.csv").read_bytes() == before
    assert steps == [runner.Step(None, 16, 16, 0, 1.0, 0.0)]


def test_a_failing_row_is_a_row_and_is_tried_again(
    experiment: Experiment, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str, *arguments: Any) -> methods.Fitted:
        if name == "RNys+":
            raise MemoryError("too\nmuch, really")
        return methods.fit_method(name, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "fit_method", failing)
        steps: list[runner.Step] = []
        rows = run(experiment, tmp_path, steps.append)
    failed = [row for row in rows if not row.ok]
    assert [row.method for row in failed] == ["RNys+", "RNys+"]
    assert failed[0].error == "MemoryError: too much, really"
    assert failed[0].accuracy is None
    assert failed[0].seed == seed_of("digits", 0, 20)
    assert steps[-1].failed == 2
    assert len(rows) == 16
    again = run(experiment, tmp_path)
    expected = {row.key: row.accuracy for row in read_results(finished / "results.csv")}
    assert {row.key: row.accuracy for row in again} == expected


def test_data_that_cannot_be_read_make_error_rows(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits.npz").write_bytes(b"not an archive")
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    rows = run(experiment, tmp_path / "out")
    assert len(rows) == 16
    assert all("DatasetError" in row.error and "digits.npz" in row.error for row in rows)


def test_steps_count_down(experiment: Experiment, tmp_path: Path) -> None:
    steps: list[runner.Step] = []
    run(experiment, tmp_path, steps.append)
    assert [step.done for step in steps] == list(range(17))
    assert [step.fraction for step in steps] == sorted(step.fraction for step in steps)
    assert steps[0].task == plan(experiment).tasks[0]
    assert steps[0].seconds_left > steps[-1].seconds_left == 0


def test_rows_are_chosen_batch_by_batch(
    experiment: Experiment, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    tasks = plan(experiment).tasks

    def choose(left: Sequence[Key], results: list[Result]) -> list[tuple[Key, ...]]:
        """Ask for KNys, then for RNys+, which fails, then for nothing."""
        seen.append((len(left), len(results)))
        done = {row.key for row in results if row.ok}
        wanted = [tuple(t for t in left if t.method == name) for name in ("KNys", "RNys+")]
        return [batch for batch in wanted if batch and not done.issuperset(batch)]

    def failing(name: str, *arguments: Any) -> methods.Fitted:
        if name == "RNys+":
            raise MemoryError
        return methods.fit_method(name, *arguments)

    monkeypatch.setattr(runner, "fit_method", failing)
    steps: list[runner.Step] = []
    rows = run(experiment, tmp_path, steps.append, choose=choose)
    assert [row.method for row in rows] == ["KNys"] * 2 + ["RNys+"] * 2
    assert seen == [(len(tasks), 0), (len(tasks), 2), (len(tasks) - 2, 4)]
    assert [(step.done, step.total) for step in steps] == [(i, 4) for i in range(5)]


def test_seconds_are_left_out_on_request(
    experiment: Experiment, finished: Path, tmp_path: Path
) -> None:
    rows = run(experiment, tmp_path, times=False)
    assert content(rows) == content(read_results(finished / "results.csv"))
    for row in rows:
        seconds = (row.first_stage_seconds, row.final_stage_seconds, row.predict_seconds)
        assert seconds == (None, None, None)


def test_no_row_is_begun_after_the_limit(experiment: Experiment, tmp_path: Path) -> None:
    steps: list[runner.Step] = []
    assert run(experiment, tmp_path, steps.append, limit=0.0) == []
    (last,) = steps
    assert (last.task, last.done, last.total, last.fraction) == (None, 0, 16, 0.0)
    assert last.seconds_left > 0


def test_notes_are_kept_over_runs(experiment: Experiment, tmp_path: Path) -> None:
    run(experiment, tmp_path)
    run(experiment, tmp_path)  # loads nothing, so that the deviations come from the first run
    assert read_notes(tmp_path) == list(datasets.load("digits").deviations)
    assert read_notes(tmp_path / "elsewhere") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.json", "results.csv"]


# -- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"\xff", b"[" * 5000, b"[]", b"{", b'{"left_out": 1}'])
def test_damaged_notes_are_refused(experiment: Experiment, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.json").write_bytes(content)
    with pytest.raises(ResultsError, match=r"notes\.json .* Move "):
        run(experiment, tmp_path)
    assert (tmp_path / "notes.json").read_bytes() == content


def test_columns_stay_as_they_are() -> None:
    names = ",".join(field.name for field in fields(Result))
    assert names.startswith("dataset,method,n,n_initial,trial,seed,status,error,accuracy,first_")
    assert names.endswith("n_outputs,python,numpy,scipy,sklearn,nysplus,machine")


def test_the_committed_results_load() -> None:
    path = RESULTS / "paper" / "results.csv"
    if not path.is_file():
        pytest.skip("an installed package has no results")
    rows = read_results(path)
    assert len(rows) >= 1374
    assert all(row.ok for row in rows)


def test_of_two_rows_with_one_key_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    records.begin(path, Result, None)
    failed = Result("usps", "Nys", 10, None, 0, 7, "error", error="no")
    for row in (failed, replace(failed, trial=1), replace(failed, status="ok", error="")):
        records.append(path, row)
    assert [(row.trial, row.status) for row in read_results(path)] == [(1, "error"), (0, "ok")]
