"""A table in, the same scores out of Python, files, C and JSON."""

from __future__ import annotations

import numpy as np
import pytest
from exported import c_scores, json_scores, needs_gcc

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, load
from nysplus.encoding import TableEncoder
from nysplus.export import to_c, to_json

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def table(n_rows, seed, levels="abc"):
    """Return a frame with gaps in all kinds of columns, and targets that depend on them."""
    rng = np.random.RandomState(seed)
    letters = rng.choice(list(levels), n_rows)
    size, weight = rng.lognormal(3.0, 1.0, n_rows), rng.randn(n_rows)
    seconds = rng.randint(0, 2 * 365 * 86400, n_rows)
    frame = pd.DataFrame(
        {
            "weight": weight,
            "size": size,
            "letter": letters,
            "open": rng.rand(n_rows) < 0.5,
            "when": pd.Timestamp("2023-05-01") + pd.to_timedelta(seconds, unit="s"),
            "zip": rng.randint(0, 40, n_rows),
        }
    )
    hour = (seconds // 3600) % 24
    score = np.sin(weight) + (letters == "a") * (np.log(size) - 3.0) + (hour < 8)
    for name in ("weight", "letter", "when"):
        frame.loc[rng.rand(n_rows) < 0.1, name] = None
    return frame, score


TRAIN, SCORE = table(600, 0)
# a level that training did not have
TEST, _ = table(200, 1, "abcz")
MODELS = {
    "auto": {"encoder": "auto", "n_components": 30},
    "standard": {
        "encoder": TableEncoder("standard", categories=["zip"], target_statistics=True),
        "budget": "4kB",
    },
    "rank": {
        "encoder": TableEncoder("rank_gauss", categories=["zip"], max_levels=5),
        "n_components": 30,
    },
    "small": {"encoder": "auto", "budget": "4kB"},
    "refined": {"encoder": "auto", "budget": "2kB", "refine": Refinement(search=False)},
    # without some of the columns
    "tiny": {"encoder": "auto", "budget": 230, "refine": Refinement(search=False)},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    y = np.searchsorted([0.0, 1.0], SCORE)
    estimator = NystroemClassifier(random_state=0, **MODELS[request.param])
    return estimator.fit(TRAIN, np.array(["low", "mid", "top"])[y])


def raw(model):
    """Return the raw numbers of the test rows."""
    numbers = model._model.columns.schema.read(TEST)
    assert np.isnan(numbers).any()
    assert (numbers == -1).any()
    return numbers


def check(model, scores, tolerance):
    expected = model.decision_function(TEST)
    np.testing.assert_allclose(scores, expected, atol=tolerance * np.abs(expected).max(), rtol=0)
    ordered = np.sort(expected, axis=1)
    decided = ordered[:, -1] - ordered[:, -2] > 2 * tolerance * np.abs(expected).max()
    assert decided.mean() > 0.9
    assert (model.classes_[scores.argmax(axis=1)] == model.predict(TEST))[decided].all()


def test_files(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    # columns in another order, and one more
    other = TEST[TEST.columns[::-1]].assign(more="text")
    np.testing.assert_array_equal(again.decision_function(other), model.decision_function(TEST))
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    np.testing.assert_array_equal(again.predict_proba(TEST), model.predict_proba(TEST))
    assert repr(again) == repr(model)
    assert again.model_bytes_ == model.model_bytes_


@needs_gcc
def test_c(model, tmp_path):
    check(model, c_scores(tmp_path, model, raw(model)), 1e-4)
    assert "NYSPLUS_LETTER_A = " in to_c(model)


def test_json(model):
    check(model, json_scores(to_json(model), raw(model)), 1e-4)


@needs_gcc
def test_values_and_an_array_with_gaps(tmp_path):
    """Columns of arrays have no names, and are numbered."""
    X = TRAIN[["weight", "size"]].to_numpy()
    model = NystroemRegressor(30, encoder="auto", random_state=0).fit(X, SCORE)
    rows = TEST[["weight", "size"]].to_numpy()
    model.save(tmp_path / "model")
    expected = model.predict(rows)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(rows), expected)
    np.testing.assert_allclose(c_scores(tmp_path, model, rows)[:, 0], expected, atol=1e-4)
    np.testing.assert_allclose(json_scores(to_json(model), rows)[:, 0], expected, atol=1e-5)
    assert "NYSPLUS_X_COLUMN_1 = 1" in to_c(model)
