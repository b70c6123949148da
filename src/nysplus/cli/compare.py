"""``nysplus compare``: models of several sizes against other libraries, on the same rows."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.model_selection import KFold, StratifiedKFold

from nysplus._bytes.budget import make_budget
from nysplus._learning.refinement import Refinement
from nysplus.cli import options
from nysplus.cli.errors import CommandError
from nysplus.cli.files import Rows, read_rows
from nysplus.cli.output import Output
from nysplus.cli.peers import RawColumns, peers
from nysplus.cli.targets import choose_task, target_values
from nysplus.cli.train import Problem, fit, holdout_positions, note_columns, table_schema
from nysplus.report.scores import Score, Task, accuracy, r2
from nysplus.report.wording import size_text

Array = npt.NDArray[Any]
Fold = tuple[Array, Array]

BUDGETS = "4kB,16kB,64kB"


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
    time_limit: options.Time = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Compare small models with other libraries on the same rows.

    Ours are refined, in several sizes. The others have their default parameters: logistic or ridge
    regression and a support vector machine on one-hot columns, HistGradientBoosting, and LightGBM
    where it is installed. Bytes are those of saved files, of pickles for other libraries.

    Example: nysplus compare churn.csv --target churned --budgets 4kB,16kB --time 30s
    """
    output = Output(json, quiet, no_color)
    sizes = [size.strip() for size in budgets.split(",")]
    for size in sizes:
        make_budget(size)
    limit = options.seconds(time_limit)
    if not 0 < holdout < 1:
        raise CommandError(f"--holdout {holdout} is no share. Give a number from 0.1 to 0.9.")
    rows = read_rows(data, target)
    found = target_values(rows.target, rows.y)
    chosen, reason = choose_task(found, task)
    if found.n_missing:
        output.note(f"{found.n_missing:,} rows of {data} have no {found.name!r}, and are left out.")
    rows = Rows(rows.take(np.flatnonzero(found.known)), found.y, rows.target)
    y = found.y if chosen == "classify" else found.y.astype(np.float64)
    note_columns(output, rows.X)
    parts = _folds(y, chosen, holdout, folds, seed)
    output.line(f"{data}: {len(y):,} rows; {_tested(parts)}; {chosen}, because {reason}", "bold")
    refine = Refinement(max_seconds=limit) if limit else True
    measured = [_ours(output, size, rows, y, chosen, parts, refine, seed, limit) for size in sizes]
    measured += _others(output, rows, y, chosen, parts, seed)
    output.table(("model", _metric(chosen), "bytes", "fit s"), [each.cells for each in measured])
    output.result(
        task=chosen,
        rows=len(y),
        folds=folds,
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


def _metric(task: Task) -> str:
    return "accuracy ± s.e." if task == "classify" else "R² ± s.e."


def _tested(parts: list[Fold]) -> str:
    n_test = sum(len(test) for _, test in parts)
    if len(parts) == 1:
        return f"trained on {len(parts[0][0]):,}, judged on {n_test:,}"
    return f"{len(parts)} folds"


def _folds(y: Array, task: Task, share: float, n_folds: int, seed: int) -> list[Fold]:
    """Return the training and test rows of each fold."""
    if n_folds == 1:
        return [holdout_positions(y, task, share, seed)]
    if n_folds > len(y) // 2:
        raise CommandError(f"--folds {n_folds} is too much for {len(y)} rows. Lower it.")
    stratified = task == "classify" and np.unique(y, return_counts=True)[1].min() >= n_folds
    kind = StratifiedKFold if stratified else KFold
    return list(kind(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def _measure(
    name: str,
    y: Array,
    task: Task,
    parts: list[Fold],
    run: Callable[[Array], Any],
    predict: Callable[[Any, Array], Array],
    n_bytes: Callable[[Any], int],
) -> Measured:
    """Fit and judge a model on each fold."""
    predicted, sizes, seconds = [], [], []
    for train, test in parts:
        start = time.perf_counter()
        model = run(train)
        seconds.append(time.perf_counter() - start)
        sizes.append(n_bytes(model))
        predicted.append(predict(model, test))
    true = np.concatenate([y[test] for _, test in parts])
    score = (accuracy if task == "classify" else r2)(true, np.concatenate(predicted))
    return Measured(name, score, int(np.mean(sizes)), float(np.mean(seconds)))


def _ours(
    output: Output,
    size: str,
    rows: Rows,
    y: Array,
    task: Task,
    parts: list[Fold],
    refine: bool | Refinement,
    seed: int,
    limit: float | None,
) -> Measured:
    def run(train: Array) -> Any:
        problem = Problem(task, rows.take(train), y[train])
        return fit(output, problem, {"budget": size, "refine": refine}, seed, limit)[0]

    def predict(model: Any, test: Array) -> Array:
        return np.asarray(model.predict(rows.take(test)))

    return _measure(f"nysplus {size}", y, task, parts, run, predict, _file_bytes)


def _file_bytes(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nys"
        model.save(path)
        return path.stat().st_size


def _others(
    output: Output, rows: Rows, y: Array, task: Task, parts: list[Fold], seed: int
) -> list[Measured]:
    """Return the other libraries' models, on raw numbers of the columns."""
    schema = table_schema(rows.X)
    raw = rows.X if schema is None else schema.read(rows.X)
    columns = RawColumns.of(schema, rows.X.shape[1])
    chosen, notes = peers(task, len(parts[0][0]), columns)
    for note in notes:
        output.note(note)
    measured = []
    for peer in chosen:
        with output.progress(peer.name):
            measured.append(
                _measure(
                    *(peer.name, y, task, parts),
                    lambda train, peer=peer: peer.fit(raw[train], y[train], columns, seed),  # type: ignore[misc]
                    lambda model, test: np.asarray(model.predict(raw[test])),
                    lambda model: len(pickle.dumps(model)),
                )
            )
    return measured
