"""Binary trees in few bytes: thresholds of 16 bits, leaves of 8, and predictions from both.

A tree is stored in pre-order with one bit a node that tells leaves from splits. A split has the
number of its feature and a threshold in float16; thresholds of a feature have float32 where float16
would move a training row to the other side. Splits that occur often are stored once, in a table,
where that takes fewer bytes. Leaves are integers of 8 bits with a float16 scale for each tree, in a
unit of all trees: targets may be of any size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

LEAF_BITS, SCALE_BITS = 8, 16
#: Number of trees (two bytes), outputs, depth, and the unit of all scales in float32.
HEADER_BYTES = 8
#: Rows that are predicted together.
_BLOCK = 2000


class Node(NamedTuple):
    """A split (`value` is None) or a leaf of a tree in a library's own structure.

    Rows with x[feature] <= threshold go left.
    """

    feature: int
    threshold: float
    gaps_left: bool
    left: Any
    right: Any
    value: Any = None


@dataclass(frozen=True)
class Trees:
    """Trees with their nodes one after the other, each tree in pre-order.

    Leaves have feature −1, and are their own children. ``value`` has a row a node with one number
    or, where each tree is one of vectors, one an output. ``oblivious`` trees have the same split in
    all nodes of a level, which is stored once. ``wide`` marks features with float32 thresholds.
    """

    feature: np.ndarray
    threshold: np.ndarray
    gaps_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    roots: np.ndarray
    depth: int
    n_features: int
    oblivious: bool = False
    wide: frozenset[int] = frozenset()

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    def first(self, n_trees: int) -> Trees:
        """Return the first trees."""
        end = len(self.feature) if n_trees >= self.n_trees else self.roots[n_trees]
        columns = ("feature", "threshold", "gaps_left", "left", "right", "value")
        some = {name: getattr(self, name)[:end] for name in columns}
        return replace(self, roots=self.roots[:n_trees], **some)

    def leaves(self, X: np.ndarray) -> np.ndarray:
        """Return the number of the leaf of each row of X (float32) in each tree."""
        found = np.empty((len(X), self.n_trees), np.intp)
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK]
            node = np.broadcast_to(self.roots, (len(rows), self.n_trees))
            own = np.arange(len(rows))[:, None]
            for _ in range(self.depth):
                x = rows[own, np.maximum(self.feature[node], 0)]
                left = np.where(np.isnan(x), self.gaps_left[node], x <= self.threshold[node])
                node = np.where(left, self.left[node], self.right[node])
            found[start : start + _BLOCK] = node
        return found

    def rounded(self, X: np.ndarray) -> Trees:
        """Return trees with thresholds and leaves of few bits that split the rows X as before."""
        threshold, wide = self.threshold.copy(), set()
        for feature in np.unique(self.feature[self.feature >= 0]):
            nodes = np.flatnonzero(self.feature == feature)
            values = np.unique(X[:, feature])
            threshold[nodes], is_wide = _between(values[~np.isnan(values)], threshold[nodes])
            if is_wide:
                wide.add(int(feature))
        trees = replace(self, threshold=threshold, wide=frozenset(wide))
        return replace(trees, value=trees._rounded_leaves())

    def _rounded_leaves(self) -> np.ndarray:
        tree = np.repeat(np.arange(self.n_trees), np.diff([*self.roots, len(self.feature)]))
        largest = np.zeros(self.n_trees)
        np.maximum.at(largest, tree, np.abs(self.value).max(axis=1))
        most = 2 ** (LEAF_BITS - 1) - 1
        unit = max(float(largest.max(initial=0.0)), np.finfo(np.float64).tiny) / most
        relative = np.maximum(largest / most / unit, np.finfo(np.float16).tiny).astype(np.float16)
        scale = unit * relative.astype(np.float64)[tree, None]
        return np.clip(np.round(self.value / scale), -most, most) * scale

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature < 0).sum())

    def split_bytes(self, gaps: bool) -> int:
        """Return the bytes of the structure: shapes, features, thresholds, and sides of gaps."""
        inner = self._stored_splits()
        pairs = np.column_stack([self.feature[inner], self.threshold[inner]])
        unique = np.unique(pairs, axis=0)
        # A table of the splits, with its number for each node, or each split in its node.
        indices = len(pairs) * _bits(len(unique))
        bits = min(self._split_bits(pairs[:, 0]), self._split_bits(unique[:, 0]) + indices)
        bits += 0 if self.oblivious else len(self.feature)
        sides = self.gaps_left[inner]
        bits += len(inner) if gaps and sides.any() and not sides.all() else 0
        return HEADER_BYTES + math.ceil(bits / 8)

    def leaf_bytes(self) -> int:
        """Return the bytes of the leaves and their scales."""
        bits = LEAF_BITS * self.n_leaves * self.value.shape[1] + SCALE_BITS * self.n_trees
        return math.ceil(bits / 8)

    def _stored_splits(self) -> np.ndarray:
        if not self.oblivious:
            return np.flatnonzero(self.feature >= 0)
        found, node = [], self.roots
        for _ in range(self.depth):  # the first node of each level
            found.append(node[self.feature[node] >= 0])
            node = self.left[node]
        return np.concatenate([*found, np.empty(0, np.intp)])

    def _split_bits(self, features: np.ndarray) -> int:
        thresholds = np.where(np.isin(features, list(self.wide)), 32, 16)
        return int(thresholds.sum()) + len(features) * _bits(self.n_features)


def _bits(count: int) -> int:
    """Return the bits of a number below ``count``."""
    return math.ceil(math.log2(count)) if count > 1 else 0


def _between(values: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return thresholds that split the sorted values alike, and whether they need float32."""
    after = np.searchsorted(values, thresholds, side="right")
    low = np.where(after > 0, values[np.maximum(after - 1, 0)], -np.inf).astype(np.float64)
    high = np.where(after < len(values), values[np.minimum(after, len(values) - 1)], np.inf)
    middle = np.select([np.isinf(high), np.isinf(low)], [np.inf, -np.inf], (low + high) / 2)
    with np.errstate(over="ignore"):
        half = middle.astype(np.float16)
    if ((low <= half) & ((half < high) | np.isinf(high))).all():
        return half.astype(np.float64), False
    single = middle.astype(np.float32)
    alike = (low <= single) & ((single < high) | np.isinf(high))
    return np.where(alike, single, low), True


