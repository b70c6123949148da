from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
import types
from dataclasses import fields, replace
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from typer.testing import CliRunner

import nysplus
from nysplus_experiments import cli
from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import DatasetNotFound
from nysplus_experiments.paper.experiment import parse_experiment
from nysplus_experiments.paper.methods import METHODS
from nysplus_experiments.paper.results import Result, read_results
from nysplus_experiments.paper.runner import run

pytestmark = pytest.mark.slow

EXPERIMENT = """
trials = 2
[[run]]
figures = [1, 2, 3]
datasets = ["digits"]
methods = ["Nys", "Nys+", "ENys", "ENys+", "RNys", "RNys+", "KNys"]
sizes = [20, 50, 150]
[[run]]
figures = [1, 4, 5]
datasets = ["digits"]
methods = ["Nys", "Nys+", "Fourier", "KRR", "KSVM", "KNys", "KNys+", "SC"]
sizes = [20, 50]
n_initial = [50]
"""
TIMES_AND_MEMORY = {
    "first_stage_seconds",
    "final_stage_seconds",
    "predict_seconds",
    "peak_rss_mb",
}


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def heed_interrupts() -> None:
    """Undo what a shell does to jobs in the background, which children would inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_command(*arguments: object) -> subprocess.Popen[str]:
    source = str(Path(nysplus.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-m", "nysplus_experiments.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=None if sys.platform == "win32" else heed_interrupts,
    )


def stable_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [{k: v for k, v in row.items() if k not in TIMES_AND_MEMORY} for row in rows]


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.005)
    raise AssertionError(f"no {count} rows came: {process.communicate()}")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "small.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


# -- reproduce -----------------------------------------------------------------------------------


def test_a_killed_run_resumes_to_the_same_file(config: Path, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = ("reproduce", "--config", config, "--out", killed)
    for rows in (5, 20):  # killed twice, the second time while resuming
        process = start_command(*command)
        wait_for_lines(killed / "results.csv", rows, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert 20 <= len(stable_rows(killed / "results.csv")) < 60
    process = start_command(*command)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors == "", "a pipe gets no progress bar"

    run(parse_experiment(EXPERIMENT), whole)
    resumed, uninterrupted = (stable_rows(d / "results.csv") for d in (killed, whole))
    assert resumed == uninterrupted
    assert all(row["status"] == "ok" for row in resumed)
    assert (killed / "report.html").stat().st_size > 1000
    assert (killed / "figure2.png").exists()
    assert str(killed / "report.html") in output
    assert not list(killed.glob(".*")), "temporary files are left"


def test_ctrl_c_says_how_to_go_on(config: Path, tmp_path: Path) -> None:
    process = start_command("reproduce", "--config", config, "--out", tmp_path)
    wait_for_lines(tmp_path / "results.csv", 3, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    (line,) = errors.splitlines()
    assert line.startswith("Stopped with ")
    assert line.endswith(f"Continue with: nysplus reproduce --config {config} --out {tmp_path}")


def test_failed_rows_give_exit_code_1(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits.npz").write_bytes(b"damaged")
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    monkeypatch.setattr(cli, "_draw", lambda *arguments: [])
    monkeypatch.setattr(cli, "_write", lambda *arguments: None)
    code, output = invoke("reproduce", "--config", config, "--out", tmp_path / "out")
    assert code == 1
    assert "rows failed; the column error of" in output


def test_the_smoke_profile_runs_to_its_report(tmp_path: Path) -> None:
    """All methods, all figures, on data that come with scikit-learn."""
    code, output = invoke("reproduce", "--profile", "smoke", "--out", tmp_path)
    assert code == 0, output
    rows = read_results(tmp_path / "results.csv")
    assert {row.method for row in rows} == set(METHODS)
    assert all(row.ok for row in rows)
    assert len(list(tmp_path.glob("figure[1-5].png"))) == 5
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_a_dry_run_says_what_and_how_long(tmp_path: Path) -> None:
    code, output = invoke("reproduce", "--dry-run", "--only", "4", "--out", tmp_path / "none")
    assert code == 0
    assert output.startswith("smoke: 24 rows (digits 24), about ")
    assert not (tmp_path / "none").exists()


def test_undecided_claims_are_listed_with_the_rows_they_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = [replace(row, where="cache") for row in datasets.describe()]
    monkeypatch.setattr(datasets, "describe", lambda: everything)
    config = tmp_path / "shuttle.toml"
    config.write_text(
        'trials = 7\n[[run]]\ndatasets = ["shuttle"]\nmethods = ["KNys", "KNys+"]\nsizes = [20]',
        encoding="utf-8",
    )
    command = ("reproduce", "--config", config, "--undecided", "--dry-run", "--out", tmp_path)
    code, output = invoke(*command)
    assert code == 0
    assert "Undecided claims that lack trials: 1." in output
    assert "  10 rows, about " in output
    assert "Shuttle: K-means on the rows of largest negative margin helps" in output
    assert not (tmp_path / "results.csv").exists()


def test_a_run_with_a_time_limit_says_how_to_go_on(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_draw", lambda *arguments: [])
    monkeypatch.setattr(cli, "_write", lambda *arguments: None)
    monkeypatch.setattr(sys, "argv", ["nysplus", "reproduce", "--hours", "0"])
    code, output = invoke("reproduce", "--config", config, "--hours", "0", "--out", tmp_path)
    assert code == 0
    assert "60 rows are left. Continue with: nysplus reproduce --hours 0" in output
    assert read_results(tmp_path / "results.csv") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--profile", "big"],
            "Unknown profile 'big'. Known profiles: smoke, standard",
        ),
        (["--only", "6"], "--only 6 is not a figure. Give some of 1, 2, 3, 4, 5"),
        (["--datasets", "digits,usp"], "Unknown dataset 'usp'. Known names: usps, har"),
        (["--datasets", "usps"], "Nothing is left to run: the experiment has the figures"),
        (["--config", "none.toml"], "none.toml could not be read: No such file"),
        (["--config", "a.toml", "--profile", "smoke"], "exclude each other"),
    ],
)
def test_wrong_arguments_are_explained(arguments: list[str], message: str) -> None:
    code, output = invoke("reproduce", "--dry-run", *arguments)
    assert code == 2
    assert output.startswith("Error: ")
    assert message in output


def test_without_any_dataset_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("NYSPLUS_DATA", "NYSPLUS_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    code, output = invoke("reproduce", "--profile", "standard", "--out", tmp_path / "out")
    assert code == 2
    assert "USPS is skipped: usps.npz is neither in NYSPLUS_DATA" in output
    assert "Error: Nothing can be run here." in output
    assert not (tmp_path / "out").exists()


def test_a_foreign_results_file_is_refused(config: Path, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("a,b\n")
    for command in (("reproduce", "--config", config, "--out", tmp_path), ("report", tmp_path)):
        code, output = invoke(*command)
        assert code == 2
        assert "does not start with the columns of this version" in output


def test_missing_matplotlib_is_told_before_fitting(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, output = invoke("reproduce", "--config", config, "--out", tmp_path / "out")
    assert code == 2
    assert 'pip install "nysplus[plot]"' in output
    assert not (tmp_path / "out").exists()


def test_missing_typer_names_the_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['typer'] = None; import nysplus_experiments.cli"
    source = str(Path(nysplus.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith('pip install "nysplus[cli,experiments,plot]"')
    assert "Traceback" not in done.stderr


# -- figures and report --------------------------------------------------------------------------


def test_figures_and_report_need_no_fitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = EXPERIMENT.replace("[20, 50, 150]", "[20, 50]")
    run(parse_experiment(text), tmp_path)
    monkeypatch.setattr("nysplus_experiments.paper.runner.fit_method", None)
    code, output = invoke("figures", tmp_path, "--only", "2")
    assert code == 0
    assert output.split() == [str(tmp_path / "figure2.png")]
    code, output = invoke("report", tmp_path)
    assert code == 0
    assert output.split() == [str(tmp_path / "report.html")]


@pytest.mark.parametrize("command", ["figures", "report"])
def test_a_folder_without_results_is_explained(command: str, tmp_path: Path) -> None:
    code, output = invoke(command, tmp_path)
    assert code == 2
    assert f"{tmp_path / 'results.csv'} does not exist. Run `nysplus reproduce" in output


# -- datasets ------------------------------------------------------------------------------------


def test_datasets_are_listed_with_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NYSPLUS_CACHE", str(tmp_path))
    monkeypatch.delenv("NYSPLUS_DATA", raising=False)
    code, output = invoke("datasets")
    assert code == 0
    lines = {line.split()[1]: line for line in output.splitlines() if line.startswith("│")}
    assert len(lines) >= 11
    assert "scikit-learn" in lines["digits"]
    assert "absent" in lines["usps"]
    assert "7291" in lines["usps"]


def test_datasets_are_prepared(tmp_path: Path) -> None:
    features = ",".join(str(i) for i in range(16))
    (tmp_path / "letter-recognition.data").write_text(f"A,{features}\n")
    code, output = invoke("datasets", "prepare", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    assert output.startswith("Error: letter-recognition.data")
    code, output = invoke("datasets", "prepare", tmp_path / "none")
    assert code == 2
    assert "No publisher's file is in" in output


def test_an_unknown_dataset_is_not_fetched() -> None:
    code, output = invoke("datasets", "fetch", "usp")
    assert code == 2
    assert "Unknown dataset 'usp'" in output


def test_columns_are_documented() -> None:
    for field in fields(Result):
        assert field.name in (Result.__doc__ or "")


# -- benchmarks ----------------------------------------------------------------------------------


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> list[BenchOptions]:
    """A benchmark whose steps do nothing but keep their options, under the name of "speed"."""
    seen: list[BenchOptions] = []

    def refuse(options: BenchOptions) -> None:
        options.expect("sizes")
        raise DatasetNotFound("usps is not here")

    module = types.ModuleType("nysplus_experiments.speed")
    module.STEPS = {"speed": seen.append, "growth": refuse}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nysplus_experiments.speed", module)
    monkeypatch.setattr(cli, "restart_with_fixed_threads", lambda: None)
    return seen


def test_a_step_gets_its_options(benchmark: list[BenchOptions], tmp_path: Path) -> None:
    options = ("--fresh", "--datasets", "usps,letter", "--set", "sizes=10,20", "--set", "a=b=c")
    code, output = invoke("bench", "speed", "speed", "--results", tmp_path, *options)
    assert (code, output) == (0, "")
    extra = {"sizes": "10,20", "a": "b=c"}
    expected = BenchOptions("speed", tmp_path, True, False, ("usps", "letter"), extra)
    assert benchmark == [expected]
    invoke("bench", "speed", "speed", "--smoke")
    assert benchmark[1].path("speed.csv") == Path("build/results/speed/speed.csv")


def test_steps_run_in_processes_of_their_own(
    benchmark: list[BenchOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def record(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, len(commands) - 1)

    monkeypatch.setattr(subprocess, "run", record)
    code, _ = invoke("bench", "speed", "--results", "r", "--datasets", "usps", "--fresh")
    flags = ["--results", "r", "--fresh", "--datasets", "usps"]
    assert commands == [
        ["bench", "speed", "speed", *flags],
        ["bench", "speed", "growth", *flags],
    ]
    assert code == 1, "the second step failed"
    assert benchmark == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fast"], "Unknown benchmark 'fast'. Known: speed, scale"),
        (["speed", "sped"], "speed has no step 'sped'. Known steps: speed, growth."),
        (["speed", "--set", "a=b"], "--set is an option of one step"),
        (["speed", "growth", "--set", "sizes"], "--set sizes is not KEY=VALUE"),
        (["speed", "growth", "--set", "size=1"], "--set size=… is not an option of this step"),
        (["speed", "growth"], "usps is not here"),
        (["pages", "fast"], "There is no page 'fast'. Known pages: paper, speed"),
    ],
)
def test_wrong_benchmarks_are_explained(
    benchmark: list[BenchOptions], arguments: list[str], message: str
) -> None:
    code, output = invoke("bench", *arguments)
    assert code == 2
    assert output.startswith("Error: ")
    assert message in output
