"""Write models as ONNX graphs of standard operators, with the ``onnx`` package alone.

Pipelines with steps of any kind are converted by skl2onnx, see
:mod:`nysplus.export.onnx_converters`.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nysplus.encoding.code import TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.export.contents import Contents, contents_of
from nysplus.export.onnx_image import coded_image
from nysplus.export.onnx_kernels import ONNX_KERNELS
from nysplus.export.onnx_nodes import INT4_OPSET, Graph, is_int4, optional_library
from nysplus.export.onnx_tables import (
    ML_DOMAIN,
    ML_VERSION,
    check_names,
    coded,
    column_inputs,
    columns_from_inputs,
    columns_of_matrix,
)
from nysplus.export.rounding import product_error, row_error

__all__ = ["to_onnx"]

# The first version in which ReduceSum takes its axes as an input, and the one that is written where
# nothing needs a later one.
LOWEST_OPSET, USUAL_OPSET = 13, 17
# Scores that float32 arithmetic changes by more than this, relative to the largest, are computed in
# float64; scores that float32 rows change by more than this are worth a warning.
MAX_FLOAT32_ERROR, MAX_ROW_ERROR = 1e-5, 1e-4


def _scores(graph: Graph, model: Contents, X: str) -> str:
    """Add the nodes of ``k((X − c)P, Z) A + XB + b``, and return their output."""
    kind = type(model.kernel)
    if kind not in ONNX_KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} has no ONNX graph. Kernels that have one: "
            f"{', '.join(sorted(known.__name__ for known in ONNX_KERNELS))}."
        )
    stored, rows = model.stored, X
    if stored.center is not None:
        X = graph.node("Sub", X, graph.table(stored.center, "center"))
    if stored.projection is not None:
        by = "MatMul" if stored.projection.values.ndim == 2 else "Mul"
        X = graph.node(by, X, graph.table(stored.projection, "projection"))
    Z, points = graph.table(stored.landmarks, "landmarks"), stored.landmarks.unpacked()
    K = ONNX_KERNELS[kind](graph, model.kernel, X, Z, points)
    F = graph.node("MatMul", K, graph.table(stored.dual_coef, "dual_coef"))
    if stored.linear is not None:
        F = graph.node("Add", F, graph.node("MatMul", rows, graph.table(stored.linear, "linear")))
    return graph.node("Add", F, graph.table(stored.intercept, "intercept"))


def label_table(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the labels in a type that ONNX has: int64 or strings."""
    if all(isinstance(label, str) for label in classes):
        return np.array([str(label) for label in classes], dtype=object)
    if classes.dtype.kind not in "biuf" or not np.array_equal(classes, classes.astype(np.int64)):
        raise ValueError(
            f"Classes {classes.tolist()[:10]} are neither whole numbers nor strings, the only "
            "labels that ONNX has. Fit to classes of one of these types."
        )
    return classes.astype(np.int64)


def _head(
    graph: Graph, content: Contents, F: str, labels: npt.NDArray[Any]
) -> tuple[str, str, str]:
    """Add labels, probabilities and a score for each class; return the names of the three.

    The name of the probabilities is empty where the model has none.
    """
    slope = content.slope
    if content.kind == "labels":
        label = graph.cast(graph.node("Greater", F, graph.number(0.0)), np.int64)
        if slope is None:
            return label, "", F
        odds = graph.node("Mul", F, graph.number(2.0 * slope))
        return label, graph.node("Sigmoid", odds), F
    if content.n_outputs == 1:
        F = graph.node("Concat", graph.node("Neg", F), F, axis=1)
    winner = graph.node("ArgMax", F, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant(labels, "classes"), winner, axis=0)
    if slope is None:
        return label, "", F
    odds = graph.node("Mul", F, graph.number(slope))
    return label, graph.node("Softmax", odds, axis=1), F


