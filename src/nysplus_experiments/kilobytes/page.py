"""Write docs/kilobytes.md and its figure from a template and the CSV file, and nothing else.

python benchmarks/kilobytes_page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

import benchmark_figures as figures
import csv_rows
import kilobytes_figure
import pages
from benchmark_runs import percent, size, spread, table
from kilobytes import (
    CURVE_SEEDS,
    DRAW_ROWS,
    DRAW_SETTING,
    FIGURE_DATASETS,
    FLIPPED_DATASET,
    FLIPPED_SETTING,
    FLIPPED_SHARE,
    PEERS,
    QUICK_SETTING,
    REFINED,
    REGRESSION_SETTING,
    SELECTED,
    TABULAR_SETTING,
    TARGETS,
    TREES,
    CompactFit,
    in_bytes,
)
from kilobytes_tables import (
    SVC_FACTOR,
    TABULAR_MARGIN,
    Fits,
    Lines,
    accuracies,
    difference,
    enumeration,
    extent,
    gains,
    middle,
    of_target,
    setting_text,
    svc_table,
    svc_verdict,
    tabular_datasets,
    tabular_row,
    tabular_table,
    target_verdict,
    targets_table,
    titles,
)
from selection import SOURCES
from selection_page import machine

TEMPLATE = Path(__file__).with_name("kilobytes.template.md")
COMMANDS = ("kilobytes.py", "kilobytes_page.py")

# What is asked for beside the targets.
FLIPPED_WANTED = 96.5
WORST_LOSS = 1.0
# A peer is called ahead from here on, in points: less is within the error of the test rows.
AHEAD = 0.2
# What the page begins with.
COMPACT_DATASETS, COMPACT_SETTING = ("letter", "usps", "mnist"), "16kB"


def short_answer(fits: Fits) -> str:
    """Return the first paragraph."""
    verdicts = {
        target: target_verdict(target.wanted, of_target(fits, target)) for target in TARGETS
    }
    measured = [target for target in TARGETS if verdicts[target] != "not measured"]
    met = [target for target in measured if verdicts[target] == "met"]
    missed = [
        f"{SOURCES[target.dataset].title} at {setting_text(target.setting)} ({verdicts[target]})"
        for target in measured
        if target not in met
    ]
    compact = {
        dataset: own
        for dataset in COMPACT_DATASETS
        if (own := fits.of("targets", dataset, REFINED, COMPACT_SETTING))
    }
    said = []
    if compact:
        right = [f"{middle(own):.1f} % of {SOURCES[name].title}" for name, own in compact.items()]
        said.append(
            f"A refined model of {setting_text(COMPACT_SETTING)} gets this share of the test rows "
            f"right: {enumeration(right)}."
        )
    failed = f"; not: {'; '.join(missed)}" if missed else ""
    said.append(
        f"Of {len(measured)} accuracies that were asked for in advance, {len(met)} are met{failed}."
    )
    tabular = [tabular_row(fits, dataset)[-1] for dataset in tabular_datasets(fits)]
    if tabular:
        said.append(
            f"What was asked for on tabular data is met on {tabular.count('met')} of "
            f"{len(tabular)} datasets."
        )
    return " ".join(said)


# -- sections that are left out without their fits -----------------------------------------------


def flipped_section(fits: Fits) -> str:
    """Compare models of rows with wrong labels."""
    own = {
        method: fits.of("flipped", FLIPPED_DATASET, method, FLIPPED_SETTING)
        for method in (REFINED, SELECTED)
    }
    if not own[REFINED]:
        return ""
    clean = fits.of("targets", FLIPPED_DATASET, REFINED, FLIPPED_SETTING)
    lines = [
        [words, f"{middle(rows):.2f}", extent(accuracies(rows)), str(len(rows))]
        for words, rows in (
            ("refined", own[REFINED]),
            ("unrefined", own[SELECTED]),
            ("refined, all labels right", clean),
        )
        if rows
    ]
    verdict = target_verdict(FLIPPED_WANTED, own[REFINED])
    return _section(
        "Wrong labels",
        f"{SOURCES[FLIPPED_DATASET].title} in {setting_text(FLIPPED_SETTING)}, with "
        f"{100 * FLIPPED_SHARE:.0f} % of the training rows moved to another class at random; the "
        f"test rows are as they were. Asked for: {FLIPPED_WANTED:.1f} %; {verdict}.",
        table(("model", "median, %", "range", "seeds"), lines),
    )


def draws_section(fits: Fits) -> str:
    """Compare refined and unrefined models of few rows."""
    lines, worst = [], {}
    for dataset in fits.datasets("draws"):
        selected, refined = (
            fits.of("draws", dataset, method, DRAW_SETTING) for method in (SELECTED, REFINED)
        )
        gained = gains(refined, selected)
        if not gained:
            continue
        worst[dataset] = max(0.0, -min(gained))
        kept = sum(fit.refined or 0 for fit in refined)
        lines.append(
            [
                *(SOURCES[dataset].title, percent(middle(selected)), percent(middle(refined))),
                *(difference(gained), f"{kept} of {len(refined)}", f"{worst[dataset]:.2f}"),
                "met" if worst[dataset] <= WORST_LOSS else "missed",
            ]
        )
    if not lines:
        return ""
    largest = max(worst, key=lambda dataset: worst[dataset])
    above = [dataset for dataset in worst if worst[dataset] > WORST_LOSS]
    held = f"not kept to on {titles(above)}" if above else "kept to everywhere"
    header = ("data", "unrefined, %", "refined, %", "gain, points", "refinement kept")
    return _section(
        f"{DRAW_ROWS} rows",
        "Refinement can lose on few rows, so a guard compares it with the unrefined model on "
        f"held-out rows and keeps the better one. {DRAW_ROWS} training rows are drawn anew for "
        f"each seed, {DRAW_SETTING} landmarks, all test rows. Asked for: no draw loses more than "
        f"{WORST_LOSS:g} point. This is {held}; the worst draw of all loses {worst[largest]:.2f} "
        f"({SOURCES[largest].title}).",
        table((*header, "worst loss", "verdict"), lines),
    )


def regression_section(fits: Fits) -> str:
    """Compare the errors of numbers."""
    named = {
        "refined": (REFINED, REGRESSION_SETTING),
        "unrefined": (SELECTED, REGRESSION_SETTING),
        PEERS[TREES[0]].title: (TREES[0], ""),
    }
    lines = []
    for dataset in fits.datasets("regression"):
        errors = {
            name: [
                fit.rmse for fit in fits.of("regression", dataset, *cell) if fit.rmse is not None
            ]
            for name, cell in named.items()
        }
        if not errors["refined"]:
            continue
        texts = [
            f"{median(e):.4f} ({extent(e, '.4f')}; {len(e)})" if e else "–" for e in errors.values()
        ]
        best = min((name for name in named if errors[name]), key=lambda name: median(errors[name]))
        lines.append([SOURCES[dataset].title, *texts, best])
    if not lines:
        return ""
    return _section(
        "Regression",
        f"`NystroemRegressor` in {setting_text(REGRESSION_SETTING)}: root mean squared error of "
        "the test rows in standard deviations of the target, median (range; number of seeds).",
        table(("data", *named, "smallest error"), lines),
    )


def _section(title: str, text: str, lines: Lines) -> str:
    return "\n".join([f"## {title}", "", text, "", *lines, "", ""])


# -- what it is not best for ---------------------------------------------------------------------


def larger_and_better(fits: Fits) -> list[str]:
    """Name the data on which another library is ahead of our best whatever the size."""
    said = []
    drawn = kilobytes_figure.drawn(fits.all())
    for dataset in FIGURE_DATASETS:
        cells: dict[tuple[str, str], list[CompactFit]] = {}
        for fit in drawn:
            if fit.dataset == dataset:
                cells.setdefault((fit.method, fit.setting), []).append(fit)
        ours = {key: own for key, own in cells.items() if key[0] == REFINED}
        theirs = {key: own for key, own in cells.items() if key[0] in PEERS}
        if not ours or not theirs:
            continue
        best, other = (max(part.values(), key=middle) for part in (ours, theirs))
        if middle(other) - middle(best) >= AHEAD:
            said.append(
                f"{SOURCES[dataset].title} ({PEERS[other[0].method].title} "
                f"{percent(middle(other))} in {size(other[0].bytes)}, refined at most "
                f"{percent(middle(best))} in {size(median(f.bytes for f in best))})"
            )
    return said


def refinement_costs(fits: Fits) -> list[float]:
    """Return how many times longer refined fits take than unrefined ones of the same budget."""
    everything = [fit for fit in fits.all() if in_bytes(fit.setting) and fit.accuracy is not None]
    selected = {
        (fit.dataset, fit.setting, fit.seed): fit
        for fit in everything
        if fit.method == SELECTED and fit.part in ("sizes", "tabular")
    }
    return [
        fit.fit_seconds / selected[where].fit_seconds
        for fit in everything
        if fit.method == REFINED and fit.part in ("targets", "sizes", "tabular")
        if (where := (fit.dataset, fit.setting, fit.seed)) in selected
    ]


def not_best(fits: Fits) -> str:
    """Return the list of what others do better."""
    items = []
    larger = larger_and_better(fits)
    if larger:
        items.append(f"Accuracy at any size: ahead of the best model here are {'; '.join(larger)}.")
    else:
        items.append(
            f"Accuracy at any size: no other library measured is ahead by {AHEAD:g} points or more "
            "on the data of the figure. Convolutional networks, which suit images better, were not "
            "measured."
        )
    behind = []
    for dataset in fits.datasets("tabular"):
        refined = fits.of("tabular", dataset, REFINED, TABULAR_SETTING)
        for name in TREES:
            own = gains(fits.of("tabular", dataset, name), refined)
            if own and median(own) > 0:
                behind.append(
                    f"{SOURCES[dataset].title} ({PEERS[name].title} by {median(own):.2f})"
                )
    if behind:
        items.append(
            "Tabular data where a few hundred kilobytes do no harm: gradient boosting is ahead on "
            f"{'; '.join(behind)}. It also needs no scaling of features."
        )
    costs = refinement_costs(fits)
    if costs:
        items.append(
            f"The shortest fit: refinement takes {spread(costs)} times as long as selection alone "
            "(*median [smallest, largest]* over the fits with the same budget and seed)."
        )
    items.append(
        "Rows unlike the training rows: far from all landmarks a model falls back to the frequency "
        "of the classes. The test rows of IJCNN's public split are partly so."
    )
    return "\n".join(f"- {item}" for item in items)


# -- the page ------------------------------------------------------------------------------------


def protocol(fits: Fits) -> str:
    """Say what was fitted on what."""
    refined = [fit for fit in fits.all() if fit.part == "targets" and fit.method == REFINED]
    rows = {fit.dataset: (fit.rows, fit.test_rows) for fit in refined}
    counts = "; ".join(
        f"{SOURCES[name].title} {train:,} / {test:,}" for name, (train, test) in rows.items()
    )
    return (
        "Everything that depends on data (width, landmarks, rank, type of numbers, length of the "
        "training, whether refinement is kept) is chosen inside the fit, from training rows. The "
        "only parameters are `refine`, the size and `random_state`; they are the same for all "
        "data. A seed is that of the fit, of the order of the rows and of the split, where there "
        f"is no public one. The figure's curves have {curve_seeds()}, beside the targets; the "
        "other libraries in it one. Features are scaled to [0, 1] by the range of the training "
        "rows, images by one range in all. Seconds are indicative: fits that run beside each "
        "other, as those of the committed file did, take longer. Training / test rows: "
        f"{counts}.\n\n"
        "The defaults of `refine` and `budget` go back to trials that looked at test scores of "
        "Letter, USPS, MNIST, Pendigits, IJCNN and CovType, and for few or noisy rows of Magic, "
        "SUSY and a9a; what the trials left open was settled on held-out training rows, but with "
        "first results of these data in view. Numbers on them may be too good by an unknown, "
        "probably small amount. Test rows are few, too: one standard "
        f"error of the share that is right is, in points, {sampling_errors(refined)}. Smaller "
        "differences between systems are not findings."
    )


def curve_seeds() -> str:
    """Say how many seeds the curves of the figure have."""
    counts: dict[int, list[str]] = {}
    for dataset, count in CURVE_SEEDS.items():
        counts.setdefault(count, []).append(dataset)
    return enumeration(
        [
            f"{count} seed{'' if count == 1 else 's'} on {titles(own)}"
            for count, own in counts.items()
        ]
    )


def sampling_errors(fits: Iterable[CompactFit]) -> str:
    """Return the binomial error of each dataset's test rows, in points of accuracy."""
    errors: dict[str, str] = {}
    for fit in fits:
        share = (fit.accuracy or 0.0) / 100
        points = 100 * math.sqrt(share * (1 - share) / fit.test_rows)
        errors.setdefault(fit.dataset, f"{points:.2f} on {SOURCES[fit.dataset].title}")
    return "; ".join(errors.values())


