"""Shapley values of one row, and of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.explain import ShapleyValues, shapley_values
from nysplus.plots.style import (
    BLUE,
    GREY,
    LABEL_SIZE,
    TICK_SIZE,
    VERMILION,
    axes_or_new,
    check_matplotlib,
    label,
)

# Letters of an entry or a name that are shown.
MAX_LETTERS = 24
# Inches of a line, and of axis labels.
LINE, REST = 0.42, 1.1


class _Display:
    """Base of the displays of Shapley values: values of one output, by column.

    Parameters
    ----------
    explanation : ShapleyValues
        Of one output.
    """

    def __init__(self, explanation: ShapleyValues) -> None:
        self.explanation = explanation

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        background: Any,
        *,
        output: int | str | None = None,
        ax: Any = None,
        random_state: Any = None,
        **options: Any,
    ) -> Any:
        """Compute the Shapley values of some rows, and draw them.

        Parameters
        ----------
        estimator, X, background, random_state
            As for :func:`~nysplus.explain.shapley_values`.
        output : int or str, optional
            Position or name of the class or output, where there are several.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        **options
            Of `plot`.

        Returns
        -------
        The display.
        """
        check_matplotlib()
        found = shapley_values(estimator, X, background, random_state=random_state)
        return cls.from_values(found, output=output, ax=ax, **options)

    @classmethod
    def from_values(
        cls,
        explanation: ShapleyValues,
        *,
        output: int | str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw Shapley values that are known.

        Parameters
        ----------
        explanation : ShapleyValues
        output : int or str, optional
            Position or name of the class or output, where there are several.
        ax : matplotlib Axes, optional
        **options
            Of `plot`.

        Returns
        -------
        The display.
        """
        display: Any = cls(explanation.output(output))
        return display.plot(ax, **options)

    def _strongest(self, size: Float, most: int) -> npt.NDArray[np.intp]:
        """Return the columns of the largest numbers, the largest first."""
        check_count("max_columns", most)
        return np.argsort(-size, kind="stable")[:most]


def short(text: Any) -> str:
    """Return a name or an entry, cut to the letters that are shown."""
    if isinstance(text, float):
        text = f"{text:.4g}"
    letters = str(text)
    return letters if len(letters) <= MAX_LETTERS else f"{letters[: MAX_LETTERS - 1]}…"


def _others(n: int) -> str:
    return f"{n} other column{'s' if n > 1 else ''}"


def _decimals(values: Float) -> int:
    """Return the decimals that give the largest number three digits."""
    largest = float(np.abs(values).max())
    return max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 0


class ShapleyWaterfallDisplay(_Display):
    """The Shapley values of one row, from the mean of the background to the score of the row.

    Parameters
    ----------
    explanation : ShapleyValues
        Of one output.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib Rectangle
        The smallest value, at the bottom, first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ShapleyWaterfallDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> display = ShapleyWaterfallDisplay.from_estimator(model, X[:1], X[::10], output=0)
    >>> len(display.bars_)
    4
    """

    def plot(
        self, ax: Any = None, *, row: int = 0, max_columns: int = 10
    ) -> ShapleyWaterfallDisplay:
        """Draw the values of a row; bars of one standard error where values are sampled.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        row : int, default=0
        max_columns : int, default=10
            Columns of the largest values; all others are one bar.

        Returns
        -------
        self
        """
        shown = self.explanation
        if not 0 <= row < len(shown):
            raise ValueError(f"row={row} is not among the {len(shown)} rows of the explanation.")
        values, entries = shown.values[row], shown.shown_data[row].tolist()
        order = self._strongest(np.abs(values), max_columns)
        steps, error = values[order], shown.standard_error
        errors = None if error is None else error[row][order]
        names = [f"{short(shown.feature_names[i])} = {short(entries[i])}" for i in order]
        if len(order) < len(values):
            steps = np.append(steps, values.sum() - steps.sum())
            names.append(_others(len(values) - len(order)))
            errors = None if errors is None else np.append(errors, np.nan)
        ax = axes_or_new(ax, 7.2, LINE * len(steps) + REST + 0.5)
        self._draw(ax, steps[::-1], names[::-1], errors, float(shown.base_values[row]))
        return self

    def _draw(
        self, ax: Any, steps: Float, names: list[str], errors: Float | None, base: float
    ) -> None:
        """Draw the steps from the bottom to the top."""
        ends = base + np.cumsum(steps)
        starts = ends - steps
        y = np.arange(len(steps))
        colors = [VERMILION if step > 0 else BLUE for step in steps]
        spread = None if errors is None else errors[::-1]
        container = ax.barh(
            y, steps, left=starts, color=colors, height=0.7, xerr=spread, ecolor="black", capsize=3
        )
        self.bars_ = list(container.patches)
        ax.vlines(ends[:-1], y[:-1], y[1:], color=GREY, linewidth=1)
        low, high = float(min(starts.min(), ends.min())), float(max(starts.max(), ends.max()))
        gap = 0.015 * (high - low or 1.0)
        digits = _decimals(steps)
        # white, because numbers may lie on the lines of the scores
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        for place, step, right in zip(y, steps, np.maximum(starts, ends) + gap, strict=True):
            number = f"{step:+.{digits}f}"
            ax.text(right, place, number, va="center", fontsize=TICK_SIZE, bbox=white)
        ax.axvline(base, color=GREY, linestyle="--", linewidth=1)
        ax.axvline(ends[-1], color="black", linewidth=1)
        ax.set_xlim(low - 3 * gap, high + 18 * gap)
        ax.set_yticks(y, names)
        of_row, of_others = f"{ends[-1]:.3g} of the row (line)", f"{base:.3g} of the background"
        label(ax, f"score: {of_row},\n{of_others} (dashed)".replace("-", "\N{MINUS SIGN}"), "")
        self.ax_, self.figure_ = ax, ax.figure


