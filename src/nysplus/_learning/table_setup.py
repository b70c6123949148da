"""Prepare a view of a table for training: weights of its columns, directions, first landmarks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysplus._bytes.budget import Size
from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Squared
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.starts import BY_COUNT, first_landmarks
from nysplus._learning.tables import TableRules, options_of
from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus.encoding.code import TableCode
from nysplus.landmarks import Problem


@dataclass(frozen=True, eq=False)
class TableSetup:
    """Rows of a view, prepared for training.

    Attributes
    ----------
    setup : TrainingSetup
    weights : ndarray of shape (D,)
        Of the code columns.
    landmarks : ndarray of shape (n, r)
        To start from, in the coordinates of ``setup.U``.
    """

    setup: TrainingSetup
    weights: Float
    landmarks: Float

    @classmethod
    def of(
        cls, problem: Problem, block: Block, weights: Float, size: Size, seed: int
    ) -> TableSetup:
        """Prepare rows.

        Parameters
        ----------
        problem : Problem
            Its kernel is used, but not its rows.
        block : Block
            Rows whose features are code columns.
        weights : ndarray of shape (D,)
        size : Size
        seed : int
        """
        rng = np.random.RandomState(seed)
        assert size.rank is not None
        setup = TrainingSetup.of(block, size.rank, rng, problem.kernel, weights)
        some = block.take(setup.sketched)
        return cls(
            setup, weights, first_landmarks(problem, some, setup.U, setup.Y, size.n, rng, BY_COUNT)
        )

    def first(self, width: float, ridge: float) -> Parameters:
        """Return parameters to start from; coefficients of values are those of a ridge."""
        values = isinstance(self.setup.rows.loss, Squared)
        return self.setup.first(self.landmarks, width, ridge if values else None)


def importances(
    problem: Problem,
    block: Block,
    code: TableCode,
    seed: int,
    rules: TableRules,
    seconds: float | None = None,
) -> Float:
    """Return the importance of each raw column, from a first fit.

    It is the mean square of the fitted function's derivatives by the code columns of a raw column.
    Rounds are repeated with the weights of the round before.

    Parameters
    ----------
    problem, block, seed
        See :meth:`TableSetup.of`.
    code : TableCode
    rules : TableRules
    seconds : float, optional
        Time limit.

    Returns
    -------
    ndarray of shape (d,)
        0 for raw columns without code columns.
    """
    rng = np.random.RandomState(seed)
    block = block.take(rng.permutation(len(block))[: rules.metric_rows])
    assert block.targets is not None
    size = Size(rules.metric_landmarks, min(rules.metric_rank, code.n_columns))
    options = options_of(rules.metric_style, len(block), block.targets.discrete, rules)
    limit = None if seconds is None else seconds / rules.metric_rounds
    counts = np.bincount(code.groups, minlength=code.n_inputs)
    found = (counts > 0).astype(np.float64)
    for _ in range(rules.metric_rounds):
        weights = column_weights(found, code, rules)
        prepared = TableSetup.of(problem, block, weights, size, seed)
        first = prepared.first(rules.metric_style.width, rules.value_ridge)
        p = prepared.setup.train(first, options, seed, seconds=limit)
        squares = weights**2 * _squared_gradients(prepared.setup, p, rules.gradient_rows)
        found = np.bincount(code.groups, squares, code.n_inputs) / np.maximum(counts, 1)
    return found


def column_weights(importance: Float, code: TableCode, rules: TableRules) -> Float:
    """Return the weights of code columns, with a mean square of one.

    Parameters
    ----------
    importance : ndarray of shape (d,)
        Of the raw columns, also those found with another code.
    code : TableCode
    rules : TableRules
    """
    squares = importance[code.groups]
    mean = squares.mean()
    squares = (squares / mean if mean > 0 else np.ones(len(squares))) + rules.least_weight
    weights: Float = np.sqrt(squares / squares.mean())
    return weights


def _squared_gradients(setup: TrainingSetup, p: Parameters, n_rows: int) -> Float:
    """Return the mean square of the derivatives of the scores by each weighted code column."""
    X = setup.rows.X[:n_rows]
    M = Gradient(p, setup.b, len(X), setup.rows.shift).outer_product(X) / len(X)
    P = p.P.astype(np.float64)
    squares: Float = np.einsum("ij,ij->i", P @ M, P)
    return squares
