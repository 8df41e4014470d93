"""Which kernels may run as machine code in eager mode: those that gain by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arrays.stand_ins import IS_TRACING

# The variable that chooses what runs the groups of plans, and these kernels.
BACKEND_VARIABLE = "TAPETENSOR_BACKEND"

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


# It is read once, when tapetensor is imported.
IS_CHOSEN = os.environ.get(BACKEND_VARIABLE, "numpy") not in ("", "numpy")
# From so many elements on a loop is faster than numpy: for formulas of many steps, and of few.
MANY_STEPS = 1 << 12
FEW_STEPS = 1 << 15


def eager() -> Any:
    """Return `tapetensor.native.eager`, which stands on a floor above."""
    return import_module("tapetensor.native.eager")


def native_from(smallest: int) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel run as machine code if the environment asks for it.

    Otherwise it is the kernel itself that comes back.

    Args:
        smallest: of how many elements the first operand is at least, which is as large as any.
    """
    if not IS_CHOSEN:
        return lambda kernel: kernel

    def decorate(kernel: Kernel) -> Kernel:
        @cache
        def native() -> Callable[..., Any]:
            made: Callable[..., Any] = eager().chosen(kernel)
            return made

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
