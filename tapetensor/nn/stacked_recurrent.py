"""Recurrent layers of several layers, in one direction or in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, overload

import numpy as np
from typing_extensions import TypeAliasType, override

from tapetensor.arguments import as_flag, as_number, as_size
from tapetensor.kernels import indexing
from tapetensor.kernels import recurrent as kernels
from tapetensor.nn.fields import Field
from tapetensor.nn.linear import dropped
from tapetensor.nn.recurrent_cells import Recurrent, parts_of
from tapetensor.nn.typing import In, Out, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor3D, concat, stack
from tapetensor.tensor.apply import apply
from tapetensor.tensor.tensor import Joins
from tapetensor.typing import B, M, N, T

# The two states of all runs of an LSTM, ``h`` and ``c``.
Memories = TypeAliasType(
    "Memories",
    tuple[Tensor3D[Any, B, Out, T, W], Tensor3D[Any, B, Out, T, W]],
    type_params=(B, Out, T, W),
)
# What reads the steps from the last to the first.
_BACKWARDS = (slice(None), slice(None, None, -1))


class Stacked(Recurrent[In, Out, W], Generic[In, Out, M, W]):
    """Recurrent layers one after another, each with a run over the steps in one direction or both.

    A class of its own, and not options of the layer of one run, for the state has an axis more.
    """

    weight_ih_l0: Tensor[tuple[Any, In], NoneTape, W]
    weight_hh_l0: Tensor[tuple[Any, Out], NoneTape, W]
    num_layers: M
    bias: bool
    dropout: float
    bidirectional: bool
    rng: np.random.Generator

    def _initialize_layers(
        self,
        sizes: tuple[In, Out, M],
        dtype: object,
        options: tuple[object, object, object],
        rng: np.random.Generator,
    ) -> None:
        name, (bias, dropout, bidirectional) = type(self).__name__, options
        self.num_layers = as_size(name, "num_layers", sizes[2], low=1)
        self.bias = as_flag(name, "bias", bias)
        self.dropout = as_number(name, "dropout", dropout, at_least=0, at_most=1)
        self.bidirectional = as_flag(name, "bidirectional", bidirectional)
        self.rng = rng
        self._initialize(*sizes[:2], dtype, rng)

    @override
    def _runs(self) -> list[tuple[Sequence[str], int]]:
        suffixes = ("", "_reverse") if self.bidirectional else ("",)
        fields = self.weights if self.bias else self.weights[:2]
        return [
            (
                [f"{field[:-1]}{layer}{suffix}" for field in fields],
                len(suffixes) * self.hidden_size if layer else self.input_size,
            )
            for layer in range(self.num_layers)
            for suffix in suffixes
        ]

    @override
    def _first_weights(
        self, fields: Sequence[str], input_size: int, dtype: object, rng: np.random.Generator
    ) -> None:
        # How many there are is known of a module only: it has the fields, and not the class.
        vars(self)["fields_of_class"] = self.fields_of_class | dict.fromkeys(fields, Field())
        super()._first_weights(fields, input_size, dtype, rng)

    def _outputs(self, x: Tensor[Any, Any, Any], state: Any) -> tuple[Any, list[Any]]:
        """Return the outputs of the last layer, and of each state those after all runs."""
        runs, directions = self._runs(), 1 + self.bidirectional
        x, *states = self._checked(x, state, (len(runs),))
        before = [parts_of(one, *[(run,) for run in range(len(runs))]) for one in states]
        ends: list[Any] = []
        for first in range(0, len(runs), directions):
            if first:
                x = dropped(self, x, self.dropout, self.rng)
            outputs = []
            for run in range(first, first + directions):
                turns = run > first
                steps = apply(indexing.getitem, (x,), (_BACKWARDS,)) if turns else x
                found = self._run(steps, runs[run][0], [each[run] for each in before])
                y, *last = self._parts(found, _BACKWARDS if turns else (...,))
                outputs.append(y)
                ends.append(last)
            x = concat(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
        return x, [stack(each) for each in zip(*ends, strict=True)]


class StackedOfOneState(Stacked[In, Out, M, W]):
    """A stack of layers whose output is their state."""

    @overload
    def forward(
        self,
        x: Tensor3D[B, N, In, T, W],
        state: Joins[tuple[Any, B, Out], T, W] | None = None,
    ) -> tuple[Tensor3D[B, N, Any, T, W], Tensor3D[Any, B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, NoneTape, W], state: Tensor3D[Any, B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Any, T, W], Tensor3D[Any, B, Out, T, W]]: ...
    def forward(self, x: Any, state: Any = None) -> Any:
        """Return the outputs of the last layer, and the states of all runs after their last step.

        Args:
            x: the sequences.
            state: the states before the first step; zeros unless given.

        Raises:
            ShapeError: if an input has another size than the layer, or there is no step.
            DTypeError: if an input has another dtype than the weights.
        """
        outputs, (last,) = self._outputs(x, state)
        return outputs, last


class StackedRNN(StackedOfOneState[In, Out, M, W]):
    """Elman networks of several layers, of which each reads the outputs of the one before.

    The equations are those of `RNN`. Where it is bidirectional every layer has a second run, from
    the last step to the first, and its outputs are those of both, side by side.

    Shape: ``(B, N, input_size)`` and a state ``(num_layers, B, hidden_size)`` give the outputs
        of the last layer after every step, ``(B, N, hidden_size)``, and the state after the last;
        bidirectional with twice the layers in the state, and twice the features in the outputs.

    If one input has a tape, all weights are trained, and elements are dropped.

    Initialization: that of `RNN`. The names are PyTorch's: ``weight_ih_l1``, say, and with
        ``_reverse`` at the end for the other direction.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of a state, > 0.
        num_layers: how many layers, > 0.
        dtype: float32 or float64.
        bias: whether there are biases.
        dropout: the probability of a zero between two layers, in training.
        bidirectional: whether every layer runs in both directions.
        rng: draws the initial values, and the dropped elements.

    Source: Schuster & Paliwal (1997), "Bidirectional recurrent neural networks".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.StackedRNN(3, 4, 2, bidirectional=True, rng=np.random.default_rng(0))
    >>> outputs, last = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape, last.shape
    ((2, 5, 8), (4, 2, 4))
    """

    gates = 1
    kernel = staticmethod(kernels.rnn)

    @overload
    def __init__(
        self: StackedRNN[In, Out, M, np.float32],
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[W],
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[Any] = np.float32,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None:
        sizes, options = (input_size, hidden_size, num_layers), (bias, dropout, bidirectional)
        self._initialize_layers(sizes, dtype, options, rng)


class StackedGRU(StackedOfOneState[In, Out, M, W]):
    """Gated recurrent units of several layers, of which each reads the outputs of the one before.

    The equations are those of `GRU`. Where it is bidirectional every layer has a second run, from
    the last step to the first, and its outputs are those of both, side by side.

    Shape: ``(B, N, input_size)`` and a state ``(num_layers, B, hidden_size)`` give the outputs
        of the last layer after every step, ``(B, N, hidden_size)``, and the state after the last;
        bidirectional with twice the layers in the state, and twice the features in the outputs.

    If one input has a tape, all weights are trained, and elements are dropped.

    Initialization: that of `GRU`. The names are PyTorch's: ``weight_ih_l1``, say, and with
        ``_reverse`` at the end for the other direction.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of a state, > 0.
        num_layers: how many layers, > 0.
        dtype: float32 or float64.
        bias: whether there are biases.
        dropout: the probability of a zero between two layers, in training.
        bidirectional: whether every layer runs in both directions.
        rng: draws the initial values, and the dropped elements.

    Source: Schuster & Paliwal (1997), "Bidirectional recurrent neural networks".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.StackedGRU(3, 4, 2, bidirectional=True, rng=np.random.default_rng(0))
    >>> outputs, last = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape, last.shape
    ((2, 5, 8), (4, 2, 4))
    """

    gates = 3
    kernel = staticmethod(kernels.gru)

    @overload
    def __init__(
        self: StackedGRU[In, Out, M, np.float32],
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[W],
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[Any] = np.float32,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None:
        sizes, options = (input_size, hidden_size, num_layers), (bias, dropout, bidirectional)
        self._initialize_layers(sizes, dtype, options, rng)


class StackedLSTM(Stacked[In, Out, M, W]):
    """Long short-term memory of several layers, of which each reads the outputs of the one before.

    The equations are those of `LSTM`. Where it is bidirectional every layer has a second run, from
    the last step to the first, and its outputs are those of both, side by side.

    Shape: ``(B, N, input_size)`` and a state, a pair ``(h, c)`` of
        ``(num_layers, B, hidden_size)``, give the ``h`` of the last layer after every step,
        ``(B, N, hidden_size)``, and the pair after the last; bidirectional with twice the layers
        in the state, and twice the features in the outputs.

    If one input has a tape, all weights are trained, and elements are dropped.

    Initialization: that of `LSTM`. The names are PyTorch's: ``weight_ih_l1``, say, and with
        ``_reverse`` at the end for the other direction.

    Args:
        input_size: the size of the last axis of the input, > 0.
        hidden_size: the size of the last axis of a state, > 0.
        num_layers: how many layers, > 0.
        dtype: float32 or float64.
        bias: whether there are biases.
        dropout: the probability of a zero between two layers, in training.
        bidirectional: whether every layer runs in both directions.
        rng: draws the initial values, and the dropped elements.

    Source: Schuster & Paliwal (1997), "Bidirectional recurrent neural networks".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.StackedLSTM(3, 4, 2, bidirectional=True, rng=np.random.default_rng(0))
    >>> outputs, (h, c) = layer.forward(tt.ones((2, 5, 3)))
    >>> outputs.shape, h.shape
    ((2, 5, 8), (4, 2, 4))
    """

    gates = 4
    states = 2
    kernel = staticmethod(kernels.lstm)

    @overload
    def __init__(
        self: StackedLSTM[In, Out, M, np.float32],
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[W],
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        input_size: In,
        hidden_size: Out,
        num_layers: M,
        dtype: type[Any] = np.float32,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: np.random.Generator,
    ) -> None:
        sizes, options = (input_size, hidden_size, num_layers), (bias, dropout, bidirectional)
        self._initialize_layers(sizes, dtype, options, rng)

    @overload
    def forward(
        self,
        x: Tensor3D[B, N, In, T, W],
        state: Memories[B, Out, NoneTape, W] | None = None,
    ) -> tuple[Tensor3D[B, N, Any, T, W], Memories[B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, T, W], state: Memories[B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Any, T, W], Memories[B, Out, T, W]]: ...
    @overload
    def forward(
        self, x: Tensor3D[B, N, In, NoneTape, W], state: Memories[B, Out, T, W]
    ) -> tuple[Tensor3D[B, N, Any, T, W], Memories[B, Out, T, W]]: ...
    def forward(self, x: Any, state: Any = None) -> Any:
        """Return the outputs of the last layer, and the states of all runs after their last step.

        Args:
            x: the sequences.
            state: the states before the first step; zeros unless given.

        Raises:
            ShapeError: if an input has another size than the layer, or there is no step.
            DTypeError: if an input has another dtype than the weights.
        """
        outputs, last = self._outputs(x, state)
        return outputs, tuple(last)
