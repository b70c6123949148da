"""Count the bytes and the operations of a C header."""

from __future__ import annotations

from dataclasses import dataclass

from nysplus.encoding.image_code import ImageCode
from nysplus.export.c_header import stack_bytes, table_bytes
from nysplus.export.c_integer import IntegerModel
from nysplus.export.c_model import CModel
from nysplus.export.contents import Contents
from nysplus.export.integer_agreement import Agreement
from nysplus.export.integer_header import integer_tables
from nysplus.export.integer_header import stack_bytes as integer_stack_bytes

# Cycles of a product with its addition and the reading of its numbers, and of a kernel value, by
# processor and arithmetic, from docs/results/integers.md: cycles of an ATmega328P, and instructions
# of a Cortex-M0, which take 1.3 cycles on average. Both emulate floating point.
CYCLES = {
    "ATmega328P": {"float": (500, 3000), "int": (125, 500)},
    "Cortex-M0": {"float": (190, 1500), "int": (36, 100)},
}
# Bytes of code beside the tables, on the processors of docs/results/integers.md.
CODE = {"float": "2 to 12 kB", "int": "0.6 to 2.7 kB"}


@dataclass(frozen=True)
class CReport:
    """Bytes and operations of a C header.

    Attributes
    ----------
    arithmetic : {"float", "int"}
    table_bytes : int
        Bytes of flash memory of the tables, without the code.
    stack_bytes : int
        Bytes of arrays on the stack.
    row_bytes, score_bytes : int
        Bytes of a row and of its scores, which the caller provides.
    products : int
        Multiplications, each with an addition, for a row; at most, because landmarks that are far
        from a row are left early in integer arithmetic.
    kernel_values : int
        Kernel values for a row.
    agreement : Agreement or None
        Of integer arithmetic with the model in float64.
    """

    arithmetic: str
    table_bytes: int
    stack_bytes: int
    row_bytes: int
    score_bytes: int
    products: int
    kernel_values: int
    agreement: Agreement | None = None

    @property
    def ram_bytes(self) -> int:
        """Bytes of RAM for a prediction: the row, its scores and the stack."""
        return self.stack_bytes + self.row_bytes + self.score_bytes

    def cycles(self, processor: str) -> int:
        """Return an estimate of the cycles of a prediction.

        Parameters
        ----------
        processor : {"ATmega328P", "Cortex-M0"}
        """
        if processor not in CYCLES:
            raise ValueError(f"processor={processor!r} is not one of {', '.join(CYCLES)}.")
        product, value = CYCLES[processor][self.arithmetic]
        return product * self.products + value * self.kernel_values

    def __str__(self) -> str:
        lines = [
            f"arithmetic     {self.arithmetic}",
            f"flash          {self.table_bytes:,} bytes of tables, and "
            f"{CODE[self.arithmetic]} of code",
            f"RAM            {self.ram_bytes:,} bytes: {self.stack_bytes:,} on the stack, "
            f"{self.row_bytes:,} for the row, {self.score_bytes:,} for the scores",
            f"operations     {self.products:,} products, {self.kernel_values:,} kernel values",
        ]
        lines += [f"{name:14} about {self.cycles(name):,} cycles" for name in CYCLES]
        if self.agreement is not None:
            lines.append(f"scores         change by {100 * self.agreement.scores:.2g} %")
            if self.agreement.labels is not None:
                lines.append(f"labels         {100 * self.agreement.labels:.2g} % change")
        return "\n".join(lines)


def _products(content: Contents, each: int) -> int:
    """Return the number of products for a row: cosines, map, distances and scores.

    Parameters
    ----------
    content : Contents
    each : int
        Products for a coordinate of a landmark.
    """
    stored, code = content.stored, content.encoder
    n, r = stored.landmarks.values.shape
    total = n * (each * r + content.n_outputs)
    if isinstance(code, ImageCode):
        first, second, channels = code.code_shape
        height, width, _ = code.shape
        total += first * width * channels * (height + second)
    if stored.projection is not None:
        total += stored.projection.values.size
    if stored.linear is not None:
        total += stored.linear.values.size
    return int(total)


def float_report(model: CModel) -> CReport:
    """Return the report of a header in floating point."""
    content, Z = model.content, model.content.stored.landmarks
    real, row = (8 if kind == "double" else 4 for kind in (model.real, model.row))
    return CReport(
        "float",
        table_bytes(model),
        stack_bytes(model),
        row * content.n_features,
        real * content.n_outputs,
        _products(content, 1 if Z.scale is None else 2),
        len(Z.values),
    )


def integer_report(model: IntegerModel, found: Agreement) -> CReport:
    """Return the report of a header in integers."""
    content = model.content
    return CReport(
        "int",
        sum(array.nbytes for array in integer_tables(model).values()),
        integer_stack_bytes(model),
        (2 if model.rows.type_name == "int16" else 1) * content.n_features,
        4 * content.n_outputs,
        _products(content, 2),
        len(content.stored.landmarks.values),
        found,
    )
