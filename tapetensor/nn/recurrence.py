"""What recurrent layers and cells have in common: weights, states, and parts of an output."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from typing_extensions import TypeAliasType

from tapetensor.arguments import check_rng
from tapetensor.arrays.dtypes import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, ShapeError
from tapetensor.kernels import indexing
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.tapes import trained_together
from tapetensor.nn.typing import Out, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor2D
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_not_spent
from tapetensor.tensor.creation import zeros_beside
from tapetensor.tensor.ownership import forks
from tapetensor.typing import B, T

# The two states of an LSTM, ``h`` and ``c``.
Memory = TypeAliasType(
    "Memory",
    tuple[Tensor2D[B, Out, T, W], Tensor2D[B, Out, T, W]],
    type_params=(B, Out, T, W),
)


def weights_of(
    layer: str, gates: int, sizes: tuple[int, int], dtype: object, rng: np.random.Generator
) -> tuple[Tensor[Any, NoneTape, Any], ...]:
    """Return the weights for input and state, and the biases of both.

    Args:
        layer: the name for messages.
        gates: how many gates there are.
        sizes: those of input and state.
        dtype: that of the weights.
        rng: where the first values come from.
    """
    input_size, hidden_size = sizes
    scalar_type = as_floating_dtype(layer, "weights", dtype)
    check_rng(layer, rng)
    uniform = init.uniform(1.0 / math.sqrt(hidden_size))
    rows = gates * hidden_size
    shapes = ((rows, input_size), (rows, hidden_size), (rows,), (rows,))
    return tuple([init.make(uniform, shape, scalar_type, rng) for shape in shapes])


def check_steps(layer: str, x: Tensor[Any, Any, Any]) -> None:
    """Raise ShapeError if `x` is not a batch of sequences of one step or more."""
    shape = x.shape
    if len(shape) != 3 or shape[1] == 0:
        raise ShapeError(
            f"{layer}: the input must have shape (batch, steps, features) with one step or more, "
            f"got {shape}"
        )


def check_step(layer: str, x: Tensor[Any, Any, Any]) -> None:
    """Raise ShapeError if `x` is not a batch of inputs for one step."""
    if x.ndim != 2:
        raise ShapeError(f"{layer}: the input must have shape (batch, features), got {x.shape}")


def states_of(
    layer: str, state: Any, x: Tensor[Any, Any, Any], size: int, count: int
) -> tuple[Tensor[Any, Any, Any], ...]:
    """Return the input and the states before the first step; zeros if `state` is None.

    If one of them owns a tape, all that were given do.

    Args:
        layer: the name for messages.
        state: None, a tensor, or a tuple of `count` of them.
        x: the input of the layer.
        size: the size of a state.
        count: how many states the layer has.

    Raises:
        ShapeError: if one has not the shape (batch, size).
        DTypeError: if one has another dtype than the input.
        ArgumentTypeError: if there are more or fewer.
    """
    shape = (x.shape[0], size)
    if state is None:
        return (x, *(zeros_beside(x, shape),) * count)
    states = (state,) if count == 1 else state
    if not isinstance(states, tuple) or len(states) != count:
        got = f"{len(states)}" if isinstance(states, tuple) else type(state).__name__
        raise ArgumentTypeError(f"{layer}: the state is a tuple of {count} tensors, got {got}")
    for one in states:
        check_input(layer, one, x)
        if one.shape != shape:
            raise ShapeError(f"{layer}: a state must have shape {shape}, got {one.shape}")
        check_not_spent(layer, one)
    return trained_together(x, *states)


def parts_of(layer: Module, x: Tensor[Any, Any, Any], *indices: Any) -> tuple[Any, ...]:
    """Return parts of a tensor, each of which owns its whole record.

    Args:
        layer: who takes the tape.
        x: the tensor, which is spent.
        *indices: what each part is in it; ``...`` for all of it.
    """
    taker: Any = layer
    handles = forks(x, len(indices), taker)
    return tuple(
        [
            one if index is ... else apply(indexing.getitem, (one,), (index,))
            for one, index in zip(handles, indices, strict=True)
        ]
    )
