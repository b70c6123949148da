"""Tables of the page on compact models, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.problems import MULTILABEL, SOURCES
from nysplus_experiments.harness.tables import MISSING, markdown, percent, short, size, spread
from nysplus_experiments.kilobytes import fits as compact
from nysplus_experiments.kilobytes.earlier import BEFORE, earlier
from nysplus_experiments.kilobytes.fits import (
    AUGMENTED,
    IMAGE,
    PEERS,
    QUICK,
    REFINED,
    SVC,
    TREES,
    UNREFINED,
    in_bytes,
)

#: Accuracies in percent of other authors, on their rows, and bytes: n (d + L) float32 numbers for
#: BSGD and Falkon.
PUBLISHED = pd.read_csv(Path(__file__).with_name("published.csv"))
KEY = ["part", "dataset", "method", "setting"]
# Parts of the figure and of the comparison at any size.
FIGURE_PARTS = ("targets", "unrefined", "peers")
TITLES = {
    REFINED: "refined",
    IMAGE: "refined, images",
    AUGMENTED: "refined, images, augmented",
    UNREFINED: "unrefined",
    QUICK: "refined, no search",
}
OURS = (REFINED, IMAGE, AUGMENTED)
# Budgets of the comparison with support vector machines; augmented models are all compared.
SVC_SETTINGS = ("16kB", "64kB")


def read(results: Path) -> pd.DataFrame:
    """Return the fits, the last of each key, ordered by seed."""
    fits = records.frame(results / "kilobytes" / compact.FILE, compact.CompactFit)
    numbers = ["accuracy", "rmse", "landmarks", "rank", "refined", "fit_cpu_seconds"]
    fits[numbers] = fits[numbers].astype(float)  # a column without any value has no type
    return fits.drop_duplicates([*KEY, "seed"], keep="last").sort_values("seed", kind="stable")


def cell(
    fits: pd.DataFrame, part: str, dataset: str, method: str, setting: str = ""
) -> pd.DataFrame:
    """Return the fits of one model, by seed."""
    return fits[(fits[KEY] == [part, dataset, method, setting]).all(axis=1)].set_index("seed")


def targets() -> Iterator[tuple[str, str, str]]:
    """Yield the models of the main table: dataset, method, setting."""
    for name, methods in compact.TARGETS.items():
        for method, settings in methods.items():
            for setting in settings:
                yield name, method, setting


# -- numbers as text -----------------------------------------------------------------------------


def extent(values: Iterable[float], spec: str = ".2f") -> str:
    """Write "smallest to largest", or a dash for a single number."""
    x = list(values)
    return MISSING if len(x) < 2 else f"{min(x):{spec}} to {max(x):{spec}}"


def signed(value: float) -> str:
    """Write a number with its sign and two decimals."""
    return f"{value:+z.2f}".replace("-", "−") if np.isfinite(value) else MISSING


def difference(values: pd.Series) -> str:
    """Write "median [smallest, largest]" of differences, or the only one."""
    return spread(values, signed)


def gains(first: pd.DataFrame, second: pd.DataFrame) -> pd.Series:
    """Return the points of accuracy by which the first fits are above the second, by seed."""
    return (first["accuracy"] - second["accuracy"]).dropna()


def setting_text(setting: str) -> str:
    """Write a setting: "64 kB" or "100 landmarks"."""
    return f"{setting[:-2]} {setting[-2:]}" if in_bytes(setting) else f"{setting} landmarks"


def whole(value: float) -> str:
    """Write a whole number."""
    return f"{value:,.0f}" if np.isfinite(value) else MISSING


def shape_texts(fits: pd.DataFrame) -> list[str]:
    """Write landmarks × rank, and the bits, of the median fit."""
    if fits.empty:
        return [MISSING, MISSING]
    fit = fits.sort_values("accuracy", kind="stable").iloc[len(fits) // 2]
    rank = "" if np.isnan(fit["rank"]) else f" × {fit['rank']:.0f}"
    return [f"{fit['landmarks']:.0f}{rank}", fit["bits"].replace("-", MISSING)]


def standard_error(accuracy: float, rows: float) -> float:
    """Return the binomial standard error of an accuracy, in points."""
    share = accuracy / 100
    return float(100 * np.sqrt(share * (1 - share) / rows))


# -- the main tables -----------------------------------------------------------------------------


def data(fits: pd.DataFrame) -> str:
    """Return the rows of each dataset and the standard error of its test accuracy."""
    lines = []
    for name in compact.TARGETS:
        own = fits[fits["part"].isin(["targets", "peers"]) & (fits["dataset"] == name)]
        best = own.sort_values("accuracy").tail(1)
        for fit in best.itertuples():
            error = standard_error(fit.accuracy, fit.test_rows)
            counts = (f"{fit.rows:,}", f"{fit.test_rows:,}")
            lines.append([SOURCES[name].title, *counts, f"{error:.2f}"])
    return markdown(("data", "training rows", "test rows", "standard error, points"), lines)


def accuracy(fits: pd.DataFrame) -> str:
    """Return one line a dataset, kind of model and budget."""
    lines = []
    for name, method, setting in targets():
        own = cell(fits, "targets", name, method, setting)
        columns = [percent(own["accuracy"].median()), extent(own["accuracy"]), str(len(own))]
        model = [whole(own["bytes"].median()), *shape_texts(own), spread(own["fit_cpu_seconds"])]
        title = [SOURCES[name].title, TITLES[method], setting_text(setting)]
        lines.append([*title, *columns, *model])
    header = ("data", "model", "budget", "median, %", "range", "seeds", "bytes")
    return markdown((*header, "landmarks × rank", "bits", "fit, s"), lines)


def before(fits: pd.DataFrame) -> str:
    """Return the models of the main table against those of version 0.1.0."""
    lines = []
    for name, method, setting in targets():
        own = cell(fits, "targets", name, method, setting)
        reached, n_bytes = own["accuracy"].median(), own["bytes"].median()
        old = earlier(name, setting, reached)
        title = [SOURCES[name].title, TITLES[method], setting_text(setting), percent(reached)]
        gained = signed(reached - old.accuracy)
        lines.append([*title, percent(old.accuracy), gained, *old.texts(n_bytes)])
    header = ("data", "model", "budget", "median, %", "0.1.0, same budget, %", "difference")
    return markdown((*header, "0.1.0, as accurate", "bytes / its bytes"), lines)


def seconds(fits: pd.DataFrame) -> str:
    """Return the processor seconds of fits that were timed alone."""
    lines = []
    for name in compact.TIMED:
        theirs = cell(fits, "seconds", name, SVC)
        for method, setting in compact.timed_models(name):
            own = cell(fits, "seconds", name, method, setting)
            same = (BEFORE["dataset"] == name) & (BEFORE["setting"] == setting)
            old, new = BEFORE.loc[same, "seconds"].median(), own["fit_cpu_seconds"]
            title = [SOURCES[name].title, TITLES[method], setting_text(setting)]
            cells = [spread(new), percent(own["accuracy"].median())]
            ratio = spread((new / theirs["fit_cpu_seconds"]).dropna())
            before = [short(old), short(new.median() / old)]
            lines.append([*title, *cells, ratio, percent(theirs["accuracy"].median()), *before])
    header = ("data", "model", "budget", "fit, s", "accuracy, %", "fit / SVC", "SVC, %")
    return markdown((*header, "0.1.0, s", "share of its time"), lines)


def svc(fits: pd.DataFrame) -> str:
    """Return one line a model that has a support vector machine to compare with."""
    lines = []
    for name, method, setting in targets():
        if name not in compact.SVC_SEEDS or not (setting in SVC_SETTINGS or method == AUGMENTED):
            continue
        own, theirs = cell(fits, "targets", name, method, setting), cell(fits, "peers", name, SVC)
        middles = own["accuracy"].median(), theirs["accuracy"].median()
        ratios = [spread(theirs[each] / own[each]) for each in ("bytes", "predict_seconds")]
        timed = (
            cell(fits, "seconds", name, *key)["fit_cpu_seconds"]
            for key in ((SVC, ""), (method, setting))
        )
        fit = spread(next(timed) / next(timed))
        title = [SOURCES[name].title, TITLES[method], setting_text(setting)]
        ahead = signed(middles[0] - middles[1])
        lines.append([*title, *map(percent, middles), ahead, *ratios, fit])
    header = ("data", "model", "budget", "accuracy, %", "SVC, %", "difference")
    return markdown((*header, "bytes", "predict", "fit"), lines)


# -- other libraries -----------------------------------------------------------------------------


def medians(fits: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return accuracy and bytes of each model of the figure, by method and setting, small first."""
    own = fits[fits["part"].isin(FIGURE_PARTS) & (fits["dataset"] == dataset)]
    middles = own.groupby(["method", "setting"])[["accuracy", "bytes", "test_rows"]].median()
    return middles.sort_values("bytes", kind="stable")


