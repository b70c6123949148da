"""Bytes of whole ensembles of trees that predict by their own library, in the same accounting."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nysplus_experiments.harness.raw_tables import nominal_columns
from nysplus_experiments.tables.boosting import NUMBER_BYTES
from nysplus_experiments.tables.system import Rows
from nysplus_experiments.tables.trees import HEADER_BYTES


def whole_bytes(nodes: Iterable[tuple[int | None, bool]], rows: Rows) -> int:
    """Return the bytes of trees with numbers in float32 and sets of levels as bit masks.

    ``nodes`` yields the feature of each split, None for a leaf, and whether it is a set of levels.
    """
    n_levels = {
        rows.X.columns.get_loc(name): len(rows.X[name].cat.categories)
        for name in nominal_columns(rows.X)
    }
    feature_bits = math.ceil(math.log2(max(2, rows.X.shape[1])))
    gap_bit = int(rows.X.isna().any(axis=None))
    bits = 0
    for feature, is_set in nodes:
        bits += 1  # leaf or split
        if feature is None:
            bits += 8 * NUMBER_BYTES
        else:
            own = n_levels[feature] if is_set else 8 * NUMBER_BYTES
            bits += feature_bits + gap_bit + own
    return HEADER_BYTES + NUMBER_BYTES * rows.n_outputs + math.ceil(bits / 8)
