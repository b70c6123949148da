"""Pickers against their literal definitions."""

from __future__ import annotations

import re
from itertools import permutations

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sampling import sampled
from scipy.stats import chi2
from sklearn import config_context
from sklearn.base import clone

from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)
from nysplus.landmarks.pickers import (
    CholeskyPicker,
    FarthestPicker,
    LargestScores,
    farthest_points,
    make_picker,
)
from nysplus.landmarks.pivoted_cholesky import draw, find_pivots, kernel_diagonal, pivoted_cholesky


def named(kernel):
    """Tell kernels apart by what does not change from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(kernel))


KERNELS = [
    RBF(0.5),
    Matern(0.3, nu=0.5),
    Matern(0.3, nu=2.5),
    Laplacian(0.4),
    Polynomial(0.5, degree=2),
    Cosine(),
    Linear(),
    FunctionKernel(lambda X, Z: np.exp(X[:, :1] + Z[:, 0]) * (X @ Z.T), vectorized=True),
    FunctionKernel(lambda x, z: float(np.minimum(x, z).sum())),
]
PICKS = [LargestScores(), CholeskyPicker(), CholeskyPicker(greedy=True), FarthestPicker()]


def seeded(seed=0):
    return np.random.RandomState(seed)


@pytest.fixture
def pool(rng):
    """Rows without negative entries, and a weight for each."""
    return rng.rand(90, 12) * 2, rng.rand(90) + 0.1


@pytest.mark.parametrize("kernel", [*KERNELS, Chi2(0.3)], ids=named)
def test_diagonal_is_that_of_the_kernel_matrix(kernel, pool):
    X, _ = pool
    X[3] = 0.0
    found, evaluations = kernel_diagonal(kernel, X)
    np.testing.assert_allclose(found, np.diag(kernel(X, X)), rtol=1e-12, atol=1e-7)
    assert evaluations < 33 * len(X)


# ---- pivoted Cholesky ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
@pytest.mark.parametrize("block", [1, 7, 128])
def test_greedy_pivots_are_those_of_the_literal_elimination(kernel, block, pool):
    X, weight = pool
    n = 12  # the rank of the linear kernel
    found = pivoted_cholesky(kernel, X, n, weight, seeded(), greedy=True, block=block)
    np.testing.assert_array_equal(found, reference.pivots(kernel(X, X), n, weight))


@pytest.mark.parametrize("unit", [0.0625, 1.0, 16.0])
def test_greedy_ties_are_left_for_better_rows(unit, rng):
    """Rows of exactly the same length; those of the first block have nearly one direction."""
    X = rng.choice([-1.0, 1.0], (14, 8))
    X[:7] = 1.0 - 2.0 * np.eye(8)[:7]
    X *= unit
    found = pivoted_cholesky(Linear(), X, 6, np.ones(14), seeded(), greedy=True, block=4)
    np.testing.assert_array_equal(found, reference.pivots(X @ X.T, 6, np.ones(14)))


@pytest.mark.parametrize("block", [1, 5, 128])
def test_greedy_ties_go_to_the_first_row(block):
    X = np.repeat(np.eye(20) * 10, 3, axis=0)  # one like the other, and no kernel between them
    found = pivoted_cholesky(RBF(1.0), X, 20, np.ones(60), seeded(), greedy=True, block=block)
    np.testing.assert_array_equal(found, np.arange(0, 60, 3))


@pytest.mark.slow
@sampled(
    ("kernel", "block"),
    {
        "rbf": RBF(0.5),
        "polynomial": FunctionKernel(lambda X, Z: (0.5 * X @ Z.T + 1) ** 2, vectorized=True),
    },
    [1, 8],
)
def test_random_pivots_have_the_exact_distribution(kernel, block, rng):
    """Every ordered triple of rows comes as often as drawing one by one makes it come."""
    X, weight = rng.randn(5, 2), np.array([1.0, 2.0, 0.5, 1.0, 0.2])
    K = kernel(X, X)
    triples = list(permutations(range(5), 3))
    expected = np.array([reference.pivot_probability(K, triple, weight) for triple in triples])
    assert expected.sum() == pytest.approx(1.0)
    trials, counts = 2500, dict.fromkeys(triples, 0)
    for _ in range(trials):
        counts[tuple(pivoted_cholesky(kernel, X, 3, weight, rng, block=block).tolist())] += 1
    seen = np.array(list(counts.values()))
    often = expected * trials >= 5  # the rest is one class
    seen = np.append(seen[often], seen[~often].sum())
    expected = trials * np.append(expected[often], expected[~often].sum())
    kept = expected > 0
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.ppf(0.999, kept.sum() - 1)


@pytest.mark.parametrize("block", [4, 128])
def test_random_pivots_leave_the_trace_that_literal_ones_leave(block, rng):
    X = np.concatenate([rng.randn(250, 3), rng.randn(50, 3) * 0.1 + 5])
    kernel, weight = RBF(0.3), np.ones(300)
    K = kernel(X, X)
    literal, found = (
        np.array([reference.trace_error(K, chosen(seeded(seed))) for seed in range(30)])
        for chosen in (
            lambda rng: reference.pivots(K, 25, weight, rng),
            lambda rng: pivoted_cholesky(kernel, X, 25, weight, rng, block=block),
        )
    )
    deviation = np.sqrt((literal.var() + found.var()) / 30)
    assert abs(literal.mean() - found.mean()) < 3 * deviation
    assert 3 * deviation < 0.2 * literal.mean()  # so that this could fail


@pytest.mark.parametrize("greedy", [False, True])
def test_rank_is_found_and_the_rest_completed(greedy, rng):
    X, weight = rng.randn(40, 6), np.arange(40.0)
    found = find_pivots(Linear(), X, 15, weight, seeded(), greedy)
    assert found.rank == 6
    assert np.linalg.matrix_rank(X[found.positions[:6]]) == 6
    assert len(set(found.positions.tolist())) == 15
    rest = found.positions[6:]
    if greedy:
        heaviest = [i for i in range(39, 0, -1) if i not in found.positions[:6]]
        np.testing.assert_array_equal(rest, heaviest[:9])
    else:
        other = find_pivots(Linear(), X, 15, weight, seeded(1)).positions[6:]
        assert set(other.tolist()) != set(rest.tolist())
        assert 0 not in rest


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5, nu=1.5), Linear()], ids=named)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeated_rows_are_chosen_once(greedy, kernel, dtype, rng):
    X = np.tile(rng.randn(5, 8), (30, 1)).astype(dtype) + dtype(100)
    found = pivoted_cholesky(kernel, X, 5, np.ones(150), seeded(), greedy)
    assert set(found % 5) == set(range(5))


@pytest.mark.parametrize("greedy", [False, True])
def test_a_kernel_that_is_zero_leaves_the_weights(greedy):
    weight = np.array([1.0, 0.0, 3.0, 0.0, 2.0])
    found = find_pivots(Linear(), np.zeros((5, 2)), 3, weight, seeded(), greedy)
    assert found.rank == 0
    assert set(found.positions.tolist()) == {0, 2, 4}


@pytest.mark.parametrize("greedy", [False, True])
def test_a_row_is_no_pivot_twice_even_where_its_kernel_with_itself_is_noisy(greedy, rng):
    """As with a white noise that a kernel function adds to the diagonal of square matrices."""

    def noisy(X, Z):
        return RBF(0.5)(X, Z) + (np.eye(len(X)) if X.shape == Z.shape else 0.0)

    kernel, X = FunctionKernel(noisy, vectorized=True), rng.randn(9, 2)
    for seed in range(20):
        found = pivoted_cholesky(kernel, X, 4, np.ones(9), seeded(seed), greedy, block=8)
        assert len(set(found.tolist())) == 4


def test_kernel_evaluations_are_counted(pool):
    X, weight = pool
    calls = []

    def product(X, Z):
        calls.append(X.shape[0] * Z.shape[0])
        return X @ Z.T + 1.0

    for greedy in (False, True):
        calls.clear()
        kernel = FunctionKernel(product, vectorized=True)
        found = find_pivots(kernel, X, 8, weight, seeded(), greedy, block=3)
        assert found.n_kernel_evaluations == sum(calls)


def test_indefinite_kernels_are_refused_with_a_way_out(pool):
    X, weight = pool
    for kernel in (Sigmoid(0.1), AdditiveChi2(), Polynomial(0.5, coef0=-1)):
        with pytest.raises(ValueError, match=r"positive semidefinite kernel.*'farthest'"):
            pivoted_cholesky(kernel, X, 3, weight, seeded())
    # what is not known beforehand is found out: a negative diagonal, then a negative residual
    for function in (lambda X, Z: -(X @ Z.T), lambda X, Z: np.tanh(X @ Z.T - 3.0)):
        with pytest.raises(ValueError, match="positive semidefinite kernel, and FunctionKernel"):
            pivoted_cholesky(FunctionKernel(function, vectorized=True), X, 60, weight, seeded())


def test_memory_is_rows_times_landmarks(rng):
    """The kernel matrix of the pool is never made."""
    shapes = []

    def gaussian(X, Z):
        shapes.append((X.shape[0], Z.shape[0]))
        return RBF(0.2)(X, Z)

    kernel = FunctionKernel(gaussian, vectorized=True)
    X = rng.randn(3000, 4)
    for greedy in (False, True):
        pivoted_cholesky(kernel, X, 40, np.ones(3000), seeded(), greedy, block=16)
    assert max(rows * columns for rows, columns in shapes) <= 3000 * 16


# ---- farthest points ----------------------------------------------------------------------------


def test_farthest_points_are_those_of_the_literal_traversal(pool):
    X, weight = pool
    expected = reference.farthest(X, 30, weight, int(weight.argmax()))
    np.testing.assert_array_equal(farthest_points(X, 30, weight, seeded()), expected)
    far = farthest_points(X + 1e6, 30, weight, seeded())
    np.testing.assert_array_equal(far, expected)


def test_farthest_points_start_at_random_among_equals(pool):
    X, _ = pool
    starts = {int(farthest_points(X, 2, np.ones(90), seeded(seed))[0]) for seed in range(20)}
    assert len(starts) > 10


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_farthest_points_take_repeated_rows_once(rows, rng):
    X = np.tile(rng.randn(6, 3) + 50, (10, 1))
    weight = np.repeat([3.0, 1.0], 30)
    found = farthest_points(rows(X), 9, weight, seeded())
    assert set(found[:6] % 6) == set(range(6))
    # the last three add nothing: the first of the heaviest
    left = [i for i in range(30) if i not in found[:6]]
    np.testing.assert_array_equal(found[6:], left[:3])


# ---- every picker -------------------------------------------------------------------------------


@pytest.mark.parametrize("picker", PICKS, ids=named)
@pytest.mark.parametrize("n", [1, 25, 90])
def test_picks_are_distinct_and_seeded(picker, n, pool):
    X, score = pool
    picked = picker.pick(RBF(0.5), X, score, n, seeded())
    assert picked.dtype == np.intp
    assert sorted(set(picked.tolist())) == sorted(picked.tolist())
    assert len(picked) == n
    np.testing.assert_array_equal(picker.pick(RBF(0.5), X, score, n, seeded()), picked)
    with config_context(working_memory=0.01):
        np.testing.assert_array_equal(picker.pick(RBF(0.5), X, score, n, seeded()), picked)


@pytest.mark.parametrize("picker", PICKS, ids=named)
def test_rows_without_score_are_picked_last(picker, pool):
    X, score = pool
    score[::2] = 0.0
    for seed in range(10):
        assert (picker.pick(RBF(0.5), X, score, 44, seeded(seed)) % 2 == 1).all()
    last = picker.pick(RBF(0.5), X, score, 50, seeded())
    assert (last[:45] % 2 == 1).all()
    assert len(set(last.tolist())) == 50


@pytest.mark.parametrize("picker", PICKS, ids=named)
def test_sparse_and_float32_rows_give_the_same_picks(picker, pool):
    X, score = pool
    X = np.where(X > 1.2, X, 0.0).astype(np.float32)
    expected = picker.pick(RBF(0.5), X.astype(np.float64), score, 25, seeded())
    for rows in (X, sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float64))):
        np.testing.assert_array_equal(picker.pick(RBF(0.5), rows, score, 25, seeded()), expected)


@pytest.mark.parametrize("picker", PICKS[1:], ids=named)
def test_diverse_pickers_see_what_the_largest_scores_miss(picker, rng):
    """Scores are largest in one of eight clusters; without diversity nothing else is picked."""
    cluster = np.repeat(np.arange(8), 25)
    X = 10.0 * np.eye(8)[cluster] + 0.01 * rng.randn(200, 8)
    score = np.where(cluster == 0, 1.5, 1.0)
    assert set(cluster[LargestScores().pick(RBF(1.0), X, score, 8, rng)]) == {0}
    assert len(set(cluster[picker.pick(RBF(1.0), X, score, 8, rng)])) == 8


@pytest.mark.parametrize("picker", PICKS[1:], ids=named)
def test_bad_pools_are_refused(picker, pool):
    X, score = pool
    with pytest.raises(ValueError, match="n=91 exceeds the 90 rows of the pool"):
        picker.pick(RBF(0.5), X, score, 91, seeded())
    for bad in (-score, np.where(score > 0.5, score, np.nan), score[:-1], score + np.inf):
        with pytest.raises(ValueError, match="for 90 rows; every row needs one, finite and not"):
            picker.pick(RBF(0.5), X, bad, 5, seeded())


def test_largest_scores_may_be_negative():
    picked = LargestScores().pick(RBF(1.0), np.zeros((4, 1)), np.array([-3.0, -1, -2, -1]), 3, None)
    np.testing.assert_array_equal(picked, [1, 3, 2])


def test_make_picker():
    assert isinstance(make_picker(None), LargestScores)
    assert isinstance(make_picker("cholesky"), CholeskyPicker)
    assert isinstance(make_picker("farthest"), FarthestPicker)
    own = CholeskyPicker(greedy=True)
    assert make_picker(own) is own
    assert repr(clone(own)) == "CholeskyPicker(greedy=True)"
    for bad in ("random", 3, CholeskyPicker):
        with pytest.raises(ValueError, match=r"picker=.* is not known.*'cholesky', 'farthest'"):
            make_picker(bad)
    with pytest.raises(ValueError, match="block=0 must be an integer of at least 1"):
        CholeskyPicker(block=0).check()


def test_draws_without_replacement_follow_the_weights():
    weight = np.array([4.0, 0.0, 3.0, 2.0, 1.0])
    rng, trials = seeded(), 10_000
    counts = np.zeros((5, 5))
    for _ in range(trials):
        first, second = draw(weight, 2, rng)
        counts[first, second] += 1
    share = weight / weight.sum()
    expected = trials * share[:, None] * share / (1 - share[:, None])
    np.fill_diagonal(expected, 0.0)
    kept = expected > 0
    assert counts[~kept].sum() == 0
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.ppf(0.999, kept.sum() - 1)
