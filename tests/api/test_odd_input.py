"""Input that is unusual but valid gives the model of the usual form; other input is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from factories import labels, sparse

from nysplus import Nystroem, NystroemClassifier


def with_duplicates(X):
    """Return the same CSR matrix with every entry split in two, and columns in any order."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.argsort(np.r_[row, row], kind="stable")
    data, indices = np.r_[X.data - 1.0, np.ones(X.nnz)], np.r_[X.indices, X.indices]
    return sp.csr_matrix((data[order], indices[order], 2 * X.indptr), shape=X.shape)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "polynomial"])
def test_duplicate_entries_of_sparse_rows_are_summed(kernel):
    X, y = sparse()
    odd = with_duplicates(X)
    assert not odd.has_canonical_format
    before = odd.copy()
    parameters = {"kernel": kernel, "selection": "uniform", "alpha": 0.1, "random_state": 0}
    expected = NystroemClassifier(20, **parameters).fit(X, y).decision_function(X)
    model = NystroemClassifier(20, **parameters).fit(odd, y)
    for rows in (odd, X):
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)
    blocks = NystroemClassifier(20, **parameters).fit([(odd, y)])
    np.testing.assert_allclose(blocks.decision_function(odd), expected, atol=1e-6)
    features = Nystroem(kernel, gamma=0.1, n_components=20, random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(odd), features.transform(X), atol=1e-6)
    for part in ("data", "indices", "indptr"):  # the caller's matrix is not changed
        np.testing.assert_array_equal(getattr(odd, part), getattr(before, part))


@pytest.mark.parametrize(("zero", "one"), [(-1, 1), (1, 2)])
def test_indicators_of_other_numbers_are_refused(zero, one):
    X, Y = labels()
    with pytest.raises(ValueError, match="must be a 0/1 indicator of labels, and contains"):
        NystroemClassifier(10).fit(X, np.where(Y, one, zero))
