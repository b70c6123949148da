"""Models in integer arithmetic, as headers of ``to_c(arithmetic="int")`` compute them.

Coordinates of rows and landmarks are integers in the unit δ of the kernel::

    f    features: integers of the row, or cosines of an image
    u    = clip((f P m) >> shift + a),   P integers, factors m, summands a
    z    = (Z w) >> s,                   Z integers of the model, factors w
    k    = kernel(Σ (u − z)²),           by a table, at most 15 bits
    score = ((Σ k A) m) >> shift + b,    A integers of the model

Bounds are computed for all rows that are possible: a model whose sums could exceed 32 bits raises
an error here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._bytes.center import centered
from nysplus._bytes.quantise import pack_expansion
from nysplus._rows.applying import apply_to_rows
from nysplus._typing import Float
from nysplus.encoding.code import Linear, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.expansion import KernelExpansion, PackedArray
from nysplus.export.contents import Contents, contents, contents_of
from nysplus.export.fixed_point import (
    MAX_FACTOR,
    MAX_SHORT,
    MAX_SUM,
    Factors,
    Integers,
    RangeError,
    Reals,
    product,
)
from nysplus.export.integer_features import IntegerFeatures, cosine_features, given_features
from nysplus.export.integer_kernels import IntegerKernel, check_kernel, integer_kernels
from nysplus.export.integer_rows import IntegerRows, integer_rows
from nysplus.export.rounding import compared_rows
from nysplus.pipelines import as_model

# Bits of kernel values, at most and at least.
KERNEL_BITS, MIN_KERNEL_BITS = 15, 8
# Bits after the point of the steps of landmarks, at most. Steps that are rounded to whole numbers
# change scores of Letter five times as much.
FRACTION_BITS = 8
# Kernel values that are computed together, and rows at least.
BLOCK_VALUES, MIN_BLOCK_ROWS = 2**16, 16
# Rows that coefficients of a floating model are solved on.
MAX_ROWS = 4000


@dataclass(frozen=True)
class Coordinates:
    """The integers u of features, and the integers z of landmarks, in the unit of the kernel.

    Attributes
    ----------
    factors : Factors
        Of each column.
    summands : ndarray of int32
        Of each column.
    limit : int or None
        Sums of the map are clipped to ± this number; None where they are never larger.
    bound : int
        Coordinates u are clipped to ± this number, where the kernel is zero.
    steps : ndarray of int16
        A step of the landmarks' integers in each column.
    step_shift : int
    """

    factors: Factors
    summands: npt.NDArray[np.int32]
    limit: int | None
    bound: int
    steps: npt.NDArray[np.int16]
    step_shift: int

    def of(self, sums: Integers) -> npt.NDArray[np.int64]:
        """Return the coordinates u of sums over the features."""
        if self.limit is not None:
            sums = sums.clip(-self.limit, self.limit)
        return (self.factors.times(sums) + self.summands).clip(-self.bound, self.bound)

    def landmarks(self, Z: Integers) -> npt.NDArray[np.int64]:
        """Return the coordinates of the landmarks."""
        return _steps(Z, self.steps, self.step_shift)


def _steps(Z: Integers, steps: Integers, shift: int) -> npt.NDArray[np.int64]:
    return (Z.astype(np.int64) * steps + ((1 << shift) >> 1)) >> shift


@dataclass(frozen=True)
class IntegerModel:
    """A model in integer arithmetic: the same integers as those of the C header.

    Attributes
    ----------
    content : Contents
        With integers in Z, A and a map that is not diagonal.
    rows : IntegerRows
    features : IntegerFeatures
    coordinates : Coordinates
    kernel : IntegerKernel
    score_factors : Factors
    intercept : ndarray of int32
    score_bits : int
        A score is its integer over ``2^score_bits``.
    """

    content: Contents
    rows: IntegerRows
    features: IntegerFeatures
    coordinates: Coordinates
    kernel: IntegerKernel
    score_factors: Factors
    intercept: npt.NDArray[np.int32]
    score_bits: int

    @property
    def weights(self) -> npt.NDArray[np.int8] | None:
        """The integers of a map that is not diagonal."""
        return _weights(self.content.stored.projection)

    def scores(self, rows: Integers) -> npt.NDArray[np.int32]:
        """Return the integer scores of shape (N, L) of rows of integers of shape (N, d)."""
        stored = self.content.stored
        Z, A = self.coordinates.landmarks(stored.landmarks.values), stored.dual_coef.values
        scores = np.empty((len(rows), A.shape[1]), dtype=np.int32)
        # the kernel values of a block stay in a core's cache
        block = max(MIN_BLOCK_ROWS, BLOCK_VALUES // (len(Z) + rows.shape[1]))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            sums = self.features.of(rows[part])
            if self.weights is not None:
                sums = product(sums, self.weights)
            K = self.kernel.matrix(self.coordinates.of(sums), Z)
            scores[part] = self.score_factors.times(product(K, A)) + self.intercept
        return scores

    def decision_function(self, X: Any) -> Float:
        """Return the scores of rows of features, as real numbers of shape (N, L)."""
        integers = self.rows.integers(np.asarray(X, dtype=np.float64))
        scores: Float = self.scores(integers) * 2.0**-self.score_bits
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes, labels or values of rows of features."""
        return predictions(self.content, self.decision_function(X))


