"""CatBoost: with its defaults where the size is unlimited, otherwise cut to the size."""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.harness.raw_tables import nominal_columns
from nysplus_experiments.tables.boosting import NUMBER_BYTES, Shape, boosting_system
from nysplus_experiments.tables.system import Model, Rows
from nysplus_experiments.tables.trees import HEADER_BYTES, Node, Trees, trees_of

SHAPES = (
    Shape(4, {"depth": 2, "learning_rate": 0.3}),
    Shape(8, {"depth": 3, "learning_rate": 0.3}),
    Shape(16, {"depth": 4, "learning_rate": 0.2}),
    Shape(64, {"depth": 6, "learning_rate": 0.1}),
)
#: Processor seconds after which a fit with the defaults ends with the trees that it has.
TIME_LIMIT = 100.0


class _TimeLimit:
    """Ends a fit after the time limit."""

    def __init__(self) -> None:
        self.start = time.process_time()

    def after_iteration(self, info: Any) -> bool:
        """Return whether the fit goes on."""
        return time.process_time() - self.start < TIME_LIMIT


def estimator(regression: bool, seed: int, **options: Any) -> Any:
    """Return an unfitted model of one thread that prints and writes nothing."""
    import catboost

    make = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
    quiet = {"verbose": False, "allow_writing_files": False}
    return make(thread_count=1, random_seed=seed, **quiet, **options)


def _saved(model: Any, format: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save_model(str(path), format=format)
        return path.read_bytes()


def _node(splits: list[dict[str, Any]], leaves: np.ndarray, level: int, leaf: int = 0) -> Node:
    """Return the node above leaves of which the bits from ``level`` on are known.

    Bit i of the number of a leaf is set for rows with x > border of split i; gaps are the smallest.
    """
    if level < 0:
        return Node(-1, 0.0, True, None, None, leaves[leaf])
    split = splits[level]
    children = (_node(splits, leaves, level - 1, leaf + (side << level)) for side in (0, 1))
    return Node(split["float_feature_index"], split["border"], True, *children)


def _grow(X: np.ndarray, rows: Rows, shape: Shape, n: int) -> tuple[Trees, np.ndarray]:
    model = estimator(rows.regression, rows.seed, iterations=n, **shape.options).fit(X, rows.y)
    trees = []
    for tree in json.loads(_saved(model, "json"))["oblivious_trees"]:
        splits = tree.get("splits") or []
        leaves = np.array(tree["leaf_values"]).reshape(2 ** len(splits), -1)
        trees.append(_node(splits, leaves, len(splits) - 1))
    scores = np.reshape(model.predict(X[:200], prediction_type="RawFormulaVal"), (-1, 1))
    return trees_of(trees, X.shape[1], oblivious=True), scores.reshape(min(len(X), 200), -1)


def _gaps_as_levels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without NaN among the levels, which CatBoost refuses."""
    nominal = nominal_columns(frame)
    return frame.assign(**{name: frame[name].astype(object).fillna("gap") for name in nominal})


def _whole_bytes(model: Any, rows: Rows) -> int:
    """Return the bytes of trees of numbers, and of the file where levels have target statistics."""
    if nominal_columns(rows.X):
        return len(_saved(model, "cbm"))
    bits, feature_bits = 0, int(np.ceil(np.log2(max(2, rows.X.shape[1]))))
    for tree in json.loads(_saved(model, "json"))["oblivious_trees"]:
        bits += len(tree.get("splits") or []) * (feature_bits + 8 * NUMBER_BYTES)
        bits += 8 * NUMBER_BYTES * len(tree["leaf_values"])
    return HEADER_BYTES + NUMBER_BYTES * rows.n_outputs + bits // 8 + 1


def _whole(rows: Rows) -> Model:
    model = estimator(rows.regression, rows.seed, cat_features=nominal_columns(rows.X))
    model.fit(_gaps_as_levels(rows.X), rows.y, callbacks=[_TimeLimit()])
    method = model.predict if rows.regression else model.predict_proba
    detail = "defaults" if model.tree_count_ == 1000 else f"{model.tree_count_} trees in time"

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(method(_gaps_as_levels(frame)))

    return Model(predict, _whole_bytes(model, rows), detail)


SYSTEMS = [boosting_system("catboost", "CatBoost", _grow, SHAPES, _whole, cut_whole=False)]
