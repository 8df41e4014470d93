"""Steps that the compiler captures whole, as the ufuncs that they are made of.

A step such as ``_logistic_that_overflows(x, out)`` is traced once by itself, and what it calls is
its formula: so native code has no second one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.compiler.plan.storage import made_of
from tapetensor.compiler.trace.node import DType, Kind, Node
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import TraceError


@lru_cache(maxsize=256)
def formula_of(function: Callable[..., Any], count: int, dtype: DType) -> tuple[Node, ...] | None:
    """Return what a step of so many arguments does; None where it is not made of ufuncs.

    Nodes of the arguments come first, then those of ufuncs, of which the last is the result.
    """
    program = Program("numba")
    arguments = [program.add(Kind.INPUT, None, (), (1,), dtype) for _ in range(count)]
    try:
        # Who asks while errors raise is not the one who computes.
        with np.errstate(all="ignore"):
            result = function(*[ArrayTracer(program, one) for one in arguments])
    except (TraceError, TypeError):
        return None
    computed = made_of([result.node]) - {*arguments}
    parts = [one for one in program.nodes if one in computed and one.kind is not Kind.CONSTANT]
    are_ufuncs = all(isinstance(one.function, np.ufunc) for one in parts)
    return (*arguments, *parts) if parts and are_ufuncs else None
