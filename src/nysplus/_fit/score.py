"""Score a model on rows wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float


def evaluate(
    predict: Callable[[Any], npt.NDArray[Any]], blocks: RowBlocks, code: TargetCode
) -> float:
    """Return the accuracy, or R² averaged over the outputs, in one pass over the rows.

    Parameters
    ----------
    predict : callable
        From rows to labels or values.
    blocks : RowBlocks
    code : TargetCode
        Of the targets in `blocks`.
    """

    def part(block: Block) -> Float:
        assert block.targets is not None
        return code.score_sums(predict(block.X), block.targets, block.weight)

    zero = partial(np.zeros, code.n_score_sums)
    sums = blocks.fold(part, zero, 8 * blocks.n_outputs, "score")
    return code.score(sums, blocks.target_spread())
