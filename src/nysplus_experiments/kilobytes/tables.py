"""Tables of the page on compact models, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.tables import MISSING, markdown, percent, short, size, spread
from nysplus_experiments.kilobytes import fits as compact
from nysplus_experiments.kilobytes.fits import PEERS, REFINED, SELECTED, TREES, in_bytes

#: Accuracies in percent of other authors, on their rows, and bytes: n (d + L) float32 numbers for
#: BSGD and Falkon.
PUBLISHED = pd.read_csv(Path(__file__).with_name("published.csv"))
KEY = ["part", "dataset", "method", "setting"]
# Parts of the figure and of the comparison at any size.
FIGURE_PARTS = ("targets", "svc", "peers", "sizes")


def read(results: Path) -> pd.DataFrame:
    """Return the fits, the last of each key, ordered by seed."""
    fits = records.frame(results / "kilobytes" / compact.FILE, compact.CompactFit)
    return fits.drop_duplicates([*KEY, "seed"], keep="last").sort_values("seed", kind="stable")


def cell(
    fits: pd.DataFrame, part: str, dataset: str, method: str, setting: str = ""
) -> pd.DataFrame:
    """Return the fits of one model, by seed."""
    return fits[(fits[KEY] == [part, dataset, method, setting]).all(axis=1)].set_index("seed")


def datasets_of(fits: pd.DataFrame, part: str) -> list[str]:
    """Return the datasets of a part, in the order of the table of datasets."""
    found = set(fits.loc[fits["part"] == part, "dataset"])
    return [name for name in SOURCES if name in found]


def extent(values: Iterable[float], spec: str = ".2f") -> str:
    """Write "smallest to largest", or a dash for a single number."""
    x = list(values)
    return MISSING if len(x) < 2 else f"{min(x):{spec}} to {max(x):{spec}}"


def difference(values: pd.Series) -> str:
    """Write "median [smallest, largest]" of differences, or the only one."""
    return spread(values, "{:+.2f}".format).replace("-", "−")


def gains(first: pd.DataFrame, second: pd.DataFrame) -> pd.Series:
    """Return the points of accuracy by which the first fits are above the second, by seed."""
    return (first["accuracy"] - second["accuracy"]).dropna()


def setting_text(setting: str) -> str:
    """Write a setting: "64 kB" or "100 landmarks"."""
    return f"{setting[:-2]} {setting[-2:]}" if in_bytes(setting) else f"{setting} landmarks"


def shape_text(fits: pd.DataFrame) -> str:
    """Write the landmarks, rank and type of the median fit."""
    fit = fits.sort_values("accuracy", kind="stable").iloc[len(fits) // 2]
    rank = "" if np.isnan(fit["rank"]) else f" × {fit['rank']:.0f}"
    return f"{fit['landmarks']:.0f}{rank}, {fit['storage']}"


def data(fits: pd.DataFrame) -> str:
    """Return the rows of each dataset and the binomial standard error of its test accuracy."""
    lines = []
    for name in compact.MAIN_SETTINGS:
        own = fits[(fits["part"] == "targets") & (fits["dataset"] == name)]
        if not own.empty:
            fit = own.iloc[0]
            share = fit["accuracy"] / 100
            error = 100 * np.sqrt(share * (1 - share) / fit["test_rows"])
            counts = (f"{fit['rows']:,}", f"{fit['test_rows']:,}")
            lines.append([SOURCES[name].title, *counts, f"{error:.2f}"])
    return markdown(("data", "training rows", "test rows", "standard error, points"), lines)


def accuracy(fits: pd.DataFrame) -> str:
    """Return one line a dataset and size of the refined models."""
    lines = []
    for name, settings in compact.MAIN_SETTINGS.items():
        for setting in settings:
            own = cell(fits, "targets", name, REFINED, setting)
            if own.empty:
                continue
            columns = [percent(own["accuracy"].median()), extent(own["accuracy"]), str(len(own))]
            model = [size(own["bytes"].median()), shape_text(own)]
            title = [SOURCES[name].title, setting_text(setting)]
            lines.append([*title, *columns, *model, spread(own["fit_seconds"])])
    header = ("data", "size", "median, %", "range", "seeds", "model", "landmarks × rank, type")
    return markdown((*header, "fit, s"), lines)


def svc(fits: pd.DataFrame) -> str:
    """Return one line a refined model that has a support vector machine to compare with."""
    lines = []
    for name in datasets_of(fits, "svc"):
        theirs = cell(fits, "svc", name, compact.SVC)
        quick = compact.QUICK_SETTING
        models = {f"{quick}, no search": cell(fits, "svc", name, compact.QUICK, quick)}
        for setting in compact.MAIN_SETTINGS.get(name, ()):
            models[setting_text(setting)] = cell(fits, "targets", name, REFINED, setting)
        for title, own in models.items():
            if own.index.intersection(theirs.index).empty:
                continue
            middles = own["accuracy"].median(), theirs["accuracy"].median()
            ahead = f"{middles[0] - middles[1]:+.2f}".replace("-", "−")
            ratios = (
                spread(theirs[column] / own[column])
                for column in ("bytes", "predict_seconds", "fit_seconds")
            )
            lines.append([SOURCES[name].title, title, *map(percent, middles), ahead, *ratios])
    header = ("data", "model", "accuracy, %", "SVC, %", "difference", "bytes", "predict", "fit")
    return markdown(header, lines)


def medians(fits: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return accuracy and bytes of each model of the figure, by method and setting, small first."""
    own = fits[fits["part"].isin(FIGURE_PARTS) & (fits["dataset"] == dataset)]
    middles = own.groupby(["method", "setting"])[["accuracy", "bytes"]].median()
    return middles.sort_values("bytes")


