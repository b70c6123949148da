"""The command ``nysplus``: reproduce the paper, measure, draw figures, manage datasets."""

from __future__ import annotations

import importlib.util
import math
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ModuleNotFoundError as error:  # pragma: no cover - both are there in the tests
    raise SystemExit(
        f"The command nysplus needs {error.name}, which is not installed: "
        'pip install "nysplus[cli,experiments,plot]"'
    ) from error

from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.bench import RESULTS, BenchError, BenchOptions
from nysplus_experiments.harness.datasets import DatasetError, DatasetNotFound
from nysplus_experiments.harness.measurement import restart_with_fixed_threads
from nysplus_experiments.harness.pages import PAGES, PageError, fill, page
from nysplus_experiments.harness.records import ResultsError
from nysplus_experiments.paper import experiment as experiments
from nysplus_experiments.paper.results import Key, Result, read_results
from nysplus_experiments.paper.runner import (
    RESULTS_FILE,
    Plan,
    Step,
    missing,
    plan,
    read_notes,
    run,
)


class CommandError(ValueError):
    """An argument of a command is not allowed."""


_MENDABLE = (
    *(BenchError, CommandError, DatasetError, DatasetNotFound, experiments.ExperimentError),
    *(PageError, ResultsError),
    *(ImportError, OSError),  # an extra that is not installed; paths, permissions, full disks
)


class _Commands(typer.core.TyperGroup):
    """Commands that print errors which users can mend, without a traceback."""

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except _MENDABLE as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=_Commands,
    help="Nyström kernel machines: reproduce the paper's figures, and measure on real data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
datasets_app = typer.Typer(help="List the datasets, fetch them, or convert publishers' files.")
app.add_typer(datasets_app, name="datasets", invoke_without_command=True)
Folder = Annotated[Path, typer.Argument(help="Folder with a results.csv.")]
Names = Annotated[str | None, typer.Option("--datasets", help="Datasets, e.g. usps,letter.")]
Figures = Annotated[str | None, typer.Option(help="Figures, e.g. 2 or 2,3.")]


# -- reproduce -----------------------------------------------------------------------------------


@app.command()
def reproduce(
    profile: Annotated[
        str | None, typer.Option(help=f"{', '.join(experiments.PROFILES)}; smoke by default.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Your own experiment, a TOML file.")] = None,
    only: Figures = None,
    names: Names = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder; nysplus-results/PROFILE by default.")
    ] = None,
    undecided: Annotated[
        bool, typer.Option("--undecided", help="Fit only what undecided claims need.")
    ] = False,
    no_times: Annotated[
        bool, typer.Option("--no-times", help="Record no seconds: the machine does other work.")
    ] = False,
    hours: Annotated[float, typer.Option(min=0.0, help="Begin no fit after this time.")] = math.inf,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would run, and how long.")
    ] = False,
) -> None:
    """Fit what is missing, draw the figures and write the report.

    Rows that are in OUT/results.csv already are not fitted again, so that the same command
    continues a run that was stopped or killed. With --undecided, claims are judged on their first
    five trials; those that stay undecided get all trials of the profile, the cheapest claim first.
    """
    if profile and config:
        raise CommandError("--profile and --config exclude each other. Give one of them.")
    label = config.stem if config else profile or "smoke"
    load = experiments.load_profile
    experiment = experiments.load_experiment(config) if config else load(label)
    experiment = experiment.narrow(_figures(only), _names(names))
    todo = plan(experiment)
    _print_plan(todo, label)
    folder = out or Path("nysplus-results") / label
    if undecided and todo.tasks:
        _require(pandas="experiments")
        _print_batches(todo, folder)
    if dry_run:
        return
    if not todo.tasks:
        raise CommandError("Nothing can be run here. The lines above say what is missing.")
    _require(matplotlib="plot", jinja2="experiments", pandas="experiments")
    choose = _undecided if undecided else missing
    settings = {"choose": choose, "times": not no_times, "limit": 3600 * hours}
    results = _run(experiment, todo, folder, **settings)
    _write(results, _draw(results, folder, _figures(only)), folder)
    if math.isfinite(hours) and (left := choose(todo.tasks, results)):
        rows = len({task for batch in left for task in batch})
        typer.echo(f"{rows} rows are left. Continue with: {_command()}")
    failed = sum(not row.ok for row in results)
    if failed:
        typer.echo(
            f"{failed} rows failed; the column error of {folder / RESULTS_FILE} says why. The "
            "same command tries them again.",
            err=True,
        )
        raise typer.Exit(1)


