"""Recurrent cells: one step at a time, with the names and the order of gates of PyTorch.

And what they have in common with recurrent layers: weights, states, and parts of an output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, overload

import numpy as np
from typing_extensions import TypeAliasType

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, ShapeError, at_the_call, refusal
from tapetensor.kernels import indexing
from tapetensor.kernels import recurrent as kernels
from tapetensor.kernels.linear_algebra import linear, unbiased_linear
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input, trained_together
from tapetensor.nn.module import Module
from tapetensor.nn.typing import In, Out, W
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.layers import recurrent, recurrent_cell
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tensor import Tensor, Tensor2D
from tapetensor.tensor.apply import apply
from tapetensor.tensor.creation import zeros_beside
from tapetensor.tensor.tensor import Joins
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
    weights = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    # How many axes an input has.
    rank: ClassVar[int] = 3

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

    def _states(self, x: Tensor[Any, Any, Any], state: Any) -> Tensor[Any, Any, Any]:
        """Return the states after every step, those of a cell after its one."""
        with at_the_call:
            x, *before = self._checked(x, state)
            return self._run(x, self.weights, before)

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

    def _parts(
        self, found: Tensor[Any, Any, Any], steps: tuple[Any, ...] = (...,)
    ) -> tuple[Any, ...]:
        """Return of all states the first after the steps, and each after the last one."""
        size = self.hidden_size
        parts = [slice(size * state, size * (state + 1)) for state in range(self.states)]
        ends = [(slice(None), -1, part) for part in parts]
        return parts_of(found, (*steps, parts[0]), *ends)

    def _checked(
        self, x: Tensor[Any, Any, Any], state: Any, runs: tuple[int, ...] = ()
    ) -> tuple[Tensor[Any, Any, Any], ...]:
        """Return the input and the states before the first step; zeros if `state` is None.

        A state has the axes `runs` before that of the batch. If one is traced, all that were given
        are.
        """
        name = type(self).__name__
        check_input(name, x, getattr(self, self.weights[0]), self.input_size)
        if x.ndim != self.rank or 0 in x.shape[1:2]:
            rule = recurrent if self.rank == 3 else recurrent_cell
            size = Size.of(self.input_size)
            raise refusal(lambda: rule(name, sized(x._array.shape), size))
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
    """Return parts of a tensor, each by its index; ``...`` stands for all of it."""
    return tuple([x if at is ... else apply(indexing.getitem, (x,), (at,)) for at in indices])


class RecurrentStep(Recurrent[In, Out, W]):
    """One step of a recurrent layer."""

    weight_ih: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih: Tensor[tuple[Any], NoneTape, W]
    bias_hh: Tensor[tuple[Any], NoneTape, W]

    weights = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    rank = 2


class RecurrentCell(RecurrentStep[In, Out, W]):
    """A recurrent cell whose output is its state."""

    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Joins[tuple[B, Out], T, W]
    ) -> Tensor2D[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, NoneTape, W], state: Tensor2D[B, Out, T, W]
    ) -> Tensor2D[B, Out, T, W]: ...
    def forward(self, x: Any, state: Any) -> Any:
        """Return the state after the step.

        Args:
            x: the input.
            state: the state before the step.

        Raises:
            ShapeError: if an input has another size than the layer.
            DTypeError: if an input has another dtype than the weights.
        """
        return self._states(x, state).squeeze(1)


class RNNCell(RecurrentCell[In, Out, W]):
    """One step of `RNN`.

        h' = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)

    Shape: ``(B, input_size)`` and a state ``(B, hidden_size)`` give the next state.

    If one input has a tape, all weights are trained.

    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    Source: Elman (1990), "Finding structure in time".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.RNNCell(3, 4, rng=np.random.default_rng(0))
    >>> state = tt.zeros((2, 4))
    >>> cell.forward(tt.ones((2, 3)), state).shape
    (2, 4)
    """

    gates = 1
    kernel = staticmethod(kernels.rnn)

    @overload
    def __init__(
        self: RNNCell[In, Out, np.float32],
        input_size: In,
        hidden_size: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, input_size: In, hidden_size: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self._initialize(input_size, hidden_size, dtype, rng)


class GRUCell(RecurrentCell[In, Out, W]):
    """One step of `GRU`.

        r, z = sigmoid of  weight_ih @ x + bias_ih + weight_hh @ h + bias_hh
        n = tanh(weight_in @ x + bias_in + r * (weight_hn @ h + bias_hn))
        h' = (1 - z) * n + z * h

    Shape: ``(B, input_size)`` and a state ``(B, hidden_size)`` give the next state.

    If one input has a tape, all weights are trained.

    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have; the rows are those of ``r``, ``z`` and ``n``, in this order.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    Source: Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder for
        statistical machine translation".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.GRUCell(3, 4, rng=np.random.default_rng(0))
    >>> state = tt.zeros((2, 4))
    >>> cell.forward(tt.ones((2, 3)), state).shape
    (2, 4)
    """

    gates = 3
    kernel = staticmethod(kernels.gru)

    @overload
    def __init__(
        self: GRUCell[In, Out, np.float32],
        input_size: In,
        hidden_size: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, input_size: In, hidden_size: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self._initialize(input_size, hidden_size, dtype, rng)


class LSTMCell(RecurrentStep[In, Out, W]):
    """One step of `LSTM`.

        i, f, g, o = the parts of  weight_ih @ x + bias_ih + weight_hh @ h + bias_hh
        c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h' = sigmoid(o) * tanh(c')

    Shape: ``(B, input_size)`` and a state, a pair ``(h, c)`` of ``(B, hidden_size)``, give
        the next state.

    If one input has a tape, all weights are trained.

    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have; the rows are those of ``i``, ``f``, ``g`` and ``o``, in this order.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    Source: Hochreiter & Schmidhuber (1997), "Long short-term memory".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.LSTMCell(3, 4, rng=np.random.default_rng(0))
    >>> state = (tt.zeros((2, 4)), tt.zeros((2, 4)))
    >>> cell.forward(tt.ones((2, 3)), state)[0].shape
    (2, 4)
    """

    gates = 4
    states = 2
    kernel = staticmethod(kernels.lstm)

    @overload
    def __init__(
        self: LSTMCell[In, Out, np.float32],
        input_size: In,
        hidden_size: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, input_size: In, hidden_size: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self._initialize(input_size, hidden_size, dtype, rng)

    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Memory[B, Out, NoneTape, W]
    ) -> Memory[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Memory[B, Out, T, W]
    ) -> Memory[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, NoneTape, W], state: Memory[B, Out, T, W]
    ) -> Memory[B, Out, T, W]: ...
    def forward(self, x: Any, state: Any) -> Any:
        """Return the state after the step.

        Args:
            x: the input.
            state: the state before the step.

        Raises:
            ShapeError: if an input has another size than the layer.
            DTypeError: if an input has another dtype than the weights.
        """
        return parts_of(
            self._states(x, state),
            (slice(None), 0, slice(self.hidden_size)),
            (slice(None), 0, slice(self.hidden_size, None)),
        )