def any_size(fits: pd.DataFrame) -> str:
    """Return the best refined model and the best model of another library on each dataset."""
    lines = []
    for name in compact.FIGURE_DATASETS:
        own = medians(fits, name)
        methods = own.index.get_level_values("method")
        ours, theirs = own[methods == REFINED], own[methods.isin(list(PEERS))]
        if ours.empty or theirs.empty:
            continue
        peer = theirs["accuracy"].idxmax()
        best, other = ours.loc[ours["accuracy"].idxmax()], theirs.loc[peer]
        ahead = f"{best['accuracy'] - other['accuracy']:+.2f}".replace("-", "−")
        texts = [[percent(x["accuracy"]), size(x["bytes"])] for x in (best, other)]
        lines.append([SOURCES[name].title, *texts[0], PEERS[peer[0]].title, *texts[1], ahead])
    header = ("data", "refined, %", "model", "best of the other libraries", "its accuracy, %")
    return markdown((*header, "its model", "difference"), lines)


def other_libraries(fits: pd.DataFrame) -> str:
    """Return one line a dataset with the accuracy and size of each model without a set size."""
    systems = [compact.SVC, *TREES]
    own = fits[fits["method"].isin(systems) & fits["accuracy"].notna()]
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
    """Return published results with the smallest refined model that is as accurate."""
    lines = []
    for record in PUBLISHED.itertuples():
        own = medians(fits, record.dataset)
        ours = own[own.index.get_level_values("method") == REFINED]
        reached = ours[ours["accuracy"] >= record.accuracy]
        title = [SOURCES[record.dataset].title, record.name]
        smallest = size(reached["bytes"].iloc[0]) if len(reached) else "none"
        lines.append([*title, percent(record.accuracy), size(record.bytes), smallest])
    header = ("data", "method", "accuracy, %", "model", "smallest refined model as accurate")
    return markdown(header, lines)


