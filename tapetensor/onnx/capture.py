"""Capturing a function for a model: what it does with arrays, as a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapetensor.compiler.compiled import CAPTURES
from tapetensor.compiler.trace.capture import capturing
from tapetensor.compiler.trace.node import Node, replaced
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NotTracedError, trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tensor.base import TensorBase


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
