"""A saved, pickled or exported model gives the scores of the model itself."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
from cases import assert_agree, cases, scores_of
from exported import c_scores, json_scores, needs_gcc, onnx_outputs
from factories import alter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nysplus
from nysplus._bytes.budget import STORAGE
from nysplus._bytes.quantise import pack_expansion
from nysplus.export import to_json, to_onnx
from nysplus.persistence.expansions import expansion_out

stored_types = st.sampled_from(("as fitted", *STORAGE))


def fitted(case, dtype):
    """Fit a model and store it in a type."""
    model = case.fit()
    if dtype == "as fitted":
        return model
    return alter(model, expansion=pack_expansion(model.expansion_, dtype, case.X))


@given(cases(), stored_types)
def test_files_and_pickles(case, dtype):
    model = fitted(case, dtype)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = nysplus.load(Path(folder) / "model")
    for again in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(scores_of(again, case.X), scores_of(model, case.X))
        np.testing.assert_array_equal(again.predict(case.X), model.predict(case.X))


@given(cases(), stored_types)
def test_onnx(case, dtype):
    model = fitted(case, dtype)
    outputs = onnx_outputs(to_onnx(model, dtype="float64", scores=case.discrete), case.X)
    found = outputs["scores" if case.discrete else "variable"]
    assert_agree(found.reshape(len(case.X), -1), scores_of(model, case.X), 1e-4)


@given(cases(), stored_types)
def test_json(case, dtype):
    assume(case.params["kernel"] != "cosine" or case.X.any(axis=1).all())  # the formula is 0/0
    model = fitted(case, dtype)
    assert_agree(json_scores(to_json(model), case.X), scores_of(model, case.X), 1e-4)


@needs_gcc
@given(cases(), stored_types)
def test_c(case, dtype):
    model = fitted(case, dtype)
    with tempfile.TemporaryDirectory() as folder:
        found = c_scores(Path(folder), model, case.X, dtype="float64")
    assert_agree(found, scores_of(model, case.X), 1e-4)


@settings(max_examples=20)
@given(
    n_bytes=st.integers(600, 3000),
    d=st.integers(1, 40),
    n_classes=st.integers(2, 6),
    metric=st.sampled_from([None, "diagonal", 1]),
    seed=st.integers(0, 100),
)
def test_no_budget_is_exceeded(n_bytes, d, n_classes, metric, seed):
    """Bytes counted are bytes stored, and bytes of tensors in the file."""
    rng = np.random.RandomState(seed)
    X, y = rng.randn(150, d), np.arange(150) % n_classes
    X[:, 0] += y
    model = nysplus.NystroemClassifier(budget=n_bytes, metric=metric, random_state=0)
    model.fit(X, y)
    assert model.model_bytes_ <= n_bytes
    tensors, _ = expansion_out(model.expansion_)
    assert sum(tensor.nbytes for tensor in tensors.values()) == model.model_bytes_
