"""What recurrent layers and cells have in common: weights, states, and parts of an output."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Generic

import numpy as np
from typing_extensions import TypeAliasType

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.dtypes import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, ShapeError
from tapetensor.kernels import indexing
from tapetensor.kernels.linear_algebra import linear
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.tapes import trained_together
from tapetensor.nn.typing import In, Out, W
from tapetensor.tape import Kernel
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


class Recurrent(Module, Generic[In, Out, W]):
    """A layer or a cell, whose weights have other names, with one op for all steps."""

    # How many gates the weights are for, how many states go on to the next step, and the op.
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    kernel: ClassVar[Kernel]
    # The fields that hold the weights for input and state, and the biases of both.
    weights: ClassVar[tuple[str, str, str, str]]

    input_size: In
    hidden_size: Out

    def _initialize(
        self, input_size: In, hidden_size: Out, dtype: object, rng: np.random.Generator
    ) -> None:
        name = type(self).__name__
        self.input_size = as_size(name, "input_size", input_size, low=1)
        self.hidden_size = as_size(name, "hidden_size", hidden_size, low=1)
        scalar_type = as_floating_dtype(name, "weights", dtype)
        check_rng(name, rng)
        uniform = init.uniform(1.0 / math.sqrt(self.hidden_size))
        rows = self.gates * self.hidden_size
        shapes = ((rows, self.input_size), (rows, self.hidden_size), (rows,), (rows,))
        for field, shape in zip(self.weights, shapes, strict=True):
            setattr(self, field, init.make(uniform, shape, scalar_type, rng))

    def _check_shape(self, x: Tensor[Any, Any, Any]) -> None:
        """Raise ShapeError if `x` has not the axes that the layer takes."""
        raise NotImplementedError

    def _states(self, x: Tensor[Any, Any, Any], state: Any) -> Tensor[Any, Any, Any]:
        """Return the states after every step, those of a cell after its one."""
        name = type(self).__name__
        weight_ih, weight_hh, bias_ih, bias_hh = [getattr(self, field) for field in self.weights]
        check_input(name, x, weight_ih, self.input_size)
        self._check_shape(x)
        x, *before = states_of(name, state, x, self.hidden_size, self.states)
        gates = apply(linear, (x, weight_ih, bias_ih))
        if gates.ndim == 2:
            # A cell: its input is one step.
            gates = gates.expand_dims(1)
        return apply(self.kernel, (gates, weight_hh, bias_hh, *before))


def states_of(
    layer: str, state: Any, x: Tensor[Any, Any, Any], size: int, count: int
) -> tuple[Tensor[Any, Any, Any], ...]:
    """Return the input and the states before the first step; zeros if `state` is None.

    If one of them owns a tape, all that were given do.

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
