"""Models as ONNX graphs, of standard operators only.

``to_onnx`` builds the graph of one model with the ``onnx`` package alone. ``register_converters``
teaches skl2onnx the estimators of this package, so that whole pipelines can be converted. All
three libraries come with ``nysplus[onnx]`` and are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.expansion import KernelExpansion, PackedArray
from nysplus.export.contents import Contents, contents, contents_of
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
from nysplus.transformer import Nystroem

__all__ = ["register_converters", "to_onnx"]

# The first one in which sums take their axes as an input.
LOWEST_OPSET = 13
# Scores that float32 arithmetic changes by more than this are computed in float64.
MAX_FLOAT32_ERROR = 1e-5


def _library(name: str) -> Any:
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
        self._onnx = _library("onnx")

    def element_type(self, dtype: npt.DTypeLike) -> int:
        """Return the number that ONNX has for a type."""
        number: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return number

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, and return the name of that."""
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(
            self._onnx.helper.make_node(kind, inputs, [output], name=f"{output}_node", **attributes)
        )
        return output

    def constant(self, array: npt.NDArray[Any], name: str = "constant") -> str:
        """Add an array as it is."""
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
        """Add an array in the type that it is stored in, and what makes numbers of it."""
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
        """Return X as (rows, 1, r), so that it meets every landmark."""
        # a 0 keeps the number of rows, which may be 0 itself
        return self.node("Reshape", X, self.constant(np.array([0, 1, rank], dtype=np.int64)))


# -- kernels -------------------------------------------------------------------------------------


def _squared_distances(graph: _Graph, X: str, Z: str, points: Float) -> str:
    """``max(0, ‖x‖² + ‖z‖² − 2xz)`` about the mean of Z, as in nysplus.kernels."""
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


def _affine(graph: _Graph, kernel: Polynomial | Sigmoid, X: str, Z: str) -> str:
    products = graph.node("Mul", graph.products(X, Z), graph.number(kernel.width))
    return graph.node("Add", products, graph.number(kernel.coef0))


def _polynomial(graph: _Graph, kernel: Polynomial, X: str, Z: str, points: Float) -> str:
    return graph.node("Pow", _affine(graph, kernel, X, Z), graph.number(kernel.degree))


def _sigmoid(graph: _Graph, kernel: Sigmoid, X: str, Z: str, points: Float) -> str:
    return graph.node("Tanh", _affine(graph, kernel, X, Z))


def _linear(graph: _Graph, kernel: Linear, X: str, Z: str, points: Float) -> str:
    return graph.products(X, Z)


def _cosine(graph: _Graph, kernel: Cosine, X: str, Z: str, points: Float) -> str:
    def normalised(rows: str) -> str:
        norms = graph.node("Sqrt", graph.squares(rows, keepdims=True))
        # scikit-learn divides by 1 where the norm is no more than rounding
        tiny = graph.node("Less", norms, graph.number(10.0 * np.finfo(graph.dtype).eps))
        return graph.node("Div", rows, graph.node("Where", tiny, graph.number(1.0), norms))

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


# By the class itself: a subclass may fill the matrix in its own way.
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
    """Add ``k(XP, Z) A + b``."""
    kind = type(model.kernel)
    if kind not in _KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} has no ONNX graph. Kernels that have one: "
            f"{', '.join(sorted(known.__name__ for known in _KERNELS))}."
        )
    stored = model.stored
    if stored.projection is not None:
        by = "MatMul" if stored.projection.values.ndim == 2 else "Mul"
        X = graph.node(by, X, graph.table(stored.projection, "projection"))
    Z, points = graph.table(stored.landmarks, "landmarks"), stored.landmarks.unpacked()
    K = _KERNELS[kind](graph, model.kernel, X, Z, points)
    F = graph.node("MatMul", K, graph.table(stored.dual_coef, "dual_coef"))
    return graph.node("Add", F, graph.table(stored.intercept, "intercept"))


