"""Optimizer updates as one loop over the flat arrays, beside `kernels.numerics.optimizers`.

Each does what the function of its name does there, whose docstring has the formula. `out` holds the
gradient and takes the new values. They are compiled, so that they are written in what numba knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType
from tapetensor.kernels.numerics import optimizers
from tapetensor.native import cache
from tapetensor.native.loading import FLOATS, seen
from tapetensor.native.scalars import numba
from tapetensor.optim.group import Group, Options, Update


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
    loop = _LOOPS.get(kernel)
    if loop is None or dtype not in FLOATS:
        return None
    arrays = [seen(dtype, 1)] * (2 + states)
    return cache.load(_source(loop), (*arrays, *[numba().typeof(one(1)) for one in classes]))


def momentum_sgd(
    out: Array,
    parameter: Array,
    velocity: Array,
    lr: float,
    momentum: float,
    share: float,
    nesterov: bool,
    coupled_decay: float,
    kept: float,
) -> None:
    """Stochastic gradient descent with momentum, to which a gradient adds its `share`."""
    kind = parameter.dtype.type
    rate, held, part = kind(lr), kind(momentum), kind(share)
    decay, rest = kind(coupled_decay), kind(kept)
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * decay
        moved = velocity[i] * held + gradient * part
        velocity[i] = moved
        step = moved * held + gradient if nesterov else moved
        out[i] = value * rest - step * rate


def sgd(out: Array, parameter: Array, lr: float, coupled_decay: float, kept: float) -> None:
    """Stochastic gradient descent without momentum, so without state."""
    kind = parameter.dtype.type
    rate, decay, rest = kind(lr), kind(coupled_decay), kind(kept)
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * decay
        out[i] = value * rest - gradient * rate


def adam(
    out: Array,
    parameter: Array,
    gradients: Array,
    squares: Array,
    rate: float,
    floor: float,
    beta1: float,
    beta2: float,
    coupled_decay: float,
    kept: float,
) -> None:
    """Adam on discounted sums of gradients and of their squares."""
    kind = parameter.dtype.type
    scale, least = kind(rate), kind(floor)
    first, second, decay, rest = kind(beta1), kind(beta2), kind(coupled_decay), kind(kept)
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * decay
        mean = gradients[i] * first + gradient
        square = squares[i] * second + gradient * gradient
        gradients[i] = mean
        squares[i] = square
        out[i] = value * rest - mean / (np.sqrt(square) + least) * scale


def rmsprop(
    out: Array,
    parameter: Array,
    squares: Array,
    mean: Array,
    velocity: Array,
    lr: float,
    alpha: float,
    eps: float,
    momentum: float,
    is_centered: bool,
    is_eps_inside: bool,
    coupled_decay: float,
    kept: float,
) -> None:
    """RMSprop; without centering `mean` stays as it is, without momentum `velocity`."""
    kind = parameter.dtype.type
    rate, keep, new, least = kind(lr), kind(alpha), kind(1 - alpha), kind(eps)
    share, decay, rest = kind(momentum), kind(coupled_decay), kind(kept)
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * decay
        square = squares[i] * keep + gradient * gradient * new
        squares[i] = square
        variance = square
        if is_centered:
            centre = mean[i] * keep + gradient * new
            mean[i] = centre
            variance = square - centre * centre
            # A NaN stays one.
            variance = kind(0) if variance < 0 else variance
        root = np.sqrt(variance + least) if is_eps_inside else np.sqrt(variance) + least
        step = gradient / root
        if momentum != 0:
            step = velocity[i] * share + step
            velocity[i] = step
        out[i] = value * rest - step * rate


def adagrad(
    out: Array,
    parameter: Array,
    squares: Array,
    lr: float,
    eps: float,
    coupled_decay: float,
    kept: float,
) -> None:
    """Adagrad: `squares` is the sum over all steps."""
    kind = parameter.dtype.type
    rate, least, decay, rest = kind(lr), kind(eps), kind(coupled_decay), kind(kept)
    for i in range(out.size):
        value, gradient = parameter[i], out[i]
        if coupled_decay != 0:
            gradient += value * decay
        square = squares[i] + gradient * gradient
        squares[i] = square
        out[i] = value * rest - gradient / (np.sqrt(square) + least) * rate


def _source(function: Callable[..., None]) -> str:
    """Return the source of a function as `cache.load` takes it: without types, named ``loop``."""
    source = inspect.getsource(function)
    body = source[source.index('"""') :]
    names = ", ".join(inspect.signature(function).parameters)
    return f"def loop({names}):\n    {body}"


_LOOPS: dict[Any, Callable[..., None]] = {
    getattr(optimizers, loop.__name__): loop for loop in (momentum_sgd, sgd, adam, rmsprop, adagrad)
}