RECORDS_NOTE = (
    "Records are as their authors published them, on their own rows (ProtoNN split Letter "
    "16,000 / 4,000). Where a number of landmarks was published instead of bytes, *n* landmarks "
    "count as *n* (features + scores) numbers in float32. A support vector machine on CovType "
    "would take hours and was not fitted."
)


def boosting(known: dict[str, Any]) -> str:
    """Say how many threads there were, and which versions of boosting."""
    versions = [
        f"{PEERS[name].title} {known['versions'][PEERS[name].package]}"
        for name in TREES
        if PEERS[name].package in known["versions"]
    ]
    return ", ".join([f"Threads: {known['threads']}", *versions]) + "."


def values(results: Path, save: Callable[[figures.Figure], str]) -> dict[str, str]:
    """Return everything that the template asks for."""
    fits = Fits(csv_rows.read(results / "kilobytes.csv", CompactFit))
    if not any(of_target(fits, target) for target in TARGETS):
        raise SystemExit(f"No targets are in {results}. Run benchmarks/kilobytes.py first.")
    known = json.loads((results / "kilobytes.json").read_text(encoding="utf-8"))
    return {
        "short_answer": short_answer(fits),
        "protocol": protocol(fits),
        "targets_table": "\n".join(targets_table(fits)),
        "svc_factor": str(SVC_FACTOR),
        "quick_landmarks": QUICK_SETTING,
        "svc_table": "\n".join(svc_table(fits)),
        "svc_verdict": svc_verdict(fits),
        "records_note": RECORDS_NOTE,
        "tabular_size": setting_text(TABULAR_SETTING),
        "tabular_margin": f"{TABULAR_MARGIN:g}",
        "tabular_table": "\n".join(tabular_table(fits)),
        "flipped_section": flipped_section(fits),
        "draws_section": draws_section(fits),
        "regression_section": regression_section(fits),
        "not_best": not_best(fits),
        "commands": enumeration([f"`benchmarks/{command}`" for command in COMMANDS]),
        "machine": f"{machine(known)} {boosting(known)}",
        "size_figure": save(kilobytes_figure.size_figure(fits.all())),
    }


def write_page(results: Path, docs: Path) -> Path:
    """Write the page and its figure; return the page."""

    def save(figure: figures.Figure) -> str:
        figures.save(figure, docs / "figures" / "kilobytes.png")
        return (
            "![Test accuracy against model size on six datasets](figures/kilobytes.png)\n\n*Median "
            "over the seeds; bars reach from the worst to the best. Accuracies are spaced by the "
            "logarithm of the error, sizes by their logarithm.*"
        )

    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values(results, save))
    return pages.write(docs / "kilobytes.md", filled)


if __name__ == "__main__":
    pages.main(__doc__, write_page)