def predictions(content: Contents, scores: Float) -> npt.NDArray[Any]:
    """Return the classes, labels or values of scores of shape (N, L)."""
    if content.kind == "values":
        return scores
    if content.kind == "labels":
        return (scores > 0).astype(np.int64)
    numbers = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
    classes: npt.NDArray[Any] = content.classes[numbers]
    return classes


def integer_model(
    model: Any,
    X: Any = None,
    *,
    input_type: str = "int16",
    input_range: Any = None,
    input_scale: Any = "auto",
) -> IntegerModel:
    """Return a fitted model in integer arithmetic, or raise if it has none.

    Parameters
    ----------
    model, X, input_type, input_range, input_scale
        Of :func:`~nysplus.export.to_c`.
    """
    model = as_model(model)
    content = contents_of(model)
    _check(content)
    given = None if X is None else features_of(model, X)
    rows = integer_rows(
        content.n_features, input_type, input_range, input_scale, given, compared_rows(content)
    )
    if not _has_integers(content):
        content = _quantised(model.expansion_, content, given)
    weights = _weights(content.stored.projection)
    features = _features(content, rows, weights)
    return _assembled(content, rows, features)


def features_of(model: Any, X: Any) -> Float:
    """Return rows as numbers in float64, as the model reads them."""
    found = apply_to_rows(as_model(model), X, lambda rows: rows)
    dense = found.toarray() if hasattr(found, "toarray") else found
    numbers: Float = np.asarray(dense, dtype=np.float64)
    if np.isnan(numbers).any():
        raise ValueError("X has missing values, which integers cannot express. Drop these rows.")
    return numbers


def _check(content: Contents) -> None:
    """Raise if a model has parts that integers cannot express."""
    code = content.encoder
    if isinstance(code, TableCode):
        columns = [term.column for term in code.terms]
        if columns != [*range(code.n_inputs)] or not all(type(t) is Linear for t in code.terms):
            kinds = sorted({type(term).__name__ for term in code.terms} - {"Linear"})
            raise ValueError(
                "arithmetic='int' takes tables whose columns are all numbers that are scaled; "
                f"this encoder has other terms ({', '.join(kinds) or 'columns left out'}). Fit "
                "without an encoder or with a scaler in a pipeline, or pass arithmetic='float'."
            )
    if content.stored.linear is not None:
        raise ValueError(
            "arithmetic='int' has no linear term beside the landmarks. Pass arithmetic='float'."
        )
    check_kernel(content.kernel)
    largest = max(*content.stored.landmarks.values.shape, content.n_features, content.n_outputs)
    if largest > MAX_SHORT:
        raise RangeError(
            f"The model has {largest} landmarks, features or outputs, and 16-bit numbers count up "
            f"to {MAX_SHORT}. Pass arithmetic='float'."
        )