class ShapleyBarDisplay(_Display):
    """The mean absolute Shapley value of each column over rows.

    Parameters
    ----------
    explanation : ShapleyValues
        Of one output.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib Rectangle
        The smallest value, at the bottom, first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ShapleyBarDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> display = ShapleyBarDisplay.from_estimator(model, X, X[::10], output=0, max_columns=2)
    >>> len(display.bars_)
    3
    """

    def plot(self, ax: Any = None, *, max_columns: int = 10) -> ShapleyBarDisplay:
        """Draw the means.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        max_columns : int, default=10
            Columns of the largest means; the sum of all others is one bar.

        Returns
        -------
        self
        """
        shown = self.explanation
        means = np.abs(shown.values).mean(axis=0)
        order = self._strongest(means, max_columns)
        sizes, names = means[order], [short(shown.feature_names[i]) for i in order]
        if len(order) < len(means):
            sizes = np.append(sizes, means.sum() - sizes.sum())
            names.append(f"sum of {_others(len(means) - len(order))}")
        ax = axes_or_new(ax, 6.4, LINE * len(sizes) + REST)
        container = ax.barh(np.arange(len(sizes)), sizes[::-1], color=BLUE, height=0.7)
        self.bars_ = list(container.patches)
        gap, digits = 0.01 * sizes.max(), _decimals(sizes)
        for place, size in enumerate(sizes[::-1]):
            number = f"{size:.{digits}f}"
            ax.text(size + gap, place, number, va="center", fontsize=TICK_SIZE)
        ax.set_xlim(0.0, 1.2 * float(sizes.max() or 1.0))
        ax.set_yticks(np.arange(len(names)), names[::-1])
        label(ax, f"mean absolute Shapley value of {len(shown):,} rows", "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ShapleyBeeswarmDisplay(_Display):
    """The Shapley values of many rows, a point each, coloured by the entry of the column.

    Categories, and gaps, are grey.

    Parameters
    ----------
    explanation : ShapleyValues
        Of one output.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib PathCollection
        For each column, the one of the smallest values, at the bottom, first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ShapleyBeeswarmDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> display = ShapleyBeeswarmDisplay.from_estimator(model, X, X[::10], output=0)
    >>> len(display.points_)
    4
    """

    def plot(self, ax: Any = None, *, max_columns: int = 10) -> ShapleyBeeswarmDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        max_columns : int, default=10
            Columns of the largest mean absolute values.

        Returns
        -------
        self
        """
        shown = self.explanation
        order = self._strongest(np.abs(shown.values).mean(axis=0), max_columns)[::-1]
        new = ax is None
        ax = axes_or_new(ax, 7.2, LINE * len(order) + REST + 0.3)
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize

        scale = LinearSegmentedColormap.from_list("entries", [BLUE, "#BBBBBB", VERMILION])
        self.points_ = [
            ax.scatter(
                shown.values[:, i],
                place + _jitter(shown.values[:, i]),
                c=_colors(_shares(shown, i), scale),
                s=14,
                linewidths=0,
            )
            for place, i in enumerate(order)
        ]
        ax.axvline(0.0, color=GREY, linewidth=1, zorder=0)
        ax.set_yticks(np.arange(len(order)), [short(shown.feature_names[i]) for i in order])
        ax.set_ylim(-0.6, len(order) - 0.4)
        label(ax, "Shapley value (change of the score)", "")
        if new:
            bar = ax.figure.colorbar(
                ScalarMappable(Normalize(0, 1), scale), ax=ax, fraction=0.04, pad=0.02, ticks=[0, 1]
            )
            bar.ax.set_yticklabels(["low", "high"], fontsize=TICK_SIZE)
            bar.set_label("entry of the column", fontsize=LABEL_SIZE, labelpad=-14)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _jitter(values: Float) -> Float:
    """Return heights in ±0.4 that keep points of nearly equal values apart."""
    edges = np.linspace(values.min(), values.max() + 1e-300, 80)
    bins = np.digitize(values, edges)
    heights = np.zeros(len(values))
    largest = max(int(np.bincount(bins).max()), 12)
    for each in np.unique(bins):
        own = np.flatnonzero(bins == each)
        # 0, 1, −1, 2, −2, …
        ranks = (np.arange(len(own)) + 1) // 2 * np.where(np.arange(len(own)) % 2, 1, -1)
        heights[own] = 0.8 * ranks / largest
    return heights


def _shares(shown: ShapleyValues, column: int) -> Float | None:
    """Return the ranks of the entries of a column between 0 and 1; None for a category."""
    entries = shown.data[:, column]
    if shown.display_data is not None:
        own = shown.display_data[:, column]
        if any(isinstance(entry, str) and entry != "missing" for entry in own):
            return None
    low, high = np.nanpercentile(entries, [5, 95]) if np.isfinite(entries).any() else (0.0, 0.0)
    return np.clip((entries - low) / (high - low), 0.0, 1.0) if high > low else None


def _colors(shares: Float | None, scale: Any) -> Any:
    """Return the colours of points; grey without a share."""
    if shares is None:
        return GREY
    colors = scale(np.nan_to_num(shares))
    colors[np.isnan(shares)] = (0.46, 0.46, 0.46, 1.0)
    return colors
