"""Nodes and constants of an ONNX graph, by names."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus.expansion import PackedArray


def optional_library(name: str) -> Any:
    """Import a library of ``nysplus[onnx]`` when it is needed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'The export to ONNX needs {name}: pip install "nysplus[onnx]".'
        ) from error


class Graph:
    """Nodes and constants of a graph whose numbers are of type `dtype`; a value is its name.

    Parameters
    ----------
    dtype : dtype
    taken : collection of str
        Names of inputs, which no other value may have.
    """

    def __init__(self, dtype: np.dtype[Any], taken: Collection[str] = ()) -> None:
        self.dtype = dtype
        self._taken = set(taken)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._onnx = optional_library("onnx")

    def _free(self, name: str) -> str:
        """Return a name that is not taken."""
        while name in self._taken:
            name += "_"
        return name

    def element_type(self, dtype: npt.DTypeLike) -> int:
        """Return the number of a type in ONNX."""
        number: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return number

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, and return the name of the output."""
        output = output or self._free(f"{kind.lower()}_{len(self.nodes)}")
        self.nodes.append(
            self._onnx.helper.make_node(kind, inputs, [output], name=f"{output}_node", **attributes)
        )
        return output

    def constant(self, array: npt.NDArray[Any], name: str = "constant") -> str:
        """Add an array in its own type."""
        name = self._free(f"{name}_{len(self.initializers)}")
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
