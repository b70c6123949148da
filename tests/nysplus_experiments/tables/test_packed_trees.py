"""Trees in few bytes: the structure of each library, rounding, bytes, and cuts to a size."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus_experiments.harness.raw_tables import SYNTHETIC, SYNTHETIC_REGRESSION
from nysplus_experiments.tables import boosting, fits
from nysplus_experiments.tables.ordinal import OrdinalCode
from nysplus_experiments.tables.system import NoModel, Rows
from nysplus_experiments.tables.trees import Node, trees_of

LIBRARIES = ("lightgbm", "xgboost", "catboost")


def _rows(table, seed=0):
    return fits.training_rows(fits.split_of(table, seed), seed)[0]


def _module(library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    return __import__(f"nysplus_experiments.tables.systems.{library}", fromlist=["_grow"])


@pytest.mark.parametrize("table", [SYNTHETIC, SYNTHETIC_REGRESSION])
@pytest.mark.parametrize("library", LIBRARIES)
def test_unpacked_trees_give_the_scores_of_the_library(library, table):
    """The synthetic tables have gaps and levels; every row is compared, not only the first ones."""
    module, rows = _module(library), _rows(table)
    X = OrdinalCode.of(rows)(rows.X)
    assert np.isnan(X).any()
    trees, scores = module._grow(X, rows, module.SHAPES[2], 12)
    steps = boosting.Boosted(trees, np.zeros(scores.shape[1])).scores(X[: len(scores)])
    difference = scores - steps
    np.testing.assert_allclose(difference, np.broadcast_to(difference[:1], scores.shape), atol=1e-5)


def _slow_leaf(node, x):
    while node.value is None:
        left = node.gaps_left if np.isnan(x[node.feature]) else x[node.feature] <= node.threshold
        node = node.left if left else node.right
    return node.value


def test_leaves_are_those_of_a_walk_from_the_root():
    rng = np.random.default_rng(0)

    def grow(depth):
        if depth == 0 or rng.random() < 0.2:
            return Node(-1, 0.0, True, None, None, rng.standard_normal())
        return Node(
            int(rng.integers(3)), rng.standard_normal(), bool(rng.integers(2)),
            grow(depth - 1), grow(depth - 1),
        )  # fmt: skip

    nodes = [grow(5) for _ in range(7)]
    X = rng.standard_normal((50, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    trees = trees_of(nodes, 3)
    expected = [[_slow_leaf(node, x) for node in nodes] for x in X]
    np.testing.assert_allclose(trees.value[trees.leaves(X)][..., 0], expected)
    np.testing.assert_allclose(trees.first(3).value[trees.first(3).leaves(X)][..., 0],
                               np.array(expected)[:, :3])  # fmt: skip


def test_rounding_moves_no_training_row():
    """Float32 is only needed where training rows are closer than the steps of float16."""
    coarse = np.linspace(-124, -114, 41, dtype=np.float32)
    fine = np.float32(1000) + np.arange(41, dtype=np.float32) / 64
    X = np.column_stack([coarse, fine, 1e6 * coarse])
    stumps = [
        Node(f, float(X[k, f] + 1e-4), True, *(Node(-1, 0, True, None, None, v) for v in (-1, 3)))
        for f in range(3)
        for k in range(40)
        if X[k, f] < X[k + 1, f] and X[k, f] + 1e-4 < X[k + 1, f]
    ]
    trees = trees_of(stumps, 3)
    packed = trees.rounded(X)
    np.testing.assert_array_equal(packed.leaves(X), trees.leaves(X))
    assert packed.wide == {1, 2}  # float16 has neither steps of 1/64 at 1000 nor 1e8
    narrow = packed.threshold[(packed.feature == 0)]
    np.testing.assert_array_equal(narrow, narrow.astype(np.float16))
    assert np.unique(packed.value[packed.feature < 0]).size <= 3


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_leaves_are_rounded_in_the_unit_of_the_target(unit):
    def stump(*values):
        leaves = (Node(-1, 0.0, True, None, None, unit * v) for v in values)
        return Node(0, 0.5, True, *leaves)

    X = np.linspace(0, 1, 20, dtype=np.float32)[:, None]
    packed = trees_of([stump(-1.0, 0.3), stump(1e-3, -4e-4)], 1).rounded(X)
    leaves = packed.value[packed.feature < 0, 0] / unit
    np.testing.assert_allclose(leaves, [-1.0, 0.3, 1e-3, -4e-4], rtol=0.02)


def test_the_bytes_of_two_stumps_are_counted_bit_by_bit():
    def stump(feature, threshold):
        return Node(
            feature, threshold, True, *(Node(-1, 0.0, True, None, None, v) for v in (1.0, 2.0))
        )

    X = np.linspace(0, 1, 20, dtype=np.float32)[:, None].repeat(4, axis=1)
    trees = trees_of([stump(0, 0.5), stump(3, 0.25)], 4).rounded(X)
    # 8 for the header; two splits of 2 + 16 bits, six nodes of 1 bit; 4 leaves and 2 scales.
    assert trees.split_bytes(gaps=False) == 8 + 6
    assert trees.leaf_bytes() == 4 + 2 * 2
    many = trees_of([stump(0, 0.5)] * 100, 4).rounded(X)
    # the split is stored once in a table: 18 bits, no bits for its number, 300 bits for nodes
    assert many.split_bytes(gaps=False) == 8 + 40


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cut_model_is_within_its_bytes_and_predicts_from_packed_numbers(library):
    module, rows = _module(library), _rows(SYNTHETIC)
    cuts = boosting.make_cuts(rows, module._grow, module.SHAPES[:2])
    sizes = [400, 1500]
    models = [boosting.cut(rows, n_bytes, cuts) for n_bytes in sizes]
    assert all(m.n_bytes <= n for m, n in zip(models, sizes, strict=True))
    assert models[0].n_bytes > 100
    loss = [rows.loss(model.predict(rows.X)) for model in models]
    assert loss[1] < loss[0] < 0.5
    proba = models[1].predict(rows.X)
    assert proba.shape == (len(rows.y), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    with pytest.raises(NoModel, match="more than 20 bytes"):
        boosting.cut(rows, 20, cuts)


def test_levels_are_ordered_by_their_mean_target():
    rows = _rows(SYNTHETIC_REGRESSION)
    code = OrdinalCode.of(rows)
    column = rows.X["x4"]
    means = {level: rows.y[(column == level).to_numpy()].mean() for level in column.cat.categories}
    ranks = code.ranks["x4"]
    assert sorted(ranks, key=ranks.get) == sorted(means, key=means.get)
    unseen = rows.X.head(2).assign(x4=["level 99", None])
    assert np.isnan(code(unseen)[:, 4]).all()
    assert code.n_bytes == 2 * 2 + 3 + 12


def test_held_out_rows_leave_all_classes_to_the_fit():
    y = np.array([0] * 50 + [1] * 49 + [2])
    rows = Rows(_rows(SYNTHETIC).X.head(100), y, False, 0)
    for seed in range(5):
        fit, choose = Rows(rows.X, y, False, seed).held_out()
        assert set(fit.y) == {0, 1, 2}
        assert len(choose.y) == 20
        assert fit.n_classes == choose.n_classes == 3
