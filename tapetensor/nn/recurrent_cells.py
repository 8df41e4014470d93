"""Recurrent cells: one step at a time, with the names and the order of gates of PyTorch."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from typing_extensions import override

from tapetensor.kernels import recurrent as kernels
from tapetensor.nn.recurrence import Memory, Recurrent, parts_of
from tapetensor.nn.typing import In, Out, W
from tapetensor.rules.layers import recurrent_cell
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor2D
from tapetensor.typing import B, T


class RecurrentStep(Recurrent[In, Out, W]):
    """One step of a recurrent layer."""

    weight_ih: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih: Tensor[tuple[Any], NoneTape, W]
    bias_hh: Tensor[tuple[Any], NoneTape, W]

    weights = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

    @override
    def _check_axes(self, x: Tensor[Any, Any, Any]) -> None:
        if x.ndim != 2:
            raise self._refusal(recurrent_cell, x)


class RecurrentCell(RecurrentStep[In, Out, W]):
    """A recurrent cell whose output is its state."""

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
        return parts_of(
            self._states(x, state),
            (slice(None), 0, slice(self.hidden_size)),
            (slice(None), 0, slice(self.hidden_size, None)),
        )
