"""What rows tell of the columns of a table does not depend on how the rows are cut."""

from __future__ import annotations

from itertools import pairwise

import factories
import numpy as np
import pyarrow as pa
import pytest

from nysplus._rows.look import Look
from nysplus._rows.readers import Chunk
from nysplus.encoding import TableEncoder
from nysplus.encoding.schema import TableSchema

N = 900
FRAME, _ = factories.frame_of_all_kinds(N)
FRAME = FRAME.assign(
    text=[f"name {i}" for i in range(N)], few=FRAME["number"].round(1), late=FRAME["number"]
)
FRAME.loc[: N // 2, "late"] = np.nan
ENCODER = TableEncoder(categories=["zip"])


def look(table, cuts, weight=None):
    """Add the looks at the parts between `cuts`, two by two, as on a cluster."""
    weights = [None if weight is None else weight[i:j] for i, j in pairwise(cuts)]
    parts = [table[i:j] for i, j in pairwise(cuts)]
    chunks = [Chunk(X, None, w, 0, "", 0) for X, w in zip(parts, weights, strict=True)]
    looks = [Look.at(chunk, ENCODER) for chunk in chunks]
    while len(looks) > 1:
        for first, second in zip(looks[::2], looks[1::2], strict=False):
            first += second
        looks = looks[::2]
    return looks[0]


CUTS = {
    "two": [0, 400, N],
    "with empty parts": [0, 0, 300, 300, 301, N, N],
    "many": list(range(0, N + 1, 10)),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [lambda X: X, pa.Table.from_pandas], ids=["pandas", "arrow"])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_looks_add(cuts, make, weighted):
    weight = factories.weights(N) if weighted else None
    whole, found = look(make(FRAME), [0, N], weight), look(make(FRAME), cuts, weight)
    assert found.n_rows == whole.n_rows == N
    assert found.summary == whole.summary
    schemas = [TableSchema.of(each.summary, rules=each.rules) for each in (found, whole)]
    assert schemas[0] == schemas[1]
    assert schemas[0].dropped == schemas[1].dropped


def test_what_is_left_out():
    whole = look(FRAME, CUTS["many"])
    schema = TableSchema.of(whole.summary, ENCODER.categories, whole.rules)
    assert [dropped.name for dropped in schema.dropped] == ["id", "constant", "text"]
    assert "numbers the rows" in schema.dropped[0].reason


def test_rows_without_weight_are_not_seen():
    weight = (FRAME["colour"] != "red").to_numpy().astype(float)
    found = look(FRAME, CUTS["two"], weight).summary
    assert set(found.columns[3].counts) == {"green", "blue"}
    assert found.n_rows == weight.sum()


def test_rows_of_two_kinds_are_refused():
    mixed = FRAME.assign(number="much")
    first, second = look(FRAME, [0, N]), look(mixed, [0, N])
    with pytest.raises(TypeError, match="'number' contains numbers in some rows"):
        first += second
