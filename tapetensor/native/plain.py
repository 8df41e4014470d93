"""Cases that machine code leaves to numpy: its errors, and higher derivatives."""

from __future__ import annotations

from collections.abc import Callable
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
    # What there was to say of it has been said, to observers too.
    with np.errstate(all="ignore"):
        _, pullbacks = kernel(*[_ignore if callable(one) else one for one in args])
    return [
        one(g) if one is not None and is_needed else None
        for one, is_needed in zip(pullbacks, needed, strict=True)
    ]


def pullbacks_of(
    kernel: Kernel,
    args: tuple[Any, ...],
    output: Array,
    places: tuple[bool, ...],
    compute: Callable[[Needed, Array], list[Any]],
) -> Pullbacks:
    """Return the pullbacks of a kernel that computes cotangents natively, of numpy's arrays.

    Args:
        kernel: the kernel as it is on numpy.
        args: its arguments.
        output: what it returns.
        places: which of the pullbacks there are.
        compute: given which cotangents are needed, and that of the output in C order, returns them.
    """
    expected = output.shape, output.dtype

    def cotangents(needed: Needed, g: Array) -> list[Any]:
        if not is_numpys(g) or (g.shape, g.dtype) != expected or errors_raise():
            # A derivative of higher order goes through the formula itself.
            return cotangents_on_numpy(kernel, args, needed, g)
        return compute(needed, np.asarray(g, order="C"))

    if len(places) == 1:
        return (lambda g: cotangents(places, g)[0],)
    return JointPullbacks(places, cotangents)


def _ignore(*arrays: Any) -> None:
    """Observe nothing."""
