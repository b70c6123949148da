"""The size of a model within a budget, chosen on held-out rows."""

from __future__ import annotations

import factories
import numpy as np
import pytest

from nysplus._bytes.budget import TYPES, Budget, Size
from nysplus._fit.size import choose_size, sizes_within
from nysplus.kernels import RBF
from nysplus.landmarks import Uniform


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
