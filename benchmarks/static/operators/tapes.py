"""Mistakes about who owns the tape."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.static.source import Edit, Source, called

_LOSSES = ("mse", "mae", "huber", "cross_entropy", "cross_entropy_with_probabilities")
_LOSSES_TOO = ("binary_cross_entropy_with_logits", "kl_div")


def spent_reused(source: Source) -> Iterator[Edit]:
    """Use a tensor whose tape is gone: without a second handle, or once more afterwards."""
    for call in source.calls("with_empty_tape"):
        assert isinstance(call.func, ast.Attribute)
        yield source.replace(call, source.of(call.func.value))
    for function in source.functions():
        for statement in ast.walk(function):
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                for name in _moved_names(statement.value):
                    if name not in _targets(statement):
                        yield source.after(statement, f"{name}.abs()")


def traced_before_loop(source: Source) -> Iterator[Edit]:
    """Trace once before a loop, and use that in every round."""
    for loop in source.nodes():
        if not isinstance(loop, ast.For):
            continue
        bound = {
            one.id
            for one in ast.walk(loop)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        for call in ast.walk(loop):
            if not (isinstance(call, ast.Call) and called(call) == "trace" and not call.args):
                continue
            assert isinstance(call.func, ast.Attribute)
            value = call.func.value
            if isinstance(value, ast.Name) and value.id not in bound:
                start = source.span(loop)[0]
                line = f"traced = {value.id}.trace()\n{' ' * loop.col_offset}"
                changes = ((start, start, line), (*source.span(call), "traced"))
                yield Edit(loop.lineno, f"{value.id}.trace() before the loop", changes)


def backward_twice(source: Source) -> Iterator[Edit]:
    """Run the backward pass once more."""
    for function in source.functions():
        for statement in ast.walk(function):
            if not isinstance(statement, ast.Assign | ast.Expr):
                continue
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and called(call) == "backward":
                    assert isinstance(call.func, ast.Attribute)
                    if isinstance(call.func.value, ast.Name):
                        yield source.after(statement, f"{call.func.value.id}.backward()")


def trace_missing(source: Source) -> Iterator[Edit]:
    """Forget to trace."""
    for call in source.calls("trace"):
        assert isinstance(call.func, ast.Attribute)
        yield source.replace(call, source.of(call.func.value))


def reduction_missing(source: Source) -> Iterator[Edit]:
    """Forget the mean or the sum that makes a scalar."""
    for call in source.calls("mean", "sum"):
        if not call.args and not call.keywords:
            assert isinstance(call.func, ast.Attribute)
            yield source.replace(call, source.of(call.func.value))


def traced_twice(source: Source) -> Iterator[Edit]:
    """Trace what is traced."""
    for call in source.calls("trace"):
        yield source.replace(call, f"{source.of(call)}.trace()")


def target_traced(source: Source) -> Iterator[Edit]:
    """Trace the target of a loss too."""
    for call in source.calls(*_LOSSES, *_LOSSES_TOO):
        target = call.args[1]
        yield source.replace(target, f"{source.of(target)}.trace()")


def _moved_names(value: ast.expr) -> list[str]:
    """Return the variables that an expression uses by themselves or as the object of a method."""
    names = []
    for node in ast.walk(value):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call):
            operands = [*node.args]
            if isinstance(node.func, ast.Attribute):
                operands.append(node.func.value)
        names += [one.id for one in operands if isinstance(one, ast.Name)]
    return [
        name
        for name in dict.fromkeys(names)
        if name not in ("rng", "tt", "nn", "losses", "np", "data", "optim", "self", "model")
    ]


def _targets(statement: ast.stmt) -> set[str]:
    return {
        one.id
        for one in ast.walk(statement)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