def _ours(fits: pd.DataFrame, dataset: str) -> pd.DataFrame:
    own = medians(fits, dataset)
    return own[own.index.get_level_values("method").isin(OURS)]


class Best(NamedTuple):
    """The best of our models and the best one of another library on a dataset."""

    ours: pd.Series
    peer: str
    theirs: pd.Series

    @property
    def ahead(self) -> float:
        """Points of accuracy by which our model is ahead."""
        return float(self.ours["accuracy"] - self.theirs["accuracy"])

    @property
    def error(self) -> float:
        """One standard error of the accuracy of the other library."""
        return standard_error(self.theirs["accuracy"], self.theirs["test_rows"])


def best_of(fits: pd.DataFrame, dataset: str) -> Best | None:
    """Return the best models of any size; None unless there are both."""
    own, ours = medians(fits, dataset), _ours(fits, dataset)
    theirs = own[own.index.get_level_values("method").isin(list(PEERS))]
    if ours.empty or theirs.empty:
        return None
    peer = theirs["accuracy"].idxmax()
    return Best(ours.loc[ours["accuracy"].idxmax()], peer[0], theirs.loc[peer])


def any_size(fits: pd.DataFrame) -> str:
    """Return the best of our models and the best model of another library on each dataset."""
    lines = []
    for name in compact.TARGETS:
        best = best_of(fits, name)
        if best is not None:
            texts = [[percent(x["accuracy"]), size(x["bytes"])] for x in (best.ours, best.theirs)]
            middle = [*texts[0], PEERS[best.peer].title, *texts[1]]
            lines.append([SOURCES[name].title, *middle, signed(best.ahead)])
    header = ("data", "refined, %", "model", "best of the other libraries", "its accuracy, %")
    return markdown((*header, "its model", "difference"), lines)


