"""numpy as one writes it by hand: forward, backward and Adam spelled out, allocating freely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import handwritten, problems
from benchmarks.contenders import Step, Steps
from benchmarks.handwritten import cross_entropy, gelu, training_step
from benchmarks.problems import Affine, Array


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""

    def value_and_gradients(parameters: list[Array]) -> tuple[float, Sequence[Array]]:
        layers = _pairs(parameters)
        inputs = [problem.x]
        for layer in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ layer.weight.T + layer.bias, 0))
        logits = inputs[-1] @ layers[-1].weight.T + layers[-1].bias
        value, g = cross_entropy(logits, problem.target)
        gradients: list[Array] = []
        for layer, x in zip(reversed(layers), reversed(inputs), strict=True):
            gradients = [g.T @ x, g.sum(0), *gradients]
            if x is not problem.x:
                g = (g @ layer.weight) * (x > 0)
        return value, gradients

    return training_step(problem.layers, value_and_gradients)


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""

    def value_and_gradients(parameters: list[Array]) -> tuple[float, Sequence[Array]]:
        layers = _pairs(parameters)
        inputs, slopes = [problem.x], []
        for layer in layers[:-1]:
            y, slope = gelu(inputs[-1] @ layer.weight.T + layer.bias)
            inputs.append(y)
            slopes.append(slope)
        difference = inputs[-1] @ layers[-1].weight.T + layers[-1].bias - problem.target
        g = difference * np.float32(2 / difference.size)
        gradients: list[Array] = []
        for layer, x in zip(reversed(layers), reversed(inputs), strict=True):
            gradients = [g.T @ x, g.sum(0), *gradients]
            if x is not problem.x:
                g = (g @ layer.weight) * slopes.pop()
        return float((difference * difference).mean()), gradients

    return training_step(problem.layers, value_and_gradients)


def cnn(problem: problems.Cnn) -> Step:
    """Return a training step of the convolutional network, the channels last inside."""
    images = np.ascontiguousarray(problem.x.transpose(0, 2, 3, 1))

    def value_and_gradients(parameters: list[Array]) -> tuple[float, Sequence[Array]]:
        first, second, out = _pairs(parameters)
        one, back_one = handwritten.convolution_block(images, first)
        two, back_two = handwritten.convolution_block(one, second)
        features = two.transpose(0, 3, 1, 2).reshape(len(images), -1)
        value, g = cross_entropy(features @ out.weight.T + out.bias, problem.labels)
        n, height, width, channels = two.shape
        g_two = (g @ out.weight).reshape(n, channels, height, width).transpose(0, 2, 3, 1)
        g_one, *gradients_two = back_two(g_two)
        _, *gradients_one = back_one(g_one, wants_input=False)
        return value, [*gradients_one, *gradients_two, g.T @ features, g.sum(0)]

    return training_step((problem.first, problem.second, problem.out), value_and_gradients)


def transformer(problem: problems.Transformer) -> Step:
    """Return a training step of the transformer."""
    batch, context = problem.ids.shape
    vocabulary, width = problem.tokens.shape
    ids, following = problem.ids.reshape(-1), problem.following.reshape(-1)
    one_hot = np.eye(vocabulary, dtype=np.float32)[ids]

    def value_and_gradients(parameters: list[Array]) -> tuple[float, Sequence[Array]]:
        tokens, positions, *rest = parameters
        *blocks, norm, head = _pairs(rest)
        x = (tokens[ids].reshape(batch, context, width) + positions).reshape(-1, width)
        pullbacks = []
        for start in range(0, len(blocks), 6):
            layers = problems.Block(*blocks[start : start + 6])
            x, pullback = handwritten.transformer_block(x, layers, batch, problem.heads)
            pullbacks.append(pullback)
        normalized, back_norm = handwritten.layer_norm(x, norm)
        value, g = cross_entropy(normalized @ head.weight.T + head.bias, following)
        gradients = [g.T @ normalized, g.sum(0)]
        g, *found = back_norm(g @ head.weight)
        gradients = [*found, *gradients]
        for pullback in reversed(pullbacks):
            g, *found = pullback(g)
            gradients = [*found, *gradients]
        of_positions = g.reshape(batch, context, width).sum(0)
        return value, [one_hot.T @ g, of_positions, *gradients]

    block_parameters = [affine for block in problem.blocks for affine in block]
    tables = (problem.tokens, problem.positions)
    return training_step(
        (tables, *block_parameters, problem.norm, problem.head), value_and_gradients
    )


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient."""
    x = problem.x

    def step() -> tuple[Any, ...]:
        t = np.tanh(x)
        s = 1 / (1 + np.exp(-x))
        e = np.exp(-x * x)
        value = (t * s + e).mean()
        gradient = ((1 - t * t) * s + t * s * (1 - s) - 2 * x * e) / x.size
        return float(value), gradient

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term, pairs = problem

    def step() -> tuple[Any, ...]:
        y = x
        for _ in range(pairs):
            y = y * factor + term
        g = np.ones_like(x)
        for _ in range(pairs):
            g = g * factor
        return y, g

    return step


def scan(problem: problems.Scan) -> Step:
    """Return the states and the three gradients."""
    a, b, x, cotangent = problem

    def step() -> tuple[Any, ...]:
        driven = b * x
        h = np.empty_like(x)
        state = np.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = a[:, t] * state + driven[:, t]
            h[:, t] = state
        g = cotangent.copy()
        for t in range(x.shape[1] - 2, -1, -1):
            g[:, t] += a[:, t + 1] * g[:, t + 1]
        g_a = np.zeros_like(a)
        g_a[:, 1:] = g[:, 1:] * h[:, :-1]
        return h, g_a, g * x, g * b

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    *hidden, out = problem.layers

    def step() -> tuple[Any, ...]:
        x = problem.x
        for layer in hidden:
            x = np.maximum(x @ layer.weight.T + layer.bias, 0)
        return (x @ out.weight.T + out.bias,)

    return step


def _pairs(parameters: Sequence[Array]) -> list[Affine]:
    return [Affine(*pair) for pair in zip(parameters[::2], parameters[1::2], strict=True)]


STEPS: Steps = {
    "W1": relu_mlp,
    "W2": relu_mlp,
    "W3": gelu_mlp,
    "W4": cnn,
    "W5": transformer,
    "W6": elementwise,
    "W7": chain,
    "W8": scan,
    "W9a": inference,
    "W9b": inference,
}
