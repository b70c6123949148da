"""Compare four landmark selectors on scikit-learn's digits: accuracy against model size.

Prints a table and writes a figure. "auto" is the default of nysplus, "uniform" draws rows at random
as scikit-learn's Nystroem does, and "negative-margin" is the selector of the paper.

    python examples/digits_by_size.py [--trials 5] [--out build/demo]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier

SIZES = (10, 20, 50, 100, 200, 400)
# Okabe and Ito's colours, distinguishable with any colour vision; markers and line styles for print
# without colours.
SELECTIONS = {
    "uniform": ("#000000", "o", ":"),
    "kmeans": ("#0072B2", "s", "--"),
    "negative-margin": ("#D55E00", "^", "-."),
    "auto": ("#009E73", "D", "-"),
}


def measure(selection: str, n: int, trial: int, data: tuple) -> tuple[float, int, float, float]:
    """Fit once and return accuracy in %, model bytes, fit seconds and predict seconds."""
    X_train, X_test, y_train, y_test = data
    model = NystroemClassifier(n, selection=selection, random_state=trial)
    start = time.perf_counter()
    model.fit(X_train, y_train)
    fitted = time.perf_counter()
    predicted = model.predict(X_test)
    seconds = time.perf_counter() - fitted
    return 100 * (predicted == y_test).mean(), model.model_bytes_, fitted - start, seconds


def run(trials: int, console: Console) -> dict[tuple[str, int], list[tuple]]:
    """Measure every selector at every size on `trials` random halves of the digits."""
    X, y = load_digits(return_X_y=True)
    results: dict[tuple[str, int], list[tuple]] = defaultdict(list)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("fitting", total=trials * len(SIZES) * len(SELECTIONS))
        for trial in range(trials):
            data = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=trial)
            for n in SIZES:
                for selection in SELECTIONS:
                    bar.update(task, description=f"{selection}, {n} landmarks, {len(data[0])} rows")
                    results[selection, n].append(measure(selection, n, trial, data))
                    bar.advance(task)
    return results


def print_table(results: dict[tuple[str, int], list[tuple]], trials: int, console: Console) -> None:
    table = Table(title=f"Digits: 898 training rows, 899 test rows, mean of {trials} trials")
    table.add_column("selection")
    for heading in ("landmarks", "accuracy %", "model kB", "fit ms", "predict ms"):
        table.add_column(heading, justify="right")
    for selection in SELECTIONS:
        for n in SIZES:
            accuracy, size, fit, predict = zip(*results[selection, n], strict=True)
            table.add_row(
                selection,
                str(n),
                f"{statistics.mean(accuracy):.1f} ± {statistics.stdev(accuracy):.1f}",
                f"{size[0] / 1024:.0f}",
                f"{1000 * statistics.median(fit):.0f}",
                f"{1000 * statistics.median(predict):.1f}",
            )
        table.add_section()
    console.print(table)
    console.print("± is the standard deviation over trials; times are medians; 1 kB is 1024 bytes.")


def draw(results: dict[tuple[str, int], list[tuple]], trials: int, path: Path) -> None:
    """Draw accuracy against model size; write to a temporary file, then move it into place."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for selection, (colour, marker, style) in SELECTIONS.items():
        runs = [results[selection, n] for n in SIZES]
        size = [run[0][1] / 1024 for run in runs]
        mean = [statistics.mean(r[0] for r in run) for run in runs]
        spread = [statistics.stdev(r[0] for r in run) for run in runs]
        axes.plot(size, mean, color=colour, marker=marker, linestyle=style, label=selection)
        low = [m - s for m, s in zip(mean, spread, strict=True)]
        high = [m + s for m, s in zip(mean, spread, strict=True)]
        axes.fill_between(size, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(size))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda kb, _: f"{kb:.0f}"))
    axes.set_xlabel("model size (kB)", fontsize=13)
    axes.set_ylabel("test accuracy (%)", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.set_title(f"Digits: mean ± standard deviation of {trials} trials", fontsize=13)
    axes.grid(alpha=0.3)
    axes.legend(title="selection", fontsize=12, title_fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    figure.savefig(temporary, dpi=150, format="png")
    os.replace(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=5, help="number of random splits, at least 2")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the figure")
    arguments = parser.parse_args()
    if arguments.trials < 2:
        parser.error(f"--trials {arguments.trials}: a standard deviation needs at least 2 trials.")
    console = Console()
    results = run(arguments.trials, console)
    print_table(results, arguments.trials, console)
    path = arguments.out / "digits_by_size.png"
    draw(results, arguments.trials, path)
    console.print(f"Figure: {path}")


if __name__ == "__main__":
    main()
