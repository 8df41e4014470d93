"""Initializers: functions of shape, dtype and generator that make the first values of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arguments import as_number
from tapetensor.arrays.array import Array, check_unmasked
from tapetensor.errors import BuildError
from tapetensor.nn.fields import Initializer
from tapetensor.tape import NoneTape
from tapetensor.tape.history import next_id
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import wrap

# Initializers without randomness still take a generator.
NO_RANDOMNESS = np.random.default_rng(0)


def make(
    initializer: Initializer,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    rng: np.random.Generator,
    name: str = "init",
) -> Tensor[Any, NoneTape, Any]:
    """Return a plain tensor with the first values that `initializer` makes, copied.

    Args:
        initializer: the function to call.
        shape: the shape that is wanted.
        dtype: the dtype that is wanted.
        rng: where randomness comes from.
        name: the name of the tensor, for the message.

    Raises:
        BuildError: if they are no array, have another shape or dtype, or cannot be made.
        ArgumentTypeError: if they are masked.
    """
    try:
        made: object = initializer(shape, dtype, rng)
    except TypeError as error:
        raise BuildError(
            f"{name}: the initializer failed ({error}); it is called with shape, dtype and rng"
        ) from error
    check_unmasked(name, "what the initializer made", made)
    if not isinstance(made, np.ndarray) or made.shape != shape or made.dtype != dtype:
        got = (
            f"{made.dtype} of shape {made.shape}"
            if isinstance(made, np.ndarray)
            else f"a {type(made).__name__}"
        )
        raise BuildError(f"{name}: the initializer made {got}, wanted is {dtype} of shape {shape}")
    return wrap(Tensor, made.copy(), next_id(), None)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Return zeros."""
    return np.zeros(shape, dtype)


def ones(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Return ones."""
    return np.ones(shape, dtype)


def constant(value: float) -> Initializer:
    """Return an initializer that fills with a number.

    Args:
        value: finite.

    Raises:
        ArgumentTypeError: if `value` is not a number.
        ArgumentValueError: if it is outside its range.
    """
    number = as_number("init.constant", "value", value)
    return lambda shape, dtype, rng: np.full(shape, number, dtype)


def uniform(bound: float) -> Initializer:
    """Return an initializer with samples uniform in ``[-bound, bound)``.

    Args:
        bound: >= 0 and finite.

    Raises:
        ArgumentTypeError: if `bound` is not a number.
        ArgumentValueError: if it is outside its range.
    """
    limit = as_number("init.uniform", "bound", bound, at_least=0)
    return lambda shape, dtype, rng: rng.uniform(-limit, limit, shape).astype(dtype)


def normal(std: float) -> Initializer:
    """Return an initializer with normal samples of mean 0.

    Args:
        std: the standard deviation, >= 0 and finite.

    Raises:
        ArgumentTypeError: if `std` is not a number.
        ArgumentValueError: if it is outside its range.
    """
    scale = as_number("init.normal", "std", std, at_least=0)
    return lambda shape, dtype, rng: rng.normal(0.0, scale, shape).astype(dtype)
