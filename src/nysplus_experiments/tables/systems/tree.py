"""One decision tree: packed, with as many leaves as are best on held-out rows within the bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from nysplus_experiments.tables.boosting import NUMBER_BYTES
from nysplus_experiments.tables.ordinal import OrdinalCode
from nysplus_experiments.tables.system import Model, NoModel, Rows, System
from nysplus_experiments.tables.trees import Node, Trees, trees_of

#: Bytes of a leaf with its split at least, and numbers of leaves as shares of the largest.
LEAF_BYTES, SHARES = 2.0, (1.0, 0.7, 0.5, 0.3, 0.15)


@dataclass(frozen=True)
class PackedTree:
    """A tree whose leaves are a number, or a class with its probability in 8 bits."""

    trees: Trees
    leaves: np.ndarray
    code: OrdinalCode
    rows: Rows

    @property
    def n_bytes(self) -> int:
        """Bytes of the packed tree."""
        own = self.trees.split_bytes(self.code.gaps) + self.code.n_bytes
        if self.rows.regression:
            return own + self.trees.leaf_bytes() + NUMBER_BYTES
        label_bits = math.ceil(math.log2(self.rows.n_classes)) if self.rows.n_classes > 1 else 0
        return own + math.ceil(self.trees.n_leaves * (label_bits + 8) / 8)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return numbers, or the probabilities of the classes."""
        return np.asarray(self.leaves[self.trees.leaves(self.code(frame))[:, 0]])


def _estimator(rows: Rows, n_leaves: int | None) -> Any:
    make = DecisionTreeRegressor if rows.regression else DecisionTreeClassifier
    return make(max_leaf_nodes=n_leaves, random_state=rows.seed)


def _node(tree: Any, number: int, offset: float) -> Node:
    if tree.children_left[number] < 0:
        value = tree.value[number][0]
        return Node(-1, 0.0, True, None, None, value - offset if len(value) == 1 else value)
    children = (tree.children_left[number], tree.children_right[number])
    return Node(
        *(int(tree.feature[number]), float(tree.threshold[number])),
        bool(tree.missing_go_to_left[number]),
        *(_node(tree, child, offset) for child in children),
    )


def _grown(rows: Rows, code: OrdinalCode, n_leaves: int | None) -> PackedTree:
    X = code(rows.X)
    fitted = _estimator(rows, n_leaves).fit(X, rows.y)
    offset = float(rows.y.mean()) if rows.regression else 0.0
    trees = trees_of([_node(fitted.tree_, 0, offset)], X.shape[1])
    packed = trees.rounded(X)
    if rows.regression:
        return PackedTree(packed, packed.value[:, 0] + offset, code, rows)
    return PackedTree(packed, _class_leaves(trees.value), code, rows)


def _class_leaves(shares: np.ndarray) -> np.ndarray:
    """Return the probabilities of leaves that store a class and its share in 8 bits."""
    if shares.shape[1] == 1:
        return np.ones_like(shares)
    label, rows = shares.argmax(axis=1), np.arange(len(shares))
    top = np.round(255 * shares[rows, label]) / 255
    leaves = np.repeat((1 - top)[:, None] / (shares.shape[1] - 1), shares.shape[1], axis=1)
    leaves[rows, label] = np.maximum(top, 1 / shares.shape[1] + 1e-6)
    return leaves


def _largest(rows: Rows, code: OrdinalCode, n_bytes: int) -> int:
    """Return the largest number of leaves within the bytes, at least two."""
    n_leaves = max(2, int(n_bytes / LEAF_BYTES))
    while n_leaves >= 2:
        found = _grown(rows, code, n_leaves)
        if found.n_bytes <= n_bytes:
            return found.trees.n_leaves
        n_leaves = int(found.trees.n_leaves * min(0.97, n_bytes / found.n_bytes))
    raise NoModel(f"A tree with two leaves takes more than {n_bytes} bytes.")


def _fit(rows: Rows, n_bytes: int | None, prepared: None) -> Model:
    code = OrdinalCode.of(rows)
    n_leaves = None
    if n_bytes is not None:
        largest, (fit, choose) = _largest(rows, code, n_bytes), rows.held_out()
        counts = sorted({max(2, int(share * largest)) for share in SHARES})
        part = OrdinalCode.of(fit)
        losses = [choose.loss(_grown(fit, part, count).predict(choose.X)) for count in counts]
        n_leaves = counts[int(np.argmin(losses))]
    tree = _grown(rows, code, n_leaves)
    if n_bytes is not None and tree.n_bytes > n_bytes:
        tree = _grown(rows, code, largest)
    return Model(tree.predict, tree.n_bytes, f"{tree.trees.n_leaves} leaves")


SYSTEMS = [System("tree", "decision tree", "sklearn", _fit)]
