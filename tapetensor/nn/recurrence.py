"""The base of recurrent layers and cells: weights, states, and parts of an output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

import numpy as np
from typing_extensions import TypeAliasType

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.dtypes import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, ShapeError, TapeTensorError, cut_traceback
from tapetensor.kernels import indexing
from tapetensor.kernels.linear_algebra import linear, unbiased_linear
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.tapes import trained_together
from tapetensor.nn.typing import In, Out, W
from tapetensor.rules.dims import Dim, Dims, Size, sized
from tapetensor.rules.layers import recurrent
from tapetensor.rules.refusals import refusal
from tapetensor.tape import Kernel
from tapetensor.tensor import Tensor, Tensor2D
from tapetensor.tensor.apply import apply
from tapetensor.tensor.creation import zeros_beside
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
        check_rng(name, rng)
        for fields, width in self._runs():
            self._first_weights(fields, width, dtype, rng)

    def _runs(self) -> list[tuple[Sequence[str], int]]:
        """Return the fields of each run over the steps, and how wide its input is."""
        return [(self.weights, self.input_size)]

    def _first_weights(
        self, fields: Sequence[str], input_size: int, dtype: object, rng: np.random.Generator
    ) -> None:
        """Set the fields of both weights and, if there are four, of both biases."""
        scalar_type = as_floating_dtype(type(self).__name__, "weights", dtype)
        uniform = init.uniform(1.0 / math.sqrt(self.hidden_size))
        rows = self.gates * self.hidden_size
        hidden: int = self.hidden_size
        shapes = ((rows, input_size), (rows, hidden), (rows,), (rows,))
        for field, shape in zip(fields, shapes, strict=False):
            setattr(self, field, init.make(uniform, shape, scalar_type, rng))

    def _check_axes(self, x: Tensor[Any, Any, Any]) -> None:
        """Raise ShapeError if `x` has not the axes that the layer takes."""
        if x.ndim != 3 or x.shape[1] == 0:
            raise self._refusal(recurrent, x)

    def _refusal(
        self, rule: Callable[[str, Dims, Dim], None], x: Tensor[Any, Any, Any]
    ) -> TapeTensorError:
        size = Size.of(self.input_size)
        return refusal(lambda: rule(type(self).__name__, sized(x._array.shape), size))

    def _states(self, x: Tensor[Any, Any, Any], state: Any) -> Tensor[Any, Any, Any]:
        """Return the states after every step, those of a cell after its one."""
        try:
            x, *before = self._checked(x, state)
            return self._run(x, self.weights, before)
        except TapeTensorError as error:
            cut_traceback(error)
            raise

    def _run(
        self, x: Tensor[Any, Any, Any], fields: Sequence[str], before: Sequence[Any]
    ) -> Tensor[Any, Any, Any]:
        """Return the states after every step, by the weights, and biases if any, of the fields."""
        weight_ih, weight_hh, *biases = [getattr(self, field) for field in fields]
        if biases:
            bias_hh = biases.pop()
            gates = apply(linear, (x, weight_ih, *biases))
        else:
            bias_hh = zeros_beside(x, weight_hh.shape[:1])
            gates = apply(unbiased_linear, (x, weight_ih))
        if gates.ndim == 2:
            # A cell: its input is one step.
            gates = gates.expand_dims(1)
        return apply(self.kernel, (gates, weight_hh, bias_hh, *before))

    def _checked(
        self, x: Tensor[Any, Any, Any], state: Any, runs: tuple[int, ...] = ()
    ) -> tuple[Tensor[Any, Any, Any], ...]:
        """Return the input and the states before the first step; zeros if `state` is None.

        If one of them has a tape, all that were given do.

        Args:
            x: the input.
            state: the state, or the tuple of states.
            runs: the axes of a state before that of the batch.
        """
        name = type(self).__name__
        check_input(name, x, getattr(self, self.weights[0]), self.input_size)
        self._check_axes(x)
        shape = (*runs, x.shape[0], self.hidden_size)
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
        return trained_together(x, *states)


def parts_of(x: Tensor[Any, Any, Any], *indices: Any) -> tuple[Any, ...]:
    """Return parts of a tensor.

    Args:
        x: the tensor.
        *indices: what each part is in it; ``...`` for all of it.
    """
    return tuple([x if at is ... else apply(indexing.getitem, (x,), (at,)) for at in indices])
