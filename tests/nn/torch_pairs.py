"""The layers of PyTorch beside ours, for `test_against_torch.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional
# Not by its own types: a dtype that is a variable is no type.
here: Any = nn
there: Any = torch.nn


class Pair(NamedTuple):
    """A layer here and there.

    Attributes:
        ours: makes ours, of a dtype and a generator.
        theirs: makes theirs.
        inputs: makes the inputs, arrays.
        run_ours: calls ours.
        run_theirs: calls theirs.
    """

    ours: Callable[[Any, np.random.Generator], Any]
    theirs: Callable[[], Any]
    inputs: Callable[[np.random.Generator], list[Any]]
    run_ours: Callable[..., Any] = lambda layer, *inputs: layer.forward(*inputs)
    run_theirs: Callable[..., Any] = lambda module, *inputs: module(*inputs)


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [rng.standard_normal(shape) for shape in shapes]


def positive(rng: np.random.Generator) -> list[Any]:
    return [rng.uniform(0.5, 2.0, (3, 4))]


def ids(rng: np.random.Generator) -> list[Any]:
    return [rng.integers(0, 5, (2, 6))]


class Composed(there.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    """A module of PyTorch's with a function for a forward and parts that may have weights."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.run = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.run(self, *inputs)


def sized(name: str, *size: int) -> tuple[Callable[..., Any], Callable[[], Any]]:
    """Return what makes a layer of a size, ours and theirs."""
    given = [size] if name.startswith("Adaptive") and name.endswith("2d") else size
    return lambda *_: getattr(here, name)(*size), lambda: getattr(there, name)(*given)


def elementwise(name: str, theirs: Callable[[], Any], inputs: Any = None) -> Pair:
    return Pair(lambda *_: getattr(here, name)(), theirs, inputs or normal((3, 4)))