def _weights(projection: PackedArray | None) -> npt.NDArray[np.int8] | None:
    return projection.values if projection is not None and projection.values.ndim == 2 else None


def _has_integers(content: Contents) -> bool:
    """Return whether Z, A and a map that is not diagonal are integers."""
    stored = content.stored
    columns = [stored.dual_coef]
    if stored.projection is not None and stored.projection.values.ndim == 2:
        columns.append(stored.projection)
    return stored.landmarks.scale is not None and all(part.factor is not None for part in columns)


def _quantised(expansion: KernelExpansion, content: Contents, X: Float | None) -> Contents:
    """Return the contents of a model of floating numbers in integers of 8 bits."""
    if X is None:
        raise ValueError(
            "arithmetic='int' needs a model in integers of 2 to 8 bits, and this one has floating "
            "numbers. Pass X, some thousand rows like those of the fit, with which it is rounded "
            "to 8 bits, or fit with a budget."
        )
    if hasattr(expansion.landmarks, "toarray"):
        expansion = replace(expansion, landmarks=expansion.landmarks.toarray())
    expansion = centered(expansion)
    code, center = expansion.encoder, expansion.center
    rows = X[:: max(len(X) // MAX_ROWS, 1)]
    encoded = rows if code is None else code(rows, np.float64)
    plain = replace(expansion, encoder=None).without_center()
    plain = replace(plain, packed=None)
    small = pack_expansion(plain, "int8", encoded if center is None else encoded - center)
    small = replace(small.with_center(center), encoder=code)
    return contents(small, content.kind, content.classes, content.slope, content.schema)


def _features(content: Contents, rows: IntegerRows, weights: Integers | None) -> IntegerFeatures:
    """Return the integer features of a model: of the row or of its code, minus the centre."""
    code, stored = content.encoder, content.stored
    center = np.zeros(content.n_columns)
    if stored.center is not None:
        center = stored.center.unpacked().astype(np.float64)
    if isinstance(code, ImageCode):
        return cosine_features(code, rows, center, weights)
    slope, start = rows.scale, -center
    if isinstance(code, TableCode):
        scales = np.array([term.scale for term in code.terms if isinstance(term, Linear)])
        offsets = np.array([term.offset for term in code.terms if isinstance(term, Linear)])
        slope, start = rows.scale * scales, -offsets * scales - center
    return given_features(rows, slope, start, weights)


def _assembled(content: Contents, rows: IntegerRows, features: IntegerFeatures) -> IntegerModel:
    """Choose the units of coordinates, kernel values and scores."""
    stored = content.stored
    total = np.abs(stored.dual_coef.values.astype(np.int64)).sum(axis=0)
    bits = min(KERNEL_BITS, int(np.log2(MAX_SUM / max(int(total.max()), 1))))
    if bits < MIN_KERNEL_BITS:
        raise RangeError(
            f"{len(stored.dual_coef.values)} landmarks leave {bits} bits for kernel values in "
            f"32-bit sums, and {MIN_KERNEL_BITS} are needed. Fit fewer landmarks."
        )
    for kernel in integer_kernels(content.kernel, bits):
        coordinates = _coordinates(content, features, kernel)
        if coordinates is not None:
            break
    else:
        raise RangeError(
            "Landmarks, or steps of the rows, are too far from each other for 16-bit coordinates "
            "that show the width of the kernel. Fit with a smaller gamma, pass a smaller "
            "input_scale, or arithmetic='float'."
        )
    largest = total * (2**bits - 1)
    factors, intercept, score_bits = _score_units(stored.dual_coef, stored.intercept, largest, bits)
    return IntegerModel(
        content, rows, features, coordinates, kernel, factors, intercept, score_bits
    )


def _coordinates(
    content: Contents, features: IntegerFeatures, kernel: IntegerKernel
) -> Coordinates | None:
    """Return the coordinates in the unit of a kernel; None if 16 bits have no room for them."""
    Z, P = content.stored.landmarks, content.stored.projection
    assert Z.scale is not None
    ratios = Z.scale.astype(np.float64) / kernel.unit
    m = int(np.abs(Z.values).max(initial=0))
    if 2 * m * ratios.max() + kernel.reach > kernel.room or ratios.max() > MAX_FACTOR:
        return None
    shift = 0
    while shift < FRACTION_BITS and ratios.max() * 2.0 ** (shift + 1) <= MAX_FACTOR:
        shift += 1
    steps = np.rint(ratios * 2.0**shift).astype(np.int16)
    span = int(np.abs(_steps(Z.values, steps, shift)).max(initial=0))
    bound = span + kernel.reach
    if bound + span > kernel.room:
        return None
    slope, start, sums = features.unit, features.bias, features.largest
    weights = _weights(P)
    if weights is not None:
        assert P is not None
        assert P.scale is not None
        scale = P.scale.astype(np.float64)
        start = (start @ weights.astype(np.float64)) * scale
        slope = features.unit[0] * scale
        sums = sums @ np.abs(weights.astype(np.int64))
    elif P is not None:
        diagonal = P.unpacked().astype(np.float64)
        slope, start = slope * diagonal, start * diagonal
    if Z.offset is not None:
        start = start - Z.offset.astype(np.float64)
    if np.abs(slope).max() / kernel.unit >= MAX_FACTOR:
        return None
    factors = Factors.of(slope / kernel.unit)
    # products are rounded down, by half a step on average
    summands = np.rint(start / kernel.unit + 0.5)
    limit = _limit(factors, summands, sums, bound)
    return Coordinates(factors, summands.astype(np.int32), limit, bound, steps, shift)


def _limit(factors: Factors, summands: Reals, sums: Integers, bound: int) -> int | None:
    """Return the number that sums are clipped to; None where that changes nothing.

    A clipped sum gives a coordinate beyond `bound`, as does the sum itself.
    """
    if np.abs(summands).max(initial=0.0) > MAX_SUM:
        raise RangeError(
            "Features are too far from the landmarks for 32-bit sums. Subtract a constant from "
            "the features, or pass arithmetic='float'."
        )
    if int(sums.max(initial=0)) <= factors.limit:
        return None
    reached = (factors.limit * np.abs(factors.values.astype(np.int64))) >> factors.shift
    clipped = sums > factors.limit
    if (reached - np.abs(summands) < bound)[clipped].any():
        raise RangeError(
            "The columns of the map have too different scales for 32-bit sums. Pass a smaller "
            "input_range, or arithmetic='float'."
        )
    return factors.limit


def _score_units(
    A: PackedArray, b: PackedArray, largest: npt.NDArray[np.int64], bits: int
) -> tuple[Factors, npt.NDArray[np.int32], int]:
    """Return the factors of sums, the intercept and the bits after the point of scores."""
    assert A.scale is not None
    scale = A.scale.astype(np.float64) / (2**bits - 1)
    intercept = b.unpacked().astype(np.float64)
    most = float((largest * scale + np.abs(intercept)).max())
    score_bits = int(np.floor(np.log2(MAX_SUM / 2 / most))) if most > 0 else 0
    # a step of the sums needs no more than one step of the scores
    steps = scale.max()
    if steps > 0:
        score_bits = min(score_bits, int(np.ceil(-np.log2(steps))))
    factors = Factors.of(scale * 2.0**score_bits)
    summands = np.rint(intercept * 2.0**score_bits + 0.5).astype(np.int32)
    return factors, summands, score_bits
