"""The size of a model within a budget, chosen on held-out rows."""

from __future__ import annotations

import factories
import numpy as np
import pytest

from nysplus._bytes.budget import TYPES, Budget, ModelShape, Size
from nysplus._bytes.quantise import quantise
from nysplus._fit.size import ChosenSize, Version, choose_size, sizes_within, tried_versions
from nysplus.kernels import RBF
from nysplus.landmarks import Uniform, select_landmarks


@pytest.fixture
def problem(digits):
    return factories.problem(*digits, RBF(0.01), alphas=(1e-3, 1e-1))


def _chosen(problem, sizes, rng):
    return choose_size(problem, Uniform(), sizes, problem.blocks, None, rng).size


def test_of_equal_ones_the_one_with_fewer_bytes_is_chosen(rng):
    """Two heaps far apart: every type of every size gets all rows right."""
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 3)) + 30.0 * y[:, None]
    problem = factories.problem(X, y, RBF(1e-3), alphas=(1e-3,))
    sizes = [Size(10, None, TYPES), Size(20, None, TYPES[:1])]
    assert _chosen(problem, sizes, rng) == Size(10, None, ("int8",))


def test_more_landmarks_are_chosen_where_they_help(problem, rng):
    sizes = [Size(5, None, ("float32",)), Size(60, None, ("int8",))]
    assert _chosen(problem, sizes, rng) == sizes[1]


def test_a_single_size_costs_nothing(problem, rng):
    size = Size(5, None, ("int8",))
    found = choose_size(problem, Uniform(), [size], None, None, rng)
    assert found.size is size
    assert found.held_out is None


def test_too_small_a_budget_says_what_is_needed(problem, rng):
    with pytest.raises(ValueError, match="no room for a single landmark of 64 columns") as error:
        sizes_within(Budget(100), problem, Uniform(), None, rng)
    needed = int(str(error.value).split("takes ")[1].split(" bytes")[0])
    assert sizes_within(Budget(needed), problem, Uniform(), None, rng)[0].n == 1
    with pytest.raises(ValueError, match="no room"):
        sizes_within(Budget(needed - 1), problem, Uniform(), None, rng)


def test_a_single_size_can_be_scored_as_well(problem, rng):
    size = Size(60, None, ("int8",))
    found = choose_size(problem, Uniform(), [size], problem.blocks, None, rng, always=True)
    assert found.size == size
    assert found.held_out is not None
    assert len(np.unique(found.held_out.rows)) == len(found.held_out.scores)
    assert 0.5 < found.held_out.mean < 1.0


def _sizes(*counts):
    return [Size(n, None, (f"type {n}",)) for n in counts]


@pytest.mark.parametrize(
    ("scores", "tried"),
    [
        ({1: 0.5, 2: 0.6, 3: 0.7, 4: 0.8}, [1, 2, 4]),  # the largest wins: none in between
        ({1: 0.5, 2: 0.6, 3: 0.7, 4: 0.4}, [1, 2, 4, 3]),
        ({1: 0.6, 2: 0.5, 3: 0.5, 4: 0.9}, [1, 2, 3]),  # more landmarks do not help
        ({1: 0.6, 2: 0.5, 3: 0.7, 4: 0.9}, [1, 2, 3, 4]),
        ({1: 0.5, 2: 0.6}, [1, 2]),
        ({1: 0.5}, [1]),
    ],
)
def test_sizes_are_tried_as_long_as_they_may_win(scores, tried):
    asked = []

    def versions(size):
        asked.append(size.n)
        return [Version(scores[size.n], -size.n, ChosenSize(size))]

    found = tried_versions(_sizes(*scores), versions)
    assert asked == tried
    assert [version.chosen.size.n for version in found] == tried


@pytest.mark.parametrize("seed", range(3))
def test_few_bits_hold_up_on_rows_that_were_not_seen(digits, seed):
    """At equal bytes, few bits are not worse than int8, the smallest type before them."""
    X, y = digits
    order = np.random.RandomState(seed).permutation(len(X))
    fit, test = order[:1200], order[1200:]
    problem = factories.problem(X[fit], y[fit], RBF(0.002), alphas=(1e-3, 1e-1))
    shape = ModelShape(64, 10)
    accuracies = {}
    for dtype in ("int4", "int8"):
        n = Budget(2048).landmarks(shape, dtype)
        rng = np.random.RandomState(seed)
        Z = select_landmarks(Uniform(), problem, n, rng).points
        small = quantise(problem.fit(Z, rng).expansion, dtype, problem.blocks, rng)
        assert small.n_bytes <= 2048
        accuracies[dtype] = np.mean(small(X[test]).argmax(axis=1) == y[test])
    assert accuracies["int4"] > accuracies["int8"]
