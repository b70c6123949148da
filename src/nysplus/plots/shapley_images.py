"""Shapley values of pixels as images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.explain import ShapleyValues, shapley_values
from nysplus.plots.style import GREY, LABEL_SIZE, TICK_SIZE, axes_or_new, check_matplotlib


class ShapleyImagesDisplay:
    """Images, and the Shapley values of their pixels for each class or output.

    Vermilion pixels raise the score, blue ones lower it. All images have one scale.

    Parameters
    ----------
    images : ndarray of shape (n_rows, height, width)
    values : ndarray of shape (n_rows, height, width, n_outputs)
    names : sequence of str, optional
        Of the outputs.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    images_ : list of matplotlib AxesImage
        Row by row: the image, then its values.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ShapleyImagesDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(n_components=40, random_state=0).fit(X, y)
    >>> display = ShapleyImagesDisplay.from_estimator(model, X[:2], X[::200], outputs=[0, 1])
    >>> display.values.shape
    (2, 8, 8, 2)
    """

    def __init__(self, images: Float, values: Float, names: Any = None) -> None:
        self.images = images
        self.values = values
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        background: Any,
        *,
        shape: tuple[int, int] | None = None,
        outputs: Any = None,
        ax: Any = None,
        random_state: Any = None,
    ) -> ShapleyImagesDisplay:
        """Compute the Shapley values of the pixels of some images, and draw them.

        Parameters
        ----------
        estimator, X, background, random_state
            As for :func:`~nysplus.explain.shapley_values`.
        shape : tuple of int, optional
            Height and width of the images; by default a square.
        outputs : sequence of int or str, optional
            Positions or names of the classes or outputs to draw; by default all.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        ShapleyImagesDisplay
        """
        check_matplotlib()
        found = shapley_values(estimator, X, background, random_state=random_state)
        return cls.from_values(found, shape=shape, outputs=outputs, ax=ax)

    @classmethod
    def from_values(
        cls,
        explanation: ShapleyValues,
        *,
        shape: tuple[int, int] | None = None,
        outputs: Any = None,
        ax: Any = None,
    ) -> ShapleyImagesDisplay:
        """Draw Shapley values that are known.

        Parameters
        ----------
        explanation : ShapleyValues
        shape : tuple of int, optional
            Height and width of the images; by default a square.
        outputs : sequence of int or str, optional
            Positions or names of the classes or outputs to draw; by default all.
        ax : matplotlib Axes, optional

        Returns
        -------
        ShapleyImagesDisplay
        """
        n, n_pixels = explanation.data.shape
        side = math.isqrt(n_pixels)
        height, width = shape or (side, side)
        if height * width != n_pixels:
            raise ValueError(
                f"shape={shape} has {height * width} pixels, and rows have {n_pixels} numbers. "
                "Pass the height and the width of the images, of one channel."
            )
        known = explanation.output_names
        chosen: list[Any] = [None] if known is None else list(range(len(known)))
        if outputs is not None:
            chosen = list(outputs)
        values = np.stack([explanation.output(each).values for each in chosen], axis=2)
        names = None
        if known is not None:
            names = [each if isinstance(each, str) else known[each] for each in chosen]
        images = explanation.data.reshape(n, height, width)
        return cls(images, values.reshape(n, height, width, -1), names).plot(ax)

    def plot(self, ax: Any = None) -> ShapleyImagesDisplay:
        """Draw each image, followed by its values for each output.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        n, height, width, n_outputs = self.values.shape
        step_y, step_x = 1.1 * height, 1.08 * width
        ax = axes_or_new(
            ax, 0.92 * (1 + n_outputs) + 1.1, max(1.9, 0.92 * n * height / width + 0.6)
        )
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.patches import Rectangle

        scale = LinearSegmentedColormap.from_list(
            "values", ["#003F66", "#0072B2", "#FFFFFF", "#D55E00", "#7A2E00"]
        )
        limit = float(np.percentile(np.abs(self.values), 99.8)) or 1.0
        self.images_ = []
        for i, image in enumerate(self.images):
            y = step_y * i
            grey = ax.imshow(image, "gray", extent=(0, width, y + height, y))
            self.images_.append(grey)
            for c in range(n_outputs):
                x = step_x * (c + 1)
                self.images_.append(
                    ax.imshow(
                        self.values[i, :, :, c], scale, extent=(x, x + width, y + height, y),
                        vmin=-limit, vmax=limit,
                    )
                )  # fmt: skip
                frame = Rectangle((x, y), width, height, fill=False, edgecolor=GREY, linewidth=0.6)
                ax.add_patch(frame)
        names = self.names or ["Shapley values"]
        for c, name in enumerate(["image", *names]):
            ax.text(step_x * c + width / 2, -0.06 * height, name, ha="center", fontsize=LABEL_SIZE)
        ax.set_xlim(-0.04 * width, step_x * (1 + n_outputs))
        ax.set_ylim(step_y * n, -0.35 * height)
        ax.set_axis_off()
        bar = ax.figure.colorbar(self.images_[-1], ax=ax, fraction=0.04, pad=0.01, shrink=0.9)
        bar.set_label("Shapley value", fontsize=LABEL_SIZE)
        bar.ax.tick_params(labelsize=TICK_SIZE)
        self.ax_, self.figure_ = ax, ax.figure
        return self
