"""Which kernels may run as machine code in eager mode: those that gain by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np
from typing_extensions import TypeVar

# The variable that chooses what runs the groups of plans, and these kernels.
BACKEND_VARIABLE = "TAPETENSOR_BACKEND"

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


# It is read once, when tapetensor is imported.
IS_CHOSEN = os.environ.get(BACKEND_VARIABLE, "numpy") not in ("", "numpy")
# Below so many elements numpy is as fast.
SMALLEST = 1 << 12


def eager() -> Any:
    """Return `tapetensor.native.eager`, which stands on a floor above."""
    return import_module("tapetensor.native.eager")


def may_be_native(kernel: Kernel) -> Kernel:
    """Return a kernel that runs as machine code if the environment asks for it; else itself.

    Its first operand is as large as any.
    """
    if not IS_CHOSEN:
        return kernel

    @cache
    def native() -> Callable[..., Any]:
        made: Callable[..., Any] = eager().chosen(kernel)
        return made

    @wraps(kernel)
    def run(*args: Any, **options: Any) -> Any:
        first = args[0]
        if options or type(first) is not np.ndarray or first.size < SMALLEST:
            return kernel(*args, **options)
        return native()(*args)

    chosen: Any = run
    result: Kernel = chosen
    return result
