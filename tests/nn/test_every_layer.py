"""Every layer: its gradients by whatever input, and the inputs that it refuses."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, DTypeError, ShapeError
from tests.nn.gradients import check_layer
from tests.nn.layer_rows import ROWS
from tests.nn.test_arguments import rng
from tests.ops.calling import strided


def test_every_layer_has_a_row() -> None:
    layers = {one for one in vars(nn).values() if inspect.isclass(one) and hasattr(one, "forward")}

    assert set(ROWS) == layers


# A variance needs two values or more; fewer are refused.
_VARIANCES = {nn.BatchNorm1d, nn.BatchNorm2d}


@pytest.mark.parametrize(
    ("kind", "rows", "size"),
    [
        pytest.param(kind, rows, size, id=f"{kind.__name__}-{name}")
        for kind in ROWS
        for name, rows, size in [("strided", 2, 4), ("empty", 0, 4), ("one", 1, 1)]
        if name == "strided" or kind not in _VARIANCES
    ],
)
def test_the_gradients_of_a_layer(
    kind: Any, rows: int, size: int, rng: np.random.Generator
) -> None:
    row = ROWS[kind]
    layer = row.make(size, rng)
    x = strided(np.asarray(rng.standard_normal(row.shape(rows, size))))

    check_layer(layer, x, rng, lambda x: row.run(layer, x))


# What names the layer within it that refused, or takes more than one input.
WITHIN_OTHERS = {
    *(nn.EncoderBlock, nn.DecoderBlock, nn.Transformer, nn.AddInto, nn.SplitInto),
    *(nn.ResidualAdd, nn.ResidualMul, nn.ParallelAdd, nn.ParallelMul, nn.Sequential, nn.Repeated),
    *(nn.RNNCell, nn.GRUCell, nn.LSTMCell),
}
# What takes integers as they are.
OF_ANY_DTYPE = {
    *(nn.Abs, nn.Flatten, nn.Identity, nn.Reshape, nn.Square, nn.ReLU, nn.ReLU6, nn.Hardtanh),
    *(nn.PixelShuffle, nn.PixelUnshuffle, nn.Unfold, nn.MaxPool1d, nn.MaxPool2d, nn.MinPool2d),
    *(nn.GlobalMaxPool2d, nn.GlobalMinPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
    *(nn.Upscale2d, nn.Upscale2dBy, nn.Embedding),
}
# What has no tensors of its own, and leaves the refusal to the op.
BY_ITS_OP = {
    *("avg_pool2d", "max_pool2d", "min_pool2d", "upscale2d"),
    *("pixel_shuffle", "pixel_unshuffle", "unfold"),
}
SHAPES: list[tuple[Any, tuple[int, ...], str]] = [
    *((nn.Linear(3, 2, rng=rng()), shape, "size 3") for shape in [(2, 4), (), (2, 3, 0)]),
    (nn.UnbiasedLinear(3, 2, rng=rng()), (2, 4), "the last axis"),
    (nn.Bias1d(3), (2, 4), "the last axis of the input must have size 3"),
    (nn.Bias1d(3), (), "the last axis"),
    (nn.PReLU1d(3), (3,), r"axis 1 of the input must have size 3, got shape \(3,\)"),
    (nn.PReLU1d(3), (3, 2), "axis 1"),
    *((nn.LayerNorm(4), shape, "the last axis .* must have size 4") for shape in [(2, 5), ()]),
    (nn.RMSNorm(4), (4, 2), "the last axis of the input must have size 4"),
    *((nn.GroupNorm(2, 4), shape, r"\(B, 4, \.\.\.\)") for shape in [(4,), (), (2, 5)]),
    *((nn.BatchNorm1d(3), at, r"\(B, 3\) or \(B, 3, L\)") for at in [(5, 4), (3,), (2, 3, 4, 5)]),
    (nn.BatchNorm2d(3), (4, 5, 5), r"the input must have shape \(B, 3, H, W\)"),
    (nn.BatchNorm2d(3), (2, 3), r"or \(3, H, W\), got \(2, 3\)"),
    (nn.InstanceNorm2d(), (2, 3), r"takes \(N, C, H, W\)"),
    (nn.MaxPool2d(3), (3, 2, 5), r"max_pool2d: a kernel of \(3, 3\) is larger than"),
    (nn.AvgPool2d(3), (3, 5), r"avg_pool2d: the input must have shape \(..., C, H, W\)"),
    (nn.GlobalAvgPool2d(), (3, 5), r"the input must have shape \(..., C"),
    (nn.Upscale2d(4, 4), (3, 5, 4), r"upscale2d: an input of shape \(3, 5, 4\) cannot"),
    (nn.Upscale2dBy(2), (4, 4), r"the input must have shape \(..., C, H, W\)"),
    (nn.PixelShuffle(2), (6, 5, 4), r"pixel_shuffle: the 6 channels of shape \(6, 5, 4\) are no"),
    (nn.PixelUnshuffle(2), (1, 5, 4), r"pixel_unshuffle: .* \(1, 5, 4\) are no multiples of 2"),
    (nn.Flatten(), (), r"the input must have shape \(B, ...\), got \(\)"),
    (nn.Bias2d(3), (4, 5, 5), r"the input must have shape \(..., 3, H, W\), got"),
    *((nn.Reshape(2, 3), shape, r"examples of shape \(2, 3\)") for shape in [(6,), (5, 4), ()]),
    (
        nn.Conv2d(3, 4, 3, rng=rng()),
        (2, 4, 5, 5),
        r"conv2d: channels differ: .* \(2, 4, 5, 5\) has 4",
    ),
    (
        nn.Conv2d(3, 4, 3, rng=rng()),
        (2, 3, 2, 5),
        r"conv2d: a kernel of \(3, 3\) is larger than the",
    ),
    (nn.Conv2d(3, 4, 3, rng=rng()), (5, 5), r"conv2d: the input must have shape \(..., C, H, W\)"),
    (nn.DiagonalSSM(3, 2, rng=rng()), (2, 3), r"\b3\b"),
    (nn.SelectiveSSM(3, 2, rng=rng()), (2, 4, 5), r"\b3\b"),
    (nn.MambaBlock(3, 2, 2, rng=rng()), (1, 2, 4, 3), r"\b3\b"),
    (nn.RNN(3, 2, rng=rng()), (2, 4, 5), "the last axis of the input must have size 3"),
    (nn.GRU(3, 2, rng=rng()), (2, 0, 3), "with one step or more, got"),
    (nn.LSTM(3, 2, rng=rng()), (4, 3), r"\(batch, steps, features\)"),
    (nn.StackedLSTM(3, 2, 2, rng=rng()), (4, 3), r"\(batch, steps, features\)"),
    (nn.MultiHeadAttention(6, 2, rng=rng()), (3, 5), "the last axis .* must have size 6"),
    (nn.MultiHeadAttention(6, 2, rng=rng()), (6,), r"query \(6,\), key \(6,\)"),
]


@pytest.mark.parametrize(("layer", "shape", "message"), SHAPES)
def test_an_input_that_does_not_fit_is_refused_and_keeps_its_tape(
    layer: Any, shape: tuple[int, ...], message: str
) -> None:
    x = tt.ones(shape).trace()
    op, is_of_op, _ = message.partition(":")
    name = op if is_of_op and op.isidentifier() else type(layer).__name__

    with pytest.raises(ShapeError, match=f"^{name}: .*{message.removeprefix(op + ': ')}"):
        layer.forward(x)
    assert x.owns_tape


@pytest.mark.parametrize("kind", [one for one in ROWS if one not in WITHIN_OTHERS])
def test_a_layer_takes_tensors_only(kind: Any) -> None:
    layer = ROWS[kind].make(4, rng())
    for wrong in (np.ones((2, 4, 4, 4)), [1.0], None):
        with pytest.raises(ArgumentTypeError, match=r"^\w+: .* must be a tensor, got") as caught:
            layer.forward(wrong)
        name, _, message = str(caught.value).partition(": ")
        assert f"got {type(wrong).__name__}" in message
        assert name == kind.__name__ or name in BY_ITS_OP


@pytest.mark.parametrize(
    "kind", [one for one in ROWS if one not in WITHIN_OTHERS and one not in OF_ANY_DTYPE]
)
def test_a_layer_takes_floats_of_the_dtype_of_its_weights(kind: Any) -> None:
    layer = ROWS[kind].make(4, rng())
    shape = ROWS[kind].shape(2, 4)
    name = kind.__name__ if layer.parameters() else r"\w+"
    for dtype in (np.int64, np.bool_, *[np.float32] * bool(layer.parameters())):
        x: Any = tt.ones(shape, dtype).trace()
        with pytest.raises(DTypeError, match=rf"^{name}: .*{np.dtype(dtype)}"):
            layer.forward(x)
        assert x.owns_tape
