"""Gradient boosting cut to a number of bytes: fewer trees and leaves, chosen on held-out rows.

For each shape of the trees one model is fitted to four fifths of the training rows, which gives the
held-out error of all its prefixes, and one to all of them. A size gets the prefix of the latter
that is best on the held-out rows among those within the bytes. Errors and predictions are those of
the packed trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from nysplus_experiments.tables.ordinal import OrdinalCode
from nysplus_experiments.tables.system import Model, NoModel, Rows, System
from nysplus_experiments.tables.trees import Trees

#: Bytes of an intercept in float32.
NUMBER_BYTES = 4
MAX_ITERATIONS = 300
#: Sizes up to this one are cut from the same fits.
LARGEST = 2**16
#: Prefixes that are compared, as shares of the longest one within the bytes.
SHARES = (1.0, 0.75, 0.5, 0.35, 0.25)
#: Bytes a leaf, split included, at least; limits the trees that are fitted.
LEAF_BYTES = 2.5


@dataclass(frozen=True)
class Shape:
    """Leaves of a tree at most, with the options of the library that ask for them."""

    leaves: int
    options: dict[str, Any]


@dataclass(frozen=True)
class Boosted:
    """Trees of a fitted model and its intercepts; iteration i has the trees from i·m on."""

    trees: Trees
    intercept: np.ndarray

    @property
    def trees_an_iteration(self) -> int:
        """One, or one an output where trees have single numbers."""
        return len(self.intercept) if self.trees.value.shape[1] == 1 else 1

    @property
    def n_iterations(self) -> int:
        """Number of iterations."""
        return self.trees.n_trees // self.trees_an_iteration

    def first(self, n_iterations: int) -> Boosted:
        """Return the model after some iterations."""
        return Boosted(self.trees.first(n_iterations * self.trees_an_iteration), self.intercept)

    def n_bytes(self, code: OrdinalCode) -> int:
        """Return the bytes of the packed model."""
        own = self.trees.split_bytes(code.gaps) + self.trees.leaf_bytes()
        return own + NUMBER_BYTES * len(self.intercept) + code.n_bytes

    def steps(self, X: np.ndarray) -> np.ndarray:
        """Return the contribution of each iteration to the scores: (rows, iterations, outputs)."""
        added = self.trees.value[self.trees.leaves(X)]
        return added.reshape(len(X), self.n_iterations, len(self.intercept))

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows, in blocks that bound the memory."""
        blocks = [self.steps(X[i : i + 1000]).sum(axis=1) for i in range(0, len(X), 1000)]
        return np.concatenate(blocks) + self.intercept

    @classmethod
    def packed(cls, trees: Trees, X: np.ndarray, scores: np.ndarray) -> Boosted:
        """Return the packed model; intercepts are the difference to the scores of the library."""
        some, n_outputs = X[:200], scores.shape[1]
        plain = cls(trees, np.zeros(n_outputs))
        intercept = np.median(scores[:200] - plain.scores(some), axis=0)
        return cls(trees.rounded(X), intercept)


#: From coded rows, targets with their kind, a shape and iterations to trees and scores of the rows.
Grow = Callable[[np.ndarray, Rows, Shape, int], tuple[Trees, np.ndarray]]


@dataclass(frozen=True)
class Ladder:
    """The models of one shape: fitted to all rows, and the held-out loss of each prefix."""

    shape: Shape
    model: Boosted
    losses: np.ndarray


@dataclass(frozen=True)
class Cuts:
    """The ladders of all shapes; the model with the library's defaults and its held-out loss."""

    code: OrdinalCode
    ladders: tuple[Ladder, ...]
    whole: Model | None = None
    whole_loss: float = np.inf


def outputs_of(scores: np.ndarray, rows: Rows) -> np.ndarray:
    """Return predictions from scores: numbers, or a column of probabilities a class."""
    if rows.regression:
        return scores[:, 0]
    if scores.shape[1] > 1:
        return np.asarray(softmax(scores, axis=1))
    positive = expit(scores[:, 0])
    return np.column_stack([1 - positive, positive])


