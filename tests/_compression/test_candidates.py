"""Candidates for a smaller model, and the optimism of models that have seen held-out rows."""

from __future__ import annotations

import factories
import numpy as np
import pytest
import scipy.sparse as sp

from nysplus import NystroemClassifier
from nysplus._bytes.budget import Budget, Size
from nysplus._compression.candidates import Candidates, SmallerModel, pruned_models
from nysplus._compression.pruning import reduced
from nysplus._rows.blocks import Block
from nysplus.kernels import RBF, Laplacian


def test_landmarks_of_the_rbf_kernel_are_merged_as_well_as_removed(rng):
    large = factories.expansion(rng.randn(30, 3), rng)
    merged, removed = pruned_models(large, [Size(10)], None)
    X = rng.randn(20, 3)
    np.testing.assert_array_equal(merged.expansion(X), reduced(large, 10, merge=True)[0](X))
    np.testing.assert_array_equal(removed.expansion(X), reduced(large, 10)[0](X))
    assert len(list(pruned_models(large, [Size(30)], None))) == 1


def test_landmarks_of_other_kernels_are_removed(rng):
    large = factories.expansion(rng.randn(30, 3), rng, Laplacian(0.3))
    (removed,) = pruned_models(large, [Size(10)], None)
    np.testing.assert_array_equal(large.landmarks[removed.kept], removed.expansion.landmarks)


def test_csr_landmarks_are_removed_until_they_fit(rng):
    Z = sp.random(40, 10, density=0.3, format="csr", random_state=rng)
    large = factories.expansion(Z, rng, RBF(0.5))
    (small,) = pruned_models(large, [Size(40, None, ("float32",))], Budget(800))
    (version,) = small.versions(factories.blocks(Z))
    assert 400 < version.expansion.n_bytes <= 800


def test_models_without_storage_types_stay(rng):
    model = SmallerModel(factories.expansion(rng.randn(5, 2), rng))
    assert list(model.versions(factories.blocks(rng.randn(9, 2)))) == [model]
    assert model.finished(factories.blocks(rng.randn(9, 2))) is model


def test_models_come_in_each_storage_type(rng):
    model = SmallerModel(factories.expansion(rng.randn(5, 2), rng), dtypes=("int8", "float32"))
    versions = list(model.versions(factories.blocks(rng.randn(9, 2), rng.randint(2, size=9))))
    assert [version.dtypes for version in versions] == [("int8",), ("float32",)]
    assert versions[0].expansion.n_bytes < versions[1].expansion.n_bytes


@pytest.fixture
def candidates(rng):
    """Candidates for a classifier of 40 landmarks, from 200 rows."""
    X = rng.uniform(-1, 1, (200, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = NystroemClassifier(40, random_state=0).fit(X, y)
    rows = Block(X, np.arange(200), model._model.code.encode(y))
    held_out, used = np.arange(40), np.arange(40, 200)
    return Candidates(model.expansion_, rows, used, rows.take(held_out), None, rng)


def test_candidates_are_pruned_regressed_and_learned(candidates):
    models = list(candidates.models([Size(8)], 0.1))
    assert [len(model.expansion.landmarks) for model in models] == [8] * 6
    # merged and removed landmarks, each with its regression; new landmarks; learned landmarks
    assert [model.reproduces for model in models] == [True, False, True, False, False, False]
    assert [model.optimism for model in models] == [0.1] * 4 + [0.0] * 2
    assert [model.continued is None for model in models] == [True] * 5 + [False]


def test_learned_models_continue_with_the_held_out_rows(candidates):
    *_, learned = candidates.models([Size(8)], 0.0)
    finished = learned.finished(candidates.rows.blocks()).expansion
    X = candidates.rows.X
    assert np.abs(learned.expansion(candidates.held_out.X)).max() == pytest.approx(1.0, rel=1e-6)
    assert 0 < np.abs(finished(X) - learned.expansion(X)).max() < 1.0


def test_scores_of_rows_that_the_model_has_seen_are_optimistic():
    """One landmark for two rows, nearly no ridge, and noisy labels: the model overfits."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (1200, 6))
    y = np.where(rng.uniform(size=1200) < 0.2, 1, X[:, 0] * X[:, 1] < 0).astype(int)
    model = NystroemClassifier(300, gamma=5.0, alpha=1e-4, random_state=0).fit(X[:600], y[:600])

    def optimism(X, y):
        rows = Block(X, np.arange(len(X)), model._model.code.encode(y))
        used = np.arange(len(X) // 5, len(X))
        held_out = rows.take(np.arange(len(X) // 5))
        return Candidates(model.expansion_, rows, used, held_out, None, rng).optimism()

    assert optimism(X[:600], y[:600]) > 0.05
    assert optimism(X[600:], y[600:]) == 0.0
