"""Mistakes about axes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.static.source import Edit, Source, called, integer

_REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "logsumexp", "argmax")


def transpose_missing(source: Source) -> Iterator[Edit]:
    """Forget to transpose."""
    for call in source.calls("transpose"):
        if isinstance(call.func, ast.Attribute):
            yield source.replace(call, source.of(call.func.value))


def transpose_doubled(source: Source) -> Iterator[Edit]:
    """Transpose what is as it should be: an operand of a matrix product, an input."""
    for node in source.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            for operand in (node.left, node.right):
                yield source.replace(operand, f"{_enclosed(source, operand)}.transpose()")
    for call in source.calls("forward"):
        for argument in call.args:
            yield source.replace(argument, f"{_enclosed(source, argument)}.transpose()")


def wrong_axis(source: Source) -> Iterator[Edit]:
    """Reduce, squeeze or expand along another axis."""
    for call in source.calls(*_REDUCTIONS, "squeeze", "expand_dims"):
        for axis in _axes(call):
            if integer(axis) is not None:
                for other in (0, 1, 2, -1, -2):
                    yield source.replace(axis, str(other))


def wrong_permutation(source: Source) -> Iterator[Edit]:
    """Exchange two axes of a permutation, or name one twice."""
    for call in source.calls("permute_dims"):
        if isinstance(call.args[0], ast.Tuple):
            for one, other in pairwise(call.args[0].elts):
                yield source.swap(one, other)
                yield source.replace(one, source.of(other))


def wrong_concat_axis(source: Source) -> Iterator[Edit]:
    """Join or split along another axis, or along the first because none is named."""
    for call in source.calls("concat", "stack", "split"):
        for axis in _axes(call):
            if integer(axis) is not None:
                for other in (0, 1, 2, -1):
                    yield source.replace(axis, str(other))
        if called(call) in ("concat", "stack") and not _axes(call):
            end = source.span(call)[1] - 1
            yield Edit(call.lineno, "+ axis=1", ((end, end, ", axis=1"),))


def keepdims_forgotten(source: Source) -> Iterator[Edit]:
    """Forget `keepdims=True`."""
    for call in source.calls(*_REDUCTIONS):
        for keyword in call.keywords:
            if keyword.arg == "keepdims":
                start = source.text.rindex(",", 0, source.span(keyword.value)[0])
                edit = (start, source.span(keyword.value)[1], "")
                yield Edit(call.lineno, "keepdims=True forgotten", (edit,))


def _axes(call: ast.Call) -> list[ast.expr]:
    """Return the argument that is the axis, if there is one."""
    named = [one.value for one in call.keywords if one.arg == "axis"]
    if named or called(call) in ("concat", "stack", "split"):
        return named
    return call.args[:1]


def _enclosed(source: Source, node: ast.expr) -> str:
    text = source.of(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call) else f"({text})"
