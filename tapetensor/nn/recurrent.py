"""Recurrent layers over sequences, with the names and the order of gates of PyTorch."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tapetensor.kernels import recurrent as kernels
from tapetensor.nn.recurrent_cells import Memory, Recurrent, parts_of
from tapetensor.nn.typing import In, Out, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor2D, Tensor3D
from tapetensor.tensor.tensor import Joins
from tapetensor.typing import B, N, T


class RecurrentOverSequences(Recurrent[In, Out, W]):
    """A recurrent layer over sequences."""

    weight_ih_l0: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh_l0: Tensor[tuple[Any, Out], NoneTape, W]
    bias_ih_l0: Tensor[tuple[Any], NoneTape, W]
    bias_hh_l0: Tensor[tuple[Any], NoneTape, W]


class RecurrentLayer(RecurrentOverSequences[In, Out, W]):
    """A recurrent layer whose output is its state."""

    @overload
    def forward(
        self, x: Tensor3D[B, N, In, T, W], state: Joins[tuple[B, Out], T, W] | None = None
    ) -> tuple[Tensor3D[B, N, Out, T, W], Tensor2D[B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, NoneTape, W], state: Tensor2D[B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Out, T, W], Tensor2D[B, Out, T, W]]: ...
    def forward(self, x: Any, state: Any = None) -> Any:
        """Return the states after every step, and the state after the last.

        Args:
            x: the sequences.
            state: the state before the first step; zeros unless given.

        Raises:
            ShapeError: if an input has another size than the layer, or there is no step.
            DTypeError: if an input has another dtype than the weights.
        """
        outputs, last = parts_of(self._states(x, state), ..., (slice(None), -1))
        return outputs, last


class RNN(RecurrentLayer[In, Out, W]):
    """An Elman network over sequences: one op for all steps.

        h[t] = tanh(weight_ih @ x[t] + bias_ih + weight_hh @ h[t - 1] + bias_hh)

    Shape: ``(B, N, input_size)`` and a state ``(B, hidden_size)`` give the states after every step,
        ``(B, N, hidden_size)``, and the one after the last.

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
    >>> layer = nn.RNN(3, 4, rng=np.random.default_rng(0))
    >>> outputs, last = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape
    (2, 5, 4)
    """

    gates = 1
    kernel = staticmethod(kernels.rnn)

    @overload
    def __init__(
        self: RNN[In, Out, np.float32],
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


class GRU(RecurrentLayer[In, Out, W]):
    """A gated recurrent unit over sequences: one op for all steps.

        r, z = sigmoid of  weight_ih @ x[t] + bias_ih + weight_hh @ h[t - 1] + bias_hh
        n = tanh(weight_in @ x[t] + bias_in + r * (weight_hn @ h[t - 1] + bias_hn))
        h[t] = (1 - z) * n + z * h[t - 1]

    Shape: ``(B, N, input_size)`` and a state ``(B, hidden_size)`` give the states after every step,
        ``(B, N, hidden_size)``, and the one after the last.

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
    >>> layer = nn.GRU(3, 4, rng=np.random.default_rng(0))
    >>> outputs, last = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape
    (2, 5, 4)
    """

    gates = 3
    kernel = staticmethod(kernels.gru)

    @overload
    def __init__(
        self: GRU[In, Out, np.float32],
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


class LSTM(RecurrentOverSequences[In, Out, W]):
    """Long short-term memory over sequences: one op for all steps.

        i, f, g, o = the parts of  weight_ih @ x[t] + bias_ih + weight_hh @ h[t - 1] + bias_hh
        c[t] = sigmoid(f) * c[t - 1] + sigmoid(i) * tanh(g)
        h[t] = sigmoid(o) * tanh(c[t])

    Shape: ``(B, N, input_size)`` and a state, a pair ``(h, c)`` of ``(B, hidden_size)``, give the
        ``h`` after every step, ``(B, N, hidden_size)``, and the pair after the last.

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
    >>> layer = nn.LSTM(3, 4, rng=np.random.default_rng(0))
    >>> outputs, last = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape
    (2, 5, 4)
    """

    gates = 4
    states = 2
    kernel = staticmethod(kernels.lstm)

    @overload
    def __init__(
        self: LSTM[In, Out, np.float32],
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
        self, x: Tensor3D[B, N, In, T, W], state: Memory[B, Out, NoneTape, W] | None = None
    ) -> tuple[Tensor3D[B, N, Out, T, W], Memory[B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, T, W], state: Memory[B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Out, T, W], Memory[B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, NoneTape, W], state: Memory[B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Out, T, W], Memory[B, Out, T, W]]: ...
    def forward(self, x: Any, state: Any = None) -> Any:
        """Return the states after every step, and the state after the last.

        Args:
            x: the sequences.
            state: the state before the first step; zeros unless given.

        Raises:
            ShapeError: if an input has another size than the layer, or there is no step.
            DTypeError: if an input has another dtype than the weights.
        """
        outputs, *last = self._parts(self._states(x, state))
        return outputs, tuple(last)
