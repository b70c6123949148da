"""Sentences at the top of the page on compact models, written from the fits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.tables import MISSING, count, short, spread
from nysplus_experiments.kilobytes import fits as compact
from nysplus_experiments.kilobytes.earlier import earlier
from nysplus_experiments.kilobytes.fits import AUGMENTED, IMAGE, REFINED, SVC
from nysplus_experiments.kilobytes.tables import (
    best_of,
    cell,
    setting_text,
    signed,
    targets,
)

#: Models whose accuracy stands in the summary.
NAMED = (("mnist", IMAGE), ("mnist", AUGMENTED), ("usps", IMAGE), ("letter", REFINED))
_WORDS = {IMAGE: " as images", AUGMENTED: " as images that are augmented", REFINED: ""}


def text(fits: pd.DataFrame) -> str:
    """Return a list of sentences; those without any fit are left out."""
    made = (_accuracy(fits), _before(fits), _times(fits), _against_svc(fits), _ranking(fits))
    return "\n".join(f"- {sentence}" for sentence in made if sentence) or MISSING


def _accuracy(fits: pd.DataFrame) -> str:
    texts = []
    for name, method in NAMED:
        reached = [
            f"{own['accuracy'].median():.2f} % in {setting_text(setting)}"
            for setting in compact.TARGETS[name][method]
            if len(own := cell(fits, "targets", name, method, setting))
        ]
        if reached:
            texts.append(f"{SOURCES[name].title}{_WORDS[method]}: {', '.join(reached)}.")
    return f"**Accuracy.** {' '.join(texts)}" if texts else ""


def _before(fits: pd.DataFrame) -> str:
    """Compare accuracies with those of version 0.1.0 in the same budget."""
    differences = []
    for name, method, setting in targets():
        reached = cell(fits, "targets", name, method, setting)["accuracy"].median()
        difference = reached - earlier(name, setting, reached).accuracy
        if np.isfinite(difference):
            differences.append(difference)
    if not differences:
        return ""
    return (
        f"**Against version 0.1.0** in the same budget, {count(len(differences), 'model')}: "
        f"{spread(differences, signed)} points in the median [smallest, largest]."
    )


def _times(fits: pd.DataFrame) -> str:
    texts = []
    for name, settings in compact.TIMED.items():
        for setting in settings:
            own = cell(fits, "seconds", name, REFINED, setting)["fit_cpu_seconds"]
            if len(own):
                size = setting_text(setting)
                texts.append(f"{short(own.median())} s on {SOURCES[name].title} in {size}")
    return f"**Fit time**, search included, in one thread: {', '.join(texts)}." if texts else ""


def _against_svc(fits: pd.DataFrame) -> str:
    texts = []
    for name in compact.SVC_TIMED:
        theirs = cell(fits, "seconds", name, SVC)["fit_cpu_seconds"]
        for method, setting in compact.timed_models(name):
            own = cell(fits, "seconds", name, method, setting)["fit_cpu_seconds"]
            ratios = (own / theirs).dropna()
            if len(ratios):
                searched = "" if method == REFINED else ", without a search"
                size = f"{setting_text(setting)}{searched}"
                texts.append(f"{spread(ratios)} on {SOURCES[name].title} in {size}")
    if not texts:
        return ""
    return f"**Fit time / that of `SVC(C=10)`**, median [smallest, largest]: {', '.join(texts)}."


def _ranking(fits: pd.DataFrame) -> str:
    """Compare the best model of any size with the best one of the other libraries."""
    found: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for name in compact.TARGETS:
        best = best_of(fits, name)
        if best is not None:
            level = abs(best.ahead) <= best.error
            place = "level" if level else "ahead" if best.ahead > 0 else "behind"
            title, _, detail = SOURCES[name].title.partition(", ")
            found[place].append(f"{title} ({detail})" if detail else title)
    words = {
        "ahead": "more accurate by more than one standard error on",
        "level": "within one standard error on",
        "behind": "less accurate by more than one standard error on",
    }
    texts = [f"{words[place]} {', '.join(names)}" for place, names in found.items() if names]
    if not texts:
        return ""
    return f"**Against the best of the other libraries**, of any size: {'; '.join(texts)}."
