"""Every layer over arrays that are not numpy's: outputs, gradients and running statistics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tests.arrays import foreign
from tests.arrays.placing import abroad, home

_DTYPE = np.float64
_ROWS, _TOKENS, _IMAGES = (4, 6), (2, 5, 6), (2, 3, 6, 6)

Make = Callable[[np.random.Generator], Any]


def _built(module: Any) -> Make:
    return lambda rng: tt.build(module, rng=rng)


def _sized(layer: Any, *sizes: Any) -> Make:
    return lambda rng: layer(*sizes, _DTYPE, rng=rng)


def _plain(layer: Any, *settings: Any) -> Make:
    return lambda rng: layer(*settings)


def _unary(layer: Any) -> Make:
    return lambda rng: nn.Sequential(nn.Square(), layer())


# How each layer is made, and the shapes of what goes in.
LAYERS: dict[str, tuple[Make, tuple[tuple[int, ...], ...]]] = {
    **{
        name: (_plain(getattr(nn, name)), (_ROWS,))
        for name in (
            "Abs", "CELU", "Cos", "ELU", "Exp", "Flatten", "GELU", "LeakyReLU", "LogSoftmax",
            "ReLU", "SELU", "SiLU", "Sigmoid", "Sin", "Softmax", "Softplus", "Square", "Tanh",
            "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LogSigmoid",
            "Mish", "ReLU6", "Softmin", "Softshrink", "Softsign", "Tanhshrink",
        )
    },
    "Threshold": (_plain(nn.Threshold, 0.1, -0.3), (_ROWS,)),
    "InstanceNorm1d": (_plain(nn.InstanceNorm1d), (_TOKENS,)),
    "InstanceNorm2d": (_plain(nn.InstanceNorm2d), (_IMAGES,)),
    "AvgPool1d": (_plain(nn.AvgPool1d, 2), (_TOKENS,)),
    "MaxPool1d": (_plain(nn.MaxPool1d, 2), (_TOKENS,)),
    "AdaptiveAvgPool1d": (_plain(nn.AdaptiveAvgPool1d, 2), (_TOKENS,)),
    "AdaptiveAvgPool2d": (_plain(nn.AdaptiveAvgPool2d, 2, 3), (_IMAGES,)),
    "AdaptiveMaxPool1d": (_plain(nn.AdaptiveMaxPool1d, 2), (_TOKENS,)),
    "AdaptiveMaxPool2d": (_plain(nn.AdaptiveMaxPool2d, 2, 3), (_IMAGES,)),
    "Log": (_unary(nn.Log), (_ROWS,)),
    "Sqrt": (_unary(nn.Sqrt), (_ROWS,)),
    "AddInto": (_plain(nn.AddInto, nn.Tanh(), nn.ReLU()), (_ROWS, _ROWS)),
    "ParallelAdd": (_plain(nn.ParallelAdd, nn.Tanh(), nn.ReLU()), (_ROWS,)),
    "ParallelMul": (_plain(nn.ParallelMul, nn.Tanh(), nn.ReLU()), (_ROWS,)),
    "ResidualAdd": (_plain(nn.ResidualAdd, nn.Tanh()), (_ROWS,)),
    "ResidualMul": (_plain(nn.ResidualMul, nn.Tanh()), (_ROWS,)),
    "Reshape": (_plain(nn.Reshape, 2, 3), (_ROWS,)),
    "Sequential": (
        lambda rng: nn.Sequential(nn.Linear(6, 3, _DTYPE, rng=rng), nn.Tanh()), (_ROWS,),
    ),
    "Linear": (_sized(nn.Linear, 6, 3), (_TOKENS,)),
    "UnbiasedLinear": (_sized(nn.UnbiasedLinear, 6, 3), (_ROWS,)),
    "Bias1d": (_plain(nn.Bias1d, 6, _DTYPE), (_ROWS,)),
    "Bias2d": (_plain(nn.Bias2d, 3, _DTYPE), (_IMAGES,)),
    "PReLU": (_plain(nn.PReLU, _DTYPE), (_ROWS,)),
    "PReLU1d": (_plain(nn.PReLU1d, 6, _DTYPE), (_ROWS,)),
    "Repeated": (_built(nn.Repeated[nn.Linear[L[6], L[6], _DTYPE], L[2]]), (_ROWS,)),
    "BatchNorm1d": (_plain(nn.BatchNorm1d, 6, _DTYPE), (_ROWS,)),
    "BatchNorm2d": (_plain(nn.BatchNorm2d, 3, _DTYPE), (_IMAGES,)),
    "LayerNorm": (_plain(nn.LayerNorm, 6, _DTYPE), (_TOKENS,)),
    "RMSNorm": (_plain(nn.RMSNorm, 6, _DTYPE), (_TOKENS,)),
    "GroupNorm": (_plain(nn.GroupNorm, 1, 3, _DTYPE), (_IMAGES,)),
    "Dropout": (lambda rng: nn.Dropout(0.4, rng=rng), (_ROWS,)),
    "DropoutOneIn": (lambda rng: nn.DropoutOneIn(3, rng=rng), (_ROWS,)),
    "Conv1d": (lambda rng: nn.Conv1d(5, 4, 3, 1, 1, dtype=_DTYPE, rng=rng), (_TOKENS,)),
    "Conv2d": (lambda rng: nn.Conv2d(3, 6, 3, 2, 1, groups=3, dtype=_DTYPE, rng=rng), (_IMAGES,)),
    "ConvTranspose1d": (lambda rng: nn.ConvTranspose1d(5, 4, 3, dtype=_DTYPE, rng=rng), (_TOKENS,)),
    "ConvTranspose2d": (lambda rng: nn.ConvTranspose2d(3, 2, 3, dtype=_DTYPE, rng=rng), (_IMAGES,)),
    "Upscale2d": (_plain(nn.Upscale2d, 9, 7, "bilinear"), (_IMAGES,)),
    "Upscale2dBy": (_plain(nn.Upscale2dBy, 2), (_IMAGES,)),
    "PixelShuffle": (_plain(nn.PixelShuffle, 1), (_IMAGES,)),
    "Unfold": (_plain(nn.Unfold, 2), (_IMAGES,)),
    "PixelUnshuffle": (_plain(nn.PixelUnshuffle, 1), (_IMAGES,)),
    **{
        name: (_plain(getattr(nn, name), 3, 2, 1), (_IMAGES,))
        for name in ("AvgPool2d", "MaxPool2d", "MinPool2d")
    },
    **{
        name: (_plain(getattr(nn, name)), (_IMAGES,))
        for name in ("GlobalAvgPool2d", "GlobalMaxPool2d", "GlobalMinPool2d")
    },
    **{
        name: (_sized(getattr(nn, name), 6, 3), (_TOKENS,)) for name in ("RNN", "GRU", "LSTM")
    },
    **{
        name: (_sized(getattr(nn, name), 6, 3, 2), (_TOKENS,))
        for name in ("StackedRNN", "StackedGRU", "StackedLSTM")
    },
    "RNNCell": (_sized(nn.RNNCell, 6, 3), (_ROWS, (4, 3))),
    "GRUCell": (_sized(nn.GRUCell, 6, 3), (_ROWS, (4, 3))),
    "LSTMCell": (_sized(nn.LSTMCell, 6, 3), (_ROWS, (4, 3), (4, 3))),
    "UnbiasedMultiHeadAttention": (
        _sized(nn.UnbiasedMultiHeadAttention, 6, 2),
        (_TOKENS,),
    ),
    "MultiHeadAttention": (_sized(nn.MultiHeadAttention, 6, 2), (_TOKENS,)),
    "EncoderBlock": (_built(nn.EncoderBlock[L[6], L[2], L[8], _DTYPE]), (_TOKENS,)),
    "DecoderBlock": (_built(nn.DecoderBlock[L[6], L[2], L[8], _DTYPE]), (_TOKENS, (2, 3, 6))),
    "Transformer": (
        _built(nn.Transformer[L[6], L[2], L[8], L[1], L[1], _DTYPE]), (_TOKENS, (2, 3, 6)),
    ),
    "DiagonalSSM": (_sized(nn.DiagonalSSM, 6, 2), (_TOKENS,)),
    "SelectiveSSM": (_sized(nn.SelectiveSSM, 6, 2), (_TOKENS,)),
    "MambaBlock": (_sized(nn.MambaBlock, 6, 4, 2), (_TOKENS,)),
}  # fmt: skip
# Without a forward of one tensor in and out: what they do is tested below, or nothing.
_OTHERS = {"Module", "Selection", "Embedding", "SplitInto"}


def _trained(layer: Any, inputs: list[Any]) -> tuple[Any, tt.Gradients]:
    given = [inputs[0].trace(), *inputs[1:]]
    if isinstance(layer, nn.AddInto):
        given = [tuple(given)]
    elif isinstance(layer, nn.LSTMCell):
        given[1:] = [tuple(given[1:])]
    y = layer.forward(*given)
    y = y[0] if isinstance(y, tuple) else y
    value, tape = y.split_tape()
    return value, value.put_tape(tape).sin().sum().backward()


def _assert_near(found: Any, expected: Any, name: str) -> None:
    np.testing.assert_allclose(home(found), expected.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)


def test_every_layer_is_in_the_table() -> None:
    public = {name for name, one in vars(nn).items() if inspect.isclass(one)}

    assert set(LAYERS) | _OTHERS == public


@pytest.mark.parametrize("name", LAYERS)
def test_a_moved_layer_computes_what_the_layer_computes(name: str) -> None:
    make, shapes = LAYERS[name]
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    twin, layer = make(np.random.default_rng(5)), make(np.random.default_rng(5)).to(foreign)
    hosts, inputs = [tt.from_numpy(one) for one in arrays], [abroad(one) for one in arrays]

    expected, expected_grads = _trained(twin, hosts)
    y, grads = _trained(layer, inputs)

    _assert_near(y, expected, "output")
    _assert_near(grads[inputs[0]], expected_grads[hosts[0]], "gradient of the input")
    theirs = twin.parameters()
    for path, parameter in layer.parameters().items():
        gradient = grads.get(parameter)
        assert (gradient is None) == (expected_grads.get(theirs[path]) is None)
        if gradient is not None:
            _assert_near(gradient, expected_grads[theirs[path]], path)
    for path, buffer in layer.buffers().items():
        _assert_near(buffer, twin.buffers()[path], path)


def test_a_batch_norm_infers_by_the_statistics_that_it_has_moved() -> None:
    layer, twin = nn.BatchNorm1d(6, _DTYPE).to(foreign), nn.BatchNorm1d(6, _DTYPE)
    x = np.random.default_rng(0).standard_normal(_ROWS)

    _trained(layer, [abroad(x)])
    _trained(twin, [tt.from_numpy(x)])

    _assert_near(layer.forward(abroad(x)), twin.forward(tt.from_numpy(x)), "inference")


@pytest.mark.parametrize("make", [tt.from_numpy, abroad])
def test_an_embedding_takes_tokens_of_the_host_and_its_own(make: Any) -> None:
    tokens = np.array([[0, 3, 3], [1, 0, 2]])
    twin = nn.Embedding(5, 4, _DTYPE, rng=np.random.default_rng(0))
    layer = nn.Embedding(5, 4, _DTYPE, rng=np.random.default_rng(0)).to(foreign)

    found = layer.forward(make(tokens).trace()).sin().sum().backward()[layer.weight]
    there = tt.from_numpy(tokens).trace()
    _assert_near(found, twin.forward(there).sin().sum().backward()[twin.weight], "weight")


def test_layers_side_by_side_give_a_tuple() -> None:
    layer = nn.SplitInto(nn.Tanh(), nn.ReLU())
    x = np.linspace(-1.0, 1.0, 6)

    for y, expected in zip(layer.forward(abroad(x)), layer.forward(tt.from_numpy(x)), strict=True):
        _assert_near(y, expected, "output")


def test_a_module_goes_and_comes_back_with_its_ids() -> None:
    layer = nn.BatchNorm1d(6, _DTYPE)
    ids = {name: tensor.id for name, tensor in layer.parameters().items()}

    assert layer.to(foreign) is layer
    assert "foreign" in repr(layer.weight)
    layer.to(np)

    assert {name: tensor.id for name, tensor in layer.parameters().items()} == ids
    assert "foreign" not in repr(layer.weight)
    np.testing.assert_array_equal(layer.running_var.numpy(), np.ones(6))


def test_a_module_that_cannot_be_moved_stays() -> None:
    layer: Any = nn.LayerNorm(3)

    with pytest.raises(tt.ArgumentTypeError, match=r"Module\.to: expected a library .* got int"):
        layer.to(3)
    assert layer.forward(tt.ones((2, 3))).shape == (2, 3)


def test_tied_weights_stay_tied() -> None:
    embedding: nn.Embedding[L[5], L[4]] = nn.Embedding(5, 4, rng=np.random.default_rng(0))
    out: nn.UnbiasedLinear[L[4], L[5]] = nn.UnbiasedLinear(4, 5, rng=np.random.default_rng(0))
    out.weight = embedding.weight

    class Tied(nn.Module):
        embed: nn.Embedding[L[5], L[4]]
        out: nn.UnbiasedLinear[L[4], L[5]]

    Tied(embed=embedding, out=out).to(foreign)

    assert out.weight is embedding.weight
    home(out.weight)
