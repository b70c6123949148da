"""``nysplus compare``: models of several sizes against other libraries, on the same rows."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.model_selection import KFold, StratifiedKFold

from nysplus._bytes.budget import make_budget
from nysplus._learning.refinement import Refinement
from nysplus._runtime.atomic_file import write_whole
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import Rows, check_writable, read_rows
from nysplus.cli.output import Output
from nysplus.cli.peers import peers
from nysplus.cli.targets import choose_task, target_values
from nysplus.cli.train import Problem, fit, holdout_positions, note_columns, table_schema
from nysplus.plots import BudgetCurve, BudgetCurveDisplay
from nysplus.plots.style import check_matplotlib
from nysplus.report.baselines import RawColumns
from nysplus.report.scores import Score, Task, accuracy, r2
from nysplus.report.wording import size_text

Array = npt.NDArray[Any]
Fold = tuple[Array, Array]

BUDGETS = "4kB,16kB,64kB"
# By default a comparison takes about two minutes on two cores: so many rows are used at most, and
# the refinement of each of our models has so much time.
MAX_ROWS, TIME = 10_000, "20s"
FIGURE_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Measured:
    """A model on all folds.

    Attributes
    ----------
    name : str
    score : Score
        Of the test rows of all folds together.
    n_bytes, seconds : float
        Mean over the folds.
    """

    name: str
    score: Score
    n_bytes: int
    seconds: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a table."""
        value, error = self.score.value, self.score.standard_error
        if self.score.metric == "accuracy":
            shown = f"{100 * value:.1f} ± {100 * error:.1f} %"
        else:
            shown = f"{value:.3f} ± {error:.3f}"
        return self.name, shown, size_text(self.n_bytes), f"{self.seconds:.1f}"


