"""A program as text and tree, and the edits that a mistake consists of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple


class Edit(NamedTuple):
    """One mistake: what is replaced by what.

    Attributes:
        line: the line of the mistake, counted as in the program before it.
        description: the mistake in words.
        changes: start and end offset of the old text, and the new text; from front to back.
    """

    line: int
    description: str
    changes: tuple[tuple[int, int, str], ...]


class Source:
    """A program in which mistakes are made.

    Attributes:
        name: the name of the program.
        text: its source code, ASCII.
        tree: its syntax tree.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.tree = ast.parse(text)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node starts and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def replace(self, node: ast.expr, new: str) -> Edit:
        """Return the edit that puts another text in the place of an expression."""
        old = self.of(node)
        return Edit(node.lineno, f"{_short(old)} -> {_short(new)}", ((*self.span(node), new),))

    def swap(self, one: ast.expr, other: ast.expr) -> Edit:
        """Return the edit that exchanges two expressions, the first before the second."""
        first, second = self.of(one), self.of(other)
        return Edit(
            one.lineno,
            f"{_short(first)} <-> {_short(second)}",
            ((*self.span(one), second), (*self.span(other), first)),
        )

    def after(self, statement: ast.stmt, line: str) -> Edit:
        """Return the edit that adds a line after a statement, as far indented."""
        end = self.span(statement)[1]
        new = f"\n{' ' * statement.col_offset}{line}"
        return Edit(statement.lineno, f"+ {line}", ((end, end, new),))

    def changed(self, edit: Edit) -> str:
        """Return the text with a mistake in it."""
        text = self.text
        for start, end, new in reversed(edit.changes):
            text = text[:start] + new + text[end:]
        return text

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all nodes, in the order of the tree."""
        return ast.walk(self.tree)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Yield the calls of functions or methods with one of some names; all if none is given."""
        for node in self.nodes():
            if isinstance(node, ast.Call) and (not names or called(node) in names):
                yield node

    def functions(self) -> Iterator[ast.FunctionDef]:
        """Yield all functions and methods."""
        for node in self.nodes():
            if isinstance(node, ast.FunctionDef):
                yield node


def called(call: ast.Call) -> str:
    """Return the last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def integer(node: ast.expr) -> int | None:
    """Return the value of a literal int, which may have a sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = integer(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:57]}..."
