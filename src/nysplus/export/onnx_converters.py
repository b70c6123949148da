"""Teach skl2onnx the estimators of this package, so that it converts whole pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._fit.model import NO_PROBABILITIES
from nysplus.encoding.code import TableCode
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.expansion import KernelExpansion
from nysplus.export.contents import Contents, contents, contents_of
from nysplus.export.onnx_graph import label_table, onnx_model
from nysplus.export.onnx_nodes import optional_library
from nysplus.transformer import Nystroem

__all__ = ["register_converters"]


def _input_type(operator: Any) -> npt.DTypeLike:
    doubles = optional_library("skl2onnx.common.data_types").DoubleTensorType
    return np.float64 if isinstance(operator.inputs[0].type, doubles) else np.float32


def _add(scope: Any, operator: Any, container: Any, made: Any) -> None:
    """Add a graph to the graph that skl2onnx builds."""
    optional_library("skl2onnx.helpers.integration").add_onnx_graph(
        scope, operator, container, made
    )


def _set_shape(variable: Any, kind: Any, operator: Any, *columns: int) -> None:
    variable.set_type(kind([operator.inputs[0].get_first_dimension(), *columns]))


def _classifier_shapes(operator: Any) -> None:
    types = optional_library("skl2onnx.common.data_types")
    content = _contents_of(operator.raw_operator)
    strings = label_table(content.classes).dtype == object
    if operator.scope_inst.get_options(operator.raw_operator, {"nocl": False})["nocl"]:
        strings = False
    n_classes = len(content.classes)
    kind = types.StringTensorType if strings else types.Int64TensorType
    _set_shape(operator.outputs[0], kind, operator, *[n_classes][: content.kind == "labels"])
    kind = _float_type(operator)
    _set_shape(operator.outputs[1], kind, operator, n_classes)


def _float_type(operator: Any) -> Any:
    types = optional_library("skl2onnx.common.data_types")
    return types.DoubleTensorType if _input_type(operator) == np.float64 else types.FloatTensorType


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    content = _contents_of(model)
    options = container.get_options(model, {"raw_scores": False, "nocl": False})
    labels = np.arange(len(content.classes)) if options["nocl"] else content.classes
    if content.slope is None and not options["raw_scores"]:
        raise ValueError(
            "This NystroemClassifier has no probabilities, which skl2onnx writes by default. "
            f"{NO_PROBABILITIES} Or pass options={{NystroemClassifier: {{'raw_scores': True, "
            "'zipmap': False}}}} to skl2onnx, to write scores."
        )
    outputs = ("label", "raw_scores" if options["raw_scores"] else "probabilities")
    opset = container.target_opset_any_domain("")
    made = onnx_model(content, _input_type(operator), opset, outputs, label_table(labels))
    _add(scope, operator, container, made)


def _transformer_contents(model: Nystroem) -> Contents:
    """Return the map ``x ↦ k(x, Z) Â`` as an expansion without intercepts."""
    feature_map = model.feature_map_
    whitening = feature_map.collapse(np.eye(feature_map.rank))
    zeros = np.zeros(feature_map.rank)
    return contents(KernelExpansion(feature_map.kernel, feature_map.landmarks, whitening, zeros))


def _contents_of(model: Any) -> Contents:
    content = _transformer_contents(model) if isinstance(model, Nystroem) else contents_of(model)
    if isinstance(content.encoder, TableCode):
        raise ValueError(
            f"This {type(model).__name__} encodes tables, whose columns are inputs of their own. "
            "Convert it with nysplus.export.to_onnx."
        )
    return content


def _value_shapes(operator: Any) -> None:
    n_outputs = _contents_of(operator.raw_operator).n_outputs
    _set_shape(operator.outputs[0], _float_type(operator), operator, n_outputs)


def _convert_values(scope: Any, operator: Any, container: Any) -> None:
    content = _contents_of(operator.raw_operator)
    opset = container.target_opset_any_domain("")
    made = onnx_model(content, _input_type(operator), opset, ("variable",), np.empty(0))
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
    update = optional_library("skl2onnx").update_registered_converter
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
