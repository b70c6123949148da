"""Tables and figures of docs/results/selection.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine
from nysplus_experiments.selection import ablation, calibration, curve, gamma, metric, tables
from nysplus_experiments.selection import figures as drawings
from nysplus_experiments.selection.comparison import Comparison, compare
from nysplus_experiments.selection.selectors import FILE, SelectionFit


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    folder = results / PAGE_NAME
    everything, compared = comparisons(folder)
    fits = _fits(folder)
    given_width = fits[fits["dataset"].isin(compared.datasets) & (fits["width"] != "auto")]
    timed = compare(given_width.assign(value=-np.log(given_width["seconds"])), "selector", "value")
    errors = compare(fits.assign(value=-np.log(fits["rmse"])), "selector", "value")
    points = records.frame(folder / curve.FILE, curve.CurvePoint)
    return {
        "summary": tables.summary(compared),
        "gains": tables.gains(compared),
        "sizes": tables.by_size(compared),
        "widths": tables.by_width(compared),
        "datasets": tables.by_dataset(compared),
        "against": tables.against(compared),
        "exceptions": tables.exceptions(compared),
        "seconds": tables.seconds(timed) if timed else "",
        "regression": tables.regression(errors) if errors else "",
        "ijcnn": tables.ijcnn(everything),
        "cells": tables.all_cells(everything),
        "gamma": gamma.width_table(records.frame(folder / gamma.FILE, gamma.WidthFit)),
        "metric": metric.metric_table(records.frame(folder / metric.FILE, metric.MetricFit)),
        "ablation": ablation.ablation_table(
            records.frame(folder / ablation.FILE, ablation.AblationFit)
        ),
        "calibration": calibration.calibration_table(
            records.frame(folder / calibration.FILE, calibration.Calibration)
        ),
        "curve-doubling": curve.curve_table(points, "doubling"),
        "curve-even": curve.curve_table(points, "even"),
        "machine": machine(records.environment_of(folder / FILE)),
    }


def draw(results: Path, docs: Path) -> None:
    """Draw the figures."""
    compared = comparisons(results / PAGE_NAME)[1]
    folder = docs / "results" / "figures"
    figures.save(drawings.loss_figure(compared), folder / "which_landmarks_loss.png")
    figures.save(drawings.gain_figure(compared), folder / "which_landmarks_gain.png")


def _fits(folder: Path) -> pd.DataFrame:
    return records.frame(folder / FILE, SelectionFit)


def comparisons(folder: Path) -> tuple[Comparison, Comparison]:
    """Return the comparison of accuracies on all data, and without the public split of IJCNN."""
    everything = compare(_fits(folder), "selector")
    if everything is None or "auto" not in everything.rules:
        raise records.ResultsError(
            f'{folder / FILE} has no fits of "auto". Run nysplus bench selection first.'
        )
    return everything, everything.where(lambda cell: cell.dataset != tables.APART)


PAGE_NAME = "selection"
PAGE = Page(f"results/{PAGE_NAME}.md", parts, draw)
