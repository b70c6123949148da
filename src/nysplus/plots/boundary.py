"""Predictions in two dimensions, with rows and landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.plots.style import (
    BLACK,
    CLASS_COLORS,
    MARKERS,
    axes_or_new,
    check_matplotlib,
    label,
    landmark_rows,
    legend_above,
)


class LandmarkBoundaryDisplay:
    """The regions of the predicted classes in two dimensions, with rows and landmarks.

    The regions are drawn by scikit-learn's ``DecisionBoundaryDisplay``.

    Parameters
    ----------
    boundary : sklearn.inspection.DecisionBoundaryDisplay
    landmarks : ndarray of shape (n, 2)
    classes : ndarray of shape (n_classes,)
    X : ndarray of shape (n_rows, 2), optional
        Rows to show.
    y : ndarray of shape (n_rows,), optional
        Their classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    landmarks_ : matplotlib PathCollection

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import LandmarkBoundaryDisplay
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = NystroemClassifier(n_components=12, random_state=0).fit(X, y)
    >>> display = LandmarkBoundaryDisplay.from_estimator(model, X, y)
    >>> display.landmarks.shape
    (12, 2)
    """

    def __init__(
        self,
        boundary: Any,
        landmarks: Float,
        classes: npt.NDArray[Any],
        X: Float | None = None,
        y: npt.NDArray[Any] | None = None,
    ) -> None:
        self.boundary = boundary
        self.landmarks = landmarks
        self.classes = classes
        self.X = X
        self.y = y

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        max_rows: int = 500,
        grid_resolution: int = 200,
        ax: Any = None,
    ) -> LandmarkBoundaryDisplay:
        """Predict a grid of points and draw the regions, the rows and the landmarks.

        Parameters
        ----------
        estimator : fitted NystroemClassifier of two features, without an encoder
        X : array-like of shape (n_rows, 2)
            The plane extends a little beyond these rows.
        y : array-like of shape (n_rows,), optional
            Classes of the rows, which are shown if these are given.
        max_rows : int, default=500
            Rows at most that are shown, at even distances among all.
        grid_resolution : int, default=200
            Points to each side.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        LandmarkBoundaryDisplay
        """
        check_matplotlib()
        from matplotlib import pyplot
        from sklearn.inspection import DecisionBoundaryDisplay

        if estimator.n_features_in_ != 2 or estimator.expansion_.encoder is not None:
            raise ValueError(
                f"Regions are drawn in two dimensions, and the model has "
                f"{estimator.n_features_in_} features or an encoder. Fit a model of two numbers."
            )
        figure, scratch = pyplot.subplots()
        boundary = DecisionBoundaryDisplay.from_estimator(
            estimator,
            X,
            response_method="predict",
            grid_resolution=grid_resolution,
            eps=0.5,
            ax=scratch,
        )
        pyplot.close(figure)
        rows = np.asarray(X, dtype=np.float64)
        labels = None if y is None else np.asarray(y)
        names = [str(name) for name in getattr(estimator, "feature_names_in_", ("x₁", "x₂"))]
        step = -(-len(rows) // max_rows)
        display = cls(
            boundary,
            landmark_rows(estimator),
            estimator.classes_,
            None if labels is None else rows[::step],
            None if labels is None else labels[::step],
        )
        return display.plot(ax, xlabel=names[0], ylabel=names[1])

    def plot(
        self, ax: Any = None, *, xlabel: str = "x₁", ylabel: str = "x₂"
    ) -> LandmarkBoundaryDisplay:
        """Draw regions, rows and landmarks.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        xlabel, ylabel : str
            Names of the features, with their units.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 6.4, 4.8)
        from matplotlib.colors import ListedColormap

        colors = [CLASS_COLORS[i % len(CLASS_COLORS)] for i in range(len(self.classes))]
        ax.pcolormesh(
            self.boundary.xx0,
            self.boundary.xx1,
            self.boundary.response,  # numbers of the classes
            cmap=ListedColormap(colors),
            vmin=-0.5,
            vmax=len(colors) - 0.5,
            alpha=0.25,
            shading="nearest",
            linewidth=0,
            rasterized=True,
        )
        if self.X is not None and self.y is not None:
            for i, name in enumerate(self.classes):
                own = self.y == name
                ax.scatter(
                    *self.X[own].T,
                    s=14,
                    color=colors[i],
                    marker=MARKERS[i % len(MARKERS)],
                    label=f"class {name}",
                )
        self.landmarks_ = ax.scatter(
            *self.landmarks.T,
            s=110,
            marker="X",
            color="white",
            edgecolor=BLACK,
            linewidth=1.4,
            label=f"{len(self.landmarks)} landmarks",
        )
        ax.set_xlim(self.boundary.xx0.min(), self.boundary.xx0.max())
        ax.set_ylim(self.boundary.xx1.min(), self.boundary.xx1.max())
        label(ax, xlabel, ylabel)
        entries = 1 if self.X is None else 1 + len(colors)
        legend_above(ax, entries if entries <= 5 else 4)
        self.ax_, self.figure_ = ax, ax.figure
        return self
