"""Warn of features on scales so different that distances hardly depend on most of them."""

from __future__ import annotations

import warnings

import numpy as np

from nysplus._bytes.center import CONSTANT, varies
from nysplus._fit.plan import Plan
from nysplus._rows.blocks import RowBlocks
from nysplus._typing import Float

# A feature of a spread this many times smaller than another one's has a ten-thousandth of its share
# in a squared distance.
MAX_RATIO = 100.0
# Rows that spreads are judged by: enough for factors of 100.
LOOKED_AT_ROWS = 2000
# Features that have another value than their median in fewer rows than this share hardly matter
# for any distance, whatever their scale: rare categories, pixels at the border of images.
MIN_SHARE = 0.01


def warn_of_scales(plan: Plan, blocks: RowBlocks) -> None:
    """Warn if spreads of features differ by a factor of more than 100, and distances matter.

    Standard deviations must differ that much, and so must units (:func:`feature_units`): rare
    categories have small deviations, but a unit of 1, and features with outliers have small units
    after they were divided by their deviations. Sparse rows are not looked at.

    Parameters
    ----------
    plan : Plan
    blocks : RowBlocks
        The rows as given. Their deviations are known, so that rows are drawn only if these differ.
    """
    scaled = plan.metric is not None or plan.encoder is not None
    # cosines of images have spreads that fall with the frequency, and are alike in their units
    scaled = scaled or plan.image is not None
    if scaled or not plan.kernel.of_differences:
        return
    if not _differ(_deviations(blocks)):
        return
    some = blocks.gather(blocks.sample(LOOKED_AT_ROWS, np.random.RandomState(0)))
    units = feature_units(some.X.astype(np.float64))
    if not _differ(units):
        return
    wide, narrow = int(np.nanargmax(units)), int(np.nanargmin(units))
    warnings.warn(
        f"The columns of X differ in spread by a factor of {units[wide] / units[narrow]:,.0f}: "
        f"feature {wide} varies by about {units[wide]:.2g}, feature {narrow} by about "
        f"{units[narrow]:.2g}. Distances between rows hardly depend on the columns of small "
        "spread. Scale the columns, for example with sklearn.preprocessing.StandardScaler in a "
        "pipeline, or pass encoder='auto' or metric='diagonal' to NystroemClassifier or "
        "NystroemRegressor.",
        stacklevel=7,
    )


def _differ(spreads: Float) -> bool:
    """Return whether two spreads differ by a factor of more than 100; NaN are left out."""
    known = spreads[~np.isnan(spreads)]
    return bool(known.max(initial=0.0) > MAX_RATIO * known.min(initial=np.inf))


def _deviations(blocks: RowBlocks) -> Float:
    """Return the standard deviation of each feature that varies; none for sparse rows."""
    spread = blocks.feature_spread()
    return np.zeros(0) if spread.mass == 0 else np.sqrt(spread.variance)[varies(spread)]


def feature_units(X: Float) -> Float:
    """Return the unit of each feature; NaN where it has its median in almost all rows.

    The unit is the root mean square of the distance from the median, over the rows in which the
    feature is not the median: 1 for every 0/1 column, however rare the ones are.

    Parameters
    ----------
    X : ndarray of shape (rows, n_features)
    """
    medians = np.median(X, axis=0)
    away = X - medians
    away[np.abs(away) <= CONSTANT * np.abs(medians)] = 0.0
    counts = np.count_nonzero(away, axis=0)
    matter = counts >= max(1.0, MIN_SHARE * len(X))
    units = np.full(X.shape[1], np.nan)
    units[matter] = np.sqrt((away[:, matter] ** 2).sum(axis=0) / counts[matter])
    return units
