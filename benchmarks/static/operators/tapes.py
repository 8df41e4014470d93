"""Mistakes about what has a tape."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.static.source import Edit, Source

_LOSSES = ("mse", "mae", "huber", "cross_entropy", "cross_entropy_with_probabilities")
_LOSSES_TOO = ("binary_cross_entropy_with_logits", "kl_div")


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
