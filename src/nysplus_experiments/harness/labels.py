"""Place names beside curves instead of a legend, each at the free place nearest to its curve."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

_FONT_SIZE = 10.5
# Places around a point, in letter heights; nearer ones are tried first.
_DISTANCES = (0.9, 1.6, 2.6, 3.8, 5.2)
_CLEARANCE = 6  # pixels between a name and anything else
_INWARDS = np.array([1, 1, -1, -1])
_ANGLES = np.radians((0, 90, 270, 180, 45, 315, 135, 225))


def place_labels(
    ax: Any, labels: Sequence[tuple[str, str, np.ndarray]], bars: Sequence[np.ndarray] = ()
) -> None:
    """Write the name of each curve near one of its points, clear of curves and other names.

    Parameters
    ----------
    ax : Axes
        Scales and limits must be final.
    labels : sequence of (text, color, points)
        Points are (x, y) rows in data coordinates, drawn and joined in this order.
    bars : sequence of ndarray
        Ends of lines that names must not cover either, as (x, y) rows.
    """
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * (high / low) ** 0.12)  # room for names to the right
    ax.figure.draw_without_rendering()
    curves = [ax.transData.transform(points) for _, _, points in labels]
    lines = [*curves, *(ax.transData.transform(ends) for ends in bars)]
    obstacles = np.concatenate([_along(line) for line in lines])
    frame = ax.get_window_extent()
    inside = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) + _CLEARANCE * _INWARDS
    taken: list[np.ndarray] = []
    for (text, color, _), curve in zip(labels, curves, strict=True):
        note = ax.text(0, 0, text, color=_readable(color), fontsize=_FONT_SIZE, fontweight="bold")
        extent = note.get_window_extent()
        box, cost = _best_box(curve, extent.width, extent.height, obstacles, inside, taken)
        taken.append(box)
        note.set_position(ax.transData.inverted().transform(box[:2]))
        if cost[1] > _DISTANCES[1]:
            _leader(ax, box, curve[cost[2]], color)


def _best_box(
    curve: np.ndarray,
    width: float,
    height: float,
    obstacles: np.ndarray,
    inside: np.ndarray,
    taken: list[np.ndarray],
) -> tuple[np.ndarray, tuple[float, float, int]]:
    """Return the box (x0, y0, x1, y1) of least trouble; its trouble, distance and point."""
    best: tuple[tuple[float, float, int], np.ndarray] | None = None
    for distance in _DISTANCES:
        for index in range(len(curve) - 1, -1, -1):  # the last point is the largest model
            for angle in _ANGLES:
                dx, dy = np.cos(angle), np.sin(angle)
                middle = curve[index] + (
                    dx * (width / 2 + distance * height * 0.8),
                    dy * distance * height,
                )
                half = np.array([width, height]) / 2
                box = np.concatenate([middle - half, middle + half])
                trouble = _trouble(box, obstacles, inside, taken)
                if best is None or (trouble, distance) < best[0][:2]:
                    best = ((trouble, distance, index), box)
    assert best is not None
    return best[1], best[0]


def _trouble(
    box: np.ndarray, obstacles: np.ndarray, inside: np.ndarray, taken: list[np.ndarray]
) -> float:
    """Count what a name at this place would cover; leaving the frame is worst."""
    x0, y0, x1, y1 = box
    if x0 < inside[0] or y0 < inside[1] or x1 > inside[2] or y1 > inside[3]:
        return 1e6
    hidden = (
        (obstacles[:, 0] > x0 - _CLEARANCE)
        & (obstacles[:, 0] < x1 + _CLEARANCE)
        & (obstacles[:, 1] > y0 - _CLEARANCE)
        & (obstacles[:, 1] < y1 + _CLEARANCE)
    )
    clash = sum(
        100 for a, b, c, d in taken if x0 < c + 4 and a < x1 + 4 and y0 < d + 2 and b < y1 + 2
    )
    return float(hidden.sum() + clash)


def _along(curve: np.ndarray) -> np.ndarray:
    """Return points on a curve, close enough that no name fits between them."""
    steps = np.linspace(0, 1, 40)[:, None]
    parts = [a + steps * (b - a) for a, b in pairwise(curve)]
    return np.concatenate([curve.repeat(5, axis=0), *parts])


def _leader(ax: Any, box: np.ndarray, point: np.ndarray, color: str) -> None:
    """Draw a thin line from a name that had to go far to its point."""
    nearest = np.clip(point, box[:2], box[2:])
    ends = ax.transData.inverted().transform(np.array([nearest, point]))
    ax.plot(ends[:, 0], ends[:, 1], color=color, linewidth=0.7, zorder=1)


def _readable(color: str) -> str:
    """Darken a colour so that letters in it can be read on white."""
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{int(part * 0.75):02x}" for part in parts)