def _figures(only: str | None) -> set[int] | None:
    parts = [part.strip() for part in only.split(",")] if only is not None else []
    if not all(part in {"1", "2", "3", "4", "5"} for part in parts):
        raise CommandError(
            f"--only {only} is not a figure. Give some of 1, 2, 3, 4, 5, e.g. --only 2,3."
        )
    return {int(part) for part in parts} or None


def _names(names: str | None) -> list[str] | None:
    parts = [part.strip() for part in names.split(",")] if names is not None else []
    for part in parts:
        if part not in datasets.DATASETS:
            known = ", ".join(datasets.DATASETS)
            raise CommandError(f"Unknown dataset {part!r}. Known names: {known}.")
    return parts or None


def _require(**extras: str) -> None:
    """Fail before hours of fitting, not after them."""
    for library, extra in extras.items():
        if importlib.util.find_spec(library) is None:
            raise CommandError(f'{library} is not installed: pip install "nysplus[{extra}]"')


def _print_plan(todo: Plan, label: str) -> None:
    for note in todo.notes:
        typer.echo(note)
    counts = Counter(task.dataset for task in todo.tasks)
    rows = ", ".join(f"{name} {count}" for name, count in counts.items())
    typer.echo(
        f"{label}: {len(todo.tasks)} rows ({rows or 'none'}), about "
        f"{_duration(todo.seconds)} of fitting on two cores."
    )


def _undecided(tasks: Sequence[Key], results: list[Result]) -> list[tuple[Key, ...]]:
    """Return the rows that undecided claims need, batch by batch."""
    from nysplus_experiments.paper.schedule import undecided  # needs pandas

    return [batch.tasks for batch in undecided(tasks, results)]


def _print_batches(todo: Plan, folder: Path) -> None:
    from nysplus_experiments.paper.schedule import undecided

    batches = undecided(todo.tasks, read_results(folder / RESULTS_FILE))
    typer.echo(f"Undecided claims that lack trials: {len(batches)}. The next rows of each:")
    for batch in batches:
        rows, claim = len(batch.tasks), batch.claim
        typer.echo(
            f"  {rows} rows, about {_duration(batch.seconds)}: {claim.subject}: {claim.text}"
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _command() -> str:
    return shlex.join(["nysplus", *sys.argv[1:]])


def _run(
    experiment: experiments.Experiment, todo: Plan, folder: Path, **settings: Any
) -> list[Result]:
    try:
        with _progress_bar() as show:
            return run(experiment, folder, show, **settings)
    except KeyboardInterrupt:
        done = {row.key for row in read_results(folder / RESULTS_FILE) if row.ok}
        typer.echo(
            f"Stopped with {len(done & set(todo.tasks))} of {len(todo.tasks)} rows. Continue with: "
            f"{_command()}",
            err=True,
        )
        raise typer.Exit(130) from None


def _title(task: Key) -> str:
    n_initial = f", n₀ = {task.n_initial}" if task.n_initial else ""
    return f"{task.dataset} {task.method} n = {task.n}{n_initial}, trial {task.trial}"


@contextmanager
def _progress_bar() -> Iterator[Callable[[Step], None]]:
    """Show on a terminal what is fitted, how much is done and the time left; nothing in a pipe."""
    console = Console(stderr=True)
    fields = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"))
    columns = (SpinnerColumn(), *fields, TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=1.0, rows="", left="")

        def show(step: Step) -> None:
            failed = f", {step.failed} failed" if step.failed else ""
            progress.update(
                bar,
                completed=step.fraction,
                description=_title(step.task) if step.task else "done",
                rows=f"{step.done}/{step.total} rows{failed}",
                left=f"about {_duration(step.seconds_left)} left" if step.task else "",
            )

        yield show


# -- figures and report --------------------------------------------------------------------------


def _read(folder: Path) -> list[Result]:
    path = folder / RESULTS_FILE
    if not path.is_file():
        raise CommandError(f"{path} does not exist. Run `nysplus reproduce --out {folder}` first.")
    return read_results(path)


def _draw(results: list[Result], folder: Path, only: set[int] | None) -> list[Path]:
    from nysplus_experiments.paper.figures import draw_all

    paths = draw_all(results, folder, only)
    for path in paths:
        typer.echo(path)
    return paths


def _write(results: list[Result], drawn: list[Path], folder: Path) -> None:
    from nysplus_experiments.paper.report import write_report

    typer.echo(write_report(results, drawn, folder, read_notes(folder)))


@app.command()
def figures(folder: Folder, only: Figures = None) -> None:
    """Draw the paper's figures from a folder of results, without fitting."""
    _require(matplotlib="plot", pandas="experiments")
    _draw(_read(folder), folder, _figures(only))


@app.command()
def report(folder: Folder) -> None:
    """Write the HTML page from a folder of results and figures, without fitting."""
    _require(jinja2="experiments", pandas="experiments")
    _write(_read(folder), sorted(folder.glob("figure[1-5].png")), folder)


# -- benchmarks ----------------------------------------------------------------------------------


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help=f"{', '.join(PAGES[1:])}; or pages.")],
    steps: Annotated[list[str] | None, typer.Argument(help="Steps; all by default.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is there.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Measure a little, into build/results.")
    ] = False,
    names: Names = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder with one sub-folder an experiment.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, an option of the step.")
    ] = None,
) -> None:
    """Measure what is missing in results/NAME, or fill the pages of docs/results.

    The same command continues a run that was stopped. `nysplus bench pages [NAME]...` writes the
    tables and figures of pages from the results.
    """
    folder = results or (Path("build/results") if smoke else RESULTS)
    if name == "pages":
        _fill_pages(steps or list(PAGES), folder)
        return
    if name not in PAGES[1:]:
        raise CommandError(f"Unknown benchmark {name!r}. Known: {', '.join(PAGES[1:])}, pages.")
    known = import_module(f"nysplus_experiments.{name}").STEPS
    chosen = steps or list(known)
    for step in chosen:
        if step not in known:
            raise CommandError(f"{name} has no step {step!r}. Known steps: {', '.join(known)}.")
    sets = tuple(names.split(",")) if names else None
    options = BenchOptions(name, folder, fresh, smoke, sets, _settings(settings or []))
    if len(chosen) > 1:
        _run_each(chosen, options)
    else:
        restart_with_fixed_threads()
        try:
            known[chosen[0]](options)
        except KeyboardInterrupt:
            typer.echo("Stopped. The same command continues.", err=True)
            raise typer.Exit(130) from None


