"""Choose the code of a table, and the kernel, by closed-form leave-one-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nysplus._bytes.budget import Budget, ModelShape, most_landmarks
from nysplus._fit.plan import Plan
from nysplus._fit.table import Table
from nysplus._holdout import best_of, split_positions
from nysplus._rows.blocks import Block
from nysplus._rows.encoded import TableEncoding
from nysplus._tuning.width import Width, choose_width, kernel_text, score_kernel
from nysplus.kernels import Kernel
from nysplus.landmarks import Problem

# Widths that tell codes apart, in octaves around gamma="scale": on tables the best one is up to
# four below for smooth values, and two above for sharp boundaries.
OCTAVES = (0, -4, 2)
# Rows that codes are compared on: enough to tell them apart, in a fraction of a second.
COMPARED_ROWS = 5000


@dataclass(frozen=True)
class ChosenCode:
    """The code of an unrefined model.

    Attributes
    ----------
    encoding : TableEncoding
    kernel : Kernel or None
        With the best width, where the kernel is chosen as well; None otherwise.
    """

    encoding: TableEncoding
    kernel: Kernel | None = None


def choose_code(plan: Plan, table: Table) -> ChosenCode:
    """Return the best code of a table for the kernel of a plan.

    With ``kernel="auto"`` the width is chosen with the code. O(2500 · n²) with at most 300
    landmarks for each code and width, whatever the number of rows. Half of at most 5000 rows make
    landmarks of the plan's kind, the others are left out one by one.

    Parameters
    ----------
    plan : Plan
    table : Table

    Notes
    -----
    Nothing is drawn from the random numbers of the fit: the model is that of a user who has chosen
    the same code.
    """
    encodings = table.alternatives(plan.budget)
    alike = plan.kernel.of_differences  # other kernels depend on the origin of a code
    searched = plan.refinement is None or plan.refinement.search
    if not plan.automatic and (len(encodings) == 1 or not alike or not searched):
        return ChosenCode(encodings[0])
    rng, n_rows = np.random.RandomState(0), len(table.drawn)
    drawn = table.drawn.take(np.sort(rng.permutation(n_rows)[:COMPARED_ROWS]))
    halves = split_positions(len(drawn), len(drawn) // 2, rng)

    def scored() -> Iterator[tuple[float, TableEncoding, Width]]:
        """Yield the codes with their best width."""
        for encoding in encodings:
            n = _landmarks(encoding, plan, table)
            if n:
                block = replace(drawn, X=encoding(drawn))
                width = _scored(plan, block.take(halves[0]), block.take(halves[1]), n, rng)
                yield width.score, encoding, width

    candidates = list(scored())
    if not candidates:  # there is no room for a landmark, which later stages say
        return ChosenCode(encodings[0])
    best = best_of(candidates, lambda each: each[0])
    table.rows.progress.record.add(
        *(
            width.trial("code", _text(encoding, width), len(halves[0]), each is best)
            for each in candidates
            for _, encoding, width in [each]
        )
    )
    _, encoding, width = best
    return ChosenCode(encoding, width.kernel if plan.automatic else None)


def _text(encoding: TableEncoding, width: Width) -> str:
    code = encoding.code
    kinds = {type(term).__name__ for term in code.terms}
    name = "thermometer" if "Ramps" in kinds else "standardised"
    return f"{name} code of {code.n_columns} columns, {kernel_text(width.kernel)}"


def _landmarks(encoding: TableEncoding, plan: Plan, table: Table) -> int:
    """Return the number of landmarks that a model of a code may have."""
    if plan.budget is None:
        return plan.n_landmarks
    left: Budget = plan.budget.reserving(encoding.code.n_bytes)
    shape = ModelShape(encoding.code.n_columns, table.rows.n_outputs)
    sizes = left.sizes(shape, most_landmarks(table.rows.n_candidates))
    return sizes[-1].n if sizes else 0


def _scored(
    plan: Plan, validation: Block, others: Block, n: int, rng: np.random.RandomState
) -> Width:
    """Return the leave-one-out score of a kernel, with the best of few widths if it is tuned."""
    problem = Problem(others.blocks(), plan.kernel, plan.approximation, plan.alphas)
    if plan.kernel.is_tuned:
        return choose_width(validation, problem, plan.selector, n, rng, OCTAVES)
    return score_kernel(validation, problem, plan.selector, n, rng)