def trees_of(roots: Iterable[Node], n_features: int, oblivious: bool = False) -> Trees:
    """Return trees from their nodes in the structure of a library."""
    feature: list[int] = []
    threshold, gaps_left, value = [], [], []
    left: list[int] = []
    right: list[int] = []
    starts, deepest = [], 0

    def add(node: Node, depth: int) -> int:
        nonlocal deepest
        deepest, number = max(deepest, depth), len(feature)
        feature.append(node.feature if node.value is None else -1)
        threshold.append(node.threshold)
        gaps_left.append(node.gaps_left)
        value.append(node.value)
        left.append(number)
        right.append(number)
        if node.value is None:
            left[number] = add(node.left, depth + 1)
            right[number] = add(node.right, depth + 1)
        return number

    for root in roots:
        starts.append(add(root, 0))
    width = max((np.size(v) for v in value if v is not None), default=1)
    values = [np.zeros(width) if v is None else np.reshape(v, width) for v in value]
    return Trees(
        feature=np.array(feature, np.intp),
        threshold=np.array(threshold, np.float64),
        gaps_left=np.array(gaps_left, bool),
        left=np.array(left, np.intp),
        right=np.array(right, np.intp),
        value=np.array(values, np.float64),
        roots=np.array(starts, np.intp),
        depth=deepest,
        n_features=n_features,
        oblivious=oblivious,
    )