def other_libraries(fits: pd.DataFrame) -> str:
    """Return one line a dataset with the accuracy and size of each model without a set size."""
    systems = [SVC, *TREES]
    own = fits[(fits["part"] == "peers") & fits["accuracy"].notna()]
    middles = own.groupby(["dataset", "method"])[["accuracy", "bytes"]].median()
    lines = []
    for name, source in SOURCES.items():
        found = [
            middles.loc[key] if (key := (name, each)) in middles.index else None for each in systems
        ]
        if any(each is not None for each in found):
            cells = [
                f"{e.accuracy:.2f} in {size(e.bytes)}" if e is not None else MISSING for e in found
            ]
            lines.append([source.title, *cells])
    return markdown(["data", *(PEERS[each].title for each in systems)], lines)


def published(fits: pd.DataFrame) -> str:
    """Return published results with the smallest of our models that is as accurate."""
    lines = []
    for record in PUBLISHED.itertuples():
        ours = _ours(fits, record.dataset)
        reached = ours[ours["accuracy"] >= record.accuracy]
        smallest = "none" if len(ours) else MISSING
        if len(reached):
            (method, _), n_bytes = reached.index[0], reached["bytes"].iloc[0]
            smallest = f"{size(n_bytes)}, {TITLES[method]}"
        title = [SOURCES[record.dataset].title, record.name]
        lines.append([*title, percent(record.accuracy), size(record.bytes), smallest])
    header = ("data", "method", "accuracy, %", "model", "smallest refined model as accurate")
    return markdown(header, lines)


