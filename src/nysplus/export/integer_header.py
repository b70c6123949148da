"""Write models in integer arithmetic as one C header.

The functions are in ``c_templates/int_*.h``, which are filled in as those of
:mod:`nysplus.export.c_header`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._bytes.bit_stream import pack_bits
from nysplus.export.c_integer import IntegerModel
from nysplus.export.c_text import filled, indented, shown, table, template
from nysplus.export.contents import Contents
from nysplus.export.fixed_point import MAX_SHORT
from nysplus.export.integer_features import CosineFeatures, GivenFeatures

# Features with scales of their own are listed up to this number.
MAX_LISTED = 256


def integer_tables(model: IntegerModel) -> dict[str, npt.NDArray[Any]]:
    """Return the tables of the header by name; integers of few bits are packed streams."""
    stored, coordinates = model.content.stored, model.coordinates
    arrays: dict[str, npt.NDArray[Any]] = {}
    if isinstance(model.features, CosineFeatures):
        arrays |= {f"cosines_{n}": cosines for n, cosines in model.features.tables.items()}
    elif isinstance(model.features, GivenFeatures):
        if model.features.offset is not None:
            arrays["input_offset"] = model.features.offset
        if model.features.factors is not None:
            arrays["input_factor"] = model.features.factors.values
    if model.weights is not None:
        assert stored.projection is not None
        arrays["projection"] = pack_bits(model.weights, stored.projection.bits)
    return arrays | {
        "coordinate_factor": coordinates.factors.values,
        "coordinate_summand": coordinates.summands,
        "landmarks": pack_bits(stored.landmarks.values, stored.landmarks.bits),
        "landmark_step": coordinates.steps,
        "kernel_table": model.kernel.table,
        "dual_coef": pack_bits(stored.dual_coef.values, stored.dual_coef.bits),
        "dual_coef_factor": model.score_factors.values,
        "intercept": model.intercept,
    }


def stack_bytes(model: IntegerModel) -> int:
    """Return the bytes of arrays on the stack: coordinates, scores, and cosines of an image."""
    rank = int(model.content.stored.landmarks.values.shape[1])
    n_bytes = 4 * (rank + model.content.n_outputs)
    if isinstance(model.features, CosineFeatures):
        (height, width, channels), (first, _, _) = (
            model.features.code.shape,
            model.features.code.code_shape,
        )
        n_bytes += 2 * (first * width * channels + max(height, width))
    return n_bytes


def _feature(model: IntegerModel, i: str) -> str:
    """Return the expression of feature i, where features are those of the row."""
    features = model.features
    assert isinstance(features, GivenFeatures)
    text = f"x[{i}]"
    if features.clip is not None:
        text = f"@_clip({text}, {features.clip[0]}, {features.clip[1]})"
    if features.offset is not None:
        text = f"(int32_t){text} - @@_SHORT(@_input_offset + {i})"
    if features.factors is not None:
        factor = f"@@_SHORT(@_input_factor + {i})"
        product = f"@_scaled({text}, {factor}, {features.factors.shift})"
        text = f"@_clip({product}, -{features.bound}, {features.bound})"
    return text


def _feature_type(model: IntegerModel) -> str:
    return "int16_t" if int(model.features.largest.max()) <= MAX_SHORT else "int32_t"


def _summing(model: IntegerModel) -> tuple[str, str]:
    """Return the statements that sum up features, and the expression of a sum."""
    if isinstance(model.features, CosineFeatures) or model.weights is not None:
        statements = ["for (int16_t j = 0; j < @@_RANK; j++) u[j] = 0;"]
        if isinstance(model.features, CosineFeatures):
            statements.append("@_encode(x, u);")
        else:
            added = f"({_feature_type(model)})({_feature(model, 'i')})"
            loop = f"for (int16_t i = 0; i < @@_FEATURES; i++) @_add(u, i, {added});"
            statements.append(loop)
        text = "u[j]"
    else:
        statements, text = [], _feature(model, "j")
    limit = model.coordinates.limit
    return "\n".join(statements), text if limit is None else f"@_clip({text}, -{limit}, {limit})"


def _scoring(model: IntegerModel) -> str:
    """Return the function that computes the scores."""
    stored, coordinates = model.content.stored, model.coordinates
    statements, text = _summing(model)
    squares = "(uint32_t)((int32_t)t * t)"
    return filled(
        "int_scores",
        row=f"{model.rows.type_name}_t",
        features=indented(statements, 1),
        sum=text,
        shift=coordinates.factors.shift,
        bound=coordinates.bound,
        limit=model.kernel.limit,
        landmark_bits=stored.landmarks.bits,
        difference="int16_t" if model.kernel.squares else "int32_t",
        half=(1 << coordinates.step_shift) >> 1,
        step_shift=coordinates.step_shift,
        term=squares if model.kernel.squares else "(uint32_t)(t < 0 ? -t : t)",
        coefficient_bits=stored.dual_coef.bits,
        score_shift=model.score_factors.shift,
    )


def _helpers(model: IntegerModel) -> str:
    """Return the functions that the function of the scores calls."""
    stored, P = model.content.stored, model.content.stored.projection
    widths = {stored.landmarks.bits, stored.dual_coef.bits}
    adding = []
    if model.weights is not None:
        assert P is not None
        widths.add(P.bits)
        adding = [filled("int_into_map", bits=P.bits, feature=_feature_type(model))]
    elif isinstance(model.features, CosineFeatures):
        adding = [template("int_into_row")]
    texts = [template("int_scaled"), template("int_reader")]
    texts += [
        filled("int_next", bits=bits, mask=2**bits - 1, middle=2 ** (bits - 1) - 1)
        for bits in sorted(widths)
    ]
    texts += [*adding, filled(model.kernel.template, **model.kernel.words)]
    if isinstance(model.features, CosineFeatures):
        texts += [template("int_cosine"), _image_encoding(model, model.features)]
    return "".join(f"{text}\n" for text in texts)


def _image_encoding(model: IntegerModel, features: CosineFeatures) -> str:
    (height, width, channels), (first, second, _) = features.code.shape, features.code.code_shape
    along_height, along_width = features.shifts
    line = width * channels
    pixel = f"x[i * {line} + j]"
    if features.clip is not None:
        pixel = f"@_clip({pixel}, {features.clip[0]}, {features.clip[1]})"
    return filled(
        "int_encode_image",
        row=f"{model.rows.type_name}_t",
        height=height,
        width=width,
        channels=channels,
        first=first,
        second=second,
        line=line,
        longest=max(height, width),
        n_wide=first * line,
        pixel=pixel,
        height_shift=along_height,
        height_half=(1 << along_height) >> 1,
        width_shift=along_width,
        width_half=(1 << along_width) >> 1,
    )


def _predicting(content: Contents, row: str) -> str:
    """Return the function that makes predictions of scores: that of real numbers, in integers."""
    binary = content.kind == "classes" and content.n_outputs == 1
    text = filled("two_classes" if binary else content.kind, row=row)
    return text.replace("`float`", "int32_t").replace("`0.0`", "0")


def input_comment(model: IntegerModel) -> str:
    """Return lines of a comment on the integers of a row and their scales."""
    rows, schema = model.rows, model.content.schema
    row, scale = f"{rows.type_name}_t", rows.common_scale
    lines = [f" * x has @@_FEATURES {row}s."]
    if scale is None and len(rows.scale) <= MAX_LISTED:
        lines[0] += " A feature is its integer times a scale:"
        for i, own in enumerate(rows.scale):
            name = "" if schema is None else f", {shown(schema.columns[i].name)}"
            lines.append(f" *     x[{i}]: {own:.9g}{name}")
    elif scale == 1.0:
        lines[0] += " They are the features themselves."
    elif scale is not None:
        lines[0] += f" A feature is its integer times {scale:.9g}."
    clip = getattr(model.features, "clip", None)
    if clip is not None:
        lines.append(f" * Integers below {clip[0]} or above {clip[1]} are clipped.")
    return "".join(f"{line}\n" for line in lines)


def mapped(model: IntegerModel) -> str:
    """Return the formula of u for comments."""
    stored = model.content.stored
    x = "x" if model.content.encoder is None else "E(x)"
    x = x if stored.center is None else f"({x} - c)"
    if stored.projection is None:
        return f"u = {x}"
    shape = stored.projection.values.shape
    return f"u = {x} P, P " + ("diagonal" if len(shape) == 1 else f"{shape[0]} x {shape[1]}")


def _table(name: str, array: npt.NDArray[Any]) -> str:
    # the kernel's values have 15 bits, and are read as the other 16-bit numbers
    values = array.astype(np.int16) if array.dtype == np.uint16 else array
    c_type = f"{values.dtype.name}_t @@_FLASH"
    return table(c_type, f"@_{name}", map(str, values.tolist()), values.size)


def integer_header(
    estimator: str, model: IntegerModel, name: str, classes: str, outputs: str, agreement: str
) -> str:
    """Return the text of the header.

    Parameters
    ----------
    estimator : str
        Name of the model's class.
    model : IntegerModel
    name : str
        The first part of all C names.
    classes, outputs, agreement : str
        Texts: the table of class labels, the number and kind of outputs, and lines of the comment
        on the agreement with Python.
    """
    content, arrays = model.content, integer_tables(model)
    n, r = content.stored.landmarks.values.shape
    sizes = {"FEATURES": content.n_features, "RANK": r, "LANDMARKS": n, "SCORES": content.n_outputs}
    if content.kind == "classes":
        sizes["CLASSES"] = len(content.classes)
    sizes["SCORE_BITS"] = model.score_bits
    width: Any = getattr(content.kernel, "gamma", None)
    stored = content.stored
    types = {"landmarks": stored.landmarks.type_name, "dual_coef": stored.dual_coef.type_name}
    if model.weights is not None and stored.projection is not None:
        types["projection"] = stored.projection.type_name
    text = filled(
        "int_header",
        model=estimator,
        n_features=content.n_features,
        n_landmarks=n,
        outputs=outputs,
        u=mapped(model),
        formula=f"{model.kernel.formula},  g = {width:.9g}",
        inputs=input_comment(model),
        agreement=agreement,
        n_bytes=sum(array.nbytes for array in arrays.values()),
        types=", ".join(f"{key} {types.get(key, array.dtype)}" for key, array in arrays.items()),
        stack=stack_bytes(model),
        sizes="".join(f"#define @@_{key} {value}\n" for key, value in sizes.items()),
        classes=classes,
        tables="\n".join(_table(key, array) for key, array in arrays.items()),
        helpers=_helpers(model),
        scores=_scoring(model),
        predictions=_predicting(content, f"{model.rows.type_name}_t"),
    )
    return text.replace("@@", name.upper()).replace("@", name)
