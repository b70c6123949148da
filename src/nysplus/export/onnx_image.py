"""Codes of images as ONNX nodes: the cosines are computed, and take no bytes of the file."""

from __future__ import annotations

import numpy as np

from nysplus.encoding.image_code import ImageCode
from nysplus.export.onnx_nodes import Graph


def coded_image(graph: Graph, code: ImageCode, X: str) -> str:
    """Add the nodes of E, and return the code columns in the type of the graph.

    They are computed in float64, as the library does.

    Parameters
    ----------
    graph : Graph
    code : ImageCode
    X : str
        Flattened images, of any type.
    """
    (height, width, channels), (first, second, _) = code.shape, code.code_shape
    images = _shaped(graph, graph.cast(X, np.float64), height, width, channels)
    planes = graph.node("Transpose", images, perm=[0, 3, 1, 2])
    wide = _product(graph, planes, width, _cosines(graph, width, second))
    wide = _shaped(graph, wide, channels, height, second)
    turned = graph.node("Transpose", wide, perm=[0, 1, 3, 2])
    both = _product(graph, turned, height, _cosines(graph, height, first))
    both = _shaped(graph, both, channels, second, first)
    found = graph.node("Transpose", both, perm=[0, 3, 2, 1])
    return graph.cast(_shaped(graph, found, code.n_columns), graph.dtype)


def _shaped(graph: Graph, value: str, *sizes: int) -> str:
    """Return a value in another shape, but for its first axis."""
    return graph.node("Reshape", value, graph.constant(np.array([-1, *sizes], dtype=np.int64)))


def _product(graph: Graph, value: str, n: int, M: str) -> str:
    """Return the product of the last axis, of n numbers, with a matrix.

    It is one of two matrices: onnxruntime has none of several without any rows.
    """
    return graph.node("MatMul", _shaped(graph, value, n), M)


def _cosines(graph: Graph, n: int, k: int) -> str:
    """Add the nodes of :func:`~nysplus.encoding.image_code.cosines`."""

    def number(value: float) -> str:
        return graph.constant(np.array(value), "number")

    def count(last: int) -> str:
        return graph.node("Range", number(0.0), number(float(last)), number(1.0))

    j = count(k)
    odd = graph.node("Add", graph.node("Mul", count(n), number(2.0)), number(1.0))
    # whole numbers up to here; the angle is π / 2n of them, within a circle
    turns = graph.node("Mul", _shaped(graph, odd, 1), j)
    turns = graph.node("Mod", turns, number(4.0 * n), fmod=1)
    waves = graph.node("Cos", graph.node("Mul", turns, number(np.pi / (2.0 * n))))
    first = graph.node("Less", j, number(0.5))
    norms = graph.node("Where", first, number(np.sqrt(1.0 / n)), number(np.sqrt(2.0 / n)))
    return graph.node("Mul", waves, norms)
