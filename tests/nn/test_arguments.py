"""Bad arguments of every layer: an error of the tree that names layer, argument and value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, TapeTensorError

NAN, INF = float("nan"), float("inf")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


RECURRENT = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
STACKED = ("StackedRNN", "StackedGRU", "StackedLSTM")
STATE_SPACE = ("DiagonalSSM", "SelectiveSSM", "MambaBlock")
# What holds other modules, or no tensor at all, has tests of its own.
OTHERS = {
    *("Module", "Sequential", "Repeated", "EncoderBlock", "DecoderBlock", "Transformer"),
    *("AddInto", "ParallelAdd", "ParallelMul", "ResidualAdd", "ResidualMul", "SplitInto"),
    *("Flatten", "Reshape", "GlobalAvgPool2d", "GlobalMaxPool2d", "GlobalMinPool2d"),
    *("GLU", "Hardsigmoid", "Hardswish", "Identity", "LogSigmoid", "Mish", "ReLU6", "Softmin"),
    *("Softsign", "Tanhshrink", "Hardtanh", "Threshold"),
}


def _recurrent(
    name: str, input_size: Any = 2, hidden_size: Any = 2, dtype: Any = np.float32
) -> Any:
    return getattr(nn, name)(input_size, hidden_size, dtype, rng=rng())


def _stacked(name: str, dtype: Any = np.float32, **given: Any) -> Any:
    sizes = {"input_size": 2, "hidden_size": 2, "num_layers": 2}
    return getattr(nn, name)(**sizes | given, dtype=dtype, rng=rng())


def _state_space(name: str, dtype: Any = np.float32, **sizes: Any) -> Any:
    inner = {"inner_features": 2} if name == "MambaBlock" else {}
    right = {"features": 2, **inner, "state_features": 2} | sizes
    return getattr(nn, name)(*right.values(), dtype, rng=rng())


def _numbers_of(
    layer: str, make: Callable[..., object], further: tuple[str, ...]
) -> list[tuple[str, str, Callable[[Any], object]]]:
    """Return a row for each number of a convolution; 3 of a thing is always right."""
    right = {"in_channels": 3, "out_channels": 3, "kernel_size": 3}

    def row(name: str) -> tuple[str, str, Callable[[Any], object]]:
        return layer, name, lambda n: make(**right | {name: n}, rng=rng())

    return [row(name) for name in (*right, "stride", *further)]


# The constructor, how it is called, by which name each argument goes.
SIZES: list[tuple[str, str, Callable[[Any], object]]] = [
    ("Linear", "in_features", lambda n: nn.Linear(n, 2, rng=rng())),
    ("Linear", "out_features", lambda n: nn.Linear(2, n, rng=rng())),
    ("Embedding", "num_embeddings", lambda n: nn.Embedding(n, 2, rng=rng())),
    ("Embedding", "embedding_features", lambda n: nn.Embedding(2, n, rng=rng())),
    ("LayerNorm", "normalized_features", lambda n: nn.LayerNorm(n)),
    ("RMSNorm", "normalized_features", lambda n: nn.RMSNorm(n)),
    ("GroupNorm", "num_groups", lambda n: nn.GroupNorm(n, 12)),
    ("GroupNorm", "num_channels", lambda n: nn.GroupNorm(1, n)),
    ("BatchNorm1d", "num_features", lambda n: nn.BatchNorm1d(n)),
    ("UnbiasedLinear", "in_features", lambda n: nn.UnbiasedLinear(n, 2, rng=rng())),
    ("UnbiasedLinear", "out_features", lambda n: nn.UnbiasedLinear(2, n, rng=rng())),
    ("Bias1d", "features", lambda n: nn.Bias1d(n)),
    ("PReLU1d", "num_parameters", lambda n: nn.PReLU1d(n)),
    ("DropoutOneIn", "n", lambda n: nn.DropoutOneIn(n, rng=rng())),
    ("MultiHeadAttention", "in_features", lambda n: nn.MultiHeadAttention(n, 1, rng=rng())),
    ("MultiHeadAttention", "heads", lambda n: nn.MultiHeadAttention(6, n, rng=rng())),
    (
        "UnbiasedMultiHeadAttention",
        "heads",
        lambda n: nn.UnbiasedMultiHeadAttention(6, n, rng=rng()),
    ),
    *(
        (name, size, lambda n, name=name, size=size: _state_space(name, **{size: n}))
        for name in ("DiagonalSSM", "SelectiveSSM")
        for size in ("features", "state_features")
    ),
    *(
        (name, size, lambda n, name=name, size=size: _recurrent(name, **{size: n}))
        for name in RECURRENT
        for size in ("input_size", "hidden_size")
    ),
    *(
        (name, size, lambda n, name=name, size=size: _stacked(name, **{size: n}))
        for name in STACKED
        for size in ("input_size", "hidden_size", "num_layers")
    ),
    ("BatchNorm2d", "num_features", lambda n: nn.BatchNorm2d(n)),
    *_numbers_of("Conv1d", nn.Conv1d, ("dilation", "groups")),
    *_numbers_of("Conv2d", nn.Conv2d, ("dilation", "groups")),
    *_numbers_of("ConvTranspose1d", nn.ConvTranspose1d, ("dilation", "groups")),
    *_numbers_of("ConvTranspose2d", nn.ConvTranspose2d, ("dilation", "groups")),
    ("AvgPool1d", "kernel_size", nn.AvgPool1d),
    ("MaxPool1d", "kernel_size", nn.MaxPool1d),
    ("AvgPool2d", "kernel_size", nn.AvgPool2d),
    ("MaxPool2d", "kernel_size", nn.MaxPool2d),
    ("MinPool2d", "kernel_size", nn.MinPool2d),
    ("Bias2d", "channels", lambda n: nn.Bias2d(n)),
    ("Upscale2d", "height", lambda n: nn.Upscale2d(n, 2)),
    ("Upscale2d", "width", lambda n: nn.Upscale2d(2, n)),
    ("Upscale2dBy", "factor", lambda n: nn.Upscale2dBy(n)),
    ("AdaptiveAvgPool1d", "size", nn.AdaptiveAvgPool1d),
    ("AdaptiveAvgPool2d", "height", lambda n: nn.AdaptiveAvgPool2d(n, 2)),
    ("AdaptiveAvgPool2d", "width", lambda n: nn.AdaptiveAvgPool2d(2, n)),
    ("AdaptiveMaxPool1d", "size", nn.AdaptiveMaxPool1d),
    ("AdaptiveMaxPool2d", "height", lambda n: nn.AdaptiveMaxPool2d(n, 2)),
    ("PixelShuffle", "factor", lambda n: nn.PixelShuffle(n)),
    ("Unfold", "kernel_size", lambda n: nn.Unfold(n)),
    ("PixelUnshuffle", "factor", lambda n: nn.PixelUnshuffle(n)),
]
NUMBERS: list[tuple[str, str, float, Callable[[Any], object]]] = [
    ("LayerNorm", "eps", INF, lambda eps: nn.LayerNorm(2, eps=eps)),
    ("RMSNorm", "eps", INF, lambda eps: nn.RMSNorm(2, eps=eps)),
    ("GroupNorm", "eps", INF, lambda eps: nn.GroupNorm(1, 2, eps=eps)),
    ("BatchNorm1d", "eps", INF, lambda eps: nn.BatchNorm1d(2, eps=eps)),
    ("BatchNorm2d", "eps", INF, lambda eps: nn.BatchNorm2d(2, eps=eps)),
    ("InstanceNorm1d", "eps", INF, lambda eps: nn.InstanceNorm1d(eps)),
    ("InstanceNorm2d", "eps", INF, lambda eps: nn.InstanceNorm2d(eps)),
    ("Hardshrink", "threshold", INF, nn.Hardshrink),
    ("Softshrink", "threshold", INF, nn.Softshrink),
    ("BatchNorm1d", "momentum", 1.0, lambda m: nn.BatchNorm1d(2, momentum=m)),
    ("BatchNorm2d", "momentum", 1.0, lambda m: nn.BatchNorm2d(2, momentum=m)),
    ("Dropout", "p", 1.0, lambda p: nn.Dropout(p, rng=rng())),
    *((name, "dropout", 1.0, lambda p, name=name: _stacked(name, dropout=p)) for name in STACKED),
]
DTYPES: list[tuple[str, Callable[[Any], object]]] = [
    ("Linear", lambda dtype: nn.Linear(2, 2, dtype, rng=rng())),
    ("Embedding", lambda dtype: nn.Embedding(2, 2, dtype, rng=rng())),
    ("LayerNorm", lambda dtype: nn.LayerNorm(2, dtype)),
    ("RMSNorm", lambda dtype: nn.RMSNorm(2, dtype)),
    ("GroupNorm", lambda dtype: nn.GroupNorm(1, 2, dtype)),
    ("BatchNorm1d", lambda dtype: nn.BatchNorm1d(2, dtype)),
    ("UnbiasedLinear", lambda dtype: nn.UnbiasedLinear(2, 2, dtype, rng=rng())),
    ("Bias1d", lambda dtype: nn.Bias1d(2, dtype)),
    ("Bias2d", lambda dtype: nn.Bias2d(2, dtype)),
    ("PReLU", lambda dtype: nn.PReLU(dtype)),
    ("PReLU1d", lambda dtype: nn.PReLU1d(2, dtype)),
    ("MultiHeadAttention", lambda dtype: nn.MultiHeadAttention(2, 1, dtype, rng=rng())),
    *((name, lambda dtype, name=name: _recurrent(name, dtype=dtype)) for name in RECURRENT),
    *((name, lambda dtype, name=name: _stacked(name, dtype)) for name in STACKED),
    *((name, lambda dtype, name=name: _state_space(name, dtype=dtype)) for name in STATE_SPACE),
    ("BatchNorm2d", lambda dtype: nn.BatchNorm2d(2, dtype)),
    ("Conv1d", lambda dtype: nn.Conv1d(2, 2, 3, dtype=dtype, rng=rng())),
    ("Conv2d", lambda dtype: nn.Conv2d(2, 2, 3, dtype=dtype, rng=rng())),
    ("ConvTranspose1d", lambda dtype: nn.ConvTranspose1d(2, 2, 3, dtype=dtype, rng=rng())),
    ("ConvTranspose2d", lambda dtype: nn.ConvTranspose2d(2, 2, 3, dtype=dtype, rng=rng())),
]
GENERATORS: list[tuple[str, Callable[..., object]]] = [
    ("Linear", lambda **given: nn.Linear(2, 2, **given)),
    ("Embedding", lambda **given: nn.Embedding(2, 2, **given)),
    ("Dropout", lambda **given: nn.Dropout(0.5, **given)),
    ("UnbiasedLinear", lambda **given: nn.UnbiasedLinear(2, 2, **given)),
    ("DropoutOneIn", lambda **given: nn.DropoutOneIn(2, **given)),
    ("MultiHeadAttention", lambda **given: nn.MultiHeadAttention(2, 1, **given)),
    *((name, lambda name=name, **given: getattr(nn, name)(2, 2, **given)) for name in RECURRENT),
    *((name, lambda name=name, **given: getattr(nn, name)(2, 2, 2, **given)) for name in STACKED),
    ("Conv1d", lambda **given: nn.Conv1d(2, 2, 3, **given)),
    ("Conv2d", lambda **given: nn.Conv2d(2, 2, 3, **given)),
    ("ConvTranspose1d", lambda **given: nn.ConvTranspose1d(2, 2, 3, **given)),
    ("ConvTranspose2d", lambda **given: nn.ConvTranspose2d(2, 2, 3, **given)),
]


def test_every_layer_is_in_the_tables() -> None:
    layers = {
        name
        for name, value in vars(nn).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ != "tapetensor.nn.activations"
    }
    covered = {row[0] for table in (SIZES, NUMBERS, DTYPES, GENERATORS) for row in table}

    assert covered == layers - OTHERS


@pytest.mark.parametrize(("layer", "argument", "make"), SIZES)
def test_a_size_is_above_0_and_may_be_an_integer_of_numpy(
    layer: str, argument: str, make: Any
) -> None:
    with pytest.raises(ArgumentValueError, match=f"{layer}: {argument} must be > 0, got 0"):
        make(0)
    assert type(getattr(make(np.int32(3)), argument)) is int


@pytest.mark.parametrize("wrong", [2.0, NAN, "3", None, True, {3}])
def test_a_size_is_an_int(wrong: Any) -> None:
    message = f"Linear: in_features must be an int, got {wrong!r}"
    with pytest.raises(ArgumentTypeError, match=re.escape(message)):
        nn.Linear(wrong, 2, rng=rng())
    with pytest.raises(
        ArgumentValueError, match="Linear: in_features must not be negative, got -1"
    ):
        nn.Linear(-1, 2, rng=rng())


@pytest.mark.parametrize(("layer", "argument", "high", "make"), NUMBERS)
def test_a_number_is_within_its_range(layer: str, argument: str, high: float, make: Any) -> None:
    bounds = "in [0, 1]" if high == 1.0 else ">= 0 and finite"
    wrong: Any
    for wrong in (-0.1, NAN, INF, -INF, np.float64(NAN), 1.5 if high == 1.0 else INF):
        message = f"{layer}: {argument} must be {bounds}, got {wrong!r}"
        with pytest.raises(ArgumentValueError, match=re.escape(message)):
            make(wrong)
    for wrong in ("0.5", None, True, np.array(0.5), 1j):
        message = f"{layer}: {argument} must be a number, got {wrong!r}"
        with pytest.raises(ArgumentTypeError, match=re.escape(message)):
            make(wrong)
    for right in (0, 0.5, 1, np.float32(0.5), np.int64(1)):
        assert type(value := getattr(make(right), argument)) is float
        assert value == float(right)


@pytest.mark.parametrize(("layer", "make"), DTYPES)
def test_weights_are_float32_or_float64_given_in_any_way(layer: str, make: Any) -> None:
    for wrong in (int, np.bool_, np.float16, "no", None):
        with pytest.raises(DTypeError, match=f"{layer}: "):
            make(wrong)
    for dtype in (np.float64, float, "float64", np.dtype(np.float64)):
        assert {one.dtype for one in make(dtype).parameters().values()} == {np.dtype(np.float64)}


@pytest.mark.parametrize(("layer", "make"), GENERATORS)
def test_randomness_comes_from_a_generator_and_there_is_no_hidden_one(
    layer: str, make: Any
) -> None:
    for wrong in (0, None, np.random.RandomState(0)):
        message = f"{layer}: rng must be a numpy Generator, got {type(wrong).__name__}; write rng="
        with pytest.raises(ArgumentTypeError, match=re.escape(message)):
            make(rng=wrong)
    # Python's own error for a missing argument names both already.
    with pytest.raises(TypeError, match=rf"{layer}.__init__\(\) missing .* 'rng'"):
        make()


def test_every_error_is_of_the_tree_and_of_python() -> None:
    with pytest.raises(TapeTensorError) as caught:
        nn.LayerNorm(0)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TapeTensorError) as caught:
        tt.build(nn.LayerNorm, rng=rng())
    assert isinstance(caught.value, TypeError)