def compare(
    data: options.DataFile,
    target: options.Target = None,
    budgets: Annotated[str, typer.Option(help="Sizes of our models.")] = BUDGETS,
    task: Annotated[str, typer.Option(help="auto, classify or regress.")] = "auto",
    holdout: Annotated[float, typer.Option(help="Share of the rows to judge on.")] = 0.2,
    folds: Annotated[
        int, typer.Option(help="Folds of a cross-validation; 1 for one split.", min=1)
    ] = 1,
    max_rows: Annotated[
        int, typer.Option(help="Rows to use at most, drawn at random; 0 for all.", min=0)
    ] = MAX_ROWS,
    time_limit: Annotated[
        str, typer.Option("--time", help="Limit of the refinement of each of our models.")
    ] = TIME,
    figure: Annotated[
        Path | None, typer.Option(help="File of a figure of scores and sizes, such as a.png.")
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Compare small models with other libraries on the same rows.

    Ours are refined, in several sizes. The others have their default parameters: logistic or ridge
    regression and a support vector machine on one-hot columns, HistGradientBoosting, and LightGBM
    where it is installed. Bytes are those of saved files, of pickles for other libraries.

    Example: nysplus compare churn.csv --target churned --budgets 4kB,16kB --figure sizes.png
    """
    output = Output(json, quiet, no_color)
    sizes = [size.strip() for size in budgets.split(",")]
    for size in sizes:
        make_budget(size)
    limit = options.seconds(time_limit)
    if not 0 < holdout < 1:
        raise CommandError(f"--holdout {holdout} is no share. Give a number from 0.1 to 0.9.")
    _check_figure(figure, data)
    comparison, reason = _read(output, data, target, task, max_rows, seed)
    comparison = replace(comparison, parts=comparison.folds(holdout, folds))
    y, chosen, parts = comparison.y, comparison.task, comparison.parts
    output.line(f"{data}: {len(y):,} rows; {_tested(parts)}; {chosen}, because {reason}", "bold")
    ours = [_ours(comparison, size, limit) for size in sizes]
    measured = [*ours, *_others(comparison)]
    output.table(("model", _metric(chosen), "bytes", "fit s"), [each.cells for each in measured])
    if figure is not None:
        draw(ours, measured[len(ours) + 1 :], figure)
        output.line(f"  figure: {figure}")
    output.result(
        task=chosen,
        rows=len(y),
        folds=folds,
        figure=None if figure is None else str(figure),
        models=[
            {
                "name": each.name,
                "score": each.score.entries,
                "bytes": each.n_bytes,
                "fit_seconds": each.seconds,
            }
            for each in measured
        ],
    )


@dataclass(frozen=True)
class Comparison:
    """Rows to compare models on.

    Attributes
    ----------
    output : Output
    rows : Rows
    y : ndarray
    task : {"classify", "regress"}
    seed : int
    parts : list of pairs of ndarrays
        Training and test rows of each fold.
    """

    output: Output
    rows: Rows
    y: Array
    task: Task
    seed: int
    parts: list[Fold] = field(default_factory=list)

    def folds(self, share: float, n_folds: int) -> list[Fold]:
        """Return the training and test rows of each fold."""
        y = self.y
        if n_folds == 1:
            return [holdout_positions(y, self.task, share, self.seed)]
        if n_folds > len(y) // 2:
            raise CommandError(f"--folds {n_folds} is too much for {len(y)} rows. Lower it.")
        enough = np.unique(y, return_counts=True)[1].min() >= n_folds
        kind = StratifiedKFold if self.task == "classify" and enough else KFold
        splits = kind(n_folds, shuffle=True, random_state=self.seed)
        return list(splits.split(np.zeros(len(y)), y))

    def measure(
        self,
        name: str,
        run: Callable[[Array], Any],
        predict: Callable[[Any, Array], Array],
        n_bytes: Callable[[Any], int],
    ) -> Measured:
        """Fit and judge a model on each fold."""
        predicted, sizes, seconds = [], [], []
        for train, test in self.parts:
            start = time.perf_counter()
            model = run(train)
            seconds.append(time.perf_counter() - start)
            sizes.append(n_bytes(model))
            predicted.append(predict(model, test))
        true = np.concatenate([self.y[test] for _, test in self.parts])
        score = (accuracy if self.task == "classify" else r2)(true, np.concatenate(predicted))
        return Measured(name, score, int(np.mean(sizes)), float(np.mean(seconds)))


def _read(
    output: Output, data: Path, target: str | None, task: str, max_rows: int, seed: int
) -> tuple[Comparison, str]:
    """Return the rows of a file, at most `max_rows`, and the reason for the task."""
    rows = read_rows(data, target)
    found = target_values(rows.target, rows.y)
    chosen, reason = choose_task(found, task)
    if found.n_missing:
        output.note(f"{found.n_missing:,} rows of {data} have no {found.name!r}, and are left out.")
    taken = np.arange(len(found.y))
    if max_rows and len(taken) > max_rows:
        _, taken = holdout_positions(found.y, chosen, max_rows, seed)
        output.note(
            f"{max_rows:,} of {len(found.y):,} rows are compared on, drawn at random; --max-rows 0 "
            "takes all."
        )
    y = found.y[taken]
    y = y if chosen == "classify" else y.astype(np.float64)
    rows = Rows(rows.take(np.flatnonzero(found.known)[taken]), y, rows.target)
    note_columns(output, rows.X)
    return Comparison(output, rows, y, chosen, seed), reason


def _check_figure(figure: Path | None, data: Path) -> None:
    if figure is None:
        return
    if figure.suffix.lower() not in FIGURE_ENDINGS:
        raise CommandError(
            f"--figure {figure} has an unknown ending. Allowed are {', '.join(FIGURE_ENDINGS)}."
        )
    check_writable(figure, data, option="--figure")
    check_matplotlib()
    os.environ.setdefault("MPLBACKEND", "agg")  # figures go to files, never to windows


def draw(ours: list[Measured], others: list[Measured], path: Path) -> None:
    """Write a figure of scores against sizes: our models as a curve, others as points."""
    groups = {"nysplus": ours, **{each.name: [each] for each in others}}
    curves = {}
    for name, group in groups.items():
        ordered = sorted(group, key=lambda each: each.n_bytes)
        curves[name] = BudgetCurve(
            np.array([each.n_bytes for each in ordered]),
            np.array([each.score.value for each in ordered]),
            np.array([each.score.standard_error for each in ordered]),
            ordered[0].score.metric,
        )
    content = io.BytesIO()
    figure = BudgetCurveDisplay(curves).plot().figure_
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150)
    write_whole(path, content.getvalue())


def _metric(task: Task) -> str:
    return "accuracy ± s.e." if task == "classify" else "R² ± s.e."


def _tested(parts: list[Fold]) -> str:
    n_test = sum(len(test) for _, test in parts)
    if len(parts) == 1:
        return f"trained on {len(parts[0][0]):,}, judged on {n_test:,}"
    return f"{len(parts)} folds"


def _ours(comparison: Comparison, size: str, limit: float | None) -> Measured:
    rows, y, task = comparison.rows, comparison.y, comparison.task
    parameters = {"budget": size, "refine": Refinement(max_seconds=limit)}

    def run(train: Array) -> Any:
        problem = Problem(task, rows.take(train), y[train])
        return fit(comparison.output, problem, parameters, comparison.seed, limit)[0]

    def predict(model: Any, test: Array) -> Array:
        return np.asarray(model.predict(rows.take(test)))

    return comparison.measure(f"nysplus {size}", run, predict, _file_bytes)


def _file_bytes(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nys"
        model.save(path)
        return path.stat().st_size


def _others(comparison: Comparison) -> list[Measured]:
    """Return the other libraries' models, on raw numbers of the columns."""
    X, y, output = comparison.rows.X, comparison.y, comparison.output
    schema = table_schema(X)
    raw = X if schema is None else schema.read(X)
    columns = RawColumns.of(schema, X.shape[1])
    chosen, notes = peers(comparison.task, len(comparison.parts[0][0]), columns)
    for note in notes:
        output.note(note)
    measured = []
    for peer in chosen:
        with output.progress(peer.name):
            measured.append(
                comparison.measure(
                    peer.name,
                    lambda train, peer=peer: peer.fit(
                        raw[train], y[train], columns, comparison.seed
                    ),  # type: ignore[misc]
                    lambda model, test: np.asarray(model.predict(raw[test])),
                    lambda model: len(pickle.dumps(model)),
                )
            )
    return measured
