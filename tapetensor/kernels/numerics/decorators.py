"""Decorators of kernels, and of their parts: captured as one step, or run as machine code.

Stand-ins (see `tapetensor.arrays.stand_ins`) meet here what they could not follow inside: choices
by value, writes into buffers, loops. For the compiler such a function is one step. Kernels that
gain by it may run as machine code in eager mode.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import numpy as np
from typing_extensions import ParamSpec, TypeVar

from tapetensor.arrays.stand_ins import IS_TRACING, CapturedArray, Recorded, StandIn, captured_among

# The variable that chooses what runs the groups of plans, and these kernels.
BACKEND_VARIABLE = "TAPETENSOR_BACKEND"

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


# It is read once, when tapetensor is imported.
IS_CHOSEN = os.environ.get(BACKEND_VARIABLE, "numpy") not in ("", "numpy")
# From so many elements on a loop is faster than numpy: for formulas of many steps, and of few.
MANY_STEPS = 1 << 12
FEW_STEPS = 1 << 15


@dataclass
class MachineCode:
    """Who makes machine code: the room `native/`, on a floor above, puts its functions here.

    Args:
        kernel: returns what runs a kernel, or a step of one.
        update: returns the loop that updates a group of parameters; None where numpy does.
    """

    kernel: Callable[[Any], Callable[..., Any]]
    update: Callable[[Any, Any], Callable[..., None] | None]


# Without that room numpy runs all of it.
MACHINE_CODE = MachineCode(lambda kernel: kernel, lambda _group, _options: None)


def native_from(smallest: int) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel run as machine code if the environment asks for it.

    That is where the first operand, which is as large as any, has so many elements. Otherwise it is
    the kernel itself that comes back.
    """
    if not IS_CHOSEN:
        return lambda kernel: kernel

    def decorate(kernel: Kernel) -> Kernel:
        @cache
        def native() -> Callable[..., Any]:
            return MACHINE_CODE.kernel(kernel)

        @wraps(kernel)
        def run(*args: Any, **options: Any) -> Any:
            first = args[0]
            is_small = type(first) is not np.ndarray or first.size < smallest
            # While a function is traced, what is made for a kernel would count as its own doing.
            if options or is_small or IS_TRACING.get():
                return kernel(*args, **options)
            return native()(*args)

        chosen: Any = run
        result: Kernel = chosen
        return result

    return decorate


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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


def single_step(
    function: Callable[Arguments, Result], *, by_machine_code: bool = False
) -> Callable[Arguments, Result]:
    """Let captured arrays capture a call as one step, or only if machine code may run that.

    On numpy the parts of such a step are better off alone, in groups with what is beside them.
    """

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        captured = captured_among(args)
        if captured is not None and (captured.may_run_natively or not by_machine_code):
            result: Result = captured.capture_step(run, args, options)
            return result
        return function(*args, **options)

    return run


def whole_kernel(
    shape_of: Callable[..., tuple[int, ...]], *, for_models: bool = False
) -> Callable[[Kernel], Kernel]:
    """Return what lets captured arrays capture a kernel whole: one step, and one for its pullbacks.

    That is for loops in Python, whose every turn would be steps of its own. `shape_of` takes the
    kernel's arguments. With `for_models` it is only where the program becomes a model, in a format
    that has an op for it: a plan runs the parts in groups with what is before and after them.
    """

    def decorate(kernel: Kernel) -> Kernel:
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
        result: Kernel = chosen
        return result

    return decorate


def writing_step(
    function: Callable[Arguments, None], *, by_machine_code: bool = False
) -> Callable[Arguments, None]:
    """Let stand-ins take a call as one step that writes into the first argument.

    With `by_machine_code` only captured arrays do, and only if machine code may run that.
    """

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        first: Any = args[0]
        if by_machine_code:
            is_step = isinstance(first, CapturedArray) and first.may_run_natively
        else:
            is_step = isinstance(first, StandIn)
        if is_step:
            first.write(function, *args[1:])
        else:
            function(*args, **options)

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
