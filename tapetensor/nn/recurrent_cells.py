"""Recurrent cells: one step at a time, with the names and the order of gates of PyTorch."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.kernels import recurrent as kernels
from tapetensor.kernels.linear_algebra import linear
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.recurrence import Memory, check_step, parts_of, states_of, weights_of
from tapetensor.nn.typing import In, Out, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor2D
from tapetensor.tensor.apply import apply
from tapetensor.typing import B, T


class RNNCell(Module, Generic[In, Out, W]):
    """One step of `RNN`.

        h' = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)

    Shape: ``(B, input_size)`` and a state ``(B, hidden_size)`` give the next state.
    Tape: the output owns the tapes of both inputs, merged. If one owns a tape all weights are
        trained.
    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: where the first values come from.

    Source: Elman (1990), "Finding structure in time".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.RNNCell(3, 4, rng=np.random.default_rng(0))
    >>> state = tt.zeros((2, 4))
    >>> cell.forward(tt.ones((2, 3)), state).shape
    (2, 4)
    """

    weight_ih: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih: Tensor[tuple[Any], NoneTape, W]
    bias_hh: Tensor[tuple[Any], NoneTape, W]
    input_size: In
    hidden_size: Out

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
        self.input_size = as_size("RNNCell", "input_size", input_size, low=1)
        self.hidden_size = as_size("RNNCell", "hidden_size", hidden_size, low=1)
        sizes = (self.input_size, self.hidden_size)
        weights = weights_of("RNNCell", 1, sizes, dtype, rng)
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = weights

    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Tensor2D[B, Out, NoneTape, W]
    ) -> Tensor2D[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Tensor2D[B, Out, T, W]
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
        check_input("RNNCell", x, self.weight_ih, self.input_size)
        check_step("RNNCell", x)
        x, before = states_of("RNNCell", state, x, self.hidden_size, 1)
        gates = apply(linear, (x, self.weight_ih, self.bias_ih)).expand_dims(1)
        states = apply(kernels.rnn, (gates, self.weight_hh, self.bias_hh, before))
        return states.squeeze(1)


class GRUCell(Module, Generic[In, Out, W]):
    """One step of `GRU`.

        r, z = sigmoid of  weight_ih @ x + bias_ih + weight_hh @ h + bias_hh
        n = tanh(weight_in @ x + bias_in + r * (weight_hn @ h + bias_hn))
        h' = (1 - z) * n + z * h

    Shape: ``(B, input_size)`` and a state ``(B, hidden_size)`` give the next state.
    Tape: the output owns the tapes of both inputs, merged. If one owns a tape all weights are
        trained.
    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have; the rows are those of ``r``, ``z`` and ``n``, in this order.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: where the first values come from.

    Source: Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder for
        statistical machine translation".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.GRUCell(3, 4, rng=np.random.default_rng(0))
    >>> state = tt.zeros((2, 4))
    >>> cell.forward(tt.ones((2, 3)), state).shape
    (2, 4)
    """

    weight_ih: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih: Tensor[tuple[Any], NoneTape, W]
    bias_hh: Tensor[tuple[Any], NoneTape, W]
    input_size: In
    hidden_size: Out

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
        self.input_size = as_size("GRUCell", "input_size", input_size, low=1)
        self.hidden_size = as_size("GRUCell", "hidden_size", hidden_size, low=1)
        sizes = (self.input_size, self.hidden_size)
        weights = weights_of("GRUCell", 3, sizes, dtype, rng)
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = weights

    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Tensor2D[B, Out, NoneTape, W]
    ) -> Tensor2D[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Tensor2D[B, Out, T, W]
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
        check_input("GRUCell", x, self.weight_ih, self.input_size)
        check_step("GRUCell", x)
        x, before = states_of("GRUCell", state, x, self.hidden_size, 1)
        gates = apply(linear, (x, self.weight_ih, self.bias_ih)).expand_dims(1)
        states = apply(kernels.gru, (gates, self.weight_hh, self.bias_hh, before))
        return states.squeeze(1)


class LSTMCell(Module, Generic[In, Out, W]):
    """One step of `LSTM`.

        i, f, g, o = the parts of  weight_ih @ x + bias_ih + weight_hh @ h + bias_hh
        c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h' = sigmoid(o) * tanh(c')

    Shape: ``(B, input_size)`` and a state, a pair ``(h, c)`` of ``(B, hidden_size)``, give
        the next state.
    Tape: the output owns the tapes of both inputs, merged. If one owns a tape all weights are
        trained.
    Initialization: uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``, as PyTorch's, whose
        names the weights have; the rows are those of ``i``, ``f``, ``g`` and ``o``, in this order.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of the state, > 0.
        dtype: float32 or float64.
        rng: where the first values come from.

    Source: Hochreiter & Schmidhuber (1997), "Long short-term memory".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> cell = nn.LSTMCell(3, 4, rng=np.random.default_rng(0))
    >>> state = (tt.zeros((2, 4)), tt.zeros((2, 4)))
    >>> cell.forward(tt.ones((2, 3)), state)[0].shape
    (2, 4)
    """

    weight_ih: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih: Tensor[tuple[Any], NoneTape, W]
    bias_hh: Tensor[tuple[Any], NoneTape, W]
    input_size: In
    hidden_size: Out

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
        self.input_size = as_size("LSTMCell", "input_size", input_size, low=1)
        self.hidden_size = as_size("LSTMCell", "hidden_size", hidden_size, low=1)
        sizes = (self.input_size, self.hidden_size)
        weights = weights_of("LSTMCell", 4, sizes, dtype, rng)
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = weights

    @overload
    def forward(
        self,
        x: Tensor2D[B, In, T, W],
        state: Memory[B, Out, NoneTape, W],
    ) -> Memory[B, Out, T, W]: ...
    @overload
    def forward(
        self, x: Tensor2D[B, In, T, W], state: Memory[B, Out, T, W]
    ) -> Memory[B, Out, T, W]: ...
    @overload
    def forward(
        self,
        x: Tensor2D[B, In, NoneTape, W],
        state: Memory[B, Out, T, W],
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
        check_input("LSTMCell", x, self.weight_ih, self.input_size)
        check_step("LSTMCell", x)
        x, before, cell = states_of("LSTMCell", state, x, self.hidden_size, 2)
        gates = apply(linear, (x, self.weight_ih, self.bias_ih)).expand_dims(1)
        operands = (gates, self.weight_hh, self.bias_hh, before, cell)
        return parts_of(
            self,
            apply(kernels.lstm, operands),
            (slice(None), 0, slice(self.hidden_size)),
            (slice(None), 0, slice(self.hidden_size, None)),
        )
