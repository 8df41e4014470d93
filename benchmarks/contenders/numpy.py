"""numpy as one would write it by hand: forward, backward and Adam spelled out, allocating freely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, Affine, Array

GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715

# Parameters in; loss and their gradients out.
ValueAndGradients = Callable[[list[Array]], tuple[float, Sequence[Array]]]


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


def cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """Return the mean cross entropy over rows, and the gradient of the logits."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    g: Array = np.exp(log_probabilities)
    g[rows, labels] -= 1
    g /= len(labels)
    return float(-log_probabilities[rows, labels].mean()), g


def gelu(x: Array) -> tuple[Array, Array]:
    """Return gelu (tanh) and its slope."""
    squared = x * x
    t = np.tanh(GELU_SCALE * x * (1 + GELU_CUBIC * squared))
    half = 0.5 * (1 + t)
    slope = half + 0.5 * x * (1 - t * t) * (GELU_SCALE * (1 + 3 * GELU_CUBIC * squared))
    return x * half, slope


def training_step(
    parameters: Sequence[Sequence[Array]], value_and_gradients: ValueAndGradients
) -> Step:
    """Return a step of Adam on several parameters, each updated into fresh arrays."""
    current = [one for group in parameters for one in group]
    means = [np.zeros_like(one) for one in current]
    squares = [np.zeros_like(one) for one in current]
    beta1, beta2 = BETAS
    count = 0

    def step() -> tuple[Any, ...]:
        nonlocal count
        value, gradients = value_and_gradients(current)
        count += 1
        for i, g in enumerate(gradients):
            means[i] = beta1 * means[i] + (1 - beta1) * g
            squares[i] = beta2 * squares[i] + (1 - beta2) * g * g
            mean = means[i] / (1 - beta1**count)
            square = squares[i] / (1 - beta2**count)
            current[i] = current[i] - LEARNING_RATE * mean / (np.sqrt(square) + EPS)
        return (value,)

    return step


def _pairs(parameters: Sequence[Array]) -> list[Affine]:
    return [Affine(*pair) for pair in zip(parameters[::2], parameters[1::2], strict=True)]


STEPS: Steps = {
    "W1": relu_mlp,
    "W2": relu_mlp,
    "W3": gelu_mlp,
    "W6": elementwise,
    "W7": chain,
    "W8": scan,
    "W9a": inference,
    "W9b": inference,
}
