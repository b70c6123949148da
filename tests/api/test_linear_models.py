"""Models of tables in a few hundred bytes."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import nysplus
from nysplus import NystroemClassifier, NystroemRegressor, Refinement


def _frame(n_rows=1500, seed=0):
    """Return a frame with numbers, a category and gaps, and a score that is nearly linear in it."""
    rng = np.random.RandomState(seed)
    numbers = rng.standard_normal((n_rows, 5))
    level = rng.randint(0, 4, n_rows)
    score = numbers @ [2.0, -1.0, 0.5, 0.0, 0.0] + np.array([-2.0, 0.0, 1.0, 2.0])[level]
    frame = pd.DataFrame(numbers, columns=list("abcde"))
    frame["level"] = np.array(["low", "mid", "high", "top"])[level]
    frame.loc[rng.rand(n_rows) < 0.1, "e"] = np.nan
    return frame, score + 0.3 * rng.standard_normal(n_rows)


FRAME, SCORE = _frame()
TEST, TEST_SCORE = _frame(seed=1)


@pytest.mark.parametrize(
    ("budget", "refine"), [(256, False), ("0.5kB", False), ("1kB", False), ("0.5kB", True)]
)
def test_a_near_linear_table_needs_a_few_hundred_bytes(budget, refine):
    model = NystroemClassifier(encoder="auto", budget=budget, refine=refine, random_state=0)
    model.fit(FRAME, SCORE > 0)
    assert model.model_bytes_ <= (256 if budget == 256 else 1024)
    assert model.score(TEST, TEST_SCORE > 0) > 0.94
    if not refine:
        assert len(model.landmarks_) == len(model.dual_coef_) == 0
        assert model.refined_ is False


@pytest.mark.parametrize("kind", ["classes", "labels", "values", "two values"])
def test_all_kinds_of_targets(kind, tmp_path):
    y = {
        "classes": np.digitize(SCORE, [-1.0, 1.0]),
        "labels": np.stack([SCORE > 0, SCORE > 1], axis=1).astype(int),
        "values": SCORE,
        "two values": np.stack([SCORE, 3.0 - SCORE], axis=1),
    }[kind]
    estimator = NystroemRegressor if "values" in kind else NystroemClassifier
    model = estimator(encoder="auto", budget=400, random_state=0).fit(FRAME, y)
    assert model.solver_ == "linear"
    assert model.model_bytes_ <= 400
    assert model.score(FRAME, y) > 0.8
    path = tmp_path / "model"
    model.save(path)
    for again in (nysplus.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
        assert again.model_bytes_ == model.model_bytes_
    if estimator is NystroemClassifier:
        P = model.predict_proba(TEST)
        assert (P >= 0).all()
        assert P.max() > 0.9


def test_probabilities_are_calibrated():
    model = NystroemClassifier(encoder="auto", budget=300, random_state=0).fit(FRAME, SCORE > 0)
    P = model.predict_proba(TEST)[:, 1]
    middle = (P > 0.2) & (P < 0.8)
    assert abs(P[middle].mean() - (TEST_SCORE > 0)[middle].mean()) < 0.1


def test_a_table_that_is_not_linear_gets_landmarks():
    X = np.random.RandomState(0).uniform(-1, 1, (2000, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = NystroemClassifier(encoder="auto", budget="4kB", random_state=0).fit(X, y)
    assert len(model.landmarks_) > 0
    assert model.score(X, y) > 0.9


def test_a_budget_without_room_says_what_is_needed():
    with pytest.raises(ValueError, match="budget=8 has no room"):
        NystroemClassifier(encoder="auto", budget=8).fit(FRAME, SCORE > 0)


def test_rows_without_an_encoder_have_no_linear_term():
    X = FRAME[list("abcd")].to_numpy()
    model = NystroemClassifier(budget=512, random_state=0).fit(X, SCORE > 0)
    assert model.expansion_.linear is None
    with pytest.raises(ValueError, match="no room for a single landmark"):
        NystroemClassifier(budget=8).fit(X, SCORE > 0)


def test_compress_leaves_a_linear_model_alone():
    model = NystroemClassifier(encoder="auto", budget=300, random_state=0).fit(FRAME, SCORE > 0)
    same = model.compress(budget=400)
    np.testing.assert_array_equal(same.decision_function(TEST), model.decision_function(TEST))
    with pytest.raises(ValueError, match="linear term"):
        model.compress(budget=20)


def _product(n_rows, seed):
    """Return 40 columns, and classes that depend on the first two, but not on either alone."""
    X = np.random.RandomState(seed).uniform(-1, 1, (n_rows, 40))
    return X, X[:, 0] * X[:, 1] > 0


@pytest.mark.parametrize("refine", [False, Refinement(search=False)], ids=["plain", "refined"])
def test_columns_that_matter_leave_room_for_landmarks(refine):
    """The code of all columns would take the whole budget."""
    X, y = _product(2000, 0)
    model = NystroemClassifier(encoder="auto", refine=refine, budget=256, random_state=0).fit(X, y)
    assert len(model.landmarks_) > 0
    assert model.model_bytes_ <= 256
    used = set(model.expansion_.encoder.groups.tolist())
    assert {0, 1} <= used
    assert len(used) <= 12
    other, truth = _product(2000, 1)
    other[:, [i for i in range(40) if i not in used]] = np.nan  # does not matter
    assert model.score(other, truth) > (0.9 if refine else 0.6)
