"""Nodes and constants of an ONNX graph, by names."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus.expansion import PackedArray

# The first version of the operators that has tensors of int4, and the bits of their integers.
INT4_OPSET, INT4_BITS = 21, 4


def optional_library(name: str) -> Any:
    """Import a library of ``nysplus[onnx]`` when it is needed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'The export to ONNX needs {name}: pip install "nysplus[onnx]".'
        ) from error


def is_int4(stored: PackedArray) -> bool:
    """Return whether the values of an array fit in int4."""
    return stored.bits <= INT4_BITS


class Graph:
    """Nodes and constants of a graph whose numbers are of type `dtype`; a value is its name.

    Parameters
    ----------
    dtype : dtype
    taken : collection of str
        Names of inputs, which no other value may have.
    has_int4 : bool, default=False
        Whether integers of 2 to 4 bits are tensors of int4; those of all other widths are int8.
    """

    def __init__(
        self, dtype: np.dtype[Any], taken: Collection[str] = (), has_int4: bool = False
    ) -> None:
        self.dtype = dtype
        self._taken = set(taken)
        self._has_int4 = has_int4
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
        if self._has_int4 and is_int4(stored):
            value = self._from_int4(values, name)
        else:
            value = self.constant(np.ascontiguousarray(values), name)
            if values.dtype != self.dtype:
                value = self.cast(value, self.dtype)
        if stored.scale is not None:
            scale = self.constant(stored.scale.astype(self.dtype), f"{name}_scale")
            value = self.node("Mul", value, scale)
        if stored.offset is not None:
            offset = self.constant(stored.offset.astype(self.dtype), f"{name}_offset")
            value = self.node("Add", value, offset)
        return value

    @cached_property
    def _one(self) -> str:
        """The scale of DequantizeLinear that keeps the integers."""
        return self.constant(np.ones((), dtype=np.float32), "one")

    def _from_int4(self, values: npt.NDArray[np.int8], name: str) -> str:
        """Add integers as a tensor of int4, and the nodes that convert it.

        The scale of the columns is a node of its own: onnxruntime makes one operator of
        DequantizeLinear and the matrix product after it, which rounds the other factor as well.
        """
        name = self._free(f"{name}_{len(self.initializers)}")
        # two's complement, the even ones in the lower half of a byte
        codes = np.pad(values.ravel().view(np.uint8) & np.uint8(15), (0, values.size % 2))
        tensor = self._onnx.TensorProto(name=name, data_type=self._onnx.TensorProto.INT4)
        tensor.dims.extend(values.shape)
        tensor.raw_data = (codes[::2] | codes[1::2] << 4).tobytes()
        self.initializers.append(tensor)
        value = self.node("DequantizeLinear", name, self._one)
        return value if self.dtype == np.float32 else self.cast(value, self.dtype)

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
