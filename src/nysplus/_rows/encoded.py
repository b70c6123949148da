"""Rows of a table, or images, behind their code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.mapped import MappedBlocks, RowMap
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Float
from nysplus.encoding.code import Code, TableCode
from nysplus.encoding.target_statistics import fold_of

# Codes of tables are numbers between 0 and about 2, and cosines of images are sums in float64, for
# which float32 is exact enough.
DTYPE = np.dtype(np.float32)
AnyCode = TypeVar("AnyCode", bound=Code, covariant=True)


@dataclass(frozen=True)
class Encoding(Generic[AnyCode]):
    """A code, and how training rows are encoded.

    Attributes
    ----------
    code : Code
    without : tuple of Code
        Codes for the training rows of each fold, where the code has statistics of targets: those
        of all other folds. Empty where it has none.
    """

    code: AnyCode
    without: tuple[AnyCode, ...] = ()

    def __call__(self, block: Block) -> Float:
        """Return the code columns of training rows."""
        code = self.code(block.X, DTYPE)
        if self.without:
            folds = fold_of(block.numbers)
            for fold, other in enumerate(self.without):
                code[folds == fold] = other(block.X[folds == fold], DTYPE)
        return code


TableEncoding = Encoding[TableCode]


def of_terms(encoding: TableEncoding, kept: Sequence[int]) -> TableEncoding:
    """Return an encoding with only some terms of its code, given by their positions."""

    def some(code: TableCode) -> TableCode:
        return TableCode(code.n_inputs, tuple(code.terms[i] for i in kept))

    return Encoding(some(encoding.code), tuple(map(some, encoding.without)))


@dataclass(frozen=True)
class EncodedBlocks(MappedBlocks):
    """Training rows behind their code.

    Parameters
    ----------
    blocks : RowBlocks
        Raw numbers.
    encoding : Encoding
    """

    encoding: Encoding[Code]

    @property
    def n_features(self) -> int:
        """Number of code columns D."""
        return self.encoding.code.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the code columns."""
        return DTYPE

    @property
    def _map(self) -> RowMap:
        return self.encoding


def encoded(blocks: RowBlocks, encoding: Encoding[Code]) -> RowBlocks:
    """Return encoded training rows.

    Rows in memory are encoded at once if the result fits in the working memory.
    """
    code_bytes = blocks.n_rows * encoding.code.n_columns * DTYPE.itemsize
    if isinstance(blocks, Blocks) and code_bytes <= working_bytes():
        return replace(blocks, X=encoding(blocks.block(slice(0, blocks.n_rows))))
    return EncodedBlocks(blocks, encoding)