def make_cuts(
    rows: Rows, grow: Grow, shapes: Sequence[Shape], whole: Callable[[Rows], Model] | None = None
) -> Cuts:
    """Fit all shapes, and a whole model that may be small enough, to a part of the rows and to all.

    Without ``whole`` the models with the library's defaults are known to exceed all sizes.
    """
    code, (fit, choose) = OrdinalCode.of(rows), rows.held_out()
    part_code, ladders = OrdinalCode.of(fit), []
    X, X_fit, X_choose = code(rows.X), part_code(fit.X), part_code(choose.X)
    for shape in shapes:
        most = int(LARGEST / (LEAF_BYTES * shape.leaves * rows.n_outputs)) + 1
        n_iterations = min(MAX_ITERATIONS, most)
        part = Boosted.packed(*_grown(grow, X_fit, fit, shape, n_iterations))
        model = Boosted.packed(*_grown(grow, X, rows, shape, n_iterations))
        ladders.append(Ladder(shape, model, _losses(part, X_choose, choose)))
    if whole is None:
        return Cuts(code, tuple(ladders))
    loss = choose.loss(whole(fit).predict(choose.X))
    return Cuts(code, tuple(ladders), whole(rows), loss)


def _grown(
    grow: Grow, X: np.ndarray, rows: Rows, shape: Shape, n_iterations: int
) -> tuple[Trees, np.ndarray, np.ndarray]:
    trees, scores = grow(X, rows, shape, n_iterations)
    return trees, X, scores


def _losses(part: Boosted, X: np.ndarray, choose: Rows) -> np.ndarray:
    """Return the held-out loss after each iteration."""
    scores = np.broadcast_to(part.intercept, (len(X), len(part.intercept))).copy()
    steps, losses = part.steps(X), []
    for number in range(part.n_iterations):
        scores += steps[:, number]
        losses.append(choose.loss(outputs_of(scores, choose)))
    return np.array(losses)


def cut(rows: Rows, n_bytes: int, cuts: Cuts) -> Model:
    """Return the model of a size that is best on the held-out rows."""
    whole = cuts.whole if cuts.whole is not None and cuts.whole.n_bytes <= n_bytes else None
    candidates = []
    for ladder in cuts.ladders:
        longest = _longest(ladder, n_bytes, cuts.code)
        for count in sorted({max(1, int(share * longest)) for share in SHARES} if longest else ()):
            candidates.append((ladder.losses[count - 1], count, ladder))
    if not candidates:
        raise NoModel(f"One iteration of the smallest trees takes more than {n_bytes} bytes.")
    loss, count, ladder = min(candidates, key=lambda candidate: candidate[0])
    if whole is not None and cuts.whole_loss < loss:
        return whole
    model, code = ladder.model.first(count), cuts.code

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return outputs_of(model.scores(code(frame)), rows)

    detail = f"{count} iterations of up to {ladder.shape.leaves} leaves"
    return Model(predict, model.n_bytes(code), detail)


def _longest(ladder: Ladder, n_bytes: int, code: OrdinalCode) -> int:
    """Return the number of iterations within the bytes, by bisection."""
    low, high = 0, min(ladder.model.n_iterations, len(ladder.losses))
    while low < high:
        middle = (low + high + 1) // 2
        if ladder.model.first(middle).n_bytes(code) <= n_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def boosting_system(
    library: str,
    title: str,
    grow: Grow,
    shapes: Sequence[Shape],
    whole: Callable[[Rows], Model],
    cut_whole: bool,
) -> System:
    """Return the system of a library.

    ``whole`` fits a model with the library's defaults, for the unlimited size and, if
    ``cut_whole``, for sizes that have room for it.
    """

    def prepare(rows: Rows) -> Cuts:
        return make_cuts(rows, grow, shapes, whole if cut_whole else None)

    def fit(rows: Rows, n_bytes: int | None, cuts: Cuts) -> Model:
        return whole(rows) if n_bytes is None else cut(rows, n_bytes, cuts)

    return System(library, title, library, fit, prepare)
