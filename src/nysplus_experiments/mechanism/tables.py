"""Tables of docs/results/mechanism.md; differences are paired over trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.statistics import Estimate, estimate
from nysplus_experiments.harness.tables import MISSING, interval, markdown, percent, short
from nysplus_experiments.mechanism.landmarks import ALL_ROWS
from nysplus_experiments.mechanism.rules import MARGIN, RULES, UNIFORM
from nysplus_experiments.mechanism.trials import MAX_TRAIN_ROWS

#: Rules whose redundancy is listed.
REDUNDANCY_RULES = (UNIFORM, MARGIN, "margin, diverse", "k-means")
#: Headings of the levels of a factor; levels without an entry are their own headings.
HEADINGS = {
    "gamma": {"0.25": "γ / 4", "0.5": "γ / 2", "1": "γ", "2": "2 γ", "4": "4 γ"},
    "rho": {"1e-08": "1e-8", "1e-05": "1e-5", "0.001": "1e-3"},
    "pool": {"1": "n (Algorithm 1)", "2": "2 n", "4": "4 n", "8": "8 n", "all": "all rows"},
}


def title(dataset: str) -> str:
    """Return the name that the paper prints."""
    return DATASETS[dataset].title


def gains(rows: pd.DataFrame, column: str = "accuracy") -> pd.DataFrame:
    """Return the difference of every rule from uniform landmarks, by dataset, n, rule and trial."""
    known = rows[rows["rule"] != ALL_ROWS]
    wide = known.pivot(index=["dataset", "n", "trial"], columns="rule", values=column)
    differences = wide.sub(wide[UNIFORM], axis="index").drop(columns=UNIFORM)
    found = differences.stack().dropna().rename("gain").reset_index()
    order = list(dict.fromkeys(rows["dataset"]))
    return found.sort_values(
        ["dataset", "n", "trial"],
        key=lambda values: values.map(order.index) if values.name == "dataset" else values,
    )


def points(value: Estimate) -> str:
    """Write a difference of accuracies in points."""
    return interval(value, 2, sign=True)


def _cells(rows: pd.DataFrame) -> Iterator[tuple[str, int, pd.DataFrame]]:
    """Yield dataset, n and their rows, in the order of the file."""
    for (dataset, n), own in rows.groupby(["dataset", "n"], sort=False):
        yield str(dataset), int(n), own


def _mean(rows: pd.DataFrame, rule: str, column: str) -> float:
    return float(rows.loc[rows["rule"] == rule, column].mean())


def class_name(dataset: str, label: str) -> str:
    """Return the name of a class: the publisher numbers the classes of Letter from 1 to 26."""
    return chr(ord("A") + int(label) - 1) if dataset == "letter" else label


def chosen_rows(rows: pd.DataFrame) -> str:
    """List which rows the largest negative margins are, beside all training rows."""
    lines = []
    for dataset, n, own in _cells(rows):
        cells = []
        for column in ("pilot_wrong", "outliers"):
            every, chosen = (_mean(own, rule, column) for rule in (ALL_ROWS, MARGIN))
            cells.append(f"{every:.1f} → {chosen:.1f}")
        cells.append(f"{_mean(own, MARGIN, 'final_wrong'):.1f}")
        for rule in (ALL_ROWS, MARGIN):
            low, middle, high = (_mean(own, rule, f"margin_{q}") for q in (10, 50, 90))
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})".replace("-", "−"))
        lines.append([title(dataset), str(n), *cells])
    header = ("data", "n", "pilot is wrong, % of rows → of landmarks", "outliers, %")
    more = ("final model is wrong, % of landmarks", "negative margin, all rows", "landmarks")
    return markdown((*header, *more), lines)


def class_table(rows: pd.DataFrame) -> str:
    """List how far the classes of the landmarks are from those of the rows."""
    lines = []
    for dataset, n, own in _cells(rows):
        selected = own[own["rule"] == MARGIN]
        cells = [f"{_mean(own, rule, 'class_shift'):.1f}" for rule in (UNIFORM, MARGIN)]
        for end in ("most", "least"):
            name = class_name(dataset, str(selected[f"{end}_class"].mode().iloc[0]))
            cells.append(f"{name}: {selected[f'{end}_ratio'].mean():.2f} ×")
        lines.append([title(dataset), str(n), *cells])
    header = ("data", "n", "class shift of uniform landmarks, %", "of selected landmarks, %")
    more = ("class with the largest factor", "class with the smallest factor")
    return markdown((*header, *more), lines)


def redundancy(rows: pd.DataFrame) -> str:
    """List similarity, rank and explained kernel of some rules."""
    lines = []
    for dataset, n, own in _cells(rows):
        for rule in REDUNDANCY_RULES:
            names = ("unexplained", "unexplained_easy", "unexplained_hard")
            lines.append([
                *(title(dataset), str(n), rule, f"{_mean(own, rule, 'similarity'):.3f}"),
                f"{_mean(own, rule, 'effective_rank'):.1f}",
                *(_significant(_mean(own, rule, name)) for name in names),
            ])  # fmt: skip
    header = ("data", "n", "landmarks", "similarity", "effective rank", "unexplained, %")
    return markdown((*header, "on easy rows", "on hard rows"), lines)


def _significant(value: float) -> str:
    """Write a number with two digits, with an exponent if it is very small."""
    return short(value) if value >= 1e-3 else f"{value:.1e}"


def easy_and_hard(rows: pd.DataFrame) -> str:
    """List the gains on easy and on hard test rows, and what they contribute to the whole."""
    by_kind = {name: gains(rows, name) for name in ("accuracy", "easy", "hard")}
    lines = []
    for dataset, n, own in _cells(rows):
        share = _mean(own, UNIFORM, "hard_rows")
        found = {name: _of(frame, dataset, n, MARGIN) for name, frame in by_kind.items()}
        lines.append([
            *(title(dataset), str(n), f"{share:.1f}"),
            *(points(found[name]) for name in ("easy", "hard", "accuracy")),
        ])  # fmt: skip
    header = ("data", "n", "hard rows, %", "gain on easy rows", "gain on hard rows", "gain")
    return markdown(header, lines)


def _of(frame: pd.DataFrame, dataset: str, n: int, rule: str) -> Estimate:
    chosen = (frame["dataset"] == dataset) & (frame["n"] == n) & (frame["rule"] == rule)
    return estimate(frame.loc[chosen, "gain"])


def rule_table(rows: pd.DataFrame, column: str = "accuracy") -> str:
    """List the gain of every rule over uniform landmarks, one column a dataset and size."""
    frame = gains(rows, column)
    cells = list(dict.fromkeys((dataset, n) for dataset, n, _ in _cells(rows)))
    uniform = [percent(_mean(own, UNIFORM, column)) for _, _, own in _cells(rows)]
    lines = [["uniform, accuracy in %", *uniform]]
    measured = set(zip(frame["dataset"], frame["n"], frame["rule"], strict=True))
    for rule in RULES:
        if rule == UNIFORM:
            continue
        found = [
            points(_of(frame, *cell, rule)) if (*cell, rule) in measured else MISSING
            for cell in cells
        ]
        lines.append([rule, *found])
    return markdown(("landmarks", *(f"{title(name)}, {n}" for name, n in cells)), lines)


def level_gains(rows: pd.DataFrame, factor: str, kind: str = "") -> dict[str, list[Estimate]]:
    """Return the gain at each level of a factor, by dataset; ``kind`` may be "_balanced"."""
    own = rows[rows["factor"] == factor]
    gain = own[f"selected{kind}"] - own[f"uniform{kind}"]
    groups = own.assign(gain=gain).groupby(["dataset", "level"], sort=False)["gain"]
    found: dict[str, list[Estimate]] = {}
    for (dataset, _), values in groups:
        found.setdefault(str(dataset), []).append(estimate(values))
    return found


def levels(rows: pd.DataFrame, factor: str) -> list[str]:
    """Return the levels of a factor in the order of the file."""
    return list(dict.fromkeys(rows.loc[rows["factor"] == factor, "level"]))


def condition_table(rows: pd.DataFrame, factor: str) -> str:
    """List the gain at each level of a factor; below it the accuracy of uniform landmarks."""
    names, found = levels(rows, factor), level_gains(rows, factor)
    own = rows[rows["factor"] == factor]
    lines = []
    for dataset, values in found.items():
        mine = own[own["dataset"] == dataset]
        uniform = mine.groupby("level", sort=False)["uniform"].mean()
        cells = [f"{points(v)}; {percent(u)}" for v, u in zip(values, uniform, strict=True)]
        lines.append([title(dataset), str(mine["n"].iloc[0]), *cells])
    headings = [HEADINGS.get(factor, {}).get(name, name) for name in names]
    return markdown(("data", "n", *headings), lines)


@dataclass(frozen=True)
class ErrorCell:
    """The gain of a dataset with n landmarks and a number of training rows.

    ``wrong_rows`` is the mean number of training rows that the pilot predicts wrong, and
    ``chosen_wrong`` the share of the landmarks that are such rows, in percent.
    """

    dataset: str
    n: int
    n_train: int
    wrong_rows: float
    chosen_wrong: float
    uniform: float
    gain: Estimate

    @property
    def ratio(self) -> float:
        """Rows that the pilot predicts wrong, per landmark."""
        return self.wrong_rows / self.n


def error_cells(chosen: pd.DataFrame, changed: pd.DataFrame) -> list[ErrorCell]:
    """Return the cells of both steps, by dataset and by errors of the pilot per landmark."""
    cells, found = [], gains(chosen)
    for dataset, n, own in _cells(chosen):
        n_train = min(MAX_TRAIN_ROWS, DATASETS[dataset].counts[0])
        cells.append(
            ErrorCell(
                dataset,
                n,
                n_train,
                wrong_rows=_mean(own, ALL_ROWS, "pilot_wrong") / 100 * n_train,
                chosen_wrong=_mean(own, MARGIN, "pilot_wrong"),
                uniform=_mean(own, UNIFORM, "accuracy"),
                gain=_of(found, dataset, n, MARGIN),
            )
        )
    rows = changed[changed["factor"] == "rows"]
    for (dataset, n, level), own in rows.groupby(["dataset", "n", "level"], sort=False):
        means = {name: own[name].mean() for name in ("wrong_rows", "chosen_wrong", "uniform")}
        gain = estimate(own["selected"] - own["uniform"])
        cells.append(ErrorCell(str(dataset), int(n), int(level), gain=gain, **means))
    order = list(dict.fromkeys(cell.dataset for cell in cells))
    return sorted(cells, key=lambda cell: (order.index(cell.dataset), cell.ratio))


def error_table(cells: Iterable[ErrorCell]) -> str:
    """List the gain by the errors of the pilot per landmark."""
    lines = [
        [
            *(title(cell.dataset), str(cell.n), f"{cell.n_train:,}", f"{cell.wrong_rows:,.0f}"),
            *(f"{cell.ratio:.2f}", f"{cell.chosen_wrong:.0f}"),
            *(percent(cell.uniform), points(cell.gain)),
        ]
        for cell in cells
    ]
    header = ("data", "n", "training rows", "rows that the pilot gets wrong", "per landmark")
    return markdown((*header, "of the landmarks, %", "uniform, %", "gain"), lines)


#: Rows of the table of class weights: factor, level and the words for them.
_WEIGHTINGS = {
    ("weights", "equal"): "Algorithm 1",
    ("weights", "balanced"): "balanced weights in both stages",
    ("quotas", "share of rows"): "quotas by the share of rows",
    ("quotas", "equal"): "equal quotas",
}


def weight_table(rows: pd.DataFrame) -> str:
    """List the gain in accuracy and in the mean over classes, by weights and quotas of classes."""
    lines = []
    for dataset in dict.fromkeys(rows["dataset"]):
        for (factor, level), words in _WEIGHTINGS.items():
            own = rows[(rows["dataset"] == dataset) & (rows["factor"] == factor)]
            part = own[own["level"] == level]
            cells = [
                cell
                for kind in ("", "_balanced")
                for cell in (
                    percent(part[f"uniform{kind}"].mean()),
                    points(estimate(part[f"selected{kind}"] - part[f"uniform{kind}"])),
                )
            ]
            lines.append([title(dataset), words, *cells])
    header = ("data", "classes", "uniform, accuracy in %", "gain")
    return markdown((*header, "uniform, mean over classes in %", "gain"), lines)


def full_table(rows: pd.DataFrame) -> str:
    """List the distance from full kernel ridge regression by the ridge and the landmarks."""
    lines = []
    for (dataset, rho, n), own in rows.groupby(["dataset", "rho", "n"], sort=False):
        distances = [points(estimate(own[name] - own["full"])) for name in ("uniform", "selected")]
        full = percent(own["full"].mean())
        lines.append([title(str(dataset)), f"{rho:g}", str(n), full, *distances])
    header = ("data", "ρ", "n", "full ridge, %", "uniform − full", "selected − full")
    return markdown(header, lines)


def direction_table(rows: pd.DataFrame) -> str:
    """List the shares of the kernel and of the labels in the first eigenvectors."""
    lines = []
    for (dataset, n), own in rows.groupby(["dataset", "n"], sort=False):
        shares = [f"{own[name].mean():.1f}" for name in ("kernel_share", "label_share")]
        lines.append([title(str(dataset)), str(n), *shares])
    return markdown(("data", "eigenvectors", "trace of the kernel, %", "labels, %"), lines)


def paper_gains(rows: pd.DataFrame, names: Sequence[str]) -> str:
    """List the gains of the reproduction of the paper, on all training rows, by size."""
    models = rows[rows["method"].isin(("Nys", "Nys+")) & (rows["status"] == "ok")]
    same = models["n_initial"].isna() | (models["n_initial"] == models["n"])
    wide = models[same].pivot_table(
        index=["dataset", "n", "trial"], columns="method", values="accuracy"
    )
    gain = (wide["Nys+"] - wide["Nys"]).dropna()
    lines = []
    for name in names:
        if name in gain.index.get_level_values("dataset"):
            own = gain.xs(name, level="dataset")
            lines.append([title(name), _by_size((n, part) for n, part in own.groupby(level="n"))])
    return markdown(("data", "gain by number of landmarks, points"), lines)


def _by_size(parts: Iterable[tuple[int, pd.Series]]) -> str:
    return "; ".join(f"{n}: {points(estimate(values))}" for n, values in parts)
