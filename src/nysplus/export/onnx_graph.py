"""Write models as ONNX graphs of standard operators, with the ``onnx`` package alone.

Whole pipelines are converted by skl2onnx, see :mod:`nysplus.export.onnx_converters`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.expansion import PackedArray
from nysplus.export.contents import Contents, contents_of
from nysplus.export.rounding import product_error, row_error
from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)

__all__ = ["to_onnx"]

# The first version in which ReduceSum takes its axes as an input.
LOWEST_OPSET = 13
# Scores that float32 arithmetic changes by more than this, relative to the largest, are computed in
# float64; scores that float32 rows change by more than this are worth a warning.
MAX_FLOAT32_ERROR, MAX_ROW_ERROR = 1e-5, 1e-4


def optional_library(name: str) -> Any:
    """Import a library of ``nysplus[onnx]`` when it is needed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'The export to ONNX needs {name}: pip install "nysplus[onnx]".'
        ) from error


# -- nodes ---------------------------------------------------------------------------------------


class _Graph:
    """Nodes and constants of a graph whose numbers are of type `dtype`; a value is its name."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._onnx = optional_library("onnx")

    def element_type(self, dtype: npt.DTypeLike) -> int:
        """Return the number of a type in ONNX."""
        number: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return number

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, and return the name of the output."""
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(
            self._onnx.helper.make_node(kind, inputs, [output], name=f"{output}_node", **attributes)
        )
        return output

    def constant(self, array: npt.NDArray[Any], name: str = "constant") -> str:
        """Add an array in its own type."""
        name = f"{name}_{len(self.initializers)}"
        self.initializers.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        """Add a number in the type of the graph."""
        return self.constant(np.array(value, dtype=self.dtype), "number")

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Change the type of a value."""
        return self.node("Cast", value, to=self.element_type(dtype))

    def table(self, stored: PackedArray, name: str) -> str:
        """Add an array in its stored type, and the nodes that convert and scale it."""
        values = stored.values
        if values.dtype == np.float64:
            values = values.astype(self.dtype)
        value = self.constant(np.ascontiguousarray(values), name)
        if values.dtype != self.dtype:
            value = self.cast(value, self.dtype)
        if stored.scale is not None:
            scale = self.constant(stored.scale.astype(self.dtype), f"{name}_scale")
            value = self.node("Mul", value, scale)
        return value

    def sum(self, value: str, axis: int, keepdims: bool = False) -> str:
        """Sum along an axis."""
        axes = self.constant(np.array([axis], dtype=np.int64), "axes")
        return self.node("ReduceSum", value, axes, keepdims=int(keepdims))

    def products(self, X: str, Z: str) -> str:
        """Return ``XZᵀ``."""
        return self.node("MatMul", X, self.node("Transpose", Z, perm=[1, 0]))

    def squares(self, X: str, keepdims: bool = False) -> str:
        """Return the squared norms of rows."""
        return self.sum(self.node("Mul", X, X), 1, keepdims)

    def pairs(self, X: str, rank: int) -> str:
        """Return X in the shape (rows, 1, r), which broadcasts over the landmarks."""
        # a 0 keeps the number of rows, which may be 0 itself
        return self.node("Reshape", X, self.constant(np.array([0, 1, rank], dtype=np.int64)))


# -- kernels -------------------------------------------------------------------------------------


def _squared_distances(graph: _Graph, X: str, Z: str, points: Float) -> str:
    """Return ``max(0, ‖x‖² + ‖z‖² − 2xz)`` about the mean of Z, as in nysplus.kernels."""
    mean = graph.constant(points.mean(axis=0).astype(graph.dtype), "mean")
    X, Z = graph.node("Sub", X, mean), graph.node("Sub", Z, mean)
    norms = graph.node("Add", graph.squares(X, keepdims=True), graph.squares(Z))
    twice = graph.node("Mul", graph.products(X, Z), graph.number(2.0))
    return graph.node("Max", graph.node("Sub", norms, twice), graph.number(0.0))


def _exp_minus(graph: _Graph, factor: float, value: str) -> str:
    return graph.node("Exp", graph.node("Mul", value, graph.number(-factor)))


def _rbf(graph: _Graph, kernel: RBF, X: str, Z: str, points: Float) -> str:
    return _exp_minus(graph, kernel.width, _squared_distances(graph, X, Z, points))


def _matern(graph: _Graph, kernel: Matern, X: str, Z: str, points: Float) -> str:
    D = _squared_distances(graph, X, Z, points)
    s = graph.node("Sqrt", graph.node("Mul", D, graph.number(4.0 * kernel.nu * kernel.width)))
    K = _exp_minus(graph, 1.0, s)
    if kernel.nu == 0.5:
        return K
    factor = graph.node("Add", s, graph.number(1.0))
    if kernel.nu == 2.5:
        third = graph.node("Mul", graph.node("Mul", s, s), graph.number(1.0 / 3.0))
        factor = graph.node("Add", factor, third)
    return graph.node("Mul", K, factor)


def _laplacian(graph: _Graph, kernel: Laplacian, X: str, Z: str, points: Float) -> str:
    differences = graph.node("Sub", graph.pairs(X, points.shape[1]), Z)
    return _exp_minus(graph, kernel.width, graph.sum(graph.node("Abs", differences), 2))


def _affine(graph: _Graph, kernel: Polynomial | Sigmoid, X: str, Z: str, points: Float) -> str:
    if graph.dtype == np.float32:
        products = graph.node("Mul", graph.products(X, Z), graph.number(kernel.width))
    else:
        # onnxruntime rounds a number beside a matrix product to float32, but not a row of numbers
        factors = graph.constant(np.full(points.shape[1], kernel.width, dtype=graph.dtype))
        products = graph.products(graph.node("Mul", X, factors), Z)
    return graph.node("Add", products, graph.number(kernel.coef0))


def _polynomial(graph: _Graph, kernel: Polynomial, X: str, Z: str, points: Float) -> str:
    return graph.node("Pow", _affine(graph, kernel, X, Z, points), graph.number(kernel.degree))


def _sigmoid(graph: _Graph, kernel: Sigmoid, X: str, Z: str, points: Float) -> str:
    return graph.node("Tanh", _affine(graph, kernel, X, Z, points))


def _linear(graph: _Graph, kernel: Linear, X: str, Z: str, points: Float) -> str:
    return graph.products(X, Z)


def _cosine(graph: _Graph, kernel: Cosine, X: str, Z: str, points: Float) -> str:
    def divided(rows: str, sizes: str) -> str:
        zero = graph.node("Equal", sizes, graph.number(0.0))
        return graph.node("Div", rows, graph.node("Where", zero, graph.number(1.0), sizes))

    def normalised(rows: str) -> str:
        # first by the sum of absolute values: squares of rows as given might overflow, or vanish
        rows = divided(rows, graph.sum(graph.node("Abs", rows), 1, keepdims=True))
        return divided(rows, graph.node("Sqrt", graph.squares(rows, keepdims=True)))

    return graph.products(normalised(X), normalised(Z))


def _chi2_distances(graph: _Graph, X: str, Z: str, rank: int) -> str:
    X = graph.pairs(X, rank)
    differences, sums = graph.node("Sub", X, Z), graph.node("Add", X, Z)
    # 0 / 0 counts as 0
    empty = graph.node("Equal", sums, graph.number(0.0))
    sums = graph.node("Where", empty, graph.number(1.0), sums)
    squares = graph.node("Mul", differences, differences)
    return graph.sum(graph.node("Div", squares, sums), 2)


def _chi2(graph: _Graph, kernel: Chi2, X: str, Z: str, points: Float) -> str:
    return _exp_minus(graph, kernel.width, _chi2_distances(graph, X, Z, points.shape[1]))


def _additive_chi2(graph: _Graph, kernel: AdditiveChi2, X: str, Z: str, points: Float) -> str:
    return graph.node("Neg", _chi2_distances(graph, X, Z, points.shape[1]))


# By the class itself: a subclass may compute its matrix differently.
_KERNELS: dict[type[Kernel], Callable[..., str]] = {
    AdditiveChi2: _additive_chi2,
    Chi2: _chi2,
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _linear,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    Sigmoid: _sigmoid,
}


# -- models --------------------------------------------------------------------------------------


def _scores(graph: _Graph, model: Contents, X: str) -> str:
    """Add the nodes of ``k((X − c)P, Z) A + b``, and return their output."""
    kind = type(model.kernel)
    if kind not in _KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} has no ONNX graph. Kernels that have one: "
            f"{', '.join(sorted(known.__name__ for known in _KERNELS))}."
        )
    stored = model.stored
    if stored.center is not None:
        X = graph.node("Sub", X, graph.table(stored.center, "center"))
    if stored.projection is not None:
        by = "MatMul" if stored.projection.values.ndim == 2 else "Mul"
        X = graph.node(by, X, graph.table(stored.projection, "projection"))
    Z, points = graph.table(stored.landmarks, "landmarks"), stored.landmarks.unpacked()
    K = _KERNELS[kind](graph, model.kernel, X, Z, points)
    F = graph.node("MatMul", K, graph.table(stored.dual_coef, "dual_coef"))
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
    graph: _Graph, content: Contents, F: str, labels: npt.NDArray[Any]
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


def onnx_model(
    content: Contents,
    dtype: npt.DTypeLike,
    opset: int,
    outputs: tuple[str, ...],
    labels: npt.NDArray[Any],
) -> Any:
    """Return the ModelProto with the named outputs."""
    dtype = _checked(dtype, opset)
    onnx, helper = optional_library("onnx"), optional_library("onnx").helper
    single = dtype == np.float32 and product_error(content) <= MAX_FLOAT32_ERROR
    if dtype == np.float32 and content.stored.center is not None:
        _warn_of_rounded_rows(row_error(content))
    graph = _Graph(np.dtype(np.float32 if single else np.float64))
    # also where the types are the same: the input from a pipeline of skl2onnx may be integers
    F = _scores(graph, content, graph.cast("X", graph.dtype))
    found, n_columns = {"variable": F, "scores": F}, content.n_outputs
    if content.kind != "values":
        n_columns = len(labels)
        found["label"], found["probabilities"], found["raw_scores"] = _head(
            graph, content, F, labels
        )
    value_infos = []
    for name in outputs:
        if name == "label":
            graph.node("Identity", found[name], output=name)
            kind = onnx.TensorProto.STRING if labels.dtype == object else onnx.TensorProto.INT64
            shape = [None] if content.kind == "classes" else [None, n_columns]
        else:
            graph.node("Cast", found[name], output=name, to=graph.element_type(dtype))
            kind = graph.element_type(dtype)
            shape = [None, content.n_outputs if name in ("scores", "variable") else n_columns]
        value_infos.append(helper.make_tensor_value_info(name, kind, shape))
    rows = helper.make_tensor_value_info("X", graph.element_type(dtype), [None, content.n_features])
    opsets = [helper.make_opsetid("", opset)]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "nysplus", [rows], value_infos, graph.initializers),
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="nysplus",
    )
    onnx.checker.check_model(made)
    return made


def to_onnx(
    model: Any, *, dtype: npt.DTypeLike = "float32", opset: int = 17, scores: bool = False
) -> Any:
    """Return a fitted model as an ONNX graph of standard operators.

    Numbers that the model stores in int8 or float16 keep their type in the file. The arithmetic
    is that of `dtype`, or float64 where float32 would change scores by more than 1e-5 of the
    largest.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``. Chi-squared
        and Laplacian kernels need memory for rows × landmarks × features at once.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of all outputs but labels.
    opset : int, default=17
        Version of the operators, 13 or more.
    scores : bool, default=False
        Whether a classifier also gives the output ``scores``, as ``decision_function`` does.

    Returns
    -------
    onnx.ModelProto
        With the input ``X`` of shape (rows, d). A classifier has the outputs ``label`` (int64 or
        strings) and ``probabilities``, a regressor has ``variable`` of shape (rows, L). A
        classifier of `from_svc` that has no ``predict_proba`` has ``scores`` instead of
        ``probabilities``.

    See Also
    --------
    register_converters : For pipelines, with skl2onnx.

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
    if content.kind == "values":
        if scores:
            raise ValueError("scores=True is for classifiers; a regressor's scores are its values.")
        return onnx_model(content, dtype, opset, ("variable",), np.empty(0))
    outputs = ["label"]
    if content.slope is not None:
        outputs.append("probabilities")
    if scores or content.slope is None:
        outputs.append("scores")
    return onnx_model(content, dtype, opset, tuple(outputs), label_table(content.classes))
