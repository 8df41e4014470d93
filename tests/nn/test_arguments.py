"""Bad arguments of every layer: an error of the tree that names layer, argument and value."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, TapeTensorError

NAN, INF = float("nan"), float("inf")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# What holds other modules, or takes no such argument, has tests of its own.
OTHERS = {
    *("Module", "Sequential", "Repeated", "EncoderBlock", "DecoderBlock", "Transformer"),
    *("AddInto", "ParallelAdd", "ParallelMul", "ResidualAdd", "ResidualMul", "SplitInto"),
    *("Flatten", "Reshape", "GlobalAvgPool2d", "GlobalMaxPool2d", "GlobalMinPool2d"),
    *("GLU", "Hardsigmoid", "Hardswish", "Identity", "LogSigmoid", "Mish", "ReLU6", "Softmin"),
    *("Softsign", "Tanhshrink", "Hardtanh", "Threshold"),
}
# The sizes that constructors take, each of which may be 3, and of which layers.
_ROWS = [
    ("in_features out_features", "Linear UnbiasedLinear"),
    ("in_features heads", "MultiHeadAttention UnbiasedMultiHeadAttention"),
    ("num_embeddings embedding_features", "Embedding"),
    ("normalized_features", "LayerNorm RMSNorm"),
    ("num_groups num_channels", "GroupNorm"),
    ("num_features", "BatchNorm1d BatchNorm2d"),
    ("", "InstanceNorm1d InstanceNorm2d PReLU Dropout Hardshrink Softshrink"),
    ("features", "Bias1d"),
    ("channels", "Bias2d"),
    ("num_parameters", "PReLU1d"),
    ("n", "DropoutOneIn"),
    ("input_size hidden_size", "RNN GRU LSTM RNNCell GRUCell LSTMCell"),
    ("input_size hidden_size num_layers", "StackedRNN StackedGRU StackedLSTM"),
    ("features state_features", "DiagonalSSM"),
    ("features state_features step_rank", "SelectiveSSM"),
    ("features inner_features state_features conv_width step_rank", "MambaBlock"),
    (
        "in_channels out_channels kernel_size stride dilation groups",
        "Conv1d Conv2d ConvTranspose1d ConvTranspose2d",
    ),
    ("kernel_size", "AvgPool1d MaxPool1d AvgPool2d MaxPool2d MinPool2d Unfold"),
    ("size", "AdaptiveAvgPool1d AdaptiveMaxPool1d"),
    ("height width", "Upscale2d AdaptiveAvgPool2d AdaptiveMaxPool2d"),
    ("factor", "Upscale2dBy PixelShuffle PixelUnshuffle"),
]
SIZES = {layer: sizes.split() for sizes, layers in _ROWS for layer in layers.split()}
# Other numbers, and the largest that each may be.
NUMBERS = {"eps": INF, "threshold": INF, "momentum": 1.0, "p": 1.0, "dropout": 1.0}


def made(layer: str, **given: Any) -> Any:
    """Return a layer with right arguments in the place of those that are not given."""
    right: dict[str, Any] = dict.fromkeys(SIZES[layer], 3) | (
        {"rng": rng()} if "rng" in taken_by(layer) else {}
    )
    return getattr(nn, layer)(**right | given)


def taken_by(layer: str) -> set[str]:
    return {*inspect.signature(getattr(nn, layer)).parameters}


def taking(argument: str) -> list[str]:
    return [layer for layer in SIZES if argument in taken_by(layer)]


def test_every_layer_is_in_the_table() -> None:
    layers = {
        name
        for name, value in vars(nn).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ != "tapetensor.nn.activations"
    }

    assert set(SIZES) == layers - OTHERS


@pytest.mark.parametrize(
    ("layer", "argument"), [(layer, size) for layer, sizes in SIZES.items() for size in sizes]
)
def test_a_size_is_above_0_and_may_be_an_integer_of_numpy(layer: str, argument: str) -> None:
    with pytest.raises(ArgumentValueError, match=f"{layer}: {argument} must be > 0, got 0"):
        made(layer, **{argument: 0})
    assert type(getattr(made(layer, **{argument: np.int32(3)}), argument, 3)) is int


@pytest.mark.parametrize("wrong", [2.0, NAN, "3", None, True, {3}])
def test_a_size_is_an_int(wrong: Any) -> None:
    message = f"Linear: in_features must be an int, got {wrong!r}"
    with pytest.raises(ArgumentTypeError, match=re.escape(message)):
        nn.Linear(wrong, 2, rng=rng())
    with pytest.raises(
        ArgumentValueError, match="Linear: in_features must not be negative, got -1"
    ):
        nn.Linear(-1, 2, rng=rng())


@pytest.mark.parametrize(
    ("layer", "argument"), [(layer, number) for number in NUMBERS for layer in taking(number)]
)
def test_a_number_is_within_its_range(layer: str, argument: str) -> None:
    high = NUMBERS[argument]
    bounds = "in [0, 1]" if high == 1.0 else ">= 0 and finite"
    wrong: Any
    for wrong in (-0.1, NAN, INF, -INF, np.float64(NAN), 1.5 if high == 1.0 else INF):
        message = f"{layer}: {argument} must be {bounds}, got {wrong!r}"
        with pytest.raises(ArgumentValueError, match=re.escape(message)):
            made(layer, **{argument: wrong})
    for wrong in ("0.5", None, True, np.array(0.5), 1j):
        message = f"{layer}: {argument} must be a number, got {wrong!r}"
        with pytest.raises(ArgumentTypeError, match=re.escape(message)):
            made(layer, **{argument: wrong})
    for right in (0, 0.5, 1, np.float32(0.5), np.int64(1)):
        assert type(value := getattr(made(layer, **{argument: right}), argument)) is float
        assert value == float(right)


@pytest.mark.parametrize("layer", taking("dtype"))
def test_weights_are_float32_or_float64_given_in_any_way(layer: str) -> None:
    for wrong in (int, np.bool_, np.float16, "no", None):
        with pytest.raises(DTypeError, match=f"{layer}: "):
            made(layer, dtype=wrong)
    for dtype in (np.float64, float, "float64", np.dtype(np.float64)):
        parameters = made(layer, dtype=dtype).parameters()
        assert {one.dtype for one in parameters.values()} == {np.dtype(np.float64)}


@pytest.mark.parametrize("layer", taking("rng"))
def test_randomness_comes_from_a_generator_and_there_is_no_hidden_one(layer: str) -> None:
    for wrong in (0, None, np.random.RandomState(0)):
        message = f"{layer}: rng must be a numpy Generator, got {type(wrong).__name__}; write rng="
        with pytest.raises(ArgumentTypeError, match=re.escape(message)):
            made(layer, rng=wrong)
    # Python's own error for a missing argument names both already.
    with pytest.raises(TypeError, match=rf"{layer}.__init__\(\) missing .* 'rng'"):
        getattr(nn, layer)(**dict.fromkeys(SIZES[layer], 3))


def test_every_error_is_of_the_tree_and_of_python() -> None:
    with pytest.raises(TapeTensorError) as caught:
        nn.LayerNorm(0)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TapeTensorError) as caught:
        tt.build(nn.LayerNorm, rng=rng())
    assert isinstance(caught.value, TypeError)
