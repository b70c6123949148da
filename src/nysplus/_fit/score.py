"""Score a model on rows wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.targets import ClassCode, ClassTargets, Code, DiscreteTargets
from nysplus._typing import Float


def evaluate(
    predict: Callable[[Any], npt.NDArray[Any]], blocks: RowBlocks, code: Code | None
) -> float:
    """Return the accuracy, or R² averaged over the outputs, in one pass over the rows.

    Parameters
    ----------
    predict : callable
        From rows to labels or values.
    blocks : RowBlocks
    code : Code
        Of the targets in `blocks`.
    """

    def part(block: Block) -> Float:
        predicted, weight = predict(block.X), block.weight
        if isinstance(code, ClassCode) and isinstance(block.targets, ClassTargets):
            return np.array([weight @ (predicted == code.classes[block.targets.codes])])
        if isinstance(block.targets, DiscreteTargets):
            return np.array([weight @ ((predicted > 0) == (block.Y > 0)).all(axis=1)])
        squares: Float = weight @ (block.Y - predicted.reshape(block.Y.shape)) ** 2
        return squares

    n_sums = 1 if blocks.discrete else blocks.n_outputs
    sums = blocks.fold(part, partial(np.zeros, n_sums), 8 * blocks.n_outputs, "score")
    spread = blocks.target_spread()
    if blocks.discrete:
        return float(sums[0] / spread.mass)
    constant = np.where(sums > 0, 0.0, 1.0)  # what r2_score says of values that do not vary
    ratio = np.divide(sums, spread.scatter, out=1.0 - constant, where=spread.scatter > 0)
    return float(1.0 - ratio.mean())
