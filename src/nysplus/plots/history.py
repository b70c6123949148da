"""Scores of the candidates of a refinement."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nysplus._runtime.record import ACCURACY, Trial
from nysplus.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    axes_or_new,
    label,
    legend_above,
)

COLORS, MARKERS = (BLUE, ORANGE, GREEN, PURPLE, BLACK), "osD^v"


class RefinementDisplay:
    """Scores of the models that `refine` compared on held-out rows, in their order.

    Steps of the search have their own marker. The unrefined model is a dashed line, the chosen
    model is circled.

    Parameters
    ----------
    trials : sequence of Trial
        Of the stage "refinement", from `report_`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib containers
        One for each step.
    unrefined_ : matplotlib Line2D

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import RefinementDisplay
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = NystroemClassifier(n_components=10, refine=True, random_state=0).fit(X, y)
    >>> display = RefinementDisplay.from_estimator(model)
    >>> len(display.trials) > 1
    True
    """

    def __init__(self, trials: Any) -> None:
        self.trials: tuple[Trial, ...] = tuple(trials)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> RefinementDisplay:
        """Draw the comparisons of a fit.

        Parameters
        ----------
        estimator : NystroemClassifier or NystroemRegressor
            Fitted with `refine`, and not loaded from a file.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        RefinementDisplay
        """
        check_is_fitted(estimator)
        trials = [trial for trial in estimator.report_.trials if trial.stage == "refinement"]
        if not trials:
            raise ValueError(
                "The report of this model has no comparisons of a refinement. Fit with "
                "refine=True, on more rows if these were too few; files do not keep comparisons."
            )
        return cls(trials).plot(ax)

    def plot(self, ax: Any = None) -> RefinementDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 6.8, 4.6)
        from matplotlib.ticker import MaxNLocator

        *learned, unrefined = self.trials
        percent = 100.0 if unrefined.metric == ACCURACY else 1.0
        self.points_, position = [], 1
        for i, (step, group) in enumerate(groupby(learned, lambda trial: trial.step)):
            found = list(group)
            x = position + np.arange(len(found))
            position += len(found)
            self.points_.append(
                ax.errorbar(
                    x,
                    [percent * trial.score for trial in found],
                    [percent * _standard_error(trial) for trial in found],
                    color=COLORS[i % len(COLORS)],
                    marker=MARKERS[i % len(MARKERS)],
                    markersize=8,
                    linestyle="none",
                    capsize=4,
                    label=f"{step}, {found[0].n_rows:,} rows",
                )
            )
            for at, trial in zip(x, found, strict=True):
                if trial.chosen:
                    _draw_ring(ax, float(at), percent * trial.score)
        kept = " (chosen)" if unrefined.chosen else ""
        self.unrefined_ = ax.axhline(
            percent * unrefined.score,
            color=VERMILION if unrefined.chosen else GREY,
            linestyle="--",
            linewidth=2,
            label=f"unrefined model{kept}",
        )
        ax.set_xlim(0.4, position - 0.4)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        unit = " (%)\nbars: ± one standard error" if percent == 100.0 else ""
        label(ax, "candidate, in the order of the search", f"{unrefined.metric}{unit}")
        ax.grid(alpha=0.3, axis="y")
        legend_above(ax, 2)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_ring(ax: Any, x: float, y: float) -> None:
    """Mark the chosen model."""
    ax.plot(
        x,
        y,
        marker="o",
        markersize=17,
        markerfacecolor="none",
        markeredgecolor=VERMILION,
        markeredgewidth=2.5,
        linestyle="none",
        label="chosen",
    )


def _standard_error(trial: Trial) -> float:
    """Return the binomial standard error of an accuracy, 0 for other scores."""
    if trial.metric != ACCURACY:
        return 0.0
    return float(np.sqrt(max(trial.score * (1.0 - trial.score), 0.0) / trial.n_rows))
