"""Codes of targets: one answer for classes, labels and values alike."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.target_codes import CODES, ClassCode, LabelCode, ValueCode, code_of

Y = {
    "two classes": np.array(["no", "yes", "yes", "no"]),
    "classes": np.array([7, 3, 5, 3]),
    "labels": np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 1]]),
    "values": np.array([0.5, -1.0, 3.0, 2.0]),
    "several values": np.array([[0.5, 1.0], [-1.0, 2.0], [3.0, 0.0], [2.0, 5.0]]),
}
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0])


def code_for(name):
    y = Y[name]
    return code_of("values" if "values" in name else "classes", y.shape[1:], y)


every_code = pytest.mark.parametrize("name", Y)


@pytest.mark.parametrize(
    ("name", "expected", "n_outputs"),
    [
        ("two classes", ClassCode, 1),
        ("classes", ClassCode, 3),
        ("labels", LabelCode, 3),
        ("values", ValueCode, 1),
        ("several values", ValueCode, 2),
    ],
)
def test_the_code_of_targets(name, expected, n_outputs):
    code = code_for(name)
    assert type(code) is expected is CODES[code.kind]
    assert code.n_outputs == n_outputs
    assert code.discrete == (code.kind != "values")


@every_code
def test_what_is_encoded_is_decoded(name):
    code = code_for(name)
    targets = code.encode(Y[name])
    assert targets.kind == code.kind
    assert targets.n_outputs == code.n_outputs == targets.coded().shape[1]
    np.testing.assert_array_equal(code.decode(targets.coded()), Y[name])
    again = code.as_targets(targets.coded())
    np.testing.assert_array_equal(again.coded(), targets.coded())
    some = targets.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.coded(), targets.coded()[[2, 0]])


@every_code
def test_the_score_from_sums_is_that_of_scikit_learn(name):
    code, y = code_for(name), Y[name]
    targets = code.encode(y)
    scores = targets.coded() + np.linspace(-1.4, 1.4, targets.coded().size).reshape(4, -1)
    predicted = code.decode(scores)
    sums = np.zeros(code.n_score_sums)
    for rows in (np.array([0, 3]), np.array([1, 2])):  # sums over parts add
        sums += code.score_sums(predicted[rows], targets.take(rows), WEIGHT[rows])
    spread = MeanAndScatter.of_columns(targets.coded(), WEIGHT)
    expected = accuracy_score if code.discrete else r2_score
    assert code.score(sums, spread) == pytest.approx(expected(y, predicted, sample_weight=WEIGHT))


@every_code
def test_a_code_is_made_again_from_its_fields(name):
    code = code_for(name)
    again = CODES[code.kind](*(getattr(code, field.name) for field in fields(code)))
    again.check()
    assert code.same(again)
    assert not any(code.same(code_for(other)) for other in Y if other != name)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ClassCode(np.array([1])), "two or more"),
        (ClassCode(np.array([2, 1])), "sorted"),
        (ClassCode(3), "must be a list"),
        (LabelCode(0), "at least one"),
        (ValueCode(2, flat=True), "cannot be flat"),
    ],
)
def test_impossible_codes(code, message):
    with pytest.raises(ValueError, match=message):
        code.check()


@every_code
def test_factors_of_classes(name):
    code = code_for(name)
    targets = code.encode(Y[name])
    if code.kind == "classes":
        factors = code.class_factors("balanced", True, lambda: targets.masses(WEIGHT))
        weights = WEIGHT * targets.of_class(factors)
        np.testing.assert_allclose(targets.masses(weights), weights.sum() / len(code.classes))
    else:
        with pytest.raises(ValueError, match="one class per row"):
            code.class_factors("balanced", True, lambda: targets.masses(WEIGHT))
        assert targets.of_class(np.ones(3)) is None
    assert code.class_factors(None, True, lambda: targets.masses(WEIGHT)) is None


def test_values_are_no_labels():
    targets = code_for("values").encode(Y["values"])
    with pytest.raises(TypeError, match="are numbers"):
        _ = targets.labels
    assert code_for("labels").encode(Y["labels"]).labels.discrete


def test_predicted_values_have_the_type_of_the_rows():
    scores = np.ones((2, 1), dtype=np.float32)
    code = code_for("values")
    assert code.decode(scores, np.float64).dtype == np.float64
    assert code.decode(scores, np.float32).dtype == np.float32
    assert code.decode(scores).dtype == np.float32


def test_the_smallest_codes():
    LabelCode(1).check()
    ValueCode(1, True).check()
    ValueCode(2, False).check()
    with pytest.raises(ValueError, match="at least one"):
        LabelCode(0).check()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_score_of_values_does_not_depend_on_their_unit(unit):
    y = unit * Y["several values"]
    code = code_of("values", y.shape[1:], y)
    predicted = y + unit * np.array([[0.1, 0.2], [0.0, -0.3], [0.2, 0.1], [-0.1, 0.0]])
    sums = code.score_sums(predicted, code.encode(y), WEIGHT)
    found = code.score(sums, MeanAndScatter.of_columns(y, WEIGHT))
    assert found == pytest.approx(r2_score(y, predicted, sample_weight=WEIGHT))


@pytest.mark.parametrize("error", [0.0, 1e-3, 10.0])
def test_the_score_of_values_that_do_not_vary_is_that_of_scikit_learn(error):
    y = np.full(4, 3.0)
    code = code_of("values", (), y)
    sums = code.score_sums(y + error, code.encode(y), np.ones(4))
    spread = MeanAndScatter.of_columns(y[:, None], np.ones(4))
    assert code.score(sums, spread) == r2_score(y, y + error)


@every_code
def test_the_spread_of_targets_is_that_of_their_columns(name):
    targets = code_for(name).encode(Y[name])
    spread, expected = targets.spread(WEIGHT), MeanAndScatter.of_columns(targets.coded(), WEIGHT)
    assert spread.mass == expected.mass
    np.testing.assert_allclose(spread.mean, expected.mean, rtol=0, atol=1e-15)
    np.testing.assert_allclose(spread.scatter, expected.scatter, rtol=1e-14)
    nothing = targets.spread(np.zeros(len(WEIGHT)))
    assert (nothing.mass, nothing.mean.shape) == (0.0, (targets.n_outputs,))
