"""Optimizer updates as one loop over the flat arrays, beside `kernels.numerics.optimizers`.

Each does what the function of its name does there, whose docstring has the formula. `out` holds the
gradient and takes the new values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from textwrap import indent
from typing import Any

from tapetensor.compiler.trace.node import DType
from tapetensor.kernels.numerics import optimizers
from tapetensor.native import cache
from tapetensor.native.loading import FLOATS, seen
from tapetensor.native.scalars import numba
from tapetensor.optim.group import Group, Options, Update

_LOOP = """
def loop({names}):
    kind = parameter.dtype.type
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * kind(coupled_decay)
{step}
        out[i] = value * kind(kept) - step
"""
# What is done with the gradient of one element, and the step that it takes.
_STEPS: dict[Callable[..., None], str] = {
    optimizers.sgd: """
step = gradient * kind(lr)
""",
    optimizers.momentum_sgd: """
moved = velocity[i] * kind(momentum) + gradient * kind(share)
velocity[i] = moved
step = (moved * kind(momentum) + gradient if nesterov else moved) * kind(lr)
""",
    optimizers.adam: """
mean = gradients[i] * kind(beta1) + gradient
square = squares[i] * kind(beta2) + gradient * gradient
gradients[i] = mean
squares[i] = square
step = mean / (np.sqrt(square) + kind(floor)) * kind(rate)
""",
    optimizers.rmsprop: """
square = squares[i] * kind(alpha) + gradient * gradient * kind(1 - alpha)
squares[i] = square
variance = square
if is_centered:
    centre = mean[i] * kind(alpha) + gradient * kind(1 - alpha)
    mean[i] = centre
    variance = square - centre * centre
    # A NaN stays one.
    variance = kind(0) if variance < 0 else variance
root = np.sqrt(variance + kind(eps)) if is_eps_inside else np.sqrt(variance) + kind(eps)
step = gradient / root
if momentum != 0:
    step = velocity[i] * kind(momentum) + step
    velocity[i] = step
step *= kind(lr)
""",
    optimizers.adagrad: """
square = squares[i] + gradient * gradient
squares[i] = square
step = gradient / (np.sqrt(square) + kind(eps)) * kind(lr)
""",
}


def native_update(update: Update) -> Callable[..., None]:
    """Return what runs a step natively; the step itself if its formula has no loop."""
    loop = loop_of(update.group, update.options)
    return update if loop is None else partial(update, loop=loop)


def loop_of(group: Group, options: Options) -> Callable[..., None] | None:
    """Return the loop that updates the parameters of a group; None if its formula has none."""
    classes = tuple([type(one) for one in options(group.steps + 1)])
    return _loop_of(group.kernel, group.dtype, group.state_count, classes)


@lru_cache(maxsize=64)
def _loop_of(
    kernel: Any, dtype: DType, states: int, classes: tuple[type, ...]
) -> Callable[..., None] | None:
    if kernel not in _STEPS or dtype not in FLOATS:
        return None
    # What the kernel is given, but no temporaries: `out` has the gradient.
    given = inspect.getfullargspec(kernel).args
    names = ", ".join([one for one in given if one not in ("gradient", "scratch")])
    arrays = [seen(dtype, 1)] * (2 + states)
    source = _LOOP.format(names=names, step=indent(_STEPS[kernel].strip("\n"), " " * 8))
    return cache.load(source, (*arrays, *[numba().typeof(one(1)) for one in classes]))
