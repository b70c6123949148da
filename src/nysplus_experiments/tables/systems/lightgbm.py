"""LightGBM: with its defaults where the size is unlimited, otherwise cut to the size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nysplus_experiments.tables.boosting import Shape, boosting_system
from nysplus_experiments.tables.system import Model, Rows
from nysplus_experiments.tables.trees import Node, Trees, trees_of
from nysplus_experiments.tables.whole import whole_bytes

SHAPES = (
    Shape(4, {"num_leaves": 4, "learning_rate": 0.3}),
    Shape(8, {"num_leaves": 8, "learning_rate": 0.3}),
    Shape(16, {"num_leaves": 16, "learning_rate": 0.2}),
    Shape(31, {"num_leaves": 31, "learning_rate": 0.1}),
)


def estimator(regression: bool, seed: int, **options: Any) -> Any:
    """Return an unfitted model of one thread."""
    import lightgbm

    make = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
    return make(n_jobs=1, random_state=seed, verbose=-1, **options)


def _node(node: dict[str, Any]) -> Node:
    if "split_feature" not in node:
        return Node(-1, 0.0, True, None, None, node["leaf_value"])
    children = (_node(node["left_child"]), _node(node["right_child"]))
    return Node(node["split_feature"], node["threshold"], node["default_left"], *children)


def _grow(X: np.ndarray, rows: Rows, shape: Shape, n: int) -> tuple[Trees, np.ndarray]:
    model = estimator(rows.regression, rows.seed, n_estimators=n, **shape.options).fit(X, rows.y)
    dumped = model.booster_.dump_model()["tree_info"]
    scores = model.predict(X[:200], raw_score=True).reshape(min(len(X), 200), -1)
    return trees_of((_node(tree["tree_structure"]) for tree in dumped), X.shape[1]), scores


def _splits(model: Any) -> Iterator[tuple[int | None, bool]]:
    """Yield the feature of each node, None for a leaf, and whether its split is a set of levels."""
    stack = [tree["tree_structure"] for tree in model.booster_.dump_model()["tree_info"]]
    while stack:
        node = stack.pop()
        if "split_feature" not in node:
            yield None, False
            continue
        yield node["split_feature"], node["decision_type"] == "=="
        stack += [node["left_child"], node["right_child"]]


def _whole(rows: Rows) -> Model:
    model = estimator(rows.regression, rows.seed).fit(rows.X, rows.y)
    predict = model.predict if rows.regression else model.predict_proba
    return Model(predict, whole_bytes(_splits(model), rows), "defaults")


SYSTEMS = [boosting_system("lightgbm", "LightGBM", _grow, SHAPES, _whole, cut_whole=True)]
