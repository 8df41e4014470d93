"""Capturing a function: for a plan, or for something else that becomes of its program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.stand_ins import IS_TRACING
from tapetensor.compiler.cache import CAPTURES
from tapetensor.compiler.trace.binding import Binding
from tapetensor.compiler.trace.node import Node, replaced
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NotTracedError, placed, trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tensor.base import TensorBase


@contextmanager
def capturing(
    function: Callable[..., Any],
    program: Program,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    varying: Collection[str] = (),
) -> Iterator[tuple[Binding, Callable[[], Any]]]:
    """Walk the inputs of a call; yield them, and what runs the function on tracers."""
    binding = Binding(program, function)
    binding.varying = varying
    token = IS_TRACING.set(True)
    try:
        binding.guard(f"len(args) != {len(args)}" if args else "args")
        binding.guard(f"tuple(kwargs) != {binding.bind(tuple(kwargs))}" if kwargs else "kwargs")
        with placed(binding.place):
            called = binding.open(function)
        lazy_args = [
            binding.walk(value, f"args[{position}]", f"argument {position}", is_put=True)
            for position, value in enumerate(args)
        ]
        lazy_kwargs = {
            name: binding.walk(value, f"kwargs[{name!r}]", f"argument {name}", is_put=True)
            for name, value in kwargs.items()
        }
        yield binding, partial(binding.run, partial(called, *lazy_args, **lazy_kwargs))
    finally:
        IS_TRACING.reset(token)
        try:
            binding.restore()
        except BaseException:
            # Who presses Ctrl-C here is to find no tracers in a model.
            binding.restore()
            raise


class Capture(NamedTuple):
    """What a function does with arrays.

    Attributes:
        arrays: what comes in by node: the arguments, and what the function reads around itself.
        result: what the function returns, with nodes in the place of tensors and arrays.
    """

    arrays: Mapping[Node, Any]
    result: Any


def capture(function: Callable[..., Any], args: tuple[Any, ...]) -> Capture:
    """Capture a function that changes nothing around itself.

    Raises:
        TraceError: if it does, or cannot be captured.
    """
    program = Program(prefers_steps=True)
    with CAPTURES, capturing(function, program, args, {}) as (binding, run):

        def node_of(value: Any) -> Any:
            array = value._array if isinstance(value, TensorBase) else value
            if isinstance(array, ArrayTracer):
                return array.ordered()
            return program.constant(array) if isinstance(array, np.ndarray) else value

        try:
            result = replaced(run(), node_of)
        except NotTracedError as error:
            # The function's own error is what there is to tell.
            raise error.__cause__ or error from None
        change = binding.change()
        if change is not None:
            raise trace_error(f"{change} is changed, which a program of arrays cannot do")
        return Capture(dict(binding.arrays), result)
