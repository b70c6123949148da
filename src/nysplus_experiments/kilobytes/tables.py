"""Look-up in ``kilobytes.csv``, the tables of the page on compact models, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from benchmark_runs import percent, short, size, spread, table
from kilobytes import (
    PEERS,
    QUICK,
    QUICK_SETTING,
    REFINED,
    SEEDS,
    SELECTED,
    SVC,
    TABULAR_SETTING,
    TARGETS,
    TREES,
    CompactFit,
    Target,
    in_bytes,
)
from selection import SOURCES

from nysplus._budget import make_budget

# What is asked for beside the targets.
SVC_FACTOR = 30
TABULAR_MARGIN = 0.5
Lines = list[str]


class Fits:
    """The fits by part, dataset, method and setting; each a list in the order of seeds."""

    def __init__(self, rows: Iterable[CompactFit]) -> None:
        self._cells: dict[tuple[str, str, str, str], dict[int, CompactFit]] = {}
        for row in rows:
            self._cells.setdefault(row.key[:4], {})[row.seed] = row

    def all(self) -> list[CompactFit]:
        """Return every fit."""
        return [row for cell in self._cells.values() for row in cell.values()]

    def of(self, part: str, dataset: str, method: str, setting: str = "") -> list[CompactFit]:
        """Return the fits of a cell."""
        cell = self._cells.get((part, dataset, method, setting), {})
        return [cell[seed] for seed in sorted(cell)]

    def datasets(self, part: str) -> list[str]:
        """Return the data of a part, in the order in which they were measured."""
        return list(dict.fromkeys(cell[1] for cell in self._cells if cell[0] == part))


# -- numbers and words ---------------------------------------------------------------------------


def accuracies(fits: Iterable[CompactFit]) -> list[float]:
    """Return the accuracies that there are."""
    return [fit.accuracy for fit in fits if fit.accuracy is not None]


def middle(fits: Iterable[CompactFit]) -> float:
    """Return the median accuracy."""
    return median(accuracies(fits))


def extent(values: Sequence[float], spec: str = ".2f") -> str:
    """Write "smallest to largest", or a dash for a single number."""
    return "–" if len(values) < 2 else f"{min(values):{spec}} to {max(values):{spec}}"


def difference(values: Sequence[float], spec: str = "+.2f") -> str:
    """Write "median [smallest, largest]" of differences, or the only one."""
    text = f"{median(values):{spec}}"
    if len(values) > 1:
        text += f" [{min(values):{spec}}, {max(values):{spec}}]"
    return text.replace("-", "−")


def paired(
    first: Iterable[CompactFit], second: Iterable[CompactFit]
) -> list[tuple[CompactFit, CompactFit]]:
    """Return the pairs of fits that share their seed."""
    others = {fit.seed: fit for fit in second}
    return [(fit, others[fit.seed]) for fit in first if fit.seed in others]


def gains(first: Iterable[CompactFit], second: Iterable[CompactFit]) -> list[float]:
    """Return how many points of accuracy the first are above the second, seed by seed."""
    return [a - b for pair in paired(first, second) for a, b in [accuracies(pair)]]


def setting_text(setting: str) -> str:
    """Write a setting of ours: "64 kB" or "100 landmarks"."""
    return f"{setting[:-2]} {setting[-2:]}" if in_bytes(setting) else f"{setting} landmarks"


def shape_text(fits: Sequence[CompactFit]) -> str:
    """Say what the median fit consists of."""
    fit = sorted(fits, key=lambda fit: fit.accuracy or 0.0)[len(fits) // 2]
    rank = "" if fit.rank is None else f" × {fit.rank}"
    return f"{fit.landmarks}{rank}, {fit.storage}"


def enumeration(words: Sequence[str]) -> str:
    """Join words: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def titles(datasets: Iterable[str]) -> str:
    """Name datasets in a sentence."""
    return enumeration([SOURCES[name].title for name in datasets])


# -- targets -------------------------------------------------------------------------------------


def over_budget(fits: Iterable[CompactFit]) -> bool:
    """Tell whether a fit has more bytes than it was allowed."""
    return any(
        in_bytes(fit.setting) and fit.bytes > make_budget(fit.setting).n_bytes for fit in fits
    )


def target_verdict(wanted: float, fits: Sequence[CompactFit]) -> str:
    """Say whether a number is reached."""
    if not fits:
        return "not measured"
    if over_budget(fits):
        return "too large"
    short_by = wanted - middle(fits)
    return "met" if short_by <= 0 else f"missed by {max(short_by, 0.01):.2f}"


def targets_table(fits: Fits) -> Lines:
    """Return one line a target."""
    lines = []
    for target in TARGETS:
        own = of_target(fits, target)
        columns = (
            (
                f"{middle(own):.2f}",
                *(extent(accuracies(own)), str(len(own)), size(median(f.bytes for f in own))),
                *(shape_text(own), spread([fit.fit_seconds for fit in own])),
            )
            if own
            else ("–",) * 6
        )
        lines.append(
            [
                *(SOURCES[target.dataset].title, setting_text(target.setting)),
                *(f"{target.wanted:.1f}", *columns, target_verdict(target.wanted, own)),
            ]
        )
    header = ("data", "size", "wanted, %", "median, %", "range", "seeds", "model")
    return table((*header, "landmarks × rank, type", "fit, s", "verdict"), lines)


