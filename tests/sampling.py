"""Parametrise tests by products of which `make test` runs a sample."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import pytest


def sampled(names, *columns, indirect=()):
    """Parametrise a test by the product of columns, some values each, or a dict of them by name.

    `make test` runs every value of every column with some of the values of the others, in turn;
    `make test-all` runs the whole product.
    """
    least = min(map(len, columns))
    return _parametrized(names, columns, lambda places: sum(places) % least == 0, indirect)


def in_pairs(names, *columns, indirect=()):
    """Parametrise a test by the product of three or more columns, like `sampled`.

    `make test` runs every pair of values of two columns at least once.
    """
    chosen = _covering([len(column) for column in columns], 2)
    return _parametrized(names, columns, chosen.__contains__, indirect)


def each_once(names, *columns, indirect=()):
    """Parametrise a test by the product of columns, like `sampled`: for tests that take long.

    `make test` runs every value of every column at least once.
    """
    chosen = _covering([len(column) for column in columns], 1)
    return _parametrized(names, columns, chosen.__contains__, indirect)


def _covering(sizes, n):
    """Return few places of a product that have all combinations of values of `n` columns.

    They are chosen one by one, each with most combinations that are new, and most new pairs.
    """
    every = list(product(*map(range, sizes)))
    missing, seen, chosen = {part for places in every for part in _parts(places, n)}, set(), set()
    while missing:
        best = max(
            every,  # the first of the best
            key=lambda places: (len(_parts(places, n) & missing), len(_parts(places, 2) - seen)),
        )
        chosen.add(best)
        missing -= _parts(best, n)
        seen |= _parts(best, 2)
    return chosen


@cache
def _parts(places, n):
    return frozenset(combinations(enumerate(places), n))


def _parametrized(names, columns, is_in_sample, indirect):
    named = [c if isinstance(c, dict) else {_name(value): value for value in c} for c in columns]
    cases = []
    for places in product(*(range(len(column)) for column in named)):
        keys = [list(column)[i] for column, i in zip(named, places, strict=True)]
        values = [column[key] for column, key in zip(named, keys, strict=True)]
        marks = [] if is_in_sample(places) else [pytest.mark.all_combinations]
        cases.append(pytest.param(*values, marks=marks, id="-".join(keys)))
    return pytest.mark.parametrize(names, cases, indirect=list(indirect))


def _name(value):
    return getattr(value, "__name__", str(value))
