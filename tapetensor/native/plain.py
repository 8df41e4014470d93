"""What machine code leaves to numpy: errors that numpy is to raise, and higher derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.compiler.trace.program import errors_raise
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Kernel, Needed


def cotangents_on_numpy(
    kernel: Kernel, args: tuple[Any, ...], needed: Needed, g: Array
) -> list[Any]:
    """Return the cotangents that are needed, by the kernel's own pullbacks."""
    with np.errstate(all="ignore"):
        # What there was to say of it has been said.
        _, pullbacks = kernel(*args)
    return [
        one(g) if one is not None and is_needed else None
        for one, is_needed in zip(pullbacks, needed, strict=True)
    ]


def pullbacks_of(
    kernel: Kernel,
    args: tuple[Any, ...],
    output: Array,
    operands: int,
    compute: Callable[[Needed, Array], list[Any]],
) -> Pullbacks:
    """Return the pullbacks of a kernel that computes cotangents natively, of numpy's arrays.

    Args:
        kernel: the kernel as it is on numpy.
        args: its arguments.
        output: what it returns.
        operands: how many pullbacks there are.
        compute: given which cotangents are needed, and that of the output in C order, returns them.
    """

    def cotangents(needed: Needed, g: Array) -> list[Any]:
        if not is_numpys(g) or (g.shape, g.dtype) != (output.shape, output.dtype) or errors_raise():
            return cotangents_on_numpy(kernel, args, needed, g)
        return compute(needed, np.asarray(g, order="C"))

    if operands == 1:
        only = partial(cotangents, (True,))
        return (lambda g: only(g)[0],)
    return JointPullbacks((True,) * operands, cotangents)
