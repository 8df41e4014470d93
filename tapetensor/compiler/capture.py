"""Capturing a call: for a plan, or for something else that becomes of its program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.stand_ins import IS_TRACING
from tapetensor.compiler.cache import CAPTURES
from tapetensor.compiler.trace.capture import Capture
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
    trusts: Collection[str] = (),
) -> Iterator[tuple[Capture, Callable[[], Any]]]:
    """Walk the inputs of a call; yield them, and a function that runs the user's on tracers."""
    one = Capture(program, function, varying, trusts)
    token = IS_TRACING.set(True)
    try:
        with one.overlaid():
            with placed(one.inputs.place):
                called = one.open(function)
            by_place, by_name = one.arguments(args, kwargs)
            yield one, partial(one.run, partial(called, *by_place, **by_name))
    finally:
        IS_TRACING.reset(token)
        one.close()


class ArrayProgram(NamedTuple):
    """The calculations of a function with arrays.

    Attributes:
        arrays: the inputs by node: the arguments, and arrays in the surroundings of the function.
        result: the result of the function, with nodes in the place of tensors and arrays.
    """

    arrays: Mapping[Node, Any]
    result: Any


def capture(function: Callable[..., Any], args: tuple[Any, ...]) -> ArrayProgram:
    """Capture a function that changes nothing around itself.

    Raises:
        TraceError: if it does, or cannot be captured.
    """
    program = Program(prefers_steps=True)
    with CAPTURES, capturing(function, program, args, {}) as (one, run):

        def node_of(value: Any) -> Any:
            array = value._array if isinstance(value, TensorBase) else value
            if isinstance(array, ArrayTracer):
                return array.node
            return program.constant(array) if isinstance(array, np.ndarray) else value

        try:
            result = replaced(run(), node_of)
        except NotTracedError as error:
            # The function's own error is what there is to tell.
            raise error.__cause__ or error from None
        change = one.change()
        if change is not None:
            raise trace_error(f"{change} is changed, which a program of arrays cannot do")
        return ArrayProgram(dict(one.inputs.arrays), result)