def tabular(fits: pd.DataFrame) -> str:
    """Return one line a dataset: refined models against unrefined ones and gradient boosting."""
    lines = []
    for name in compact.TABULAR_DATASETS:
        setting = compact.TABULAR_SETTING
        refined = cell(fits, "targets", name, REFINED, setting)
        unrefined = cell(fits, "unrefined", name, UNREFINED, setting)
        columns = [percent(refined["accuracy"].median()), extent(refined["accuracy"])]
        columns += [str(len(refined)), difference(gains(refined, unrefined))]
        for method in TREES:
            trees = cell(fits, "peers", name, method)
            larger = trees["bytes"].median() / refined["bytes"].median()
            times = f"{short(larger)} ×" if np.isfinite(larger) else MISSING
            columns += [difference(gains(refined, trees)), times]
        lines.append([SOURCES[name].title, *columns])
    header = ["data", "median, %", "range", "seeds", "against unrefined"]
    for method in TREES:
        header += [f"against {PEERS[method].title}", "its bytes"]
    return markdown(header, lines)


# -- other rows, labels, targets and kernels -----------------------------------------------------


def stable(fits: pd.DataFrame) -> str:
    """Return the spread over ten seeds beside the standard error of the test rows."""
    lines = []
    for name in compact.STABLE_DATASETS:
        own = cell(fits, "stable", name, REFINED, compact.STABLE_SETTING)
        reached = own["accuracy"].median()
        error = standard_error(reached, own["test_rows"].median())
        numbers = [percent(reached), extent(own["accuracy"])]
        numbers += [percent(own["accuracy"].std()), percent(error), spread(own["bytes"], whole)]
        lines.append([SOURCES[name].title, str(len(own)), *numbers])
    header = ("data", "seeds", "median, %", "range", "standard deviation, points")
    return markdown((*header, "standard error of the test rows", "bytes"), lines)


def wrong_labels(fits: pd.DataFrame) -> str:
    """Return the accuracy of models that were trained on wrong labels."""
    models = {
        "refined": ("flipped", REFINED),
        "unrefined": ("flipped", UNREFINED),
        "refined, all labels right": ("targets", REFINED),
    }
    lines = []
    for title, (part, method) in models.items():
        own = cell(fits, part, compact.FLIPPED_DATASET, method, compact.FLIPPED_SETTING)
        scores, n_bytes = own["accuracy"], whole(own["bytes"].median())
        lines.append([title, percent(scores.median()), extent(scores), str(len(own)), n_bytes])
    return markdown(("model", "median, %", "range", "seeds", "bytes"), lines)


def draws(fits: pd.DataFrame) -> str:
    """Return refined and unrefined models of few rows."""
    lines = []
    for name in compact.PARTS["draws"]:
        for setting in compact.DRAW_SETTINGS:
            unrefined, refined = (
                cell(fits, "draws", name, method, setting) for method in (UNREFINED, REFINED)
            )
            gained = gains(refined, unrefined)
            middles = [percent(own["accuracy"].median()) for own in (unrefined, refined)]
            kept = worst = MISSING
            if len(gained):
                kept = f"{refined['refined'].sum():.0f} of {len(refined)}"
                worst = f"{max(0.0, -gained.min()):.2f}"
            title = [SOURCES[name].title, setting_text(setting)]
            lines.append([*title, *middles, difference(gained), kept, worst])
    header = ("data", "size", "unrefined, %", "refined, %", "gain, points", "refinement kept")
    return markdown((*header, "largest loss, points"), lines)


