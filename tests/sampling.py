"""Parametrise tests by products of which `make test` runs a sample."""

from __future__ import annotations

from itertools import product

import pytest


def sampled(names, *columns, indirect=()):
    """Parametrise a test by the product of columns, some values each, or a dict of them by name.

    `make test` runs every value of every column with some of the values of the others, in turn;
    `make test-all` runs the whole product.
    """
    named = [c if isinstance(c, dict) else {_name(value): value for value in c} for c in columns]
    cases = []
    for places in product(*(range(len(column)) for column in named)):
        keys = [list(column)[i] for column, i in zip(named, places, strict=True)]
        values = [column[key] for column, key in zip(named, keys, strict=True)]
        in_sample = sum(places) % min(map(len, named)) == 0
        marks = [] if in_sample else [pytest.mark.all_combinations]
        cases.append(pytest.param(*values, marks=marks, id="-".join(keys)))
    return pytest.mark.parametrize(names, cases, indirect=list(indirect))


def _name(value):
    return getattr(value, "__name__", str(value))