def _checked(dtype: npt.DTypeLike, opset: int) -> np.dtype[Any]:
    onnx = optional_library("onnx")
    highest = onnx.defs.onnx_opset_version()
    if not LOWEST_OPSET <= opset <= highest:
        raise ValueError(
            f"opset={opset!r} is not allowed. Pass a number from {LOWEST_OPSET} to {highest}, the "
            "newest that the installed onnx knows; skl2onnx calls it target_opset."
        )
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not allowed. Pass 'float32' or 'float64'.")
    return np.dtype(dtype)


def _warn_of_rounded_rows(error: float) -> None:
    """Warn if float32 inputs have too few digits for features far from zero."""
    if error > MAX_ROW_ERROR:
        warnings.warn(
            f"Features are so far from zero that rounding rows to float32, the type of the graph's "
            f"input, changes scores by up to {error:.1g} of the largest. Pass dtype='float64', or "
            "subtract an offset from the features before fit.",
            stacklevel=4,
        )


def _inputs(content: Contents, dtype: np.dtype[Any], by_name: bool) -> list[Any]:
    """Return the types and shapes of the inputs."""
    if by_name:
        assert content.schema is not None
        return column_inputs(content.schema, dtype)
    helper = optional_library("onnx").helper
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return [helper.make_tensor_value_info("X", kind, [None, content.n_features])]


def _rows(graph: Graph, content: Contents, dtype: np.dtype[Any], by_name: bool) -> str:
    """Add the nodes from the inputs to the columns that the kernel compares."""
    if content.encoder is None:
        # also where the types are the same: the input from a pipeline of skl2onnx may be integers
        return graph.cast("X", graph.dtype)
    if isinstance(content.encoder, ImageCode):
        return coded_image(graph, content.encoder, "X")
    assert isinstance(content.encoder, TableCode)
    if by_name:
        assert content.schema is not None
        columns = columns_from_inputs(graph, content.schema, dtype)
    else:
        columns = columns_of_matrix(graph, content.encoder.n_inputs)
    return coded(graph, content.encoder, columns)


def _outputs(
    graph: Graph, content: Contents, F: str, names: tuple[str, ...], labels: Any, dtype: Any
) -> list[Any]:
    """Add the nodes of the named outputs, and return their types and shapes."""
    onnx = optional_library("onnx")
    found, n_columns = {"variable": F, "scores": F}, content.n_outputs
    if content.kind != "values":
        n_columns = len(labels)
        found["label"], found["probabilities"], found["raw_scores"] = _head(
            graph, content, F, labels
        )
    value_infos = []
    for name in names:
        if name == "label":
            graph.node("Identity", found[name], output=name)
            kind = onnx.TensorProto.STRING if labels.dtype == object else onnx.TensorProto.INT64
            shape = [None] if content.kind == "classes" else [None, n_columns]
        else:
            graph.node("Cast", found[name], output=name, to=graph.element_type(dtype))
            kind = graph.element_type(dtype)
            shape = [None, content.n_outputs if name in ("scores", "variable") else n_columns]
        value_infos.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    return value_infos


def onnx_model(
    content: Contents,
    dtype: npt.DTypeLike,
    opset: int,
    outputs: tuple[str, ...],
    labels: npt.NDArray[Any],
    by_name: bool = False,
) -> Any:
    """Return the ModelProto with the named outputs.

    `by_name` says that each column of a table is an input; the only input is X otherwise.
    """
    dtype = _checked(dtype, opset)
    onnx, helper = optional_library("onnx"), optional_library("onnx").helper
    single = dtype == np.float32 and product_error(content) <= MAX_FLOAT32_ERROR
    if dtype == np.float32:
        kept = []  # dates that have inputs of their own
        if by_name and content.schema is not None:
            kept = [i for i, each in enumerate(content.schema.columns) if each.kind == "date"]
        if content.stored.center is not None or content.encoder is not None:
            _warn_of_rounded_rows(row_error(content, kept))
    inputs = _inputs(content, dtype, by_name)
    taken = [*(each.name for each in inputs), *outputs]
    graph = Graph(np.dtype(np.float32 if single else np.float64), taken, opset >= INT4_OPSET)
    F = _scores(graph, content, _rows(graph, content, dtype, by_name))
    value_infos = _outputs(graph, content, F, outputs, labels, dtype)
    opsets = [helper.make_opsetid("", opset)]
    if by_name:
        opsets.append(helper.make_opsetid(ML_DOMAIN, ML_VERSION))
    made = helper.make_model(
        helper.make_graph(graph.nodes, "nysplus", inputs, value_infos, graph.initializers),
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="nysplus",
    )
    onnx.checker.check_model(made)
    return made


