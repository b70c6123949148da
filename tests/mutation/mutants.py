"""Mutants of a Python module: one small change of its source each.

A mutant replaces an operator, a comparison, a constant, a condition, a function such as ``min``, a
returned value or a call whose value is not used. Strings, annotations, decorators, assertions and
error messages are left alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    # the boundary, and the negation
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
}
FUNCTIONS = {
    one: other
    for pair in (
        *(("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")),
        *(("floor", "ceil"), ("zeros", "ones"), ("exp", "log"), ("append", "extend")),
    )
    for one, other in (pair, pair[::-1])
}
# Keyword arguments whose value changes time or memory only, or that only assert.
WITHOUT_EFFECT = {"check_finite", "copy", "strict", "overwrite_a", "overwrite_b", "overwrite_c"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Attributes
    ----------
    module : str
        Path of the module below the folder of sources.
    scope : str
        Qualified name of the function or class that is changed, empty at the top of the module.
    line : int
    lines : tuple of int
        First and last line of the statement that is changed.
    names : tuple of str
        Names that the statement defines, if it runs when the module is imported.
    start, stop : int
        Characters of the source that are replaced.
    old, new : str
        Their text, before and after.
    number : int
        Which of the equal changes of equal lines in this scope.
    text : str
        The line as it was.
    """

    module: str
    scope: str
    line: int
    lines: tuple[int, int]
    names: tuple[str, ...]
    start: int
    stop: int
    old: str
    new: str
    number: int
    text: str

    @property
    def key(self) -> str:
        """A name that changes elsewhere in the module do not affect."""
        parts = (self.module, self.scope, self.text, self.old, self.new, str(self.number))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def apply(self, source: str) -> str:
        """Return the changed source of the module."""
        return source[: self.start] + self.new + source[self.stop :]


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    texts = source.splitlines()
    found: list[Mutant] = []
    seen: dict[tuple[str, ...], int] = {}
    for change in _Walk(source, starts).changes(ast.parse(source), _Place()):
        line = _line_of(starts, change.start)
        old, text = source[change.start : change.stop], texts[line - 1].strip()
        where = change.where
        alike = (where.scope, text, old, change.new)
        seen[alike] = seen.get(alike, -1) + 1
        found.append(
            Mutant(
                *(module, where.scope, line, where.lines, where.names),
                *(change.start, change.stop, old, change.new, seen[alike], text),
            )
        )
    return sorted(found, key=lambda mutant: mutant.start)


@dataclass(frozen=True)
class _Place:
    scope: str = ""
    lines: tuple[int, int] = (1, 1)
    names: tuple[str, ...] = ()
    in_function: bool = False

    def within(self, node: ast.AST) -> _Place:
        """Return the place of a node that is found here."""
        if not isinstance(node, ast.stmt):
            return self
        names = () if self.in_function else _defined(node)
        return replace(self, lines=_own_lines(node), names=names)

    def below(self, node: ast.AST) -> _Place:
        """Return the place of the nodes below a node."""
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            return self
        scope = f"{self.scope}.{node.name}" if self.scope else node.name
        function = self.in_function or isinstance(node, ast.FunctionDef)
        return replace(self, scope=scope, in_function=function)


@dataclass(frozen=True)
class _Change:
    where: _Place
    start: int
    stop: int
    new: str


def _line_of(starts: list[int], position: int) -> int:
    return next(i for i, (a, b) in enumerate(pairwise(starts), 1) if a <= position < b)


@dataclass(frozen=True)
class _Walk:
    """A walk over the syntax tree of a module."""

    source: str
    starts: list[int]

    def changes(self, node: ast.AST, where: _Place) -> Iterator[_Change]:
        """Yield the changes of a node and of everything below it."""
        where = where.within(node)
        for start, stop, new in self._of(node):
            yield _Change(where, start, stop, new)
        where = where.below(node)
        for child in _children(node):
            yield from self.changes(child, where)

    def _of(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Yield the changes of one node: the characters replaced and their new text."""
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for operator, (left, right) in zip(node.ops, pairwise(sides), strict=True):
                    for new in COMPARISONS[type(operator)]:
                        yield self._between(left, right, new)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
                yield self._between(left, right, ARITHMETIC[type(operator)])
            case ast.AugAssign(target=left, op=operator, value=right):
                if type(operator) in ARITHMETIC:
                    yield self._between(left, right, ARITHMETIC[type(operator)] + "=")
            case ast.BoolOp():
                new = "or" if isinstance(node.op, ast.And) else "and"
                for left, right in pairwise(node.values):
                    yield self._between(left, right, new)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as operator):
                length = len("not " if isinstance(operator, ast.Not) else "-")
                yield self._start(node), self._start(node) + length, ""
            case ast.Constant():
                for text in _other_constants(node.value):
                    yield (*self._span(node), text)
            case ast.If() | ast.While() | ast.IfExp():
                plain = isinstance(node.test, ast.Name | ast.Attribute | ast.Call)
                if plain and not _for_types_only(node):
                    yield self._start(node.test), self._start(node.test), "not "
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                yield (*self._span(node.func), FUNCTIONS[name])
            case ast.Call(func=ast.Attribute(attr=name)) if name in FUNCTIONS:
                stop = self._stop(node.func)
                yield stop - len(name), stop, FUNCTIONS[name]
            case ast.Expr(value=ast.Call()):
                yield (*self._span(node), "pass")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield (*self._span(value), "None")
            case ast.Break():
                yield (*self._span(node), "continue")
            case ast.Continue():
                yield (*self._span(node), "break")

    def _between(self, left: ast.expr, right: ast.expr, new: str) -> tuple[int, int, str]:
        """Replace the operator between two operands, but no bracket of theirs."""
        start, stop = self._stop(left), self._start(right)
        between = self.source[start:stop]
        head = len(between) - len(between.lstrip(") \t\n"))
        operator = between[head:].rstrip("( \t\n")
        return start + head, start + head + len(operator), new

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._start(node), self._stop(node)

    def _start(self, node: ast.AST) -> int:
        return self._position(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _stop(self, node: ast.AST) -> int:
        return self._position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _position(self, line: int, column: int) -> int:
        """Return the position of a column, which the syntax tree counts in bytes."""
        start = self.starts[line - 1]
        text = self.source[start : self.starts[line]]
        return start + len(text.encode()[:column].decode())


def _defined(node: ast.stmt) -> tuple[str, ...]:
    """Return the names that an assignment defines."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    found = (part for target in targets if target is not None for part in ast.walk(target))
    return tuple(part.id for part in found if isinstance(part, ast.Name))


def _own_lines(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement without those of the statements below it.

    A function's signature is read when the module is imported, but matters where the function runs.
    """
    first, last = node.lineno, node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if isinstance(node, ast.FunctionDef):
        return node.body[0].lineno, last
    return (first, max(first, body[0].lineno - 1)) if body else (first, last)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node that can be changed so that behaviour changes."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if _for_types_only(node):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__"):
        return
    skipped = {"annotation", "returns", "decorator_list"}
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            keyword = isinstance(child, ast.keyword) and child.arg in WITHOUT_EFFECT
            if isinstance(child, ast.AST) and name not in skipped and not keyword:
                yield child


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _other_constants(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield str(not value)
        case int():
            # one more than a thousand is nearly the same
            yield str(value + 1 if value < 10 else 10 * value)
        case float():
            yield f"{value + 1.0 if value in (0.0, 1.0) else 10.0 * value:g}"
