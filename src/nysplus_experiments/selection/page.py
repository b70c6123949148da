"""Write docs/which_landmarks.md and its figures from a template and the CSV files, nothing else.

python benchmarks/selection_page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from string import Template

import benchmark_figures as figures
import calibration
import csv_rows
import pages
import selection_figures
import selection_tables as tables
import tuning
from benchmark_runs import short, table
from selection import SOURCES, SelectionFit
from selection_tables import APART, Cell, Comparison, Lines, code, points, width_title

from nysplus.experiments._runs import Estimate
from nysplus.experiments._verdicts import trials_text

TEMPLATE = Path(__file__).with_name("which_landmarks.template.md")
COMMANDS = (
    *("selection.py", "tuning.py gamma", "tuning.py metric", "tuning.py ablation"),
    *("calibration.py", "selection_page.py"),
)
WORDS = {
    "auto": "class centroids, few ones in several ways to choose from; for numbers, centroids of "
    "k-means that are moved down the gradient of the error",
    "class-centroids": "k-means inside each class, drawn towards the rows that a pilot finds hard",
    "kmeans": "centroids of k-means over all rows",
    "leverage": "rows drawn by how much of a fit depends on each (ridge leverage scores)",
    "negative-margin": "the paper's: the rows that a pilot gets most wrong",
    "residual": "for numbers: rows of large error under a pilot, picked to differ from each other",
    "rpcholesky": "rows drawn by what the rows before them leave unexplained of the kernel",
    "supervised-kmeans": "the paper's appendix B: centroids of the rows most wrong under a pilot",
    "support-centroids": "the paper's appendix C: of many centroids the most wrong under a pilot",
    "uniform": "rows drawn at random",
}


# -- sentences -----------------------------------------------------------------------------------


def distance(value: Estimate) -> str:
    """Say how far, and to which side, in points of accuracy."""
    side = "above" if value.mean >= 0 else "below"
    if value.mean < 0:
        value = Estimate(-value.mean, -value.high, -value.low, value.trials)
    return f"{points(value)} points {side}"


def advice(compared: Comparison) -> str:
    """Say whether to leave the default, as the losses have it."""
    best = compared.ranked()[0]
    if best == "auto":
        return 'Leave `selection="auto"`: of all rules it has the smallest mean loss.'
    ahead = compared.gain(best, "auto")
    if ahead.low > 0:
        return (
            f'`selection="auto"` is the default, but try `{best}` too: on these data it is on '
            f"average {points(ahead)} points better."
        )
    return (
        f'Leave `selection="auto"`. The mean loss of `{best}` is smaller, but within the noise of '
        f"the trials (by {points(ahead)} points)."
    )


def short_answer(compared: Comparison) -> str:
    """Return the first paragraph."""
    loss, cell = compared.worst("auto")
    gains = [
        f"{distance(compared.gain('auto', over))} {words}"
        for over, words in (
            ("uniform", "rows taken at random"),
            ("negative-margin", "the paper's rule"),
        )
        if over in compared.rules
    ]
    return (
        f"{advice(compared)} Over {len(compared.cells)} cells ({protocol_counts(compared)}) it is "
        f"{' and '.join(gains)}, and {points(compared.mean_loss('auto'))} points below the "
        f"best rule of each cell; where it loses most, {loss:.2f} points ({cell.words})."
    )


def protocol_counts(compared: Comparison) -> str:
    """Count what a comparison is made of."""
    return (
        f"{len(compared.datasets)} datasets, {len(compared.sizes)} sizes, "
        f"{len(compared.widths)} widths, {trials_text(len(compared.trials))} each"
    )


def protocol(compared: Comparison) -> str:
    """Say what was fitted."""
    titles = [SOURCES[name].title for name in compared.datasets]
    widths = ", ".join(map(width_title, compared.widths))
    sizes = ", ".join(map(str, compared.sizes))
    return (
        f"A *cell* is a dataset ({'; '.join(titles)}), a size (n = {sizes}) and a width "
        f"({widths}); there are {len(compared.cells)}, with "
        f"{trials_text(len(compared.trials))} each. In a "
        "trial all rules are fitted to the same rows with the same seed and with the ridge chosen "
        "by the fit."
    )


def exceptions(compared: Comparison) -> str:
    """Name the cells in which another rule is clearly above "auto"."""
    others = [rule for rule in compared.rules if rule != "auto"]
    if len(compared.trials) == 1:
        return "One trial alone cannot tell noise from difference."
    lead: dict[Cell, float] = {}
    for rule in others:
        differences = (compared.of(rule) - compared.of("auto")).mean(axis=1)
        for cell in compared.clear(rule, "auto")[0]:
            found = differences[compared.cells.index(cell)]
            lead[cell] = max(found, lead.get(cell, found))
    cells = sorted(lead, key=lambda cell: -lead[cell])
    if not cells:
        return "No rule is above `auto` beyond the noise in any cell."
    return (
        f"In {len(cells)} of {len(compared.cells)} cells some rule is above `auto` beyond the "
        f"noise, most in the first of these: {tables.names(cells)}. With {len(others)} rules tried "
        "in each cell, some of these are chance."
    )


UNSEEN = (
    "The constants of `auto` were chosen in trials on the same datasets, with other rows and "
    "seeds, so it is at an advantage here; for regression as well."
)


def machine(known: dict) -> str:
    """Say what the numbers were made on."""
    versions = ", ".join(
        f"{name} {known['versions'][name]}"
        for name in ("nysplus", "numpy", "scikit-learn")
        if name in known["versions"]
    )
    return (
        f"Made on {known['cores']} cores of {known['processor']} ({known['system']}), Python "
        f"{known['python']}, {versions}."
    )


# -- sections that are left out without their file -----------------------------------------------


def gamma_section(fits: list[tuning.WidthFit]) -> str:
    """Compare the ways to a width."""
    compared = tuning.compare_widths(fits)
    if compared is None or not {"auto", "grid", "scale"} <= set(compared.rules):
        return ""
    ratios = tuning.search_times(fits)
    low, high = tuning.GRID_POWERS[0], tuning.GRID_POWERS[-1]
    return _section(
        '`gamma="auto"` against a grid search',
        f"`GridSearchCV` with {tuning.GRID_FOLDS} folds over {len(tuning.GRID_POWERS)} widths, "
        f'2^{low} to 2^{high} times `"scale"`, {tuning.WIDTH_ROWS:,} training rows, '
        f"{trials_text(len(compared.trials))}; all with `auto` landmarks, one after the other. On "
        f'average `gamma="auto"` is {distance(compared.gain_over_datasets("auto", "grid"))} the '
        f'grid search and {distance(compared.gain_over_datasets("auto", "scale"))} `"scale"` (95 % '
        "intervals by the bootstrap over datasets). The grid search takes "
        f"{short(median(ratios))} times as long (median; {short(min(ratios))} to "
        f"{short(max(ratios))}).",
        tuning.width_table(fits),
    )


def metric_section(fits: list[tuning.MetricFit]) -> str:
    """Compare learned metrics with none and with gradient boosting."""
    if not fits:
        return ""
    return _section(
        "A learned metric",
        f'`NystroemClassifier({tuning.METRIC_SIZE}, gamma="auto", metric=…)` and gradient boosting '
        f"with its defaults on the same rows. *{tuning.SPARSE}* is made up: "
        f"{tuning.SPARSE_FEATURES} features, of which five decide, "
        f"{100 * tuning.SPARSE_NOISE:.0f} % of the labels wrong. Brackets are 95 % intervals over "
        f"{trials_text(len({fit.trial for fit in fits}))}; times are *median [smallest, largest]* "
        "of processes that ran alone.",
        tuning.metric_table(fits),
    )


def ablation_section(fits: list[tuning.AblationFit]) -> str:
    """Show what each idea in "auto" brings."""
    lines = tuning.ablation_table(fits)
    if not lines:
        return ""
    return _section(
        "What each idea in `auto` brings",
        "`auto` against plain class centroids (*one candidate*), and against class centroids with "
        "one idea changed: how rows are weighted in k-means, how the landmarks are shared out "
        "among the classes, and the pilot that tells which rows are hard. Where `auto` chooses "
        "nothing it equals the one candidate. Fewer cells than above: "
        f"{len({fit.dataset for fit in fits})} datasets, {len({fit.n for fit in fits})} sizes, "
        f"{len({fit.width for fit in fits})} widths, "
        f"{trials_text(len({fit.trial for fit in fits}))}.",
        lines,
    )


def calibration_section(rows: list[calibration.Calibration]) -> str:
    """Compare probabilities."""
    if not rows:
        return ""
    return _section(
        "Probabilities",
        "`predict_proba` scales leave-one-out scores, so it needs no folds and always agrees with "
        "`predict`. Beside it the usual way, `CalibratedClassifierCV` with five folds, around the "
        f"same model ({calibration.LANDMARKS} landmarks) and around `SVC(C=10)`; at most "
        f"{calibration.MAX_TRAIN_ROWS:,} training rows, mean ± standard error of "
        f"{trials_text(len({row.trial for row in rows}))}. The calibration error is that of the "
        "top class in 15 bins of equal mass. `CalibratedClassifierCV` averages five models, which "
        "helps it where a single one is noisy.",
        calibration.calibration_table(rows).splitlines(),
    )


def regression_section(compared: Comparison | None) -> str:
    """Compare the rules that need no labels."""
    if compared is None:
        return ""
    return _section(
        "Regression",
        "Errors in units of the target's standard deviation, and in units of those of other rules: "
        "geometric means over the widths, 95 % intervals over trials. Below one is better.",
        tables.regression(compared),
    )


def _section(title: str, text: str, lines: Lines) -> str:
    return "\n".join([f"## {title}", "", text, "", *lines, "", ""])


# -- the page ------------------------------------------------------------------------------------


def rules_table(compared: Comparison) -> Lines:
    """Return one line a rule that was compared."""
    return table(
        ("`selection`", "landmarks"),
        ([code(rule), WORDS.get(rule, "–")] for rule in compared.ranked()),
    )


def negative_log(value: Callable[[SelectionFit], float | None]) -> Callable[..., float | None]:
    """Return a value as a quantity of which more is better and differences are ratios."""

    def of(fit: SelectionFit) -> float | None:
        number = value(fit)
        return None if number is None else -math.log(number)

    return of


def values(results: Path, save: Callable[[figures.Figure, str, str], str]) -> dict[str, str]:
    """Return everything that the template asks for."""
    fits = csv_rows.read(results / "selection.csv", SelectionFit)
    everything = tables.compare_selectors(fits, lambda fit: fit.accuracy)
    if everything is None or "auto" not in everything.rules:
        raise SystemExit(f'No fits of "auto" are in {results}. Run benchmarks/selection.py first.')
    compared = everything.where(lambda cell: cell.dataset != APART)
    timed = tables.compare_selectors(
        [fit for fit in fits if fit.dataset in compared.datasets and fit.width != "auto"],
        negative_log(lambda fit: fit.seconds),
    )
    errors = tables.compare_selectors(fits, negative_log(lambda fit: fit.rmse))
    known = json.loads((results / "selection.json").read_text(encoding="utf-8"))

    def read(name: str) -> list:
        return csv_rows.read(tuning.csv_path(name, results), tuning.PARTS[name].row_class)

    filled = {
        "rules_table": rules_table(compared),
        "summary_table": tables.summary(compared),
        "gains_table": tables.gains(compared),
        "size_table": tables.by_size(compared),
        "width_table": tables.by_width(compared),
        "dataset_table": tables.by_dataset(compared),
        "against_table": tables.against(compared),
        "seconds_table": tables.seconds(timed) if timed else [],
        "ijcnn_table": tables.ijcnn(everything),
        "all_cells_table": tables.all_cells(everything),
    }
    return {name: "\n".join(lines) for name, lines in filled.items()} | {
        "short_answer": short_answer(compared),
        "protocol": protocol(compared),
        "exceptions": exceptions(compared),
        "unseen": UNSEEN,
        "gamma_section": gamma_section(read("gamma")),
        "metric_section": metric_section(read("metric")),
        "ablation_section": ablation_section(read("ablation")),
        "regression_section": regression_section(errors),
        "calibration_section": calibration_section(
            csv_rows.read(results / "calibration.csv", calibration.Calibration)
        ),
        "max_train": f"{known['max_train_rows']:,}",
        "max_test": f"{known['max_test_rows']:,}",
        "n_datasets": str(len(compared.datasets)),
        "n_scale_cells": str(sum(cell.width == "scale" for cell in everything.cells)),
        "commands": ", ".join(f"`benchmarks/{command}`" for command in COMMANDS),
        "machine": machine(known),
        "loss_figure": save(
            selection_figures.loss_figure(compared),
            "which_landmarks_loss",
            "Loss of each rule in each cell. A mark is a cell; diamonds are means. Linear up to "
            "one point, logarithmic beyond.",
        ),
        "gain_figure": save(
            selection_figures.gain_figure(compared),
            "which_landmarks_gain",
            "Gain over uniform rows by size. Means over datasets and widths; thick bars are 95 % "
            "intervals over trials, thin ones over datasets. Linear up to one point, logarithmic "
            "beyond.",
        ),
    }


def write_page(results: Path, docs: Path) -> Path:
    """Write the page and its figures; return the page."""

    def save(figure: figures.Figure, name: str, caption: str) -> str:
        figures.save(figure, docs / "figures" / f"{name}.png")
        return f"![{caption.split('.')[0]}](figures/{name}.png)\n\n*{caption}*"

    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values(results, save))
    return pages.write(docs / "which_landmarks.md", filled)


if __name__ == "__main__":
    pages.main(__doc__, write_page)
