"""The workloads: what is computed, and the data that all contenders start from."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# What every optimizer step does.
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPS = 1e-8

# Of the layer norms.
NORM_EPS = 1e-5


class Affine(NamedTuple):
    """``x @ weight.T + bias``; the weight has shape (out, in), or (out, in, 3, 3) in a convolution.

    Attributes:
        weight: float32.
        bias: float32, (out,).
    """

    weight: Array
    bias: Array


class Mlp(NamedTuple):
    """A stack of affine layers with an activation between them.

    Attributes:
        x: the batch, (batch, in).
        target: labels (batch,) of the last layer's classes, or values (batch, out).
        layers: from the input on.
    """

    x: Array
    target: Array
    layers: tuple[Affine, ...]


class Cnn(NamedTuple):
    """Twice convolution 3x3 with padding 1, relu, max pooling 2x2; then an affine layer.

    Attributes:
        x: images, (batch, channels, height, width).
        labels: (batch,).
        first: the first convolution.
        second: the second one.
        out: on the flattened features.
    """

    x: Array
    labels: Array
    first: Affine
    second: Affine
    out: Affine


class Block(NamedTuple):
    """One layer of a pre-norm transformer.

    Attributes:
        attention_norm: scale and shift, (width,).
        query_key_value: one projection for the three, (3 * width, width).
        projection: what attention ends with.
        mlp_norm: scale and shift.
        hidden: to four times the width; gelu (tanh) follows.
        out: and back.
    """

    attention_norm: Affine
    query_key_value: Affine
    projection: Affine
    mlp_norm: Affine
    hidden: Affine
    out: Affine


class Transformer(NamedTuple):
    """A causal character transformer.

    Attributes:
        ids: (batch, context).
        following: the id after each.
        heads: how many attention heads.
        tokens: the token embedding, (vocabulary, width).
        positions: the position embedding, (context, width).
        blocks: the layers.
        norm: the last layer norm.
        head: logits of the vocabulary.
    """

    ids: Array
    following: Array
    heads: int
    tokens: Array
    positions: Array
    blocks: tuple[Block, ...]
    norm: Affine
    head: Affine


class Elementwise(NamedTuple):
    """mean(tanh(x) sigmoid(x) + exp(-x x)) and its gradient.

    Attributes:
        x: a vector.
    """

    x: Array


class Chain(NamedTuple):
    """``x = x * factor + term``, many times, and the gradient of the sum with respect to x.

    Attributes:
        x: a vector.
        factor: another.
        term: a third.
        pairs: how often; two ops each.
    """

    x: Array
    factor: Array
    term: Array
    pairs: int


class Scan(NamedTuple):
    """``h[t] = a[t] * h[t - 1] + b[t] * x[t]`` with ``h[-1] = 0``, and the gradients of a, b and x.

    Attributes:
        a: (batch, length, channels), as b, x and the cotangent.
        b: the input gate.
        x: the input.
        cotangent: of h.
    """

    a: Array
    b: Array
    x: Array
    cotangent: Array


class Workload(NamedTuple):
    """One row of the results.

    Attributes:
        title: what it is.
        problem: makes its data, of the size that is measured or, for tests, tiny.
        operations: a time is also given per one of so many operations.
    """

    title: str
    problem: Callable[[bool], Any]
    operations: int = 1


def mlp(sizes: tuple[int, ...], batch: int, *, classifies: bool = True) -> Mlp:
    """Return an MLP problem."""
    rng = np.random.default_rng(0)
    layers = tuple([_affine(rng, n, m) for n, m in pairwise(sizes)])
    x = _normal(rng, batch, sizes[0])
    target = rng.integers(sizes[-1], size=batch) if classifies else _normal(rng, batch, sizes[-1])
    return Mlp(x, target, layers)


def cnn(size: int, channels: tuple[int, int], batch: int) -> Cnn:
    """Return a CNN problem on square images of one channel."""
    rng = np.random.default_rng(0)
    first, second = channels
    return Cnn(
        _normal(rng, batch, 1, size, size),
        rng.integers(10, size=batch),
        _convolution(rng, 1, first),
        _convolution(rng, first, second),
        _affine(rng, second * (size // 4) ** 2, 10),
    )


def transformer(width: int, heads: int, context: int, batch: int, vocabulary: int) -> Transformer:
    """Return a problem with two layers."""
    rng = np.random.default_rng(0)
    text = rng.integers(vocabulary, size=(batch, context + 1))
    return Transformer(
        text[:, :-1].copy(),
        text[:, 1:].copy(),
        heads,
        _normal(rng, vocabulary, width) * np.float32(0.02),
        _normal(rng, context, width) * np.float32(0.02),
        tuple([_block(rng, width) for _ in range(2)]),
        _norm(width),
        _affine(rng, width, vocabulary),
    )


def elementwise(size: int) -> Elementwise:
    """Return a problem of so many elements."""
    return Elementwise(_normal(np.random.default_rng(0), size))


def chain(pairs: int) -> Chain:
    """Return a chain on vectors of 16 whose values stay near 1."""
    rng = np.random.default_rng(0)
    x, wobble = rng.uniform(0.5, 1.5, 16), rng.uniform(-1e-3, 1e-3, 16)
    return Chain(_float32(x), _float32(1 + wobble), _float32(-wobble), pairs)


def scan(batch: int, length: int, channels: int) -> Scan:
    """Return a scan that forgets slowly."""
    rng = np.random.default_rng(0)
    shape = (batch, length, channels)
    a = np.float32(0.9) + np.float32(0.1) * rng.random(shape, np.float32)
    return Scan(a, _normal(rng, *shape), _normal(rng, *shape), _normal(rng, *shape))


WORKLOADS: dict[str, Workload] = {
    "W1": Workload(
        "tiny MLP, training step",
        lambda tiny: mlp((8, 6, 4), 5) if tiny else mlp((64, 32, 10), 32),
    ),
    "W2": Workload(
        "MNIST-sized MLP, training step",
        lambda tiny: mlp((12, 8, 6, 4), 5) if tiny else mlp((784, 512, 256, 10), 128),
    ),
    "W3": Workload(
        "wide MLP, training step",
        lambda tiny: (
            mlp((6, 8, 8, 6), 5, classifies=False)
            if tiny
            else mlp((1024, 2048, 2048, 1024), 256, classifies=False)
        ),
    ),
    "W4": Workload(
        "CNN, training step", lambda tiny: cnn(8, (2, 3), 4) if tiny else cnn(28, (16, 32), 64)
    ),
    "W5": Workload(
        "character transformer, training step",
        lambda tiny: transformer(8, 2, 5, 3, 7) if tiny else transformer(128, 4, 64, 16, 96),
    ),
    "W6": Workload(
        "elementwise, value and gradient", lambda tiny: elementwise(64 if tiny else 1 << 22)
    ),
    "W7": Workload(
        "chain of 1000 ops, forward and backward", lambda tiny: chain(8 if tiny else 500), 1000
    ),
    "W8": Workload(
        "scan, forward and backward",
        lambda tiny: scan(2, 9, 3) if tiny else scan(8, 1024, 256),
    ),
    "W9a": Workload(
        "inference of W2, batch 1",
        lambda tiny: mlp((12, 8, 6, 4), 1) if tiny else mlp((784, 512, 256, 10), 1),
    ),
    "W9b": Workload(
        "inference of W2, batch 128",
        lambda tiny: mlp((12, 8, 6, 4), 5) if tiny else mlp((784, 512, 256, 10), 128),
    ),
}


def _float32(values: Array) -> Array:
    return values.astype(np.float32)


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


def _uniform(rng: np.random.Generator, bound: float, *shape: int) -> Array:
    values: Array = (rng.random(shape, dtype=np.float32) * 2 - 1) * np.float32(bound)
    return values


def _affine(rng: np.random.Generator, fan_in: int, fan_out: int) -> Affine:
    bound = fan_in**-0.5
    return Affine(_uniform(rng, bound, fan_out, fan_in), _uniform(rng, bound, fan_out))


def _convolution(rng: np.random.Generator, channels_in: int, channels_out: int) -> Affine:
    bound = (9 * channels_in) ** -0.5
    weight = _uniform(rng, bound, channels_out, channels_in, 3, 3)
    return Affine(weight, _uniform(rng, bound, channels_out))


def _norm(width: int) -> Affine:
    return Affine(np.ones(width, np.float32), np.zeros(width, np.float32))


def _block(rng: np.random.Generator, width: int) -> Block:
    return Block(
        _norm(width),
        _affine(rng, width, 3 * width),
        _affine(rng, width, width),
        _norm(width),
        _affine(rng, width, 4 * width),
        _affine(rng, 4 * width, width),
    )
