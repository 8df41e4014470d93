"""Every layer, and how it is tried: made small, and run on an input of any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

import tapetensor as tt
from tapetensor import nn

_F64 = np.float64
Sizes = tuple[int, ...]
Rng = np.random.Generator


class Row(NamedTuple):
    """A layer: how it is made for a number of features, its input, and how it is run.

    Attributes:
        make: the layer.
        shape: of the input, for a number of rows and of features.
        run: what runs it; by default its `forward`.
    """

    make: Callable[[int, Rng], Any]
    shape: Callable[[int, int], Sizes] = lambda rows, size: (rows, size)
    run: Callable[[Any, Any], Any] = lambda layer, x: layer.forward(x)


def _sequences(rows: int, size: int) -> Sizes:
    return rows, size, size


def _images(rows: int, size: int) -> Sizes:
    return rows, size, size, size


def _plain(kind: Any) -> Row:
    return Row(lambda size, rng: kind())


def _linear(size: int, rng: Rng) -> Any:
    return nn.Linear(size, size, _F64, rng=rng)


def _built(kind: Any, *counts: int) -> Callable[[int, Rng], Any]:
    """Return how blocks of attention are built, with one head."""
    literal: Any = Literal
    more = [literal[count] for count in counts]
    return lambda size, rng: tt.build(
        kind[literal[size], Literal[1], literal[size], *more, _F64], rng=rng
    )


def _all_outputs(layer: Any, x: Any) -> Any:
    outputs, last = layer.forward(x)
    states = last if isinstance(last, tuple) else (last,)
    return tt.concat([outputs, *[state.expand_dims(1) for state in states]], axis=1)


def _recurrent(kind: Any) -> Row:
    return Row(lambda size, rng: kind(size, size, _F64, rng=rng), _sequences, _all_outputs)


def _stacked(kind: Any) -> Row:
    def run(layer: Any, x: Any) -> Any:
        outputs, last = layer.forward(x)
        states = last if isinstance(last, tuple) else (last,)
        # Four runs: two of them have as many features as both directions of the outputs.
        pairs = [
            state.permute_dims((1, 0, 2)).reshape((len(x), 2, 2 * x.shape[2])) for state in states
        ]
        return tt.concat([outputs, *pairs], axis=1)

    return Row(
        lambda size, rng: kind(size, size, 2, _F64, bidirectional=True, rng=rng), _sequences, run
    )


def _cell(kind: Any) -> Row:
    def run(layer: Any, x: Any) -> Any:
        # Where the input lies: in the memory of whichever library.
        state = x.detach() * 0.0 + 0.3
        if kind is nn.LSTMCell:
            return tt.stack(layer.forward(x, (state, state)))
        return layer.forward(x, state)

    return Row(lambda size, rng: kind(size, size, _F64, rng=rng), run=run)


def _convolution(kind: Any, shape: Callable[[int, int], Sizes]) -> Row:
    return Row(lambda size, rng: kind(size, size, 3, padding=1, dtype=_F64, rng=rng), shape)


def _embedded(layer: Any, x: Any) -> Any:
    ids = tt.from_numpy(np.arange(x.shape[0]) % 2 * (x.shape[1] - 1))
    return layer.forward(ids.retaped(x.tape_type)) * x


def _positive(layer: Any, x: Any) -> Any:
    return layer.forward(x.square() + 0.5)


_PLAIN = [nn.Abs, nn.Cos, nn.ELU, nn.Exp, nn.GELU, nn.LeakyReLU, nn.LogSoftmax, nn.ReLU, nn.Sigmoid]
_PLAIN += [nn.SiLU, nn.Sin, nn.Softmax, nn.Softplus, nn.Square, nn.Tanh, nn.Flatten]
_PLAIN += [nn.CELU, nn.SELU, nn.Mish, nn.Hardtanh, nn.ReLU6, nn.Hardsigmoid, nn.Hardswish]
_PLAIN += [nn.Softsign, nn.LogSigmoid, nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, nn.Softmin]
_PLAIN += [nn.Identity]

ROWS: dict[Any, Row] = {
    **{kind: _plain(kind) for kind in _PLAIN},
    nn.Log: Row(lambda size, rng: nn.Log(), run=_positive),
    nn.Sqrt: Row(lambda size, rng: nn.Sqrt(), run=_positive),
    nn.Threshold: Row(lambda size, rng: nn.Threshold(0.1, -0.3)),
    nn.GLU: Row(lambda size, rng: nn.GLU(), lambda rows, size: (rows, 2 * size)),
    nn.InstanceNorm1d: Row(lambda size, rng: nn.InstanceNorm1d(), _sequences),
    nn.InstanceNorm2d: Row(lambda size, rng: nn.InstanceNorm2d(), _images),
    nn.AdaptiveAvgPool1d: Row(lambda size, rng: nn.AdaptiveAvgPool1d(2), _sequences),
    nn.AdaptiveAvgPool2d: Row(lambda size, rng: nn.AdaptiveAvgPool2d(2, 3), _images),
    nn.AdaptiveMaxPool1d: Row(lambda size, rng: nn.AdaptiveMaxPool1d(2), _sequences),
    nn.AdaptiveMaxPool2d: Row(lambda size, rng: nn.AdaptiveMaxPool2d(2, 3), _images),
    nn.PReLU: Row(lambda size, rng: nn.PReLU(_F64)),
    nn.PReLU1d: Row(lambda size, rng: nn.PReLU1d(size, _F64)),
    nn.Linear: Row(_linear),
    nn.UnbiasedLinear: Row(lambda size, rng: nn.UnbiasedLinear(size, size, _F64, rng=rng)),
    nn.Bias1d: Row(lambda size, rng: nn.Bias1d(size, _F64)),
    nn.Bias2d: Row(lambda size, rng: nn.Bias2d(size, _F64), _images),
    nn.Embedding: Row(lambda size, rng: nn.Embedding(size, size, _F64, rng=rng), run=_embedded),
    nn.LayerNorm: Row(lambda size, rng: nn.LayerNorm(size, _F64)),
    nn.RMSNorm: Row(lambda size, rng: nn.RMSNorm(size, _F64)),
    nn.GroupNorm: Row(lambda size, rng: nn.GroupNorm(2 - size % 2, size, _F64), _images),
    nn.BatchNorm1d: Row(lambda size, rng: nn.BatchNorm1d(size, _F64), _sequences),
    nn.BatchNorm2d: Row(lambda size, rng: nn.BatchNorm2d(size, _F64), _images),
    # Seeded at every call: the same mask for the gradient and for the differences.
    nn.Dropout: Row(
        lambda size, rng: nn.Dropout(0.5, rng=rng),
        run=lambda layer, x: nn.Dropout(layer.p, rng=np.random.default_rng(1)).forward(x),
    ),
    nn.DropoutOneIn: Row(
        lambda size, rng: nn.DropoutOneIn(3, rng=rng),
        run=lambda layer, x: nn.DropoutOneIn(layer.n, rng=np.random.default_rng(1)).forward(x),
    ),
    nn.Reshape: Row(lambda size, rng: nn.Reshape(size, 1)),
    nn.Conv1d: _convolution(nn.Conv1d, _sequences),
    nn.Conv2d: _convolution(nn.Conv2d, _images),
    nn.ConvTranspose1d: _convolution(nn.ConvTranspose1d, _sequences),
    nn.ConvTranspose2d: _convolution(nn.ConvTranspose2d, _images),
    nn.AvgPool1d: Row(lambda size, rng: nn.AvgPool1d(3, padding=1), _sequences),
    nn.MaxPool1d: Row(lambda size, rng: nn.MaxPool1d(3, padding=1), _sequences),
    nn.AvgPool2d: Row(lambda size, rng: nn.AvgPool2d(3, padding=1), _images),
    nn.MaxPool2d: Row(lambda size, rng: nn.MaxPool2d(3, padding=1), _images),
    nn.MinPool2d: Row(lambda size, rng: nn.MinPool2d(3, padding=1), _images),
    nn.GlobalAvgPool2d: Row(lambda size, rng: nn.GlobalAvgPool2d(), _images),
    nn.GlobalMaxPool2d: Row(lambda size, rng: nn.GlobalMaxPool2d(), _images),
    nn.GlobalMinPool2d: Row(lambda size, rng: nn.GlobalMinPool2d(), _images),
    nn.Upscale2d: Row(lambda size, rng: nn.Upscale2d(6, 5, "bilinear"), _images),
    nn.Upscale2dBy: Row(lambda size, rng: nn.Upscale2dBy(2), _images),
    nn.PixelShuffle: Row(lambda size, rng: nn.PixelShuffle(1), _images),
    nn.Unfold: Row(lambda size, rng: nn.Unfold((2, 1), padding=(1, 0)), _images),
    nn.PixelUnshuffle: Row(lambda size, rng: nn.PixelUnshuffle(1), _images),
    nn.UnbiasedMultiHeadAttention: Row(
        lambda size, rng: nn.UnbiasedMultiHeadAttention(size, 1, _F64, rng=rng), _sequences
    ),
    nn.MultiHeadAttention: Row(
        lambda size, rng: nn.MultiHeadAttention(size, 1, _F64, rng=rng), _sequences
    ),
    nn.EncoderBlock: Row(_built(nn.EncoderBlock), _sequences),
    nn.DecoderBlock: Row(
        _built(nn.DecoderBlock),
        _sequences,
        lambda layer, x: layer.forward(x, x),
    ),
    nn.Transformer: Row(
        _built(nn.Transformer, 1, 1),
        _sequences,
        lambda layer, x: layer.forward(x, x),
    ),
    nn.RNN: _recurrent(nn.RNN),
    nn.GRU: _recurrent(nn.GRU),
    nn.LSTM: _recurrent(nn.LSTM),
    **{kind: _stacked(kind) for kind in (nn.StackedRNN, nn.StackedGRU, nn.StackedLSTM)},
    nn.RNNCell: _cell(nn.RNNCell),
    nn.GRUCell: _cell(nn.GRUCell),
    nn.LSTMCell: _cell(nn.LSTMCell),
    nn.DiagonalSSM: Row(lambda size, rng: nn.DiagonalSSM(size, 2, _F64, rng=rng), _sequences),
    nn.SelectiveSSM: Row(lambda size, rng: nn.SelectiveSSM(size, 2, _F64, rng=rng), _sequences),
    nn.MambaBlock: Row(lambda size, rng: nn.MambaBlock(size, size, 2, _F64, rng=rng), _sequences),
    nn.Sequential: Row(lambda size, rng: nn.Sequential(_linear(size, rng), nn.Tanh())),
    nn.Repeated: Row(
        lambda size, rng: nn.Repeated(layers=[_linear(size, rng), _linear(size, rng)])
    ),
    nn.ResidualAdd: Row(lambda size, rng: nn.ResidualAdd(_linear(size, rng))),
    nn.ResidualMul: Row(lambda size, rng: nn.ResidualMul(_linear(size, rng))),
    nn.ParallelAdd: Row(lambda size, rng: nn.ParallelAdd(_linear(size, rng), nn.Tanh())),
    nn.ParallelMul: Row(lambda size, rng: nn.ParallelMul(_linear(size, rng), nn.Tanh())),
    nn.SplitInto: Row(
        lambda size, rng: nn.SplitInto(_linear(size, rng), nn.Tanh()),
        run=lambda layer, x: tt.stack(layer.forward(x)),
    ),
    nn.AddInto: Row(
        lambda size, rng: nn.AddInto(_linear(size, rng), nn.Tanh()),
        run=lambda layer, x: layer.forward((x, x)),
    ),
}
