"""n_components="auto": the rows choose the number of landmarks."""

from __future__ import annotations

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification

from nysplus import (
    EnsembleMap,
    Nystroem,
    NystroemClassifier,
    NystroemRegressor,
    Refinement,
    StandardMap,
    landmark_curve,
    load,
)


@pytest.fixture(scope="module")
def synthetic():
    return make_classification(5000, 20, n_informative=10, n_classes=3, random_state=0)


def test_more_landmarks_than_the_default_where_they_help(synthetic):
    X, y = synthetic
    models = {
        n: NystroemClassifier(n, random_state=0).fit(X[:3000], y[:3000]) for n in (100, "auto")
    }
    scores = {n: model.score(X[3000:], y[3000:]) for n, model in models.items()}
    assert len(models["auto"].landmarks_) > 100
    assert scores["auto"] > scores[100] + 0.01


def test_fewer_landmarks_than_the_default_where_they_are_enough():
    X, y = factories.classes(3000, noise=0.1)
    model = NystroemClassifier("auto", random_state=0).fit(X, y)
    assert len(model.landmarks_) == 50
    assert model.score(X, y) == 1.0


def test_values():
    X, y = factories.values(2000, noise=0.01)
    model = NystroemRegressor("auto", random_state=0).fit(X[:1500], y[:1500, 0])
    assert len(model.landmarks_) > 100
    assert model.score(X[1500:], y[1500:, 0]) > 0.99


def test_the_model_is_the_one_of_the_chosen_number(synthetic):
    """The number is all that is chosen: with landmarks given, the same model follows."""
    X, y = synthetic[0][:800], synthetic[1][:800]
    model = NystroemClassifier("auto", random_state=0).fit(X, y)
    again = NystroemClassifier(selection=model.landmarks_, random_state=0).fit(X, y)
    assert again.alpha_ == model.alpha_
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-9)


def test_rows_on_disk_and_on_dask(synthetic, tmp_path):
    dask = pytest.importorskip("dask.array")
    X, y = synthetic[0][:1500], synthetic[1][:1500]
    in_memory = NystroemClassifier("auto", random_state=0).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    on_disk = clone(in_memory).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    on_dask = clone(in_memory).fit(
        dask.from_array(X, chunks=(400, 20)), dask.from_array(y, chunks=400)
    )
    for model in (on_disk, on_dask):
        assert len(model.landmarks_) == len(in_memory.landmarks_)
        np.testing.assert_allclose(
            model.decision_function(X), in_memory.decision_function(X), atol=1e-6
        )


@pytest.mark.parametrize(
    "params",
    [
        {"refine": Refinement(n_epochs=2, search=False)},
        {"metric": "diagonal"},
        {"encoder": "auto"},
        {"gamma": "auto"},
        {"selection": "negative-margin"},
        {"approximation": StandardMap(rank=60)},
        {"approximation": EnsembleMap(n_experts=70)},
        {"class_weight": "balanced"},
    ],
)
def test_other_parameters(synthetic, params):
    X, y = synthetic[0][:800], synthetic[1][:800]
    model = NystroemClassifier("auto", random_state=0, **params).fit(X, y)
    assert 50 <= len(model.landmarks_) <= 400
    assert model.score(X, y) > 0.8


def test_sparse_rows():
    X, y = factories.sparse(600)
    model = NystroemClassifier("auto", random_state=0).fit(X, y)
    assert sp.issparse(model.landmarks_)
    assert 50 <= model.landmarks_.shape[0] <= 300


def test_a_budget_chooses_as_before(synthetic):
    X, y = synthetic[0][:600], synthetic[1][:600]
    models = [NystroemClassifier(n, budget="4kB", random_state=0).fit(X, y) for n in (100, "auto")]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


def test_given_landmarks_are_taken_as_they_are(synthetic):
    X, y = synthetic[0][:300], synthetic[1][:300]
    models = [NystroemClassifier(n, selection=X[:7]).fit(X, y) for n in (100, "auto")]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


def test_rows_one_after_another_need_a_number():
    model = NystroemClassifier("auto")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as error:
        model.partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])
    assert "n_components='auto' goes by all rows at once" in str(error.value.__cause__)


def test_words_that_are_not_known():
    X, y = factories.classes(40)
    with pytest.raises(ValueError, match="n_components='scale' is not known"):
        NystroemClassifier("scale").fit(X, y)
    for word in ("auto", "scale"):
        with pytest.raises(ValueError, match=f"n_components='{word}' must be an integer.*Nystroem"):
            Nystroem(n_components=word).fit(X, y)


def test_the_cost_is_not_known_in_advance():
    cost = NystroemClassifier("auto").estimate_cost((8000, 5))
    assert (cost.seconds, cost.passes) == (None, None)
    assert "the memory is that of 1000, the largest number" in cost.reason
    assert cost.bytes == NystroemClassifier(1000, refine=True).estimate_cost((8000, 5)).bytes
    with_budget = NystroemRegressor("auto", budget="1kB").estimate_cost((500, 5))
    assert with_budget.seconds is not None
    given = NystroemRegressor("auto", selection=np.zeros((3, 5))).estimate_cost((500, 5))
    assert given.seconds is not None


def test_it_is_saved_copied_and_replaced(synthetic, tmp_path):
    X, y = synthetic[0][:600], synthetic[1][:600]
    model = NystroemClassifier("auto", random_state=0).fit(X, y)
    model.save(tmp_path / "model.nys")
    loaded = load(tmp_path / "model.nys")
    assert loaded.n_components == clone(model).n_components == "auto"
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert model.compress(20).n_components == 20
    assert landmark_curve(X, y, [10, 20], estimator=model).sizes.tolist() == [10, 20]


def test_a_fit_can_be_resumed(synthetic, tmp_path):
    X, y = synthetic[0][:600], synthetic[1][:600]
    model = NystroemClassifier("auto", random_state=0).fit(X, y)
    again = clone(model).fit(X, y, checkpoint=tmp_path / "fit.checkpoint")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
