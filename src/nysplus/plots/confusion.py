"""Confusion matrix with counts and shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from nysplus.plots.style import LABEL_SIZE, TICK_SIZE, axes_or_new, check_matplotlib

# Classes up to which a cell has room for a share below its count.
WITH_SHARES = 10


class ConfusionSharesDisplay(ConfusionMatrixDisplay):
    """Confusion matrix whose colour is the share of the true class, with the counts in its cells.

    Up to ten classes have the share in per cent below the count. Cells without rows are empty,
    and figures grow with the number of classes, so that 26 of them are legible. The parameters are
    those of scikit-learn's ``ConfusionMatrixDisplay``, which draws the matrix.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Counts; a row for each true class.
    display_labels : array-like of shape (n_classes,), optional

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ConfusionSharesDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(n_components=30, random_state=0).fit(X[:900], y[:900])
    >>> display = ConfusionSharesDisplay.from_estimator(model, X[900:], y[900:])
    >>> display.confusion_matrix.shape
    (10, 10)
    """

    def plot(
        self,
        *,
        include_values: bool = True,
        cmap: Any = "Blues",
        xticks_rotation: Any = "horizontal",
        values_format: str | None = None,
        ax: Any = None,
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> ConfusionSharesDisplay:
        """Draw the matrix.

        Parameters
        ----------
        include_values, cmap, xticks_rotation, values_format, colorbar, im_kw, text_kw
            As for scikit-learn's ``ConfusionMatrixDisplay.plot``.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        check_matplotlib()
        counts: Any = np.asarray(self.confusion_matrix)  # type: ignore[has-type]
        n = len(counts)
        size = 0.58 if n <= WITH_SHARES else 0.42  # inches of a cell
        given = ax is not None
        width = max(5.6, 2.0 + size * n) - (0.0 if colorbar else 1.0)
        ax = axes_or_new(ax, width, max(4.6, 1.2 + size * n))
        totals = counts.sum(axis=1, keepdims=True)
        shares = 100.0 * counts / np.where(totals > 0, totals, 1)
        self.confusion_matrix = shares
        try:
            super().plot(
                include_values=include_values,
                cmap="Blues" if cmap == "viridis" else cmap,  # scikit-learn's default
                xticks_rotation=xticks_rotation,
                values_format=values_format,
                ax=ax,
                colorbar=False,
                im_kw={"vmin": 0.0, "vmax": 100.0} | (im_kw or {}),
                text_kw=text_kw,
            )
        finally:
            self.confusion_matrix = counts
        if include_values:
            self._write_cells(counts, shares, values_format)
        if colorbar:
            bar = ax.figure.colorbar(self.im_, ax=ax, fraction=0.05, pad=0.02, shrink=0.9)
            bar.set_label("share of the true class (%)", fontsize=LABEL_SIZE)
            bar.ax.tick_params(labelsize=TICK_SIZE)
        ax.tick_params(labelsize=TICK_SIZE)
        ax.set_xlabel("predicted class", fontsize=LABEL_SIZE)
        ax.set_ylabel("true class", fontsize=LABEL_SIZE)
        if not given:
            # cells are square: a first layout leaves no room for the name of the vertical axis
            ax.figure.draw_without_rendering()
        return self

    def _write_cells(self, counts: Any, shares: Any, values_format: str | None) -> None:
        """Replace the shares that scikit-learn wrote by counts, and shares below."""
        n = len(counts)
        for (i, j), text in np.ndenumerate(self.text_):
            count, share = counts[i, j], shares[i, j]
            shown = format(count, values_format or ("d" if counts.dtype.kind in "iu" else ".3g"))
            if n <= WITH_SHARES and count:
                shown += f"\n{share:.0f} %" if share >= 1 else "\n<1 %"
            text.set_text(shown if count else "")
            text.set_fontsize(11 if n <= WITH_SHARES or counts.max() < 1000 else 9)
            text.set_linespacing(0.95)