def _label_table(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as ONNX has them: int64 or strings."""
    if all(isinstance(label, str) for label in classes):
        return np.array([str(label) for label in classes], dtype=object)
    if classes.dtype.kind not in "biuf" or not np.array_equal(classes, classes.astype(np.int64)):
        raise ValueError(
            f"Classes {classes.tolist()[:10]} are neither whole numbers nor strings, the labels "
            "that ONNX has. Fit to one of these."
        )
    return classes.astype(np.int64)


def _head(
    graph: _Graph, content: Contents, F: str, labels: npt.NDArray[Any]
) -> tuple[str, str, str]:
    """Add what makes labels and probabilities of scores; return these and a score per class."""
    if content.kind == "labels":
        label = graph.cast(graph.node("Greater", F, graph.number(0.0)), np.int64)
        odds = graph.node("Mul", F, graph.number(2.0 * content.slope))
        return label, graph.node("Sigmoid", odds), F
    if content.n_outputs == 1:
        F = graph.node("Concat", graph.node("Neg", F), F, axis=1)
    winner = graph.node("ArgMax", F, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant(labels, "classes"), winner, axis=0)
    odds = graph.node("Mul", F, graph.number(content.slope))
    return label, graph.node("Softmax", odds, axis=1), F


def _checked(dtype: npt.DTypeLike, opset: int) -> np.dtype[Any]:
    onnx = _library("onnx")
    highest = onnx.defs.onnx_opset_version()
    if not LOWEST_OPSET <= opset <= highest:
        raise ValueError(
            f"opset={opset!r} is not allowed. Pass a number from {LOWEST_OPSET} to {highest}, the "
            "newest that the installed onnx knows; skl2onnx calls it target_opset."
        )
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not allowed. Pass 'float32' or 'float64'.")
    return np.dtype(dtype)


def _model(
    content: Contents,
    dtype: npt.DTypeLike,
    opset: int,
    outputs: tuple[str, ...],
    labels: npt.NDArray[Any],
) -> Any:
    """Return the ModelProto with the named outputs."""
    dtype = _checked(dtype, opset)
    onnx, helper = _library("onnx"), _library("onnx").helper
    single = dtype == np.float32 and content.float32_error(direct=False) <= MAX_FLOAT32_ERROR
    graph = _Graph(np.dtype(np.float32 if single else np.float64))
    # even where the types are the same: a pipeline of skl2onnx may hand on whole numbers
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


def _transformer_contents(model: Nystroem) -> Contents:
    """Return the map ``x ↦ k(x, Z) Â`` as an expansion without intercepts."""
    feature_map = model.feature_map_
    whitening = feature_map.collapse(np.eye(feature_map.rank))
    zeros = np.zeros(feature_map.rank)
    return contents(KernelExpansion(feature_map.kernel, feature_map.landmarks, whitening, zeros))


def to_onnx(
    model: Any, *, dtype: npt.DTypeLike = "float32", opset: int = 17, scores: bool = False
) -> Any:
    """Return a fitted model as an ONNX graph of standard operators.

    Numbers that the model stores in int8 or float16 stay so in the file. The arithmetic is that of
    `dtype`, or float64 where float32 would change scores by more than 1e-5 of the largest.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``. Chi-squared
        and Laplacian kernels need memory for rows × landmarks × features at once.
    dtype : {"float32", "float64"}, default="float32"
        Of the input and of all outputs but labels.
    opset : int, default=17
        Version of the operators, 13 or more.
    scores : bool, default=False
        Whether a classifier also gives the output ``scores``, as ``decision_function`` does.

    Returns
    -------
    onnx.ModelProto
        With the input ``X`` of shape (rows, d). A classifier has the outputs ``label`` (int64 or
        strings) and ``probabilities``, a regressor has ``variable`` of shape (rows, L).

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
        return _model(content, dtype, opset, ("variable",), np.empty(0))
    outputs = ("label", "probabilities", "scores") if scores else ("label", "probabilities")
    return _model(content, dtype, opset, outputs, _label_table(content.classes))


# -- skl2onnx ------------------------------------------------------------------------------------


def _input_type(operator: Any) -> npt.DTypeLike:
    doubles = _library("skl2onnx.common.data_types").DoubleTensorType
    return np.float64 if isinstance(operator.inputs[0].type, doubles) else np.float32


def _add(scope: Any, operator: Any, container: Any, made: Any) -> None:
    """Add a graph to the one that skl2onnx builds, after a cast where rows are whole numbers."""
    _library("skl2onnx.helpers.integration").add_onnx_graph(scope, operator, container, made)


def _set_shape(variable: Any, kind: Any, operator: Any, *columns: int) -> None:
    variable.set_type(kind([operator.inputs[0].get_first_dimension(), *columns]))


def _classifier_shapes(operator: Any) -> None:
    types = _library("skl2onnx.common.data_types")
    content = contents_of(operator.raw_operator)
    strings = _label_table(content.classes).dtype == object
    if operator.scope_inst.get_options(operator.raw_operator, {"nocl": False})["nocl"]:
        strings = False
    n_classes = len(content.classes)
    kind = types.StringTensorType if strings else types.Int64TensorType
    _set_shape(operator.outputs[0], kind, operator, *[n_classes][: content.kind == "labels"])
    kind = _float_type(operator)
    _set_shape(operator.outputs[1], kind, operator, n_classes)


def _float_type(operator: Any) -> Any:
    types = _library("skl2onnx.common.data_types")
    return types.DoubleTensorType if _input_type(operator) == np.float64 else types.FloatTensorType


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    content = contents_of(model)
    options = container.get_options(model, {"raw_scores": False, "nocl": False})
    labels = np.arange(len(content.classes)) if options["nocl"] else content.classes
    outputs = ("label", "raw_scores" if options["raw_scores"] else "probabilities")
    opset = container.target_opset_any_domain("")
    made = _model(content, _input_type(operator), opset, outputs, _label_table(labels))
    _add(scope, operator, container, made)


def _value_contents(model: Any) -> Contents:
    return _transformer_contents(model) if isinstance(model, Nystroem) else contents_of(model)


def _value_shapes(operator: Any) -> None:
    n_outputs = _value_contents(operator.raw_operator).n_outputs
    _set_shape(operator.outputs[0], _float_type(operator), operator, n_outputs)


def _convert_values(scope: Any, operator: Any, container: Any) -> None:
    content = _value_contents(operator.raw_operator)
    opset = container.target_opset_any_domain("")
    made = _model(content, _input_type(operator), opset, ("variable",), np.empty(0))
    _add(scope, operator, container, made)


def register_converters() -> None:
    """Teach skl2onnx to convert the estimators of this package, alone or in pipelines.

    Call it once, before ``skl2onnx.to_onnx``. Classifiers take skl2onnx's options ``zipmap``,
    ``raw_scores``, ``nocl`` and ``output_class_labels``.

    Examples
    --------
    >>> import numpy as np, skl2onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), NystroemClassifier(10, random_state=0)).fit(X, y)
    >>> register_converters()
    >>> made = skl2onnx.to_onnx(model, X.astype(np.float32), options={"zipmap": False})
    >>> [output.name for output in made.graph.output]
    ['label', 'probabilities']
    """
    update = _library("skl2onnx").update_registered_converter
    flags = [True, False]
    options = {"zipmap": [*flags, "columns"], "raw_scores": flags, "nocl": flags}
    options["output_class_labels"] = flags
    update(
        NystroemClassifier,
        "NysplusNystroemClassifier",
        _classifier_shapes,
        _convert_classifier,
        options=options,
    )
    for model in (NystroemRegressor, Nystroem):
        update(model, f"Nysplus{model.__name__}", _value_shapes, _convert_values)
