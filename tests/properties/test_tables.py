"""Codes of tables: no finite number is too odd, and order, scale and library do not matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.encoding import TableEncoder

# Larger numbers are refused in training.
allowed = st.floats(-1e150, 1e150) | st.just(np.nan)
finite = st.floats(allow_infinity=False)
# Numbers of which products with powers of two up to 2⁶⁰ are exact, few of them repeated.
plain = st.integers(-1000, 1000).map(lambda k: k / 64.0)
levels = st.sampled_from(["a", "b", "ä ö", "", "None", None])


def tables(elements=allowed, least=1, most=4):
    """Draw arrays of 2 to 40 rows and a number of columns."""
    shapes = st.tuples(st.integers(2, 40), st.integers(least, most))
    return shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=elements))


def varies(X):
    """Return whether a column has two entries that a code can tell apart."""
    for x in X.T:
        there = x[~np.isnan(x)]
        if len(there) and (len(there) < len(x) or np.ptp(there) > 1e-290):
            return True
    return False


@given(tables(), st.sampled_from(["thermometer", "standard", "rank_gauss"]), st.integers(1, 20))
def test_any_finite_numbers_have_a_code(X, numbers, n_bins):
    assume(varies(X))
    encoder = TableEncoder(numbers=numbers, n_bins=n_bins)
    code = encoder.fit_transform(X)
    assert code.shape == (len(X), len(encoder.get_feature_names_out()))
    assert np.isfinite(code).all()
    if numbers == "thermometer":
        ramps = [term.height for term in encoder.code_.terms for _ in range(term.n_columns)
                 if hasattr(term, "height")]  # fmt: skip
        assert (code >= 0).all()
        assert (code <= max([1.0, *ramps]) * (1 + 1e-6)).all()


@given(tables(allowed, 2, 2), tables(finite, 2, 2))
def test_any_finite_numbers_are_encoded_by_a_known_code(X, others):
    assume(varies(X))
    encoder = TableEncoder().fit(X)
    code = encoder.transform(others)
    assert ((code >= 0) & (code <= 2)).all()


@given(st.lists(levels, min_size=2, max_size=40), st.lists(levels, min_size=1, max_size=10))
def test_levels_have_at_most_one_column_each(texts, others):
    assume(len(set(texts)) > 1)
    encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Series(texts, dtype=object)}))
    code = encoder.transform(pd.DataFrame({"x": pd.Series(others, dtype=object)}))
    if len(encoder.schema_.columns[0].levels) == 2 and code.shape[1] == 1:
        assert (np.abs(code) < 0.75).all()  # two levels are opposite, others between them
    else:
        assert set(np.unique(code)) <= {0.0, 1.0}
        assert (code.sum(axis=1) <= 1).all()


@st.composite
def frames(draw):
    """Draw a frame of numbers, a category and truth values, and values to predict."""
    n = draw(st.integers(12, 40))
    rng = np.random.RandomState(draw(st.integers(0, 2**31 - 1)))
    X = draw(arrays(np.float64, (n, 3), elements=plain))
    X[rng.rand(n, 3) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    frame["text"] = [draw(levels) for _ in range(n)]
    frame["truth"] = rng.rand(n) < 0.5
    return frame, rng.randn(n)


def fitted(frame, y, encoder="auto"):
    model = NystroemRegressor(
        5, encoder=encoder, gamma=0.1, alpha=0.1, selection="uniform", random_state=0
    )
    return model.fit(frame, y)


@given(frames(), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter(case, random):
    frame, y = case
    mixed = frame[random.sample(list(frame), frame.shape[1])]
    model = fitted(frame, y)
    expected = model.predict(frame)
    np.testing.assert_array_equal(model.predict(mixed), expected)
    np.testing.assert_allclose(fitted(mixed, y).predict(frame), expected, rtol=1e-4, atol=1e-5)


@given(frames(), st.integers(-40, 40), st.sampled_from(["thermometer", "rank_gauss"]))
def test_scales_do_not_matter(case, exponent, numbers):
    """Up to the rounding of knots, which depends on the range of their type."""
    frame, y = case
    scaled = frame.assign(p=frame["p"] * 2.0**exponent)
    encoder = TableEncoder(numbers=numbers)
    expected = fitted(frame, y, encoder).predict(frame)
    # knots are kept to 1/32 of a bin
    np.testing.assert_allclose(fitted(scaled, y, encoder).predict(scaled), expected, atol=0.1)


@given(frames())
def test_the_library_does_not_matter(case):
    frame, y = case
    other = pl.from_pandas(frame)
    np.testing.assert_array_equal(fitted(other, y).predict(other), fitted(frame, y).predict(frame))


@given(frames(), st.integers(2, 6))
def test_predictions_do_not_depend_on_the_rows_beside_them(case, size):
    frame, y = case
    model = fitted(frame, y)
    parts = [model.predict(frame[i : i + size]) for i in range(0, len(frame), size)]
    np.testing.assert_allclose(np.concatenate(parts), model.predict(frame), rtol=1e-5, atol=1e-6)


@given(tables(plain), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_code(X, random):
    assume(varies(X))
    mixed = X[random.sample(range(len(X)), len(X))]
    assert TableEncoder().fit(X).code_.same(TableEncoder().fit(mixed).code_)


@given(frames())
def test_classes_of_a_table(case):
    frame, y = case
    model = NystroemClassifier(5, encoder="auto", alpha=0.1, random_state=0)
    model.fit(frame, np.where(y > np.median(y), "above", "below"))
    assert np.isfinite(model.predict_proba(frame)).all()
