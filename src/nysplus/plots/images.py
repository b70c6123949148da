"""Landmarks of image models as images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nysplus._typing import Float
from nysplus.plots.style import LABEL_SIZE, axes_or_new, landmark_rows


class LandmarkImagesDisplay:
    """Landmarks as grey images, sorted by the class that the model predicts for them.

    Above each image is the class that the model predicts for it. Behind a learned map, many images
    are mapped to the same landmark: the most likely one is shown if rows are given, otherwise the
    one closest to the mean, which looks like noise where the map has few columns.

    Parameters
    ----------
    images : ndarray of shape (n, height, width)
    names : sequence of str, optional
        Written above the images.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    images_ : matplotlib AxesImage
        All images, side by side.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import LandmarkImagesDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(n_components=40, random_state=0).fit(X, y)
    >>> display = LandmarkImagesDisplay.from_estimator(model, shape=(8, 8), max_images=20)
    >>> display.images.shape
    (20, 8, 8)
    """

    def __init__(self, images: Float, names: Any = None) -> None:
        self.images = images
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        shape: tuple[int, int] | None = None,
        *,
        X: Any = None,
        max_images: int = 30,
        ax: Any = None,
    ) -> LandmarkImagesDisplay:
        """Draw the landmarks of a model.

        Parameters
        ----------
        estimator : fitted NystroemClassifier or NystroemRegressor
        shape : tuple of int, optional
            Height and width of the images. By default that of the model's
            :class:`~nysplus.encoding.ImageEncoder`, or a square.
        X : array-like of shape (n_rows, n_features), optional
            Images of the fit, for models with a learned map.
        max_images : int, default=30
            Landmarks with the largest coefficients are shown.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        LandmarkImagesDisplay
        """
        check_is_fitted(estimator)
        code = estimator.expansion_.encoder
        rows = None if X is None else np.asarray(X, dtype=np.float64)
        if rows is not None and code is not None:
            rows = np.asarray(code(rows, np.float64))
        Z = landmark_rows(estimator, rows)
        if hasattr(code, "images"):
            Z = np.asarray(code.images(Z), dtype=np.float64).reshape(len(Z), -1)
            shape = shape or tuple(code.shape[:2])
        elif code is not None:
            raise ValueError("Landmarks of tables are no images. Pass a model of images.")
        side = math.isqrt(Z.shape[1])
        height, width = shape or (side, side)
        if height * width != Z.shape[1]:
            raise ValueError(
                f"shape={shape} has {height * width} pixels, and landmarks have {Z.shape[1]} "
                "numbers. Pass the height and the width of the images, of one channel."
            )
        A = np.asarray(estimator.dual_coef_, dtype=np.float64)
        shown = np.argsort(-np.abs(A).max(axis=1), kind="stable")[:max_images]
        names = None
        if hasattr(estimator, "classes_"):
            found = np.asarray(estimator.predict(Z[shown]))
            order = np.argsort(found, kind="stable")
            shown, names = shown[order], found[order].astype(str)
        return cls(Z[shown].reshape(-1, height, width), names).plot(ax)

    def plot(self, ax: Any = None) -> LandmarkImagesDisplay:
        """Draw the images on a grid.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        n, height, width = self.images.shape
        columns = min(n, 10)
        rows = -(-n // columns)
        head = 0.35 if self.names is not None else 0.08  # of an image, for its name
        step_y, step_x = height * (1.0 + head), width * 1.08
        ax = axes_or_new(ax, 0.92 * columns, 0.85 * rows * step_y / height)
        low, high = np.percentile(self.images, [1, 99])  # single pixels may be far off
        for i, image in enumerate(self.images):
            x, y = step_x * (i % columns), step_y * (i // columns)
            self.images_ = ax.imshow(
                image, "gray", extent=(x, x + width, y + height, y), vmin=low, vmax=high
            )
            if self.names is not None:
                middle = x + width / 2
                ax.text(middle, y - 0.04 * height, self.names[i], ha="center", fontsize=LABEL_SIZE)
        ax.set_xlim(-0.04 * width, step_x * columns)
        ax.set_ylim(step_y * rows - head * height + 0.04 * height, -head * height)
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        return self
