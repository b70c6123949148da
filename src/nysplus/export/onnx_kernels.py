"""Kernel matrices as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nysplus._typing import Float
from nysplus.export.onnx_nodes import Graph
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


def _squared_distances(graph: Graph, X: str, Z: str, points: Float) -> str:
    """Return ``max(0, ‖x‖² + ‖z‖² − 2xz)`` about the mean of Z, as in nysplus.kernels."""
    mean = graph.constant(points.mean(axis=0).astype(graph.dtype), "mean")
    X, Z = graph.node("Sub", X, mean), graph.node("Sub", Z, mean)
    norms = graph.node("Add", graph.squares(X, keepdims=True), graph.squares(Z))
    twice = graph.node("Mul", graph.products(X, Z), graph.number(2.0))
    return graph.node("Max", graph.node("Sub", norms, twice), graph.number(0.0))


def _exp_minus(graph: Graph, factor: float, value: str) -> str:
    return graph.node("Exp", graph.node("Mul", value, graph.number(-factor)))


def _rbf(graph: Graph, kernel: RBF, X: str, Z: str, points: Float) -> str:
    return _exp_minus(graph, kernel.width, _squared_distances(graph, X, Z, points))


def _matern(graph: Graph, kernel: Matern, X: str, Z: str, points: Float) -> str:
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


def _laplacian(graph: Graph, kernel: Laplacian, X: str, Z: str, points: Float) -> str:
    differences = graph.node("Sub", graph.pairs(X, points.shape[1]), Z)
    return _exp_minus(graph, kernel.width, graph.sum(graph.node("Abs", differences), 2))


def _affine(graph: Graph, kernel: Polynomial | Sigmoid, X: str, Z: str, points: Float) -> str:
    if graph.dtype == np.float32:
        products = graph.node("Mul", graph.products(X, Z), graph.number(kernel.width))
    else:
        # onnxruntime rounds a number beside a matrix product to float32, but not a row of numbers
        factors = graph.constant(np.full(points.shape[1], kernel.width, dtype=graph.dtype))
        products = graph.products(graph.node("Mul", X, factors), Z)
    return graph.node("Add", products, graph.number(kernel.coef0))


def _polynomial(graph: Graph, kernel: Polynomial, X: str, Z: str, points: Float) -> str:
    return graph.node("Pow", _affine(graph, kernel, X, Z, points), graph.number(kernel.degree))


def _sigmoid(graph: Graph, kernel: Sigmoid, X: str, Z: str, points: Float) -> str:
    return graph.node("Tanh", _affine(graph, kernel, X, Z, points))


def _linear(graph: Graph, kernel: Linear, X: str, Z: str, points: Float) -> str:
    return graph.products(X, Z)


def _cosine(graph: Graph, kernel: Cosine, X: str, Z: str, points: Float) -> str:
    def divided(rows: str, sizes: str) -> str:
        zero = graph.node("Equal", sizes, graph.number(0.0))
        return graph.node("Div", rows, graph.node("Where", zero, graph.number(1.0), sizes))

    def normalised(rows: str) -> str:
        # first by the sum of absolute values: squares of rows as given might overflow, or vanish
        rows = divided(rows, graph.sum(graph.node("Abs", rows), 1, keepdims=True))
        return divided(rows, graph.node("Sqrt", graph.squares(rows, keepdims=True)))

    return graph.products(normalised(X), normalised(Z))


def _chi2_distances(graph: Graph, X: str, Z: str, rank: int) -> str:
    X = graph.pairs(X, rank)
    differences, sums = graph.node("Sub", X, Z), graph.node("Add", X, Z)
    # 0 / 0 counts as 0
    empty = graph.node("Equal", sums, graph.number(0.0))
    sums = graph.node("Where", empty, graph.number(1.0), sums)
    squares = graph.node("Mul", differences, differences)
    return graph.sum(graph.node("Div", squares, sums), 2)


def _chi2(graph: Graph, kernel: Chi2, X: str, Z: str, points: Float) -> str:
    return _exp_minus(graph, kernel.width, _chi2_distances(graph, X, Z, points.shape[1]))


def _additive_chi2(graph: Graph, kernel: AdditiveChi2, X: str, Z: str, points: Float) -> str:
    return graph.node("Neg", _chi2_distances(graph, X, Z, points.shape[1]))


# By the class itself: a subclass may compute its matrix differently.
ONNX_KERNELS: dict[type[Kernel], Callable[..., str]] = {
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