def function(run: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: Composed(lambda _, x: run(x))


def two_linear() -> Any:
    return there.ModuleList([there.Linear(4, 4), there.Linear(4, 4)])


def branches(kind: str, forward: Callable[..., Any], **how: Any) -> Pair:
    def ours(dtype: Any, rng: np.random.Generator) -> Any:
        make: Any = nn.Linear
        return getattr(here, kind)(make(4, 4, dtype, rng=rng), make(4, 4, dtype, rng=rng))

    inputs = normal((3, 4), (3, 4)) if kind == "AddInto" else normal((3, 4))
    return Pair(ours, lambda: Composed(forward, layers=two_linear()), inputs, **how)


def residual(kind: str, forward: Callable[..., Any]) -> Pair:
    return Pair(
        lambda dtype, rng: getattr(here, kind)(nn.Linear(4, 4, dtype, rng=rng)),
        lambda: Composed(forward, layer=there.Linear(4, 4)),
        normal((3, 4)),
    )


def convolution(kind: str, *sizes: Any, **options: Any) -> Pair:
    shape = (2, 4, 9) if kind.endswith("1d") else (2, 4, 9, 8)
    return Pair(
        lambda dtype, rng: getattr(here, kind)(*sizes, dtype=dtype, rng=rng, **options),
        lambda: getattr(there, kind)(*sizes, **options),
        normal(shape),
    )


def pooling(kind: str, *sizes: Any, **options: Any) -> Pair:
    def theirs() -> Any:
        if kind == "MinPool2d":
            return Composed(lambda _, x: -functional.max_pool2d(-x, *sizes, **options))
        return getattr(there, kind)(*sizes, **options)

    return Pair(lambda *_: getattr(here, kind)(*sizes, **options), theirs, normal((2, 3, 9, 8)))


def normalization(kind: str, size: int, shape: tuple[int, ...]) -> Pair:
    return Pair(
        lambda dtype, _: getattr(here, kind)(size, dtype),
        lambda: getattr(there, kind)(size),
        normal(shape),
    )


def groups(count: int, shape: tuple[int, ...]) -> Pair:
    return Pair(
        lambda dtype, _: here.GroupNorm(count, 4, dtype),
        lambda: there.GroupNorm(count, 4),
        normal(shape),
    )


def recurrent(kind: str) -> Pair:
    def run_theirs(module: Any, x: Any) -> Any:
        y, last = module(x)
        return (y, *[end[0] for end in (last if kind == "LSTM" else (last,))])

    def run_ours(layer: Any, x: Any) -> Any:
        y, last = layer.forward(x)
        return (y, *last) if kind == "LSTM" else (y, last)

    return Pair(
        lambda dtype, rng: getattr(here, kind)(3, 4, dtype, rng=rng),
        lambda: getattr(there, kind)(3, 4, batch_first=True),
        normal((2, 5, 3)),
        run_ours,
        run_theirs,
    )


def stacked(kind: str, layers: int, **options: Any) -> Pair:
    states, directions = 2 if kind == "LSTM" else 1, 1 + options.get("bidirectional", False)

    def run(layer: Any, x: Any, *given: Any) -> Any:
        y, last = layer(x, given if states == 2 else given[0])
        return (y, *last) if states == 2 else (y, last)

    return Pair(
        lambda dtype, rng: getattr(here, f"Stacked{kind}")(3, 4, layers, dtype, rng=rng, **options),
        lambda: getattr(there, kind)(3, 4, layers, batch_first=True, **options),
        normal((2, 5, 3), *[(layers * directions, 2, 4)] * states),
        run,
        run,
    )


def cell(kind: str) -> Pair:
    states = 2 if kind == "LSTMCell" else 1

    def state(*given: Any) -> Any:
        return given if states == 2 else given[0]

    return Pair(
        lambda dtype, rng: getattr(here, kind)(3, 4, dtype, rng=rng),
        lambda: getattr(there, kind)(3, 4),
        normal((2, 3), *[(2, 4)] * states),
        lambda layer, x, *given: layer.forward(x, state(*given)),
        lambda module, x, *given: module(x, state(*given)),
    )


SIZES: dict[str, Any] = {"dim_feedforward": 12, "dropout": 0.0, "batch_first": True}


def hidden_future(x: Any) -> Any:
    return torch.ones(x.shape[-2], x.shape[-2]).triu(1).bool()


def of_type(kind: Callable[[Any], Any]) -> Callable[[Any, np.random.Generator], Any]:
    return lambda dtype, rng: tt.build(kind(dtype), rng=rng)


def transformed(module: Any, source: Any, x: Any) -> Any:
    memory = module.encoder(source)
    for block in module.decoder:
        x = block(x, memory, tgt_mask=hidden_future(x))
    return x


def encoder() -> Any:
    layer = there.TransformerEncoderLayer(8, 2, **SIZES)
    return there.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def attention(
    ours: Callable[..., Any], theirs: Callable[..., Any], *shapes: Any, bias: bool = True
) -> Pair:
    kind = here.MultiHeadAttention if bias else here.UnbiasedMultiHeadAttention
    return Pair(
        lambda dtype, rng: kind(8, 2, dtype, rng=rng),
        lambda: there.MultiheadAttention(8, 2, bias=bias, batch_first=True),
        normal(*shapes),
        ours,
        theirs,
    )


PAIRS: dict[str, list[Pair]] = {
    "Abs": [elementwise("Abs", function(torch.abs))],
    "Cos": [elementwise("Cos", function(torch.cos))],
    "Sin": [elementwise("Sin", function(torch.sin))],
    "Exp": [elementwise("Exp", function(torch.exp))],
    "Log": [elementwise("Log", function(torch.log), positive)],
    "Sqrt": [elementwise("Sqrt", function(torch.sqrt), positive)],
    "Square": [elementwise("Square", function(torch.square))],
    **{
        name: [elementwise(name, getattr(there, name))]
        for name in (
            "CELU",
            "ELU",
            "GLU",
            "Hardshrink",
            "Hardswish",
            "Hardtanh",
            "Identity",
            "LeakyReLU",
            "LogSigmoid",
            "Mish",
            "ReLU",
            "ReLU6",
            "SELU",
            "Softshrink",
            "Softsign",
            "Tanhshrink",
            "Sigmoid",
            "SiLU",
            "Softplus",
            "Tanh",
        )
    },
    "GELU": [
        elementwise("GELU", there.GELU),
        Pair(lambda *_: nn.GELU("tanh"), lambda: there.GELU("tanh"), normal((3, 4))),
    ],
    # PyTorch's own has a gradient of 1 / 6 in float32, of doubles, too.
    "Hardsigmoid": [
        elementwise("Hardsigmoid", lambda: Composed(lambda m, x: (x + 3).clip(0, 6) / 6))
    ],
    "Softmin": [elementwise("Softmin", lambda: there.Softmin(-1))],
    "Threshold": [
        Pair(lambda *_: nn.Threshold(0.1, -0.3), lambda: there.Threshold(0.1, -0.3), normal((3, 4)))
    ],
    "InstanceNorm1d": [
        elementwise("InstanceNorm1d", lambda: there.InstanceNorm1d(3), normal((2, 3, 4)))
    ],
    "InstanceNorm2d": [
        elementwise("InstanceNorm2d", lambda: there.InstanceNorm2d(3), normal((2, 3, 4, 5)))
    ],
    **{
        name: [
            Pair(*sized(name, *sizes), normal((2, 3, 9)))
            for sizes in ((2,), (3, 2), (3, 1, 1), (4, 3, 2))
        ]
        for name in ("AvgPool1d", "MaxPool1d")
    },
    **{
        name: [Pair(*sized(name, size), normal((2, 3, 7))) for size in (1, 3, 7, 9)]
        for name in ("AdaptiveAvgPool1d", "AdaptiveMaxPool1d")
    },
    **{
        name: [Pair(*sized(name, *size), normal((2, 3, 7, 4))) for size in ((1, 1), (3, 2), (7, 6))]
        for name in ("AdaptiveAvgPool2d", "AdaptiveMaxPool2d")
    },
    "Softmax": [elementwise("Softmax", lambda: there.Softmax(-1))],
    "LogSoftmax": [elementwise("LogSoftmax", lambda: there.LogSoftmax(-1))],
    "PReLU": [Pair(lambda dtype, _: nn.PReLU(dtype), there.PReLU, normal((3, 4)))],
    "PReLU1d": [
        Pair(lambda dtype, _: nn.PReLU1d(4, dtype), lambda: there.PReLU(4), normal((3, 4, 2)))
    ],
    "Linear": [
        Pair(
            lambda dtype, rng: nn.Linear(4, 5, dtype, rng=rng),
            lambda: there.Linear(4, 5),
            normal(shape),
        )
        for shape in ((3, 4), (4,), (2, 3, 4), (0, 4))
    ],
    "UnbiasedLinear": [
        Pair(
            lambda dtype, rng: nn.UnbiasedLinear(4, 5, dtype, rng=rng),
            lambda: there.Linear(4, 5, bias=False),
            normal((3, 4)),
        )
    ],
    "Bias1d": [
        Pair(
            lambda dtype, _: nn.Bias1d(4, dtype),
            lambda: Composed(lambda m, x: x + m.bias, bias=there.Parameter(torch.ones(4))),
            normal((3, 4)),
        )
    ],
    "Bias2d": [
        Pair(
            lambda dtype, _: nn.Bias2d(4, dtype),
            lambda: Composed(
                lambda m, x: x + m.bias[:, None, None], bias=there.Parameter(torch.ones(4))
            ),
            normal((3, 4, 2, 5)),
        )
    ],
    "Embedding": [
        Pair(
            lambda dtype, rng: nn.Embedding(5, 3, dtype, rng=rng),
            lambda: there.Embedding(5, 3),
            ids,
        )
    ],
    "Flatten": [elementwise("Flatten", there.Flatten, normal((2, 3, 4, 5)))],
    "Reshape": [
        Pair(
            of_type(lambda _: nn.Reshape[L[2], L[3]]),
            lambda: there.Unflatten(1, (2, 3)),
            normal((4, 6)),
        )
    ],
    "Upscale2d": [
        Pair(
            lambda *_: nn.Upscale2d(11, 16, "bilinear"),
            lambda: there.Upsample((11, 16), mode="bilinear", align_corners=True),
            normal((2, 3, 9, 8)),
        )
    ],
    "Upscale2dBy": [
        Pair(
            lambda *_: nn.Upscale2dBy(2, "bicubic", align_corners=False),
            lambda: there.Upsample(scale_factor=2, mode="bicubic"),
            normal((2, 3, 5, 4)),
        ),
        Pair(
            lambda *_: nn.Upscale2dBy(2),
            lambda: there.Upsample(scale_factor=2),
            normal((2, 3, 9, 8)),
        ),
    ],
    "PixelShuffle": [
        Pair(lambda *_: nn.PixelShuffle(2), lambda: there.PixelShuffle(2), normal((2, 8, 3, 4)))
    ],
    "Unfold": [
        Pair(
            lambda *_: nn.Unfold((3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
            lambda: there.Unfold((3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
            normal((2, 3, 7, 6)),
        )
    ],
    "PixelUnshuffle": [
        Pair(lambda *_: nn.PixelUnshuffle(2), lambda: there.PixelUnshuffle(2), normal((2, 3, 4, 6)))
    ],
    "Conv1d": [
        convolution("Conv1d", 4, 6, 3, padding=1),
        convolution("Conv1d", 4, 6, 2, stride=3, dilation=2, groups=2),
        convolution("Conv1d", 4, 6, 4, padding="same", dilation=3),
    ],
    "Conv2d": [
        convolution("Conv2d", 4, 6, 3, stride=2, padding=1),
        convolution("Conv2d", 4, 6, 2, dilation=3, groups=2),
        convolution("Conv2d", 4, 6, 3, bias=False),
        convolution("Conv2d", 4, 6, (5, 1), (2, 1), (2, 0)),
        convolution("Conv2d", 4, 6, (2, 3), 1, (0, 1), (3, 2), groups=2),
        convolution("Conv2d", 4, 6, (3, 2), padding="same"),
        convolution("Conv2d", 4, 6, (4, 1), padding="same", dilation=(2, 1)),
    ],
    "ConvTranspose1d": [
        convolution("ConvTranspose1d", 4, 6, 3, stride=2, padding=1, output_padding=1)
    ],
    "ConvTranspose2d": [
        convolution("ConvTranspose2d", 4, 6, 3, stride=2, padding=1),
        convolution("ConvTranspose2d", 4, 6, 2, dilation=2, groups=2, bias=False),
        convolution("ConvTranspose2d", 4, 6, (3, 2), (2, 1), (1, 0), (1, 0)),
    ],
    **{
        kind: [
            pooling(kind, 2),
            pooling(kind, 3, stride=2, padding=1),
            pooling(kind, (2, 1)),
            pooling(kind, (3, 2), (2, 1), (1, 0)),
            *([] if kind == "AvgPool2d" else [pooling(kind, (3, 2), 1, 1, (1, 2))]),
        ]
        for kind in ("AvgPool2d", "MaxPool2d", "MinPool2d")
    },
    **{
        f"Global{name}Pool2d": [
            elementwise(f"Global{name}Pool2d", function(theirs), normal((2, 3, 9, 8)))
        ]
        for name, theirs in {
            "Avg": lambda x: functional.adaptive_avg_pool2d(x, 1).flatten(1),
            "Max": lambda x: functional.adaptive_max_pool2d(x, 1).flatten(1),
            "Min": lambda x: x.amin((-2, -1)),
        }.items()
    },
    "BatchNorm1d": [
        normalization("BatchNorm1d", 4, (6, 4)),
        normalization("BatchNorm1d", 4, (3, 4, 5)),
    ],
    "BatchNorm2d": [normalization("BatchNorm2d", 4, (3, 4, 5, 2))],
    "LayerNorm": [normalization("LayerNorm", 4, (2, 3, 4))],
    "GroupNorm": [groups(2, (3, 4, 5, 2)), groups(4, (2, 4, 6)), groups(1, (3, 4))],
    "RMSNorm": [
        Pair(
            lambda dtype, _: here.RMSNorm(4, dtype, eps=0.1),
            lambda: there.RMSNorm(4, eps=0.1),
            normal((2, 3, 4)),
        )
    ],
    **{kind: [recurrent(kind)] for kind in ("RNN", "GRU", "LSTM")},
    **{
        f"Stacked{kind}": [
            stacked(kind, 3, bias=False),
            stacked(kind, 2, bidirectional=True),
            stacked(kind, 1, bidirectional=True, bias=False),
        ]
        for kind in ("RNN", "GRU", "LSTM")
    },
    **{kind: [cell(kind)] for kind in ("RNNCell", "GRUCell", "LSTMCell")},
    "UnbiasedMultiHeadAttention": [
        attention(
            lambda layer, x: layer.forward(x),
            lambda module, x: module(x, x, x, need_weights=False)[0],
            (2, 5, 8),
            bias=False,
        )
    ],
    "MultiHeadAttention": [
        attention(
            lambda layer, x: layer.forward(x, causal=True),
            lambda module, x: module(x, x, x, attn_mask=hidden_future(x), need_weights=False)[0],
            (2, 5, 8),
        ),
        attention(
            lambda layer, x, bias: layer.forward(x, bias=bias),
            lambda module, x, bias: module(x, x, x, attn_mask=bias, need_weights=False)[0],
            (2, 5, 8),
            (5, 5),
        ),
        attention(
            lambda layer, *inputs: layer.forward(*inputs),
            lambda module, *inputs: module(*inputs, need_weights=False)[0],
            (2, 3, 8),
            (2, 5, 8),
            (2, 5, 8),
        ),
    ],
    "EncoderBlock": [
        Pair(
            of_type(lambda dtype: here.EncoderBlock[L[8], L[2], L[12], dtype]),
            lambda: there.TransformerEncoderLayer(8, 2, **SIZES),
            normal((2, 5, 8)),
        )
    ],
    "DecoderBlock": [
        Pair(
            of_type(lambda dtype: here.DecoderBlock[L[8], L[2], L[12], dtype]),
            lambda: there.TransformerDecoderLayer(8, 2, **SIZES),
            normal((2, 3, 8), (2, 5, 8)),
            run_theirs=lambda module, x, memory: module(x, memory, tgt_mask=hidden_future(x)),
        )
    ],
    "Repeated": [
        Pair(
            of_type(lambda dtype: here.Repeated[here.EncoderBlock[L[8], L[2], L[12], dtype], L[2]]),
            encoder,
            normal((2, 5, 8)),
        )
    ],
    "Transformer": [
        Pair(
            of_type(lambda dtype: here.Transformer[L[8], L[2], L[12], L[2], L[2], dtype]),
            lambda: Composed(
                transformed,
                encoder=encoder(),
                decoder=there.ModuleList(
                    [there.TransformerDecoderLayer(8, 2, **SIZES) for _ in range(2)]
                ),
            ),
            normal((2, 5, 8), (2, 3, 8)),
        )
    ],
    "Sequential": [
        Pair(
            lambda dtype, rng: nn.Sequential(
                nn.Linear(4, 5, dtype, rng=rng), nn.Tanh(), nn.Linear(5, 2, dtype, rng=rng)
            ),
            lambda: there.Sequential(there.Linear(4, 5), there.Tanh(), there.Linear(5, 2)),
            normal((3, 4)),
        )
    ],
    "ResidualAdd": [residual("ResidualAdd", lambda m, x: x + m.layer(x))],
    "ResidualMul": [residual("ResidualMul", lambda m, x: x * m.layer(x))],
    "ParallelAdd": [branches("ParallelAdd", lambda m, x: m.layers[0](x) + m.layers[1](x))],
    "ParallelMul": [branches("ParallelMul", lambda m, x: m.layers[0](x) * m.layers[1](x))],
    "SplitInto": [branches("SplitInto", lambda m, x: (m.layers[0](x), m.layers[1](x)))],
    "AddInto": [
        branches(
            "AddInto",
            lambda m, x, y: m.layers[0](x) + m.layers[1](y),
            run_ours=lambda layer, *inputs: layer.forward(inputs),
        )
    ],
}
