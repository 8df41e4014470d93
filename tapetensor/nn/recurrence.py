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

    def _check_axes(self, x: Tensor[Any, Any, Any]) -> None:
        """Raise ShapeError if `x` has not the axes that the layer takes."""
        raise NotImplementedError

    def _states(self, x: Tensor[Any, Any, Any], state: Any) -> Tensor[Any, Any, Any]:
        """Return the states after every step, those of a cell after its one."""
        weight_ih, weight_hh, bias_ih, bias_hh = [getattr(self, field) for field in self.weights]
        check_input(type(self).__name__, x, weight_ih, self.input_size)
        self._check_axes(x)
        x, *before = self._with_states(x, state)
        gates = apply(linear, (x, weight_ih, bias_ih))
        if gates.ndim == 2:
            # A cell: its input is one step.
            gates = gates.expand_dims(1)
        return apply(self.kernel, (gates, weight_hh, bias_hh, *before))

    def _with_states(
        self, x: Tensor[Any, Any, Any], state: Any
    ) -> tuple[Tensor[Any, Any, Any], ...]:
        """Return the input and the states before the first step; zeros if `state` is None.

        If one of them owns a tape, all that were given do.
        """
        name, shape = type(self).__name__, (x.shape[0], self.hidden_size)
        if state is None:
            return (x, *(zeros_beside(x, shape),) * self.states)
        states = (state,) if self.states == 1 else state
        if not isinstance(states, tuple) or len(states) != self.states:
            got = f"{len(states)}" if isinstance(states, tuple) else type(state).__name__
            raise ArgumentTypeError(
                f"{name}: the state is a tuple of {self.states} tensors, got {got}"
            )
        for one in states:
            check_input(name, one, x)
            if one.shape != shape:
                raise ShapeError(f"{name}: a state must have shape {shape}, got {one.shape}")
            check_not_spent(name, one)
        return trained_together(x, *states)


def parts_of(layer: Module, x: Tensor[Any, Any, Any], *indices: Any) -> tuple[Any, ...]:
    """Return parts of a tensor, each of which owns its whole record.

    Args:
        layer: who takes the tape.
        x: the tensor, which is spent.
        *indices: what each part is in it; ``...`` for all of it.
    """
    taker: Any = layer
    handles = zip(forks(x, len(indices), taker), indices, strict=True)
    parts = [one if at is ... else apply(indexing.getitem, (one,), (at,)) for one, at in handles]
    return tuple(parts)
