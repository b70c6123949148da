"""Compressed estimators: by landmarks and by bytes, with and without rows."""

from __future__ import annotations

import re

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from factories import alter
from sampling import sampled
from sklearn.exceptions import NotFittedError

from nysplus import NystroemClassifier, NystroemRegressor, load
from nysplus._bytes.budget import make_budget
from nysplus._compression import compress
from nysplus._compression.compress import CompressionRules, compress_model
from nysplus._compression.misfit import Misfit
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF

pytestmark = pytest.mark.slow


def log_loss(model, X, y):
    P = model.predict_proba(X)
    return -np.log(P[np.arange(len(P)), np.searchsorted(model.classes_, y)]).mean()


@pytest.fixture(scope="module")
def halves(request):
    X, y = request.getfixturevalue("digits")
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def large(halves):
    return NystroemClassifier(200, random_state=0).fit(*halves[:2])


@pytest.mark.parametrize("with_rows", [False, True])
def test_digits_lose_little(halves, large, with_rows):
    X, _, X_test, y_test = halves
    small = compress_model(large, 50, X=X if with_rows else None)
    assert small.score(X_test, y_test) > large.score(X_test, y_test) - 0.015
    assert len(small.landmarks_) == 50


def test_better_than_some_landmarks_and_than_a_fit(halves, large, rng):
    X, y, X_test, y_test = halves
    expansion = large.expansion_

    def error(other):
        return ((other(X_test) - expansion(X_test)) ** 2).mean()

    misfit = Misfit.of(expansion, X, np.full(len(X), 1.0 / len(X)))
    some = expansion.landmarks[rng.permutation(200)[:50]]
    random = KernelExpansion(
        kernel=expansion.kernel,
        landmarks=some,
        dual_coef=misfit.solve(some),
        intercept=expansion.intercept,
    )
    small = compress_model(large, 50, X=X)
    assert error(small.expansion_) < 0.25 * error(random)
    fitted = NystroemClassifier(50, random_state=0).fit(X, y)
    assert small.score(X_test, y_test) > fitted.score(X_test, y_test)


def test_a_copy_with_consistent_attributes(halves, large):
    X, y = halves[:2]
    before = large.expansion_
    small = compress_model(large, 40, X=X)
    assert type(small) is NystroemClassifier
    assert large.expansion_ is before
    assert large.n_components == 200
    assert small.n_components == 40
    assert small.landmarks_.shape == (40, 64)
    assert small.landmark_indices_ is None
    assert small._model.scaling == large._model.scaling
    np.testing.assert_array_equal(small.classes_, large.classes_)
    assert small.model_bytes_ < large.model_bytes_ / 4
    assert small.predict_proba(X).shape == (len(X), 10)
    again = compress_model(large, 40, X=X)
    np.testing.assert_array_equal(again.dual_coef_, small.dual_coef_)
    assert small.fit(X, y).landmarks_.shape == (40, 64)


def test_indices_follow_landmarks_that_stay(digits):
    X, y = digits
    large = NystroemClassifier(60, kernel="laplacian", selection="uniform", random_state=0)
    small = compress_model(large.fit(X, y), 20)
    np.testing.assert_array_equal(X[small.landmark_indices_], small.landmarks_)


def test_classes_of_rows_scale_probabilities(halves, large):
    X_test, y_test = halves[2:]
    small = compress_model(large, 20, X=X_test, y=y_test)
    scaled = log_loss(small, X_test, y_test)
    alter(small, scaling=large._model.scaling)
    assert scaled < log_loss(small, X_test, y_test)


def test_a_regressor_of_several_values(rng):
    X = rng.uniform(-3, 3, (400, 1))
    Y = np.hstack([np.sin(X), np.cos(X)])
    large = NystroemRegressor(100, random_state=0).fit(X, Y)
    small = compress_model(large, 8, X=X, y=Y)
    assert small.predict(X).shape == Y.shape
    assert small.score(X, Y) > 0.999