def tabular(fits: pd.DataFrame) -> str:
    """Return one line a dataset: refined models against unrefined ones and gradient boosting."""
    lines = []
    for name in datasets_of(fits, "tabular"):
        refined, selected = (
            cell(fits, "tabular", name, method, compact.TABULAR_SETTING)
            for method in (REFINED, SELECTED)
        )
        if gains(refined, selected).empty:
            continue
        columns = [percent(refined["accuracy"].median()), extent(refined["accuracy"])]
        columns += [f"{len(refined)} of {compact.SEEDS}", difference(gains(refined, selected))]
        for method in TREES:
            trees = cell(fits, "tabular", name, method)
            larger = trees["bytes"].median() / refined["bytes"].median()
            columns += (
                [MISSING, MISSING]
                if trees.empty
                else [difference(gains(refined, trees)), f"{short(larger)} ×"]
            )
        lines.append([SOURCES[name].title, *columns, spread(refined["fit_seconds"])])
    header = ["data", "median, %", "range", "seeds", "against unrefined"]
    for method in TREES:
        header += [f"against {PEERS[method].title}", "its bytes"]
    return markdown((*header, "fit, s"), lines)


def wrong_labels(fits: pd.DataFrame) -> str:
    """Return the accuracy of models that were trained on wrong labels."""
    models = {
        "refined": ("flipped", REFINED),
        "unrefined": ("flipped", SELECTED),
        "refined, all labels right": ("targets", REFINED),
    }
    lines = []
    for title, (part, method) in models.items():
        own = cell(fits, part, compact.FLIPPED_DATASET, method, compact.FLIPPED_SETTING)["accuracy"]
        if len(own):
            lines.append([title, percent(own.median()), extent(own), str(len(own))])
    return markdown(("model", "median, %", "range", "seeds"), lines)


def draws(fits: pd.DataFrame) -> str:
    """Return refined and unrefined models of few rows."""
    lines = []
    for name in datasets_of(fits, "draws"):
        selected, refined = (
            cell(fits, "draws", name, method, compact.DRAW_SETTING)
            for method in (SELECTED, REFINED)
        )
        gained = gains(refined, selected)
        if gained.empty:
            continue
        middles = (percent(own["accuracy"].median()) for own in (selected, refined))
        kept = f"{refined['refined'].sum():.0f} of {len(refined)}"
        worst = f"{max(0.0, -gained.min()):.2f}"
        lines.append([SOURCES[name].title, *middles, difference(gained), kept, worst])
    header = ("data", "unrefined, %", "refined, %", "gain, points", "refinement kept")
    return markdown((*header, "largest loss, points"), lines)


def regression(fits: pd.DataFrame) -> str:
    """Return the errors of regressors."""
    models = {
        "refined": (REFINED, compact.REGRESSION_SETTING),
        "unrefined": (SELECTED, compact.REGRESSION_SETTING),
        PEERS[TREES[0]].title: (TREES[0], ""),
    }
    lines = []
    for name in datasets_of(fits, "regression"):
        errors = [cell(fits, "regression", name, *key)["rmse"] for key in models.values()]
        texts = (
            f"{e.median():.4f} ({extent(e, '.4f')}; {len(e)})" if len(e) else MISSING
            for e in errors
        )
        lines.append([SOURCES[name].title, *texts])
    return markdown(("data", *models), lines)


def refinement_time(fits: pd.DataFrame) -> str:
    """Return how many times longer refined fits take than unrefined ones, by budget."""
    sized = fits[fits["setting"].map(in_bytes) & fits["accuracy"].notna()]
    keys = ["dataset", "setting", "seed"]
    selected = sized[(sized["method"] == SELECTED) & sized["part"].isin(["sizes", "tabular"])]
    refined = sized[
        (sized["method"] == REFINED) & sized["part"].isin(["targets", "sizes", "tabular"])
    ]
    pairs = refined.merge(selected, on=keys, suffixes=("", "_selected"))
    ratios = pairs["fit_seconds"] / pairs["fit_seconds_selected"]
    lines = []
    for setting in ("4kB", "16kB", "64kB"):
        own = ratios[pairs["setting"] == setting]
        if len(own):
            lines.append([setting_text(setting), spread(own), str(len(own))])
    lines.append(["all", spread(ratios), str(len(ratios))])
    return markdown(("budget", "fit time, refined / unrefined", "pairs of fits"), lines)
