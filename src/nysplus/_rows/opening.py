"""What an estimator was given, made into blocks: arrays at once, anything else by a first look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from nysplus._rows.blocks import Blocks, RowBlocks
from nysplus._rows.on_dask import DaskBlocks, DaskRows, is_dask, open_dask
from nysplus._rows.on_disk import Coding, StreamBlocks, survey_source
from nysplus._rows.readers import Source, is_source, open_source
from nysplus._rows.slicing import float_dtype
from nysplus._rows.target_codes import TargetCode, code_of
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float, Kind
from nysplus._validation import (
    check_no_class_weight,
    check_rows,
    check_sample_weight,
    check_some_weigh,
    flat_labels,
)

# Targets by which classes are told from values.
LOOKED_AT = 1000

Opened = tuple[RowBlocks, TargetCode | None]


@dataclass(frozen=True)
class TargetSpec:
    """What an estimator makes of the targets.

    Attributes
    ----------
    kind : "classes", "values" or None
        None: it does not look at them.
    class_weight : dict, "balanced" or None
    code : TargetCode, optional
        How they are coded, where that is settled already.
    required : bool
        Whether it cannot do without; otherwise they may be of the other kind as well.
    several : bool
        Whether a single class is too few, as it is for a fit to all rows.
    """

    kind: Kind | None
    class_weight: Any = None
    code: TargetCode | None = None
    required: bool = True
    several: bool = True

    def class_factors(self, code: TargetCode, masses: Callable[[], Float]) -> Float | None:
        """Return the weight of one observation of each class, or None where all weigh 1."""
        return code.class_factors(self.class_weight, self.several, masses)


@dataclass(frozen=True)
class RowsToOpen:
    """Rows before a fit: what is known of them without a look at all of them.

    Attributes
    ----------
    n_features : int
    dtype : dtype
        Floating type of the rows.
    kind : "classes", "values" or None
        What the targets are; None where nobody looks at them, or there are none.
    open : callable
        Returns them as blocks, and how their targets are coded.
    """

    n_features: int
    dtype: np.dtype[Any]
    kind: Kind | None
    open: Callable[[Progress, Journal], Opened]


def open_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, wanted: TargetSpec, reset: bool = True
) -> RowsToOpen:
    """Check what can be checked without reading rows from elsewhere.

    Parameters
    ----------
    estimator : object
        Gets `n_features_in_` and `feature_names_in_`, or is asked for them.
    X, y, sample_weight : object
        Anything that `fit` accepts.
    wanted : TargetSpec
    reset : bool
        Whether this is the beginning of a fit.
    """
    source = _opened(estimator, X, y, sample_weight, reset)
    given = y is not None if source is None else source.has_targets
    if wanted.kind is not None and not wanted.required:
        wanted = replace(wanted, kind=_kind_of(y, source) if given else None)
    if source is None:
        return _arrays(estimator, X, y, sample_weight, wanted, reset)
    if wanted.kind is not None and not given:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Name "
            "the column with y=…, or give blocks (X, y)."
        )
    return RowsToOpen(
        source.n_features,
        float_dtype(source.dtype),
        wanted.kind,
        lambda progress, journal: _surveyed(source, wanted, progress, journal),
    )


def _kind_of(y: Any, source: Source | DaskRows | None) -> Kind:
    """Tell classes from values of a regression, by some of them."""
    some = y if source is None else source.first_targets(LOOKED_AT)
    return "values" if type_of_target(some).startswith("continuous") else "classes"


def _arrays(
    estimator: Any, X: Any, y: Any, sample_weight: Any, wanted: TargetSpec, reset: bool
) -> RowsToOpen:
    """Take in rows in memory: everything can be checked at once."""
    code, targets, factors = wanted.code, None, None
    if wanted.kind is None:
        X = check_rows(estimator, X, reset=reset)
    else:
        numeric = wanted.kind == "values"
        X, y = check_rows(estimator, X, y, reset=reset, multi_output=True, y_numeric=numeric)
        y = y if numeric else flat_labels(y)
    weight = check_sample_weight(sample_weight, X)
    if wanted.kind is not None:
        code = code or code_of(wanted.kind, y.shape[1:], y)
        targets = code.encode(y)
        by_class = wanted.class_factors(code, lambda: targets.masses(weight))
        factors = targets.of_class(by_class)
    blocks = Blocks(X, targets, weight, factors)
    return RowsToOpen(
        blocks.n_features,
        blocks.dtype,
        wanted.kind,
        lambda progress, journal: (replace(blocks, progress=progress, journal=journal), code),
    )


def _opened(
    estimator: Any, X: Any, y: Any, sample_weight: Any, reset: bool
) -> Source | DaskRows | None:
    """Return rows from elsewhere, None for arrays; their columns are those of the estimator."""
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    width = None if reset else estimator.n_features_in_
    source: Source | DaskRows | None
    if is_dask(X):
        source = open_dask(X, y, sample_weight, names)
    else:
        base: Any = "auto" if reset else getattr(estimator, "_zero_based", "auto")
        source = open_source(X, y, sample_weight, names, width, base)
    if source is None:
        return None
    if reset:
        estimator.n_features_in_ = source.n_features
        estimator._zero_based = getattr(source, "zero_based", "auto")
        estimator.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    elif names is not None and source.feature_names not in (None, tuple(names)):
        raise ValueError(
            "The feature names should match those that were passed during fit: got columns "
            f"{list(source.feature_names or ())}, expected {list(names)}."
        )
    elif source.n_features != width:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{width} features as input."
        )
    return source


def _surveyed(
    source: Source | DaskRows, wanted: TargetSpec, progress: Progress, journal: Journal
) -> Opened:
    """Look at all rows of a source once; what they are is known then."""
    if isinstance(source, Source):
        seen = survey_source(source, wanted.kind, progress)
    else:
        seen = source.survey(wanted.kind, progress)
    if seen.n_rows == 0:
        raise ValueError("X has no rows. Pass at least one.")
    check_some_weigh(seen.n_candidates)
    code = wanted.code
    if wanted.kind is not None:
        code = code or seen.code(wanted.kind)
        code.encode(np.zeros((0, *(seen.y_shape or ()))))  # another number of columns raises
    factors = None
    if code is None:
        check_no_class_weight(wanted.class_weight)
    else:
        factors = wanted.class_factors(code, partial(seen.masses_of, code))
    coding = Coding(float_dtype(source.dtype), code, factors)
    if isinstance(source, Source):
        return StreamBlocks(seen, coding, progress, journal, source=source), code
    return DaskBlocks(seen, coding, progress, journal, rows=source), code


def is_elsewhere(X: Any) -> bool:
    """Tell whether rows come from elsewhere than memory."""
    return is_dask(X) or is_source(X)