def regression(fits: pd.DataFrame) -> str:
    """Return the errors of regressors."""
    lines = []
    for name in compact.PARTS["regression"]:
        trees = cell(fits, "peers", name, TREES[0])
        for setting in compact.REGRESSION_SETTINGS:
            ours = [cell(fits, "regression", name, each, setting) for each in compact.BOTH]
            same = (BEFORE["dataset"] == name) & (BEFORE["setting"] == setting)
            old = BEFORE.loc[same, "rmse"].median()
            cells = [_score(own, "rmse") for own in (*ours, trees)]
            cells += [f"{old:.4f}" if np.isfinite(old) else MISSING]
            seconds = spread(ours[0]["fit_cpu_seconds"])
            lines.append([SOURCES[name].title, setting_text(setting), *cells, seconds])
    header = ("data", "budget", "refined", "unrefined", PEERS[TREES[0]].title)
    return markdown((*header, "0.1.0, refined", "fit, refined, s"), lines)


def _score(own: pd.DataFrame, column: str) -> str:
    """Write "median (range; seeds)" of a score."""
    spec = ".4f" if column == "rmse" else ".2f"
    scores = own[column].dropna()
    return (
        f"{scores.median():{spec}} ({extent(scores, spec)}; {len(scores)})"
        if len(scores)
        else MISSING
    )


def others(fits: pd.DataFrame) -> str:
    """Return other kernels, labels and rows, each beside the usual one."""
    matern, kernel = compact.MATERN_SETTING, f"Matérn kernel, ν = {compact.MATERN_NU}"
    labels, sparse = compact.MULTILABEL_SETTING, compact.SPARSE_SETTING
    kinds = (
        (kernel, "letter", matern, "matern", "matern"),
        ("RBF kernel", "letter", matern, "targets", "unrefined"),
        (kernel, "california", matern, "matern", "matern"),
        ("RBF kernel", "california", matern, "regression", "regression"),
        ("several labels", MULTILABEL, labels, "multilabel", "multilabel"),
        ("sparse rows", "a9a", sparse, "sparse", ""),
        ("the same rows, dense", "a9a", sparse, "targets", ""),
    )
    lines = []
    for title, name, setting, *parts in kinds:
        regression = SOURCES[name].regression
        column = "rmse" if regression else "accuracy"
        models = [
            cell(fits, part, name, method, setting)
            for part, method in zip(parts, compact.BOTH, strict=True)
        ]
        kept = (
            f"{models[0]['refined'].sum():.0f} of {len(models[0])}" if len(models[0]) else MISSING
        )
        score = "RMSE" if regression else "accuracy, %"
        cells = [SOURCES[name].title, setting_text(setting), score]
        lines.append([title, *cells, *(_score(own, column) for own in models), kept])
    header = ("kernel, labels or rows", "data", "budget", "score", "refined", "unrefined")
    return markdown((*header, "refinement kept"), lines)


def refinement_time(fits: pd.DataFrame) -> str:
    """Return how many times longer refined fits take than unrefined ones, by budget."""
    keys = ["dataset", "setting", "seed"]
    refined = fits[(fits["part"] == "targets") & (fits["method"] == REFINED)]
    unrefined = fits[fits["part"] == "unrefined"]
    pairs = refined.merge(unrefined, on=keys, suffixes=("", "_unrefined"))
    ratios = pairs["fit_cpu_seconds"] / pairs["fit_cpu_seconds_unrefined"]
    lines = []
    for setting in compact.UNREFINED_SETTINGS:
        own = ratios[pairs["setting"] == setting]
        lines.append([setting_text(setting), spread(own), str(len(own))])
    lines.append(["all", spread(ratios), str(len(ratios))])
    return markdown(("budget", "fit time, refined / unrefined", "pairs of fits"), lines)
