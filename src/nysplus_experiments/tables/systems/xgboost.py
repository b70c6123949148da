"""XGBoost: with its defaults where the size is unlimited, otherwise cut to the size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from nysplus_experiments.tables.boosting import Shape, boosting_system
from nysplus_experiments.tables.system import Model, Rows
from nysplus_experiments.tables.trees import Node, Trees, trees_of
from nysplus_experiments.tables.whole import whole_bytes

SHAPES = (
    Shape(4, {"max_depth": 2, "learning_rate": 0.3}),
    Shape(8, {"max_depth": 3, "learning_rate": 0.3}),
    Shape(16, {"max_depth": 4, "learning_rate": 0.3}),
    Shape(64, {"max_depth": 6, "learning_rate": 0.1}),
)


def estimator(regression: bool, seed: int, **options: Any) -> Any:
    """Return an unfitted model of one thread."""
    import xgboost

    make = xgboost.XGBRegressor if regression else xgboost.XGBClassifier
    return make(n_jobs=1, random_state=seed, **options)


def _node(node: dict[str, Any]) -> Node:
    if "leaf" in node:
        return Node(-1, 0.0, True, None, None, node["leaf"])
    children = {child["nodeid"]: _node(child) for child in node["children"]}
    # Rows with x < split_condition, a float32, go to "yes".
    threshold = np.nextafter(np.float32(node["split_condition"]), np.float32(-np.inf))
    feature, gaps_left = int(node["split"][1:]), node["missing"] == node["yes"]
    return Node(feature, float(threshold), gaps_left, children[node["yes"]], children[node["no"]])


def _dumped(model: Any) -> list[dict[str, Any]]:
    return [json.loads(tree) for tree in model.get_booster().get_dump(dump_format="json")]


def _grow(X: np.ndarray, rows: Rows, shape: Shape, n: int) -> tuple[Trees, np.ndarray]:
    model = estimator(rows.regression, rows.seed, n_estimators=n, **shape.options).fit(X, rows.y)
    scores = model.predict(X[:200], output_margin=True).reshape(min(len(X), 200), -1)
    return trees_of(map(_node, _dumped(model)), X.shape[1]), scores


def _splits(model: Any, columns: list[str]) -> Iterator[tuple[int | None, bool]]:
    """Yield the feature of each node, None for a leaf, and whether its split is a set of levels."""
    stack = _dumped(model)
    while stack:
        node = stack.pop()
        if "leaf" in node:
            yield None, False
            continue
        yield columns.index(node["split"]), isinstance(node["split_condition"], list)
        stack += node["children"]


def _whole(rows: Rows) -> Model:
    model = estimator(rows.regression, rows.seed, enable_categorical=True).fit(rows.X, rows.y)
    n_bytes = whole_bytes(_splits(model, list(rows.X.columns)), rows)
    predict = model.predict if rows.regression else model.predict_proba
    return Model(predict, n_bytes, "defaults")


SYSTEMS = [boosting_system("xgboost", "XGBoost", _grow, SHAPES, _whole, cut_whole=True)]
