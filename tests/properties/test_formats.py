"""A saved, pickled or exported model gives the scores of the model itself."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cases import assert_agree, cases, scores_of
from factories import alter
from hypothesis import given
from hypothesis import strategies as st

import nysplus
from nysplus._bytes.quantise import pack_expansion
from nysplus.expansion import STORED_TYPES
from nysplus.export import to_onnx

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
stored_types = st.sampled_from(("as fitted", *STORED_TYPES))


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
    made = to_onnx(model, dtype="float64", scores=case.discrete)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(
        zip(names, session.run(None, {session.get_inputs()[0].name: case.X}), strict=True)
    )
    found = outputs["scores" if case.discrete else "variable"]
    assert_agree(found.reshape(len(case.X), -1), scores_of(model, case.X), 1e-4)
