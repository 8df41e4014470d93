"""Mistakes about what an op is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.static.source import Edit, Source, called

_NO_TENSORS = ("range", "isinstance", "step", "L", "build", "normal", "from_numpy", "arange")


def swapped(source: Source) -> Iterator[Edit]:
    """Exchange two arguments, or the two sides of a matrix product."""
    for node in source.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield source.swap(node.left, node.right)
    for call in source.calls():
        if called(call) not in _NO_TENSORS:
            for one, other in pairwise(call.args):
                if source.of(one) != source.of(other):
                    yield source.swap(one, other)


def wrong_variable(source: Source) -> Iterator[Edit]:
    """Use another variable of the function than the one that is meant."""
    for function in source.functions():
        bound = _bound_names(function)
        for node in ast.walk(function):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                continue
            if node.id not in bound:
                continue
            before = [name for name, line in bound.items() if line < node.lineno]
            for name in before:
                if name != node.id:
                    yield source.replace(node, name)


def other_dtype(source: Source) -> Iterator[Edit]:
    """Let float64 in: into a layer, a loss, an op."""
    for call in source.calls("forward", "mse", "mae", "huber", "cross_entropy"):
        for argument in call.args[:2]:
            if isinstance(argument, ast.Name):
                yield source.replace(argument, f"{argument.id}.astype(np.float64)")
            elif isinstance(argument, ast.Call) and called(argument) == "trace":
                assert isinstance(argument.func, ast.Attribute)
                value = argument.func.value
                yield source.replace(value, f"{source.of(value)}.astype(np.float64)")
    for node in source.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Name):
            yield source.replace(node.right, f"{node.right.id}.astype(np.float64)")


def _bound_names(function: ast.FunctionDef) -> dict[str, int]:
    """Return the variables of a function that may be tensors, and where each is first bound."""
    names = {one.arg: function.lineno for one in function.args.args if one.arg != "self"}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            line = names.get(node.id, node.lineno)
            names[node.id] = min(line, node.lineno)
    not_tensors = ("rng", "optimizer", "_", "epoch", "model", "total", "best")
    return {name: line for name, line in names.items() if name not in not_tensors}
