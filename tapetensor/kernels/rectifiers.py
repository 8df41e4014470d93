"""Functions that pass what is positive and bend what is not."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.broadcasting import sum_to
from tapetensor.kernels.numerics.choice import choose
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from
from tapetensor.tape import Pullbacks


@native_from(MANY_STEPS)
def leaky_relu(x: Array, slope: float) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``slope * x`` elsewhere; the derivative at 0 is the slope."""
    # Asked this way round, a NaN passes, and so does its cotangent.
    return choose(x <= 0, x * slope, x), (lambda g: choose(x <= 0, g * slope, g),)


@native_from(MANY_STEPS)
def prelu(x: Array, slope: Array) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``slope * x`` elsewhere, for an array of slopes that broadcasts."""
    return choose(x <= 0, x * slope, x), (
        lambda g: sum_to(choose(x <= 0, g * slope, g), x.shape),
        lambda g: sum_to(np.multiply(choose(x > 0, np.zeros_like(x), x), g), slope.shape),
    )


@native_from(MANY_STEPS)
def elu(x: Array, alpha: float) -> tuple[Array, Pullbacks]:
    """``x`` above 0, ``alpha * (e ** x - 1)`` elsewhere; the derivative at 0 is `alpha`."""
    # The exponential of what is positive could overflow, and is not used.
    below = alpha * np.expm1(np.minimum(x, 0))
    return choose(x <= 0, below, x), (lambda g: choose(x <= 0, np.multiply(g, below + alpha), g),)