def to_onnx(
    model: Any,
    *,
    dtype: npt.DTypeLike = "float32",
    opset: int | None = None,
    scores: bool = False,
    inputs: Literal["columns", "matrix"] | None = None,
) -> Any:
    """Return a fitted model as an ONNX graph of standard operators.

    Numbers that the model stores in int8 or float16 keep their type in the file, integers of 2 to 4
    bits are int4 and those of 5 to 7 bits int8. The arithmetic
    is that of `dtype`, or float64 where float32 would change scores by more than 1e-5 of the
    largest.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or Pipeline
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``. Chi-squared
        and Laplacian kernels need memory for rows × landmarks × features at once. A pipeline
        becomes one model, see :func:`~nysplus.from_pipeline`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of all outputs but labels.
    opset : int, optional
        Version of the operators, 13 or more; by default 17, or 21 for a model with integers of 2 to
        4 bits, which onnxruntime runs since version 1.19. Below 21 these are written in int8.
    scores : bool, default=False
        Whether a classifier also gives the output ``scores``, as ``decision_function`` does.
    inputs : {"columns", "matrix"}, optional
        For a model that encodes tables. "columns": an input of shape (rows, 1) for each column that
        the model uses, with the name of the column. Numbers have the type `dtype`, with NaN for
        gaps; dates are seconds since 1970 in float64; categories are strings, "" for a gap, or
        numbers where the levels are numbers. "matrix": one input ``X`` of shape (rows, columns that
        the model uses), in which levels of categories are 0, 1, … in the order of the model's
        levels, −1 for another level and NaN for a gap. By default "columns" where columns have
        names.

    Returns
    -------
    onnx.ModelProto
        With the input ``X`` of shape (rows, d), or the inputs of a table. A classifier has the
        outputs ``label`` (int64 or strings) and ``probabilities``, a regressor has ``variable`` of
        shape (rows, L). A classifier of `from_svc` that has no ``predict_proba`` has ``scores``
        instead of ``probabilities``.

    See Also
    --------
    register_converters : For pipelines with other steps, with skl2onnx.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import to_onnx
    >>> model = NystroemClassifier(10, random_state=0).fit(*load_iris(return_X_y=True))
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'probabilities']
    """
    content = contents_of(model)
    by_name = _is_by_name(content, inputs)
    outputs, labels = ["variable"], np.empty(0)
    if content.kind == "values":
        if scores:
            raise ValueError("scores=True is for classifiers; a regressor's scores are its values.")
    else:
        outputs, labels = ["label"], label_table(content.classes)
        if content.slope is not None:
            outputs.append("probabilities")
        if scores or content.slope is None:
            outputs.append("scores")
    if by_name:
        assert content.schema is not None
        check_names(content.schema, outputs)
    version = _needed_opset(content) if opset is None else opset
    return onnx_model(content, dtype, version, tuple(outputs), labels, by_name)


def _needed_opset(content: Contents) -> int:
    """Return the version of the operators that keeps the graph small."""
    parts = (getattr(content.stored, field.name) for field in fields(content.stored))
    return INT4_OPSET if any(part is not None and is_int4(part) for part in parts) else USUAL_OPSET


def _is_by_name(content: Contents, inputs: str | None) -> bool:
    """Return whether each column of the table is an input."""
    if inputs not in (None, "columns", "matrix"):
        raise ValueError(f"inputs={inputs!r} is not allowed. Pass 'columns' or 'matrix'.")
    schema = content.schema
    if inputs is None:
        return schema is not None and schema.names is not None
    if inputs == "columns" and schema is None:
        raise ValueError(
            "inputs='columns' is for models that encode tables. This model takes a matrix; leave "
            "inputs out."
        )
    return inputs == "columns"
