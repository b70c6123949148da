"""Predictions, scores and features of rows that are not in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.dataset as pds
import pytest
from row_stores import (
    FEW,
    NAMES,
    SELECTIONS,
    STORES,
    TARGETS,
    WEIGHT,
    D,
    N,
    X,
    as_memmap,
    as_parquet,
    assert_close,
    every_store,
    make_model,
)
from sampling import sampled

from nysplus import Nystroem

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("target", ["text", "labels", "two-values"])
@every_store
def test_predictions_and_scores(tmp_path, store, target):
    y = TARGETS[target]
    model = make_model(target).fit(pd.DataFrame(X, columns=NAMES), y)
    named = pd.DataFrame(X, columns=NAMES)
    rows, y_name, weight_name = store(tmp_path, X, y, WEIGHT)
    expected = model.predict(named)
    if target.endswith("values"):
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(rows), expected)
        decision = model.decision_function(named)
        np.testing.assert_allclose(model.decision_function(rows), decision, atol=1e-12)
    assert model.score(rows, y_name, weight_name) == pytest.approx(
        model.score(named, y, WEIGHT), rel=1e-10
    )


def test_scores_of_classes_that_training_lacked(tmp_path):
    seen = TARGETS["several"] < 2
    model = make_model().fit(X[seen], TARGETS["several"][seen])
    rows, y, _ = as_memmap(tmp_path, X, TARGETS["several"], None)
    assert model.score(rows, y) == pytest.approx(model.score(X, TARGETS["several"]))


def test_score_of_constant_values(tmp_path):
    model = make_model("values").fit(X, TARGETS["values"])
    rows, y, _ = as_memmap(tmp_path, X, np.ones(N), None)
    assert model.score(rows, y) == pytest.approx(model.score(X, y))


@sampled(("store", "selection"), FEW, [*SELECTIONS, "auto"])
def test_transformer(tmp_path, store, selection):
    params = {"n_components": 20, "selection": selection, "alpha": 0.1, "random_state": 0}
    whole = Nystroem(**params).fit(X, TARGETS["several"])
    rows, y, _ = STORES[store](tmp_path, X, TARGETS["several"], None)
    model = Nystroem(**params).fit(rows, y)
    assert model.n_features_in_ == D
    if whole.component_indices_ is not None:
        np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)
    assert_close(model.components_, whole.components_, 1e-13)
    Phi = model.transform(rows)
    assert Phi.shape == (N, 20)
    np.testing.assert_allclose(Phi @ Phi.T, whole.transform(X) @ whole.transform(X).T, atol=1e-8)


def test_transformer_leaves_a_continuous_target_alone(tmp_path):
    rows, y, _ = as_parquet(100)(tmp_path, X, TARGETS["values"], None)
    params = {"n_components": 20, "selection": "auto", "random_state": 0}
    whole = Nystroem(**params).fit(X, TARGETS["values"])
    model = Nystroem(**params).fit(rows, y)
    np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)
    assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("store", ["memmap", "parquet", "blocks-of-61"])
def test_transformer_without_targets(tmp_path, store):
    rows, *_ = STORES[store](tmp_path, X, TARGETS["values"], None)
    whole = Nystroem(n_components=20, random_state=0).fit(X)
    if store == "parquet":
        rows = pds.dataset(rows).to_table(columns=NAMES)
    model = Nystroem(n_components=20, random_state=0).fit(rows)
    np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)
