"""The matrix products of a workload alone, into buffers of their own: what BLAS cannot go below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import Array


def mlp(problem: problems.Mlp) -> Step:
    """Return the products of forward and backward; none for the gradient of the input."""
    products: list[tuple[Array, Array]] = []
    x = problem.x
    for layer in problem.layers:
        y = _filled(len(x), len(layer.weight))
        products += [(x, layer.weight.T), (y.T, x)]
        if x is not problem.x:
            products.append((y, layer.weight))
        x = y
    return _step(products)


def cnn(problem: problems.Cnn) -> Step:
    """Return the products of the convolutions as patches times weight, and of the affine layer."""
    batch, _, size, _ = problem.x.shape
    products: list[tuple[Array, Array]] = []
    for layer, pixels in ((problem.first, size * size), (problem.second, (size // 2) ** 2)):
        channels_out, channels_in, *_ = layer.weight.shape
        patches = _filled(batch * pixels, 9 * channels_in)
        y = _filled(batch * pixels, channels_out)
        weight = _filled(9 * channels_in, channels_out)
        products += [(patches, weight), (patches.T, y)]
        if layer is problem.second:
            products.append((y, weight.T))
    features, logits = _filled(batch, problem.out.weight.shape[1]), _filled(batch, 10)
    weight = problem.out.weight
    return _step([*products, (features, weight.T), (logits.T, features), (logits, weight)])


def transformer(problem: problems.Transformer) -> Step:
    """Return the products of the affine layers and of attention."""
    batch, context = problem.ids.shape
    width = problem.tokens.shape[1]
    products: list[tuple[Array, Array]] = []
    weights = [
        affine.weight
        for block in problem.blocks
        for affine in (block.query_key_value, block.projection, block.hidden, block.out)
    ]
    for weight in [*weights, problem.head.weight]:
        out_features, in_features = weight.shape
        x, y = _filled(batch * context, in_features), _filled(batch * context, out_features)
        products += [(x, weight.T), (y.T, x), (y, weight)]
    shape = (batch, problem.heads, context)
    for _ in problem.blocks:
        tall, square = _filled(*shape, width // problem.heads), _filled(*shape, context)
        wide, turned = tall.swapaxes(-1, -2), square.swapaxes(-1, -2)
        # Scores and the mixed values; then backwards the value, the weights, the query and the key.
        products += [(tall, wide), (square, tall), (turned, tall), (tall, wide)]
        products += [(square, tall), (turned, tall)]
    return _step(products)


def inference(problem: problems.Mlp) -> Step:
    """Return the products of the forward pass."""
    sizes = [problem.x.shape[1], *[len(layer.weight) for layer in problem.layers]]
    inputs = [problem.x, *[_filled(len(problem.x), size) for size in sizes[1:-1]]]
    return _step([(x, layer.weight.T) for x, layer in zip(inputs, problem.layers, strict=True)])


def _filled(*shape: int) -> Array:
    # Not zeros: their memory is one page of the kernel's.
    return np.full(shape, 0.5, np.float32)


def _step(products: Sequence[tuple[Array, Array]]) -> Step:
    into = [(lhs, rhs, np.matmul(lhs, rhs)) for lhs, rhs in products]

    def step() -> tuple[Any, ...]:
        for lhs, rhs, out in into:
            np.matmul(lhs, rhs, out=out)
        return ()

    return step


STEPS: Steps = {
    "W1": mlp,
    "W2": mlp,
    "W3": mlp,
    "W4": cnn,
    "W5": transformer,
    "W9a": inference,
    "W9b": inference,
}
