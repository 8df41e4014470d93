"""Functions that an array may record whole, where their parts are no single numpy calls.

Arrays that record what is done with them (see `tapetensor.compiler`) meet here what they could not
follow inside: choices by value, writes into buffers, loops. Such a function runs as one step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from typing_extensions import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def single_step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let recording arrays record a call as one step; the first argument is an array."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        first = args[0]
        if first.__class__ is not np.ndarray:
            record = _recorder(args)
            if record is not None:
                result: Result = record.record_step(run, args, options)
                return result
        return function(*args, **options)

    return run


def can_run_steps(x: Any) -> bool:
    """Tell whether an array is one of numpy's own, or records a `single_step` whole."""
    return x.__class__ is np.ndarray or hasattr(x, "record_step")


def writing_step(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Let recording arrays record a call as one step that writes into the first argument."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        first: Any = args[0]
        if first.__class__ is not np.ndarray and hasattr(first, "record_write"):
            first.record_write(function, args)
        else:
            function(*args, **options)

    return run


def elementwise_step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let recording arrays record ``function(*arrays, out)`` as one function of elements."""

    @wraps(function)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        first: Any = args[0]
        if hasattr(first, "record_elementwise"):
            result: Result = first.record_elementwise(function, args)
            return result
        return function(*args, **options)

    return run


def runs_steps(x: Any) -> bool:
    """Tell whether an array can run an `elementwise_step`, or record one."""
    return x.__class__ is np.ndarray or hasattr(x, "record_elementwise")


def check(function: Callable[..., None], array: Any, *args: Any) -> None:
    """Run a function that raises where values are wrong; recording arrays run it at each replay."""
    if array.__class__ is not np.ndarray and hasattr(array, "record_check"):
        array.record_check(function, (array, *args))
    else:
        function(array, *args)


def _recorder(args: tuple[Any, ...]) -> Any:
    return next((arg for arg in args if hasattr(arg, "record_step")), None)
