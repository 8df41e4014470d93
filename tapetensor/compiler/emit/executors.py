"""Which executor runs the groups of a plan."""

from __future__ import annotations

import os
from typing import get_args

from tapetensor.arguments import check_choice
from tapetensor.compiler.emit.blocks import BlockLoops
from tapetensor.compiler.trace.program import Backend
from tapetensor.extras import import_extra
from tapetensor.kernels.numerics.decorators import BACKEND_VARIABLE


def chosen_backend(backend: Backend | None) -> Backend:
    """Return the name of a backend: the one that is given, or else the environment's, or "numpy".

    Raises:
        ArgumentValueError: if there is none of that name.
        MissingDependencyError: if it needs a package that is not installed.
    """
    subject, name = "compile", str(backend)
    if backend is None:
        subject, name = BACKEND_VARIABLE, os.environ.get(BACKEND_VARIABLE) or "numpy"
    check_choice(subject, "backend", name, get_args(Backend))
    if name == "numpy":
        return "numpy"
    import_extra("numba", "native groups", "numba", "backend='numpy' needs nothing more")
    return "numba"


def executor_of(backend: Backend, has_products: bool) -> BlockLoops:
    """Return the executor of a program, told whether that has matrix products."""
    if backend == "numpy":
        return BlockLoops(has_products)
    from tapetensor.native.executor import NativeLoops

    return NativeLoops(has_products)
