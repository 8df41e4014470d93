"""Mistakes about what a shape means: one truth of many, one axis for another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from benchmarks.static.source import Edit, Source


def truth_of_many(source: Source) -> Iterator[Edit]:
    """Ask whether two tensors are equal as if there were one answer."""
    for statement, name in _assigned(source):
        yield source.after(statement, f"assert {name} == {name}")


def each_with_each(source: Source) -> Iterator[Edit]:
    """Subtract (B,) from what a matrix product has left as (B, 1)."""
    for statement, name in _assigned(source):
        column = f"{name} @ tt.ones(({name}.shape[-1], 1))"
        # Of a vector it would be right.
        is_matrix = f"assert len({name}.shape) == 2"
        line = f"({column} - {name}.sum(axis=-1)).square().mean()"
        yield source.after(statement, f"{is_matrix}; {line}")


def reshape_swapped(source: Source) -> Iterator[Edit]:
    """Write two dims of a reshape in the other order; at least one of them has a name."""
    for call in source.calls("reshape"):
        match call.args:
            case [ast.Tuple(elts=dims)]:
                for one, other in combinations(dims, 2):
                    if isinstance(one, ast.Name) or isinstance(other, ast.Name):
                        yield source.swap(one, other)


def _assigned(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the assignments in functions to a name, and the name."""
    for function in source.functions():
        for statement in ast.walk(function):
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())
                ):
                    yield statement, name