def of_target(fits: Fits, target: Target) -> list[CompactFit]:
    """Return the fits of a target."""
    return fits.of("targets", target.dataset, REFINED, target.setting)


# -- the support vector machine ------------------------------------------------------------------


def svc_rows(fits: Fits) -> list[tuple[str, str, list[str], list[str]]]:
    """Return dataset, model, what is not reached, and the columns, for each model of ours."""
    rows = []
    for dataset in fits.datasets("svc"):
        svc = fits.of("svc", dataset, SVC)
        models = {f"{QUICK_SETTING}, no search": fits.of("svc", dataset, QUICK, QUICK_SETTING)}
        for target in TARGETS:
            if target.dataset == dataset:
                models[setting_text(target.setting)] = of_target(fits, target)
        for name, own in models.items():
            if pairs := paired(svc, own):
                rows.append((dataset, name, *_against_svc(svc, own, pairs)))
    return rows


def _against_svc(
    svc: list[CompactFit], own: list[CompactFit], pairs: list[tuple[CompactFit, CompactFit]]
) -> tuple[list[str], list[str]]:
    """Return what is not reached, and the columns."""
    ratios = [
        [getattr(theirs, column) / getattr(ours, column) for theirs, ours in pairs]
        for column in ("bytes", "predict_seconds", "fit_seconds")
    ]
    ahead = middle(own) - middle(svc)
    behind = ["accuracy"] if ahead < 0 else []
    behind += [
        word
        for word, own_ratios, limit in zip(
            ("bytes", "predict time", "fit time"),
            ratios,
            (SVC_FACTOR, SVC_FACTOR, 1.0),
            strict=True,
        )
        if median(own_ratios) < limit
    ]
    columns = [percent(middle(own)), percent(middle(svc)), f"{ahead:+.2f}".replace("-", "−")]
    return behind, [*columns, *(spread(own_ratios) for own_ratios in ratios)]


def svc_table(fits: Fits) -> Lines:
    """Return one line a model that has a support vector machine beside it."""
    header = (
        "data",
        "model",
        "accuracy, %",
        "SVC, %",
        "difference",
        "bytes",
        "predict",
        "fit",
        "verdict",
    )
    return table(
        header,
        (
            [
                *(SOURCES[dataset].title, name, *columns),
                f"not: {', '.join(behind)}" if behind else "all met",
            ]
            for dataset, name, behind, columns in svc_rows(fits)
        ),
    )


def svc_verdict(fits: Fits) -> str:
    """Say on which data some model fulfils everything."""
    rows = svc_rows(fits)
    data = list(dict.fromkeys(dataset for dataset, *_ in rows))
    best = {
        dataset: [model for name, model, behind, _ in rows if name == dataset and not behind]
        for dataset in data
    }
    said = [
        f"{SOURCES[dataset].title}: all four are met by {' and by '.join(models)}."
        if models
        else f"{SOURCES[dataset].title}: no model meets all four."
        for dataset, models in best.items()
    ]
    once = [name for name in data if len(fits.of("svc", name, SVC)) == 1]
    if once:
        said.append(f"On {titles(once)} the support vector machine was fitted once.")
    return " ".join(said)


# -- tabular data --------------------------------------------------------------------------------


def tabular_datasets(fits: Fits) -> list[str]:
    """Return the data of which there are refined and unrefined models."""
    return [
        dataset
        for dataset in fits.datasets("tabular")
        if paired(*(fits.of("tabular", dataset, m, TABULAR_SETTING) for m in (REFINED, SELECTED)))
    ]


def tabular_row(fits: Fits, dataset: str) -> list[str]:
    """Return the columns of a dataset."""
    refined, selected = (
        fits.of("tabular", dataset, method, TABULAR_SETTING) for method in (REFINED, SELECTED)
    )
    trees = {name: own for name in TREES if (own := fits.of("tabular", dataset, name))}
    over_selected = gains(refined, selected)
    title = SOURCES[dataset].title
    if len(refined) < SEEDS:
        title += f" ({len(refined)} of {SEEDS} seeds)"
    columns = [
        *(title, percent(middle(refined)), extent(accuracies(refined))),
        *(difference(over_selected), "–", "–", "–", spread([f.fit_seconds for f in refined])),
    ]
    failures = [] if median(over_selected) >= 0 else ["below the unrefined model"]
    if over_budget(refined):
        failures.append("too large")
    if trees:
        better = max(trees, key=lambda name: middle(trees[name]))
        over_trees = gains(refined, trees[better])
        smaller = median(f.bytes for f in trees[better]) / median(f.bytes for f in refined)
        columns[4:7] = [PEERS[better].title, difference(over_trees), f"{short(smaller)} ×"]
        if median(over_trees) < -TABULAR_MARGIN:
            failures.append(f"more than {TABULAR_MARGIN:g} behind {PEERS[better].title}")
    return [*columns, "; ".join(failures) or ("met" if trees else "no boosting to compare with")]


def tabular_table(fits: Fits) -> Lines:
    """Return one line a dataset."""
    header = ("data", "median, %", "range", "against unrefined", "better boosting", "against it")
    rows = (tabular_row(fits, dataset) for dataset in tabular_datasets(fits))
    return table((*header, "its bytes", "fit, s", "verdict"), rows)
