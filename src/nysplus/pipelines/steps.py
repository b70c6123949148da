"""Fold the fitted transformers of scikit-learn, by their public attributes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from nysplus.encoding.frames import is_gap
from nysplus.pipelines.columns import CannotFold, Column, LinearColumn
from nysplus.pipelines.levels import encoded_levels, transformed
from nysplus.pipelines.operations import Operation, PowerTransform, Shift, clip, quantile_curve

# Numbers at which the scaler of a PowerTransformer is found out; all of them, or the positive ones.
POWERS_OF_TEN = 10.0 ** np.arange(-3, 7)
TRIED = np.concatenate([-POWERS_OF_TEN[::-1], [0.0], POWERS_OF_TEN])

Columns = list[Column]


def fold_step(name: str, step: Any, columns: Columns) -> Columns:
    """Return the columns behind a fitted step of a pipeline."""
    if step is None or isinstance(step, str):
        return [] if step == "drop" else columns
    fold = FOLDS.get(type(step))
    if fold is None:
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) cannot become part of the model. Allowed "
            f"are {', '.join(kind.__name__ for kind in FOLDS)}, with the default func=None of "
            "FunctionTransformer. Apply other steps to X before, and leave them out of the "
            "pipeline."
        )
    check_is_fitted(step)
    try:
        return fold(step, columns)
    except CannotFold as error:
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) cannot become part of the model, because "
            f"it {error}."
        ) from None


def _each(columns: Columns, operations: Sequence[Operation]) -> Columns:
    return [column.then(each) for column, each in zip(columns, operations, strict=True)]


def _shifted(columns: Columns, offsets: Any, scales: Any) -> Columns:
    """Return ``(x − offset) · scale`` of every column; None stands for 0 and 1."""
    offsets = np.zeros(len(columns)) if offsets is None else offsets
    scales = np.ones(len(columns)) if scales is None else scales
    shifts = [Shift(float(o), float(s)) for o, s in zip(offsets, scales, strict=True)]
    return _each(columns, shifts)


def _standard(step: Any, columns: Columns) -> Columns:
    scale = 1.0 / step.scale_ if step.with_std else None
    return _shifted(columns, step.mean_ if step.with_mean else None, scale)


def _min_max(step: Any, columns: Columns) -> Columns:
    columns = _shifted(columns, -step.min_ / step.scale_, step.scale_)
    return [column.then(clip(*step.feature_range)) for column in columns] if step.clip else columns


def _max_abs(step: Any, columns: Columns) -> Columns:
    columns = _shifted(columns, None, 1.0 / step.scale_)
    # an option of newer versions
    clipped = getattr(step, "clip", False)
    return [column.then(clip(-1.0, 1.0)) for column in columns] if clipped else columns


def _robust(step: Any, columns: Columns) -> Columns:
    center = step.center_ if step.with_centering else None
    return _shifted(columns, center, 1.0 / step.scale_ if step.with_scaling else None)


def _quantile(step: Any, columns: Columns) -> Columns:
    normal = step.output_distribution == "normal"
    curves = []
    for column, quantiles in zip(columns, step.quantiles_.T, strict=True):
        noise = 0.0
        if isinstance(column, LinearColumn):
            noise = abs(column.shift.offset * column.shift.scale)
        curves.append(quantile_curve(quantiles, step.references_, normal, noise))
    return _each(columns, curves)


def _power(step: Any, columns: Columns) -> Columns:
    signed = step.method == "yeo-johnson"
    transforms = [PowerTransform(float(exponent), signed) for exponent in step.lambdas_]
    columns = _each(columns, transforms)
    return columns if not step.standardize else _each(columns, _scaler(step, transforms, signed))


def _scaler(step: Any, transforms: Sequence[PowerTransform], signed: bool) -> list[Shift]:
    """Return how a PowerTransformer standardises: it does not tell, but its results do."""
    x = TRIED if signed else POWERS_OF_TEN
    with np.errstate(over="ignore", invalid="ignore"):
        Z = transformed(step, np.repeat(x[:, None], len(transforms), axis=1))
        Y = np.stack([transform(x) for transform in transforms], axis=1)
    shifts = []
    for y, z in zip(Y.T, Z.T, strict=True):
        known = np.isfinite(y) & np.isfinite(z)
        y, z = y[known], z[known]
        scale = (z[-1] - z[0]) / (y[-1] - y[0])
        nearest = np.abs(z).argmin()
        shifts.append(Shift(float(y[nearest] - z[nearest] / scale), float(scale)))
    return shifts


def _imputed(step: Any, columns: Columns) -> Columns:
    if not is_gap(step.missing_values):
        raise CannotFold(
            f"imputes missing_values={step.missing_values!r}. Write NaN or None for gaps in the "
            "table"
        )
    kept = [
        column.imputed(value)
        for column, value in zip(columns, step.statistics_, strict=True)
        if not is_gap(value)  # else the column had no entries, and is left out
    ]
    if not step.add_indicator:
        return kept
    return kept + [columns[i].flag() for i in step.indicator_.features_]


def _identity(step: Any, columns: Columns) -> Columns:
    if step.func is not None:
        raise CannotFold(f"applies func={step.func!r}, of which no formula is known")
    return columns


def _levels(step: Any, columns: Columns) -> Columns:
    made: Columns = []
    for column, feature in zip(columns, encoded_levels(step), strict=True):
        if not isinstance(column, LinearColumn) or not column.as_given:
            raise CannotFold("comes after a step that has changed the levels")
        made += feature.columns(column)
    return made


def _parts(step: Any, columns: Columns) -> Columns:
    made: Columns = []
    names = getattr(step, "feature_names_in_", None)
    for name, part, selected in step.transformers_:
        positions = _positions(selected, len(columns), names)
        if not positions:
            continue  # scikit-learn does not fit it
        some = fold_step(name, part, [columns[p] for p in positions])
        weight = (step.transformer_weights or {}).get(name)
        made += some if weight is None else _shifted(some, None, np.full(len(some), weight))
    return made


def _positions(selected: Any, n: int, names: Any) -> list[int]:
    """Return the positions of the columns that a ColumnTransformer selects."""
    if isinstance(selected, slice):
        start, stop = selected.start, selected.stop
        if isinstance(start, str) or isinstance(stop, str):  # the stop is included
            start = None if start is None else _position(start, n, names)
            stop = None if stop is None else _position(stop, n, names) + 1
        return list(range(n))[slice(start, stop, selected.step)]
    if isinstance(selected, (str, int, np.integer)):
        return [_position(selected, n, names)]
    chosen = np.asarray(selected)
    if chosen.dtype == np.bool_:
        return [int(p) for p in np.flatnonzero(chosen)]
    return [_position(each, n, names) for each in chosen.tolist()]


def _position(selected: str | int | np.integer[Any], n: int, names: Any) -> int:
    return list(names).index(selected) if isinstance(selected, str) else int(selected) % n


def _steps(step: Any, columns: Columns) -> Columns:
    for name, part in step.steps:
        columns = fold_step(name, part, columns)
    return columns


# By the class itself: a subclass may transform differently.
FOLDS: dict[type, Callable[[Any, Columns], Columns]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    QuantileTransformer: _quantile,
    PowerTransformer: _power,
    SimpleImputer: _imputed,
    OneHotEncoder: _levels,
    OrdinalEncoder: _levels,
    FunctionTransformer: _identity,
    ColumnTransformer: _parts,
    Pipeline: _steps,
}