def test_sums_over_rows_are_left_behind(moons):
    X, y = moons
    large = NystroemClassifier(50, random_state=0).partial_fit(X, y, classes=[0, 1])
    small = compress_model(large, 10, X=X)
    assert small._model.running is None
    assert large._model.running is not None
    assert small.score(X, y) > large.score(X, y) - 0.02


def test_multilabel(rng):
    X = rng.randn(300, 2)
    Y = (np.stack([X[:, 0], X[:, 1], X.sum(axis=1)], axis=1) > 0).astype(int)
    large = NystroemClassifier(60, random_state=0).fit(X, Y)
    small = compress_model(large, 20, X=X, y=Y)
    assert small.predict(X).shape == Y.shape
    assert small.score(X, Y) > large.score(X, Y) - 0.03


def test_functions_that_do_not_cancel_are_left_alone(large):
    assert not Misfit.of(large.expansion_, large.landmarks_, np.full(200, 1 / 200)).cancels


@pytest.fixture(scope="module")
def signs():
    """Classes by two of six features: a map leaves the others out."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (3000, 6))
    y = np.array(["equal", "other"])[(X[:, 0] * X[:, 1] < 0).astype(int)]
    return X[:2000], y[:2000], X[2000:], y[2000:]


@pytest.fixture(scope="module")
def larger(signs):
    return NystroemClassifier(300, gamma=2.0, random_state=0).fit(*signs[:2])


def test_a_learned_model_wins_where_it_is_better(signs, larger):
    X, y, X_test, y_test = signs
    pruned, learned = compress_model(larger, 20), compress_model(larger, 20, X=X, y=y)
    assert learned.projection_.shape == (6, 6)
    assert learned.refined_
    assert not pruned.refined_
    assert learned.landmark_indices_ is None
    assert learned.score(X_test, y_test) > pruned.score(X_test, y_test) + 0.05
    assert log_loss(learned, X_test, y_test) < log_loss(pruned, X_test, y_test)


def test_predictions_of_the_model_replace_classes(signs, larger):
    """A model that learned from predictions is no more confident than the larger model."""
    X, _, X_test, y_test = signs
    learned = compress_model(larger, 20, X=X, rules=CompressionRules(min_taught_rows=100))
    assert learned.projection_ is not None
    assert learned.score(X_test, y_test) > compress_model(larger, 20).score(X_test, y_test)
    confidence = [m.predict_proba(X_test).max(axis=1).mean() for m in (learned, larger)]
    np.testing.assert_allclose(*confidence, atol=0.05)


def test_no_worse_than_a_fit_of_that_size(rng):
    """Large coefficients that cancel: a model that cannot reproduce the scores is not chosen."""
    X = rng.uniform(-1, 1, (1500, 2))
    y = (np.sin(5 * X[:, 0]) > X[:, 1]).astype(int)
    large = NystroemClassifier(300, gamma=0.3, alpha=1e-10, random_state=0).fit(X[:1000], y[:1000])
    fitted = NystroemClassifier(30, gamma=0.3, random_state=0).fit(X[:1000], y[:1000])
    small = compress_model(large, 30, X=X[:1000], y=y[:1000])
    assert small.score(X[1000:], y[1000:]) > fitted.score(X[1000:], y[1000:]) - 0.01


def test_few_rows_are_used_for_pruning_only(halves, large):
    X, y = halves[:2]
    small = compress_model(large, 40, X=X[:30], y=y[:30])
    assert len(small.landmarks_) == 40
    assert small.projection_ is None


def test_rows_of_one_predicted_class(halves, large):
    X, y, X_test, y_test = halves
    small = compress_model(large, 40, X=X[y == 3])
    assert small.score(X_test, y_test) > 0.9


def test_values_are_compared_by_squared_errors(rng):
    X = rng.uniform(-3, 3, (600, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    large = NystroemRegressor(150, random_state=0).fit(X[:400], y[:400])
    small = compress_model(large, 40, X=X[:400], y=y[:400])
    fitted = NystroemRegressor(40, gamma=large.gamma_, random_state=0).fit(X[:400], y[:400])
    assert small.score(X[400:], y[400:]) > fitted.score(X[400:], y[400:])


def test_a_model_behind_a_map_learns_another_map(signs, larger):
    X, y, X_test, y_test = signs
    first = compress_model(larger, 60, X=X, y=y)
    second = compress_model(first, 15, X=X, y=y)
    assert second.projection_.shape == (6, 6)
    assert second.score(X_test, y_test) > first.score(X_test, y_test) - 0.03


@sampled(("budget", "with_rows"), ["8kB", 4000, "1.5kb"], [False, True])
def test_a_budget_is_kept(halves, large, budget, with_rows):
    X, y, X_test, y_test = halves
    given = {"X": X, "y": y} if with_rows else {}
    small = compress_model(large, budget=budget, **given)
    assert small.model_bytes_ <= make_budget(budget).n_bytes
    assert small.n_components == len(small.landmarks_)
    least = {"8kB": 0.95, 4000: 0.9, "1.5kb": 0.75}[budget]
    assert small.score(X_test, y_test) > least


def test_smaller_types_have_room_for_more(large):
    small = compress_model(large, budget="8kB")
    assert small.expansion_.packed.landmarks.values.dtype == np.int8
    # 64 + 10 numbers a landmark, as many scales and ten intercepts of four bytes
    assert len(small.landmarks_) == (8192 - 4 * (64 + 10 + 10)) // 74


def test_stored_types_are_saved(halves, large, tmp_path):
    small = compress_model(large, budget="4kB", X=halves[0], y=halves[1])
    small.save(tmp_path / "small.nys")
    again = load(tmp_path / "small.nys")
    assert again.model_bytes_ == small.model_bytes_ <= 4096
    np.testing.assert_array_equal(again.predict_proba(halves[2]), small.predict_proba(halves[2]))


def test_a_model_that_fits_stays(large):
    small = compress_model(large, budget="1MB")
    assert small.expansion_ is large.expansion_
    np.testing.assert_array_equal(small.dual_coef_, large.dual_coef_)


def test_a_budget_that_only_the_type_meets(large):
    """Half the bytes: the landmarks stay where they are, in float32."""
    n_bytes = large.model_bytes_ // 2
    small = compress_model(large, budget=n_bytes)
    assert small.expansion_.packed is not None
    assert len(small.landmarks_) == 200


@sampled(("map_shape", "n_rows"), [None, (5,), (5, 3)], [0, 200])
def test_a_budget_behind_a_map(rng, map_shape, n_rows):
    X = rng.randn(300, 5)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = NystroemClassifier(100, random_state=0).fit(X, y)
    P = None if map_shape is None else rng.uniform(0.5, 1.5, map_shape)
    r = 5 if map_shape is None else map_shape[-1]
    alter(
        model,
        expansion=factories.expansion(rng.randn(100, r), rng, RBF(0.3), n_outputs=1, projection=P),
    )
    small = compress_model(model, budget=600, X=X[:n_rows] if n_rows else None)
    assert small.model_bytes_ <= 600
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9


@pytest.mark.parametrize("map_shape", [None, (5,), (5, 3)])
def test_too_few_bytes_for_one_landmark(moons, rng, map_shape):
    model = NystroemClassifier(50, random_state=0).fit(*moons)
    P = None if map_shape is None else rng.uniform(0.5, 1.5, map_shape)
    r = 5 if map_shape is None else map_shape[-1]
    alter(
        model,
        expansion=factories.expansion(rng.randn(50, r), rng, RBF(0.3), n_outputs=1, projection=P),
    )
    with pytest.raises(ValueError, match="no room for a single landmark") as error:
        compress_model(model, budget=10)
    least = int(re.search(r"takes (\d+) bytes", str(error.value))[1])
    assert compress_model(model, budget=least).model_bytes_ <= least
    with pytest.raises(ValueError, match=f"takes {least} bytes"):
        compress_model(model, budget=least - 1)


def test_sparse_landmarks_are_counted_by_their_arrays(rng):
    X = sp.random(300, 30, density=0.2, format="csr", random_state=rng)
    y = np.asarray(X[:, 0].toarray().ravel() > 0, dtype=int)
    model = NystroemClassifier(100, selection="uniform", random_state=0).fit(X, y)
    for given in ({}, {"X": X, "y": y}):
        small = compress_model(model, budget=3000, **given)
        assert small.model_bytes_ <= 3000
    plain = compress_model(model, budget=3000)
    assert sp.issparse(plain.landmarks_)
    assert plain.landmarks_.dtype == np.float32
    assert plain.model_bytes_ > 2000
    with pytest.raises(ValueError, match="no room for a single landmark"):
        compress_model(model, budget=20)


def test_features_beyond_float16(rng):
    X = rng.uniform(0, 1e6, (200, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = NystroemClassifier(80, random_state=0).fit(X, y)
    small = compress_model(model, budget=400)
    assert small.model_bytes_ <= 400
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9


@pytest.mark.parametrize("n", [0, -1, 2.5, "64", True])
def test_numbers_that_are_none(large, n):
    with pytest.raises(ValueError, match=r"n_components=.* must be an integer of at least 1"):
        compress_model(large, n)


def test_more_landmarks_than_there_are(large):
    with pytest.raises(ValueError, match="n_components=201 exceeds the 200 landmarks"):
        compress_model(large, 201)


@pytest.mark.parametrize("asked", [{}, {"n_components": 10, "budget": "8kB"}])
def test_a_number_or_a_budget(large, asked):
    with pytest.raises(ValueError, match="Pass exactly one of them"):
        compress_model(large, **asked)


def test_a_budget_that_is_none(large):
    with pytest.raises(ValueError, match="budget='small' is not a size"):
        compress_model(large, budget="small")


def test_targets_without_rows(large, halves):
    with pytest.raises(ValueError, match="y without X"):
        compress_model(large, 10, y=halves[1])


def test_rows_of_another_width(large):
    with pytest.raises(ValueError, match="features"):
        compress_model(large, 10, X=np.zeros((5, 3)))


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        compress_model(NystroemClassifier(), 10)


# ---- time and progress --------------------------------------------------------------------------


@pytest.fixture
def attempts(monkeypatch):
    """Note the landmarks of every model that is compared with others."""
    found = []
    score = compress.mean_score
    monkeypatch.setattr(
        compress, "mean_score", lambda f, rows: found.append(len(f.landmarks)) or score(f, rows)
    )
    return found


@pytest.mark.parametrize("with_rows", [False, True])
def test_the_best_model_so_far_is_returned_after_the_time(halves, large, attempts, with_rows):
    given = {"X": halves[0]} if with_rows else {}
    small = compress_model(large, budget="4kB", max_seconds=1e-9, **given)
    assert small.model_bytes_ <= 4096
    hasty = list(attempts)
    attempts.clear()
    compress_model(large, budget="4kB", max_seconds=1e9, **given)
    assert hasty == attempts[: len(hasty)]
    assert hasty[0] > min(attempts)  # the largest size comes first
    assert len(hasty) < len(attempts)


@pytest.mark.parametrize("max_seconds", [0, -1.0, "1", np.inf])
def test_times_that_make_no_sense(large, max_seconds):
    with pytest.raises(ValueError, match=r"max_seconds=.* must be a finite number above 0"):
        large.compress(10, max_seconds=max_seconds)


@pytest.mark.parametrize(("verbose", "n_lines"), [(0, 0), (1, 0), (2, 1)])
def test_progress(moons, capfd, verbose, n_lines):
    model = NystroemClassifier(40, random_state=0).fit(*moons)
    model.set_params(verbose=verbose).compress(10, X=moons[0])
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == n_lines
    assert all(line.startswith("[NystroemClassifier] compress: ") for line in lines)
