"""The number of landmarks of n_components="auto", chosen on held-out rows."""

from __future__ import annotations

import factories
import numpy as np
import pytest

from nysplus._bytes.budget import most_landmarks
from nysplus._fit import growth as _growth
from nysplus._fit.growth import Growth, doubling_sizes, grown_size
from nysplus.kernels import RBF
from nysplus.landmarks import Landmarks, LandmarkSelector, Uniform

RULES = Growth(smallest=10)


class Counting(LandmarkSelector):
    """Draw rows, and note their numbers and the weights of the rows they are drawn from."""

    def __init__(self):
        self.sizes, self.n_rows = [], []

    def select(self, problem, n, rng):
        self.sizes.append(n)
        self.n_rows.append(problem.blocks.n_rows)
        return Uniform().select(problem, n, rng)


def test_sizes_double_and_end_with_the_largest():
    assert doubling_sizes(50, 400) == [50, 100, 200, 400]
    assert doubling_sizes(50, 550) == [50, 100, 200, 550]
    assert doubling_sizes(50, 570) == [50, 100, 200, 400, 570]
    assert doubling_sizes(50, 70) == doubling_sizes(100, 70) == [70]


def test_growth_goes_on_where_it_helps(rng):
    problem = factories.problem(*factories.checkerboard(2000, 6, rng), RBF(40.0), alphas=(1e-3,))
    selector = Counting()
    assert grown_size(problem, selector, RULES, rng) >= 160
    assert selector.sizes[:5] == [10, 20, 40, 80, 160]
    # models are compared on rows that they have not seen
    assert set(selector.n_rows) == {2000 - 667}


def test_growth_ends_after_two_sizes_without_a_gain(rng):
    """Two heaps far apart: the smallest model gets all rows right."""
    y = np.arange(4000) % 2
    X = rng.standard_normal((4000, 3)) + 30.0 * y[:, None]
    selector = Counting()
    problem = factories.problem(X, y, RBF(1e-3), alphas=(1e-3,))
    assert grown_size(problem, selector, RULES, rng) == 10
    assert selector.sizes == [10, 20, 40]


def test_a_size_that_fails_does_not_end_the_growth(monkeypatch, rng):
    """Of sizes with more and more rows right, one has fewer."""
    right = iter([100, 150, 120, 200, 200, 200])

    def scores(model, rows):
        return (np.arange(len(rows)) < next(right)).astype(float)

    monkeypatch.setattr(_growth, "row_scores", scores)
    problem = factories.problem(*factories.classes(2000))
    assert most_landmarks(2000) == 500
    assert grown_size(problem, Uniform(), RULES, rng) == 80


def test_a_gain_within_the_noise_is_none(monkeypatch, rng):
    """A model that is right on 11 rows and wrong on 10, where the other is not, is no better."""
    more, fewer = (
        np.repeat([1.0, 0.0, 1.0], [100, 10, 11]),
        np.repeat([1.0, 1.0, 0.0], [100, 10, 11]),
    )
    known = iter([fewer, more, more])
    monkeypatch.setattr(
        _growth, "row_scores", lambda model, rows: np.resize(next(known), len(rows))
    )
    problem = factories.problem(*factories.classes(363))
    assert grown_size(problem, Uniform(), RULES, rng) == 10


@pytest.mark.parametrize(
    ("n_rows", "chosen"), [(1, 1), (2, 2), (20, 20), (50, 50), (51, 50), (100, 50), (141, 70)]
)
def test_few_rows_are_not_held_out(n_rows, chosen, rng):
    problem = factories.problem(*factories.values(n_rows))
    selector = Counting()
    assert grown_size(problem, selector, Growth(), rng) == chosen
    assert not selector.sizes


def test_landmarks_need_not_be_rows(rng):
    class Means(LandmarkSelector):
        def select(self, problem, n, rng):
            return Landmarks(rng.standard_normal((n, problem.blocks.n_features)))

    problem = factories.problem(*factories.values(600, noise=0.01))
    assert grown_size(problem, Means(), RULES, rng) > 10
