"""Changes of the rows, the labels or the weights that must not change a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cases import DIFFERENCES, assert_agree, cases, scores_of
from hypothesis import assume, given
from hypothesis import strategies as st


@given(cases(kernels=DIFFERENCES), st.integers(-(10**9), 10**9))
def test_translation(case, offset):
    moved = case.X + offset
    assert_agree(scores_of(case.fit(moved), moved), scores_of(case.fit(), case.X))


@given(cases(), st.integers(-490, 490))
def test_scaling(case, exponent):
    # a power of two changes no digit, and gamma="scale" follows the variance
    assume(case.params["kernel"] in ("rbf", "matern", "polynomial", "cosine"))
    case = replace(case, params={**case.params, "gamma": "scale"})
    scaled = case.X * 2.0**exponent
    assert_agree(scores_of(case.fit(scaled), scaled), scores_of(case.fit(), case.X))


@given(cases(), st.randoms(use_true_random=False))
def test_order_of_rows(case, random):
    case = case.with_landmarks()
    order = random.sample(range(len(case.X)), len(case.X))
    weight = None if case.weight is None else case.weight[order]
    mixed = replace(case, weight=weight).fit(case.X[order], case.y[order])
    assert_agree(scores_of(mixed, case.X), scores_of(case.fit(), case.X))


@given(cases(), st.randoms(use_true_random=False))
def test_order_of_columns(case, random):
    order = random.sample(range(case.X.shape[1]), case.X.shape[1])
    mixed = case.X[:, order]
    assert_agree(scores_of(case.fit(mixed), mixed), scores_of(case.fit(), case.X))


NAMES = {
    "text": np.array(["d", "b", "a", "c"]),
    "objects": np.array(["north", "É", "", " "], dtype=object),
    "negative": np.array([-1, -7, 3, 2**40]),
    "floats": np.array([0.0, 2.0, -1.0, 1e15]),
    "small": np.array([0, 255, 3, 2], dtype=np.uint8),
    "boolean": np.array([True, False]),
}


@given(cases(kinds=("classes",)), st.sampled_from(sorted(NAMES)))
def test_names_of_classes(case, names):
    labels = NAMES[names][: case.y.max() + 1]
    assume(case.y.max() < len(labels))
    named, numbered = case.fit(y=labels[case.y]), case.fit()
    np.testing.assert_array_equal(named.classes_, np.unique(labels))
    assert_agree(
        by_class(named, case.X, labels), by_class(numbered, case.X, np.arange(len(labels)))
    )
    P, of_numbers = (
        model.predict_proba(case.X)[:, np.argsort(np.argsort(names))]
        for model, names in ((named, labels), (numbered, np.arange(len(labels))))
    )
    assert_agree(P, of_numbers)


def by_class(model, X, labels):
    """Return scores with a column for each class, in the order of `labels`."""
    scores = scores_of(model, X)
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    return scores[:, [list(model.classes_).index(label) for label in labels]]


@given(cases(weighted=False), st.data())
def test_a_weight_equals_repetition(case, data):
    counts = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(case.X), max_size=len(case.X)))
    )
    assume(counts.any())
    if case.discrete and case.y.ndim == 1:
        assume(len(np.unique(case.y[counts > 0])) == len(np.unique(case.y)))
    case = case.with_landmarks()
    repeated = case.fit(np.repeat(case.X, counts, axis=0), np.repeat(case.y, counts, axis=0))
    weighted = replace(case, weight=counts.astype(float)).fit()
    assert_agree(scores_of(weighted, case.X), scores_of(repeated, case.X))


@given(cases(), st.integers(2, 5))
def test_predictions_do_not_depend_on_the_rows_beside_them(case, size):
    model = case.fit()
    scores = scores_of(model, case.X)
    parts = [scores_of(model, case.X[i : i + size]) for i in range(0, len(case.X), size)]
    assert_agree(np.vstack(parts), scores, 1e-12)
