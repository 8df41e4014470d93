"""The ops and layers, each as a user of either library writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

MATRIX = (128, 512)
IMAGES = (16, 32, 28, 28)
SEQUENCES = (32, 40, 64)


class Case(NamedTuple):
    """One op.

    Attributes:
        name: what the table calls it.
        ours: from tensors to the result.
        theirs: the same for PyTorch's.
        shapes: of the operands.
        least: their smallest value; None for values of both signs.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]] = (MATRIX,)
    least: float | None = None


class Layer(NamedTuple):
    """One layer, both built when they are measured.

    Attributes:
        name: what the table calls it.
        ours: returns the layer; takes a generator.
        theirs: returns PyTorch's.
        shape: of the input.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[[], Any]
    shape: tuple[int, ...]


def _method(name: str, *arguments: Any, theirs: str = "", least: float | None = None) -> Case:
    return Case(
        name,
        lambda x: getattr(x, name)(*arguments),
        lambda x: getattr(x, theirs or name)(*arguments),
        least=least,
    )


def _function(name: str, *arguments: Any, **options: Any) -> Case:
    spelled = " ".join([name, *map(str, (*arguments, *options.values()))])

    def run(x: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, name)(x, *arguments, **options)

    return Case(spelled, lambda x: getattr(x, name)(*arguments, **options), run)


def _reduction(name: str, theirs: str = "", **options: Any) -> Iterator[Case]:
    for axis in (0, 1):
        yield Case(
            f"{name} over axis {axis}",
            lambda x, axis=axis: getattr(x, name)(axis=axis),
            lambda x, axis=axis: getattr(x, theirs or name)(axis, **options),
        )


Measured: TypeAlias = Case | Layer


def everything() -> dict[str, Measured]:
    """Return all by their names."""
    found: list[Measured] = [*cases(), *layers()]
    return {one.name: one for one in found}


def cases() -> list[Case]:
    """Return the ops."""
    import tapetensor as tt

    def torch(name: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            import torch

            return getattr(torch, name)(*arguments)

        return run

    rng = np.random.default_rng(1)
    mask = rng.random(MATRIX) < 0.5
    ids = rng.integers(0, MATRIX[0], 1000)
    batch = (32, 64, 64)
    return [
        _method("exp"),
        _method("log", least=0.1),
        _method("sqrt", least=0.1),
        _method("square"),
        _method("abs"),
        _method("sin"),
        _method("tanh"),
        _method("sigmoid"),
        _method("relu"),
        _function("silu"),
        _function("gelu"),
        _function("gelu", approximate="tanh"),
        _function("softplus"),
        _function("elu"),
        _function("leaky_relu", 0.1),
        # Not at -1 and 1, which numbers of the data are: PyTorch 2.15 has another slope at a bound.
        Case("clip", lambda x: x.clip(-0.9, 0.9), lambda x: x.clamp(-0.9, 0.9)),
        Case("x + y", lambda x, y: x + y, lambda x, y: x + y, (MATRIX, MATRIX)),
        Case("x * y", lambda x, y: x * y, lambda x, y: x * y, (MATRIX, MATRIX)),
        Case("x / y", lambda x, y: x / y, lambda x, y: x / y, (MATRIX, MATRIX), 0.5),
        Case("x * row", lambda x, y: x * y, lambda x, y: x * y, (MATRIX, MATRIX[1:])),
        Case("x ** 3", lambda x: x**3, lambda x: x**3),
        Case("x ** y", lambda x, y: x**y, lambda x, y: x**y, (MATRIX, MATRIX), 0.5),
        Case("maximum", tt.maximum, torch("maximum"), (MATRIX, MATRIX)),
        Case(
            "where",
            lambda x, y: tt.where(tt.from_numpy(mask, MATRIX), x, y),
            lambda x, y: torch("where")(torch("from_numpy")(mask), x, y),
            (MATRIX, MATRIX),
        ),
        *_reduction("sum"),
        *_reduction("mean"),
        *_reduction("max", "amax"),
        *_reduction("var", correction=0),
        *_reduction("logsumexp"),
        Case("softmax", lambda x: x.softmax(), lambda x: x.softmax(-1)),
        Case("log_softmax", lambda x: x.log_softmax(), lambda x: x.log_softmax(-1)),
        Case("transpose", lambda x: x.transpose() * 2.0, lambda x: x.T * 2.0),
        Case(
            "permute_dims",
            lambda x: x.permute_dims((0, 2, 1, 3)) * 2.0,
            lambda x: x.permute(0, 2, 1, 3) * 2.0,
            ((8, 16, 64, 32),),
        ),
        Case(
            "concat",
            lambda *xs: tt.concat(xs, axis=1),
            lambda *xs: torch("cat")(xs, 1),
            (MATRIX,) * 2,
        ),
        Case("split", lambda x: _sum(x.split(4, axis=1)), lambda x: _sum(x.split(128, 1))),
        Case("slice", lambda x: x[10:100, ::2], lambda x: x[10:100, ::2]),
        Case(
            "take",
            lambda x: x.take(tt.from_numpy(ids, ids.shape), axis=0),
            lambda x: x.index_select(0, torch("from_numpy")(ids)),
        ),
        _method("tril"),
        Case("matmul", lambda x, y: x @ y, lambda x, y: x @ y, ((128, 256), (256, 128))),
        Case("matmul, 32 pairs", lambda x, y: x @ y, lambda x, y: x @ y, (batch, batch)),
    ]


def layers() -> list[Layer]:
    """Return the layers."""
    from tapetensor import nn

    def torch(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
        def build() -> Any:
            import torch

            return getattr(torch.nn, name)(*arguments, **options)

        return build

    return [
        Layer(
            "Linear",
            lambda rng: nn.Linear(512, 256, rng=rng),
            torch("Linear", 512, 256),
            MATRIX,
        ),
        Layer("LayerNorm", lambda rng: nn.LayerNorm(512), torch("LayerNorm", 512), MATRIX),
        Layer("BatchNorm1d", lambda rng: nn.BatchNorm1d(512), torch("BatchNorm1d", 512), MATRIX),
        Layer("BatchNorm2d", lambda rng: nn.BatchNorm2d(32), torch("BatchNorm2d", 32), IMAGES),
        Layer(
            "Conv2d 3x3",
            lambda rng: nn.Conv2d(32, 32, 3, padding=1, rng=rng),
            torch("Conv2d", 32, 32, 3, padding=1),
            IMAGES,
        ),
        Layer(
            "Conv2d 3x3, stride 2",
            lambda rng: nn.Conv2d(32, 32, 3, stride=2, padding=1, rng=rng),
            torch("Conv2d", 32, 32, 3, stride=2, padding=1),
            IMAGES,
        ),
        Layer(
            "Conv2d 1x1",
            lambda rng: nn.Conv2d(32, 64, 1, rng=rng),
            torch("Conv2d", 32, 64, 1),
            IMAGES,
        ),
        Layer(
            "Conv2d 3x3, one group per channel",
            lambda rng: nn.Conv2d(32, 32, 3, padding=1, groups=32, rng=rng),
            torch("Conv2d", 32, 32, 3, padding=1, groups=32),
            IMAGES,
        ),
        Layer(
            "Conv1d 5",
            lambda rng: nn.Conv1d(16, 32, 5, padding=2, rng=rng),
            torch("Conv1d", 16, 32, 5, padding=2),
            (16, 16, 256),
        ),
        Layer(
            "ConvTranspose2d",
            lambda rng: nn.ConvTranspose2d(32, 8, 2, stride=2, rng=rng),
            torch("ConvTranspose2d", 32, 8, 2, stride=2),
            (16, 32, 14, 14),
        ),
        Layer("MaxPool2d 2", lambda rng: nn.MaxPool2d(2), torch("MaxPool2d", 2), IMAGES),
        Layer(
            "MaxPool2d 3, stride 2",
            lambda rng: nn.MaxPool2d(3, stride=2, padding=1),
            torch("MaxPool2d", 3, stride=2, padding=1),
            IMAGES,
        ),
        Layer("AvgPool2d 2", lambda rng: nn.AvgPool2d(2), torch("AvgPool2d", 2), IMAGES),
        *[
            Layer(name, partial(layer, 64, 128), torch(name, 64, 128, batch_first=True), SEQUENCES)
            for name, layer in {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}.items()
        ],
    ]


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
