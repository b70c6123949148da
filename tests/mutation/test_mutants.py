"""The mutants of small sources."""

from __future__ import annotations

import ast

import pytest
from mutants import mutants_of


def changed(source):
    """Return the sources of all mutants."""
    return [mutant.apply(source) for mutant in mutants_of("m.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a is not None", ["a is None"]),
        ("a in b", ["a not in b"]),
        ("(a * b) / c", ["(a / b) / c", "(a * b) * c"]),
        ("a and (b or c)", ["a or (b or c)", "a and (b and c)"]),
        ("not (a)", ["(a)"]),
        ("-a", ["a"]),
        ("a += b", ["a -= b"]),
        ("x = 3", ["x = 4"]),
        ("x = 1000", ["x = 10000"]),
        ("x = 1e-6", ["x = 1e-05"]),
        ("x = True", ["x = False"]),
        ("x = np.min(a)", ["x = np.max(a)"]),
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("check(a)", ["pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("if a:\n    b = c", ["if not a:\n    b = c"]),
        ("'ä'; x = 1 + b", ["'ä'; x = 1 - b", "'ä'; x = 2 + b"]),
    ],
)
def test_every_operator(source, expected):
    assert sorted(changed(source)) == sorted(expected)


@pytest.mark.parametrize(
    "source",
    [
        "'text'",
        "x: Literal[1]",
        "raise ValueError(f'{a + 1}')",
        "assert a > 0",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "__all__ = [1]",
        "if TYPE_CHECKING:\n    a = 1",
        "x = zip(a, b, strict=True)",
    ],
)
def test_what_is_left_alone(source):
    assert changed(source) == []


def test_mutants_are_valid_and_told_apart():
    source = "def f(a, b=2):\n    if a < b:\n        return a * a * a\n    return -a ** 2\n"
    found = mutants_of("m.py", source)
    assert len({mutant.key for mutant in found}) == len(found) == len(set(changed(source)))
    for text in changed(source):
        ast.parse(text)


def test_keys_do_not_depend_on_lines_elsewhere():
    source = "def f(a):\n    return a + 1\n"
    keys = {mutant.key for mutant in mutants_of("m.py", source)}
    assert keys < {mutant.key for mutant in mutants_of("m.py", f"x = 5\n\n\n{source}")}


def test_constants_have_names_and_signatures_the_lines_of_their_function():
    source = "LIMIT = 3\n\n\ndef f(a=4):\n    b = a\n    return b\n"
    constant, default, *_ = mutants_of("m.py", source)
    assert constant.names == ("LIMIT",)
    assert (default.names, default.lines) == ((), (5, 6))
