"""Which kernels may run as machine code in eager mode: those that gain by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

from typing_extensions import TypeVar

# The variable that chooses what runs the groups of plans, and these kernels.
BACKEND_VARIABLE = "TAPETENSOR_BACKEND"

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def may_be_native(kernel: Kernel) -> Kernel:
    """Return a kernel that runs as machine code where the environment asks for it.

    It is read when tapetensor is imported. Where nothing is asked for this is the kernel itself.
    """
    if os.environ.get(BACKEND_VARIABLE, "numpy") in ("", "numpy"):
        return kernel

    @cache
    def native() -> Callable[..., Any]:
        # That stands on a floor above, and is there once a kernel is called.
        made: Callable[..., Any] = import_module("tapetensor.native.eager").chosen(kernel)
        return made

    @wraps(kernel)
    def run(*args: Any, **options: Any) -> Any:
        return kernel(*args, **options) if options else native()(*args)

    chosen: Any = run
    result: Kernel = chosen
    return result
