"""Tables of the comparison of landmark selectors, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.statistics import Estimate, estimate
from nysplus_experiments.harness.tables import MISSING, interval, markdown, short
from nysplus_experiments.selection.comparison import WIDTH_TITLES, Comparison

# The published test rows of IJCNN follow another distribution than its training rows, so they
# cannot rank rules that see training rows only. Shown apart.
APART = "ijcnn1"
RESPLIT = "ijcnn1-resplit"


def points(value: Estimate, sign: bool = False) -> str:
    """Write "mean [low, high]" in points of accuracy, or the mean alone for a single trial."""
    return interval(value, 2, sign)


def bounds(value: Estimate) -> str:
    """Write "[low, high]", or a dash where there is no interval."""
    return f"[{value.low:+.2f}, {value.high:+.2f}]" if value.has_interval else MISSING


def code(rule: str) -> str:
    """Write a rule as the value of a parameter."""
    return f"`{rule}`"


def summary(compared: Comparison) -> str:
    """Return one line a rule over all cells."""
    several = len(compared.trials) > 1

    def line(rule: str) -> list[str]:
        loss, cell = compared.worst(rule)
        return [
            *(code(rule), points(compared.mean(rule)), f"{compared.mean_rank(rule):.1f}"),
            points(compared.mean_loss(rule)),
            points(compared.mean_regret(rule)) if several else MISSING,
            f"{loss:.2f} ({cell.title})",
        ]

    header = ("`selection`", "accuracy, %", "rank", "loss, points", "regret, points")
    return markdown((*header, "largest loss"), map(line, compared.ranked()))


def gains(compared: Comparison) -> str:
    """Return one line a rule: gains over uniform rows and over the negative margin."""
    others = [rule for rule in ("uniform", "negative-margin") if rule in compared.rules]

    def line(rule: str) -> list[str]:
        cells = [code(rule)]
        for over in others:
            gain, wide = compared.gain(rule, over), compared.gain_over_datasets(rule, over)
            own = over == rule
            cells += [MISSING, MISSING] if own else [points(gain, sign=True), bounds(wide)]
        return cells

    header = [part for over in others for part in (f"over `{over}`, points", "over datasets")]
    return markdown(("`selection`", *header), map(line, compared.ranked()))


def by_size(compared: Comparison) -> str:
    """Return accuracy and loss of each rule by size."""
    return _parts(compared, {f"n = {n}": compared.part(n=n) for n in compared.sizes})


def by_width(compared: Comparison) -> str:
    """Return accuracy and loss of each rule by width."""
    return _parts(compared, {WIDTH_TITLES[w]: compared.part(width=w) for w in compared.widths})


def by_dataset(compared: Comparison) -> str:
    """Return accuracy and loss of each rule by dataset."""
    rules = compared.ranked()
    lines = []
    for name in compared.datasets:
        part = compared.part(dataset=name)
        lines.append([SOURCES[name].title, *(_accuracy_and_loss(part, rule) for rule in rules)])
    return markdown(("data", *map(code, rules)), lines)


def _parts(compared: Comparison, parts: Mapping[str, Comparison]) -> str:
    lines = (
        [code(rule), *(_accuracy_and_loss(part, rule) for part in parts.values())]
        for rule in compared.ranked()
    )
    return markdown(("`selection`", *parts), lines)


def _accuracy_and_loss(part: Comparison, rule: str) -> str:
    return f"{part.mean(rule).mean:.2f} ({part.mean_loss(rule).mean:.2f})"


def all_cells(compared: Comparison, width: str = "scale") -> str:
    """Return the accuracy of every rule in every cell of a width, the best in bold."""
    part, rules = compared.part(width=width), compared.ranked()
    lines = []
    for cell, values in zip(part.cells, part.values, strict=True):
        found = [estimate(values[part.rules.index(rule)]) for rule in rules]
        best = max(value.mean for value in found)
        texts = (f"**{_half(v)}**" if v.mean == best else _half(v) for v in found)
        lines.append([SOURCES[cell.dataset].title, str(cell.n), *texts])
    return markdown(("data", "n", *map(code, rules)), lines)


def _half(value: Estimate) -> str:
    """Write "mean ± half of the interval"."""
    half = f" ± {value.high - value.mean:.1f}" if value.has_interval else ""
    return f"{value.mean:.1f}{half}"


def against(compared: Comparison, rule: str = "auto") -> str:
    """Return, for every other rule, how often and by how much it differs from one."""

    def line(other: str) -> list[str]:
        above, below = compared.clear(other, rule)
        differences = compared.differences(other, rule)
        largest, cell = float(differences.max()), compared.cells[int(differences.argmax())]
        most = f"{largest:.2f} ({cell.title})" if largest > 0 else "never above"
        return [code(other), str(len(above)), str(len(below)), most]

    header = ("`selection`", "clearly above", "clearly below", "largest lead, points")
    return markdown(header, (line(other) for other in compared.ranked() if other != rule))


def exceptions(compared: Comparison, rule: str = "auto") -> str:
    """Return the cells in which another rule is clearly above one, largest lead first."""
    found = []
    for other in compared.rules:
        differences = dict(zip(compared.cells, compared.differences(other, rule), strict=True))
        found += [(differences[cell], cell, other) for cell in compared.clear(other, rule)[0]]
    lines = (
        [
            SOURCES[cell.dataset].title,
            str(cell.n),
            WIDTH_TITLES[cell.width],
            code(other),
            f"{x:.2f}",
        ]
        for x, cell, other in sorted(found, key=lambda item: -item[0])
    )
    return markdown(("data", "n", "width", "`selection`", "lead, points"), lines)


def ijcnn(compared: Comparison) -> str:
    """Return the accuracies on both splits of IJCNN, one line a size and width."""
    part = compared.where(lambda cell: cell.dataset in (APART, RESPLIT))
    rules = part.ranked() if part.cells else []
    values = dict(zip(part.cells, part.values.mean(axis=2), strict=True))
    lines = []
    for cell in part.cells:
        other = cell._replace(dataset=RESPLIT)
        if cell.dataset == APART and other in values:
            pairs = ((values[cell][i], values[other][i]) for i in map(part.rules.index, rules))
            texts = (f"{public:.1f} / {resplit:.1f}" for public, resplit in pairs)
            lines.append([str(cell.n), WIDTH_TITLES[cell.width], *texts])
    return markdown(("n", "width", *map(code, rules)), lines)


def seconds(compared: Comparison, over: str = "uniform") -> str:
    """Return times relative to another rule's, by size; values are −log seconds."""
    parts = {f"n = {n}": compared.part(n=n) for n in compared.sizes}

    def cell(rule: str, part: Comparison) -> str:
        if rule == over:
            return f"{short(math.exp(-part.mean(over).mean))} s"
        return interval(part.gain(over, rule).map(math.exp))

    ordered = sorted(compared.rules, key=lambda rule: -compared.mean(rule).mean)
    lines = ([code(rule), *(cell(rule, part) for part in parts.values())] for rule in ordered)
    return markdown(("`selection`", *parts), lines)


def regression(compared: Comparison) -> str:
    """Return errors, also relative to those of uniform rows and k-means; values are −log RMSE."""
    others = [rule for rule in ("uniform", "kmeans") if rule in compared.rules]
    lines = []
    for dataset in compared.datasets:
        for n in compared.sizes:
            part = compared.part(dataset=dataset, n=n)
            for rule in compared.ranked() if part.cells else []:
                ratios = (
                    MISSING if rule == over else interval(part.gain(over, rule).map(math.exp))
                    for over in others
                )
                error = f"{math.exp(-part.mean(rule).mean):.3f}"
                lines.append([SOURCES[dataset].title, str(n), code(rule), error, *ratios])
    header = (f"RMSE / `{over}`'s" for over in others)
    return markdown(("data", "n", "`selection`", "RMSE", *header), lines)
