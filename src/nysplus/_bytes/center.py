"""Choose the centre c of a model ``k((x − c)P, Z) A + b``: a point near features far from zero.

A number of p bits keeps the digits of x − z only if x and z are not many times larger than their
difference. Subtracting a centre first costs d numbers, and is done only where it matters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.accumulators import MeanAndScatter
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion

# Standard deviations from zero up to which features need no centre: int8 then still divides a
# standard deviation into four steps, and float32 into half a million.
MAX_OFFSET = 32.0
# A deviation of a smaller share of the mean is the rounding error of a constant.
CONSTANT = 1e-12


def center_of(spread: MeanAndScatter) -> Float | None:
    """Return the centre of rows, or None where no feature is far from zero.

    It is rounded to float32 if that leaves it within a standard deviation of the mean, because it
    need not be the mean itself. Sparse rows have none.

    Parameters
    ----------
    spread : MeanAndScatter
        Of every feature; without mass for sparse rows.
    """
    if spread.mass == 0:
        return None
    mean, deviation, varying = spread.mean, np.sqrt(spread.variance), varies(spread)
    # a constant matters where a map adds it to other features
    unit = np.where(varying, deviation, deviation.max(where=varying, initial=0.0))
    if not (np.abs(mean) > MAX_OFFSET * unit).any():
        return None
    with np.errstate(over="ignore"):
        single: Float = mean.astype(np.float32)
    return single if (np.abs(mean - single) <= deviation)[varying].all() else mean


def varies(spread: MeanAndScatter) -> npt.NDArray[np.bool_]:
    """Return whether each feature varies by more than rounding errors."""
    return np.sqrt(spread.variance) > CONSTANT * np.abs(spread.mean)


def centered(expansion: KernelExpansion) -> KernelExpansion:
    """Return the same function with a centre, if its landmarks are rows far from zero.

    A function with a map is returned as it is: its landmarks do not tell where rows are, and a fit
    with a map has a centre already if it needs one.
    """
    Z = expansion.landmarks
    known = expansion.center is not None or expansion.packed is not None or Z.shape[0] == 0
    if known or not expansion.kernel.of_differences or sp.issparse(Z):
        return expansion
    if expansion.projection is not None:
        return expansion
    center = center_of(MeanAndScatter.of_features(Z, np.ones(len(Z))))
    if center is None:
        return expansion
    return expansion.moved(center)
