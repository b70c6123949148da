"""The same numbers in another type, layout or container give the same fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import assert_agree, cases, scores_of
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def names(X):
    return [f"column {j}" for j in range(X.shape[1])]


LAYOUTS = {
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "columns of a wider array": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "Fortran order": np.asfortranarray,
    "lists": lambda X: X.tolist(),
    "long double": lambda X: X.astype(np.longdouble),
    "objects": lambda X: X.astype(object),
    "pandas": lambda X: pd.DataFrame(X, columns=names(X)),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=names(X)).astype("Float64"),
    "pandas, Arrow": lambda X: pd.DataFrame(X, columns=names(X)).astype("float64[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=names(X)),
    "Arrow": lambda X: pa.table(dict(zip(names(X), X.T, strict=True))),
}


@given(cases(), st.sampled_from(sorted(LAYOUTS)))
def test_layouts_and_containers(case, layout):
    given_rows = LAYOUTS[layout](case.X)
    kept = np.array(case.X)
    assert_agree(scores_of(case.fit(given_rows), given_rows), scores_of(case.fit(), case.X), 1e-12)
    np.testing.assert_array_equal(case.X, kept)


WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float32", "bool")
NULLABLE = ("Int16", "UInt8", "Float32", "int32[pyarrow]", "boolean")


@given(cases(), st.sampled_from(WHOLE))
def test_types_of_whole_numbers(case, dtype):
    X = np.abs(np.round(4 * case.X))
    X = (X > 2 if dtype == "bool" else X).astype(dtype)
    expected = scores_of(case.fit(X.astype(np.float64)), X.astype(np.float64))
    # floats of at most 32 bits are computed with in float32, to about 24 bits
    single = np.dtype(dtype).kind == "f"
    assert_agree(scores_of(case.fit(X), X), expected, 2e-3 if single else 1e-12)


@given(cases(), st.sampled_from(NULLABLE))
def test_types_of_frames(case, dtype):
    X = np.abs(np.round(4 * case.X))
    X = X > 2 if dtype == "boolean" else X
    frame = pd.DataFrame(X, columns=names(X)).astype(dtype)
    expected = scores_of(case.fit(X.astype(np.float64)), X.astype(np.float64))
    assert_agree(scores_of(case.fit(frame), frame), expected, 2e-3 if dtype == "Float32" else 1e-12)


@given(cases())
def test_float32_rows(case):
    X = case.X.astype(np.float32)
    assert_agree(scores_of(case.fit(X), X), scores_of(case.fit(), case.X), 2e-3)


SPARSE = {
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "explicit zeros": lambda X: sp.csr_matrix(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1]),
        X.shape,
    ),
    "unsorted": lambda X: sp.csr_matrix(
        (
            X[:, ::-1].ravel(),
            np.tile(np.arange(X.shape[1])[::-1], len(X)),
            np.arange(len(X) + 1) * X.shape[1],
        ),
        X.shape,
    ),
    "duplicates": lambda X: sp.csr_matrix(
        (
            np.repeat(X.ravel() / 2, 2),
            np.repeat(np.tile(np.arange(X.shape[1]), len(X)), 2),
            2 * np.arange(len(X) + 1) * X.shape[1],
        ),
        X.shape,
    ),
}


@given(cases(), st.sampled_from(sorted(SPARSE)))
def test_sparse_rows(case, layout):
    X = np.where(np.abs(case.X) < 0.7, 0.0, case.X)
    S = SPARSE[layout](X)
    assert_agree(scores_of(case.fit(S), S), scores_of(case.fit(X), X))
    np.testing.assert_array_equal(S.toarray(), X)
