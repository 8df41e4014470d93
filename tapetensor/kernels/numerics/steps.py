"""Functions that are captured whole, where their parts are no single numpy calls.

Stand-ins (see `tapetensor.arrays.stand_ins`) meet here what they could not follow inside: choices
by value, writes into buffers, loops. For the compiler such a function is one step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from typing_extensions import ParamSpec, TypeVar

from tapetensor.arrays.stand_ins import CapturedArray, Recorded, StandIn, captured_among

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Kernel_ = TypeVar("Kernel_", bound=Callable[..., Any])


def runs_steps(x: Any) -> bool:
    """Tell whether an array, or a number, is one of numpy's own, or captures a step whole."""
    return isinstance(x, np.generic) or type(x) is np.ndarray or isinstance(x, CapturedArray)


def may_hide_parts(*arrays: Any) -> bool:
    """Tell whether on these arrays a function may be one step, whose parts nobody else knows.

    Not where what is captured is written down by the names of its parts, as for ONNX.
    """
    return all(
        runs_steps(one) and not (isinstance(one, CapturedArray) and one.prefers_steps)
        for one in arrays
    )


def single_step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let captured arrays capture a call as one step."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        captured = captured_among(args)
        if captured is not None:
            result: Result = captured.capture_step(run, args, options)
            return result
        return function(*args, **options)

    return run


def whole_kernel(
    shape_of: Callable[..., tuple[int, ...]], *, for_models: bool = False
) -> Callable[[Kernel_], Kernel_]:
    """Return what lets captured arrays capture a kernel whole: one step, and one for its pullbacks.

    That is for loops in Python, whose every turn would be steps of its own.

    Args:
        shape_of: takes the kernel's arguments and returns the shape of its output.
        for_models: whether only where the program becomes a model in a format that has an op for
            it; a plan runs its parts in groups with what is before and after them.
    """

    def decorate(kernel: Kernel_) -> Kernel_:
        @wraps(kernel)
        def run(*args: Any) -> Any:
            captured = captured_among(args)
            if (
                captured is None
                or (for_models and not captured.prefers_steps)
                or any(isinstance(one, Recorded) for one in args)
            ):
                return kernel(*args)
            return captured.capture_kernel(kernel, args, shape_of(*args))

        chosen: Any = run
        result: Kernel_ = chosen
        return result

    return decorate


def native_step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let captured arrays capture a call as one step if machine code of its own may run that.

    On numpy its parts are better off alone, in groups with what is before and after them.
    """

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        captured = captured_among(args)
        if captured is not None and captured.may_run_natively:
            result: Result = captured.capture_step(run, args, options)
            return result
        return function(*args, **options)

    return run


def writing_step(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Let stand-ins take a call as one step that writes into the first argument."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        first: Any = args[0]
        if type(first) is not np.ndarray and isinstance(first, StandIn):
            first.write(function, *args[1:])
        else:
            function(*args, **options)

    return run


def native_writing_step(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Let captured arrays take a call as a `writing_step` if machine code of its own may run it."""
    as_step = writing_step(function)

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        first: Any = args[0]
        is_step = isinstance(first, CapturedArray) and first.may_run_natively
        (as_step if is_step else function)(*args, **options)

    return run


def elementwise_step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let captured arrays capture ``function(*arrays, out)`` as one function of elements."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        first: Any = args[0]
        if isinstance(first, CapturedArray):
            result: Result = first.capture_elementwise(function, args)
            return result
        return function(*args, **options)

    return run