def _run_each(steps: list[str], options: BenchOptions) -> None:
    """Run steps in processes of their own: threads of one must not disturb the next."""
    if options.extra:
        raise CommandError("--set is an option of one step. Name the step.")
    flags = ["--results", str(options.results)]
    flags += ["--fresh"] * options.fresh + ["--smoke"] * options.smoke
    flags += ["--datasets", ",".join(options.datasets)] if options.datasets else []
    for step in steps:
        typer.echo(f"{options.name} {step}")
        command = [sys.executable, "-m", "nysplus_experiments.cli", "bench", options.name, step]
        code = subprocess.run([*command, *flags], check=False).returncode
        if code:
            raise typer.Exit(code)


def _settings(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise CommandError(f"--set {pair} is not KEY=VALUE.")
    return dict(pair.split("=", 1) for pair in pairs)  # type: ignore[misc]  # pairs were checked


def _fill_pages(names: list[str], results: Path) -> None:
    for name in names:
        if name not in PAGES:
            raise CommandError(f"There is no page {name!r}. Known pages: {', '.join(PAGES)}.")
        typer.echo(fill(page(name), results))


# -- datasets ------------------------------------------------------------------------------------


@datasets_app.callback(invoke_without_command=True)
def list_datasets(context: typer.Context) -> None:
    """List the datasets: size, gamma, licence, and where they are on this machine."""
    if context.invoked_subcommand is not None:
        return
    table = Table("name", "title", "train", "test", "d", "classes", "gamma", "where", "licence")
    for presence in datasets.describe():
        row = presence.dataset
        counts = (*row.counts, row.n_features, row.n_classes, row.gamma)
        where = presence.where or "absent"
        table.add_row(row.name, row.title, *map(str, counts), where, row.licence)
    # A pipe has no width to fit into: cells must not be cut there.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)


@datasets_app.command()
def prepare(
    folder: Annotated[Path, typer.Argument(help="Folder with publishers' files.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; the cache by default.")] = None,
) -> None:
    """Convert publishers' files to the .npz files that are loaded."""
    for path in datasets.prepare(folder, out):
        typer.echo(path)


@datasets_app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Datasets to download.")],
) -> None:
    """Download datasets from their publishers into the cache."""
    console = Console(stderr=True)
    for name in _names(",".join(names)) or ():
        with Progress(console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task(name, total=None)

            def show(done: int, total: int | None, bar: Any = bar) -> None:
                progress.update(bar, completed=done, total=total)

            path = datasets.fetch(name, show)
        typer.echo(path)


if __name__ == "__main__":
    app()
