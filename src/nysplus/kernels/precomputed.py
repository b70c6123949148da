"""Kernel values that the user has computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._typing import Float
from nysplus.kernels.base import ValuesOnly


@dataclass(repr=False, eq=False)
class GramMatrix(ValuesOnly):
    """The kernel of numbered rows: X and Z have a single column, the numbers of the rows.

    Parameters
    ----------
    gram : ndarray or CSR matrix of shape (N, N)
        Kernel values between all rows.
    """

    gram: Any

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        rows, columns = X[:, 0].astype(np.intp), Z[:, 0].astype(np.intp)
        if sp.issparse(self.gram):
            K: Float = self.gram[rows][:, columns].toarray()
        else:
            K = self.gram[np.ix_(rows, columns)]
        return K.astype(X.dtype, copy=False)


@dataclass(repr=False, eq=False)
class GramColumns(ValuesOnly):
    """The kernel of rows that are given by their kernel values with N training rows.

    Parameters
    ----------
    columns : ndarray of shape (n,)
        Numbers of the training rows that are landmarks. Z is always the matrix of all of them.
    """

    columns: npt.NDArray[np.intp]

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the columns of the landmarks."""
        K = X[:, self.columns]
        values: Float = K.toarray() if sp.issparse(K) else K
        return values
