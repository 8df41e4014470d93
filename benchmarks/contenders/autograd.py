"""autograd: differentiated numpy, with the Adam of the hand-written contender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd
from autograd import numpy as anp
from autograd.builtins import tuple as traced_tuple

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.handwritten import GELU_CUBIC, GELU_SCALE, training_step
from benchmarks.problems import NORM_EPS, Array


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""

    def loss(parameters: Sequence[Any]) -> Any:
        return _cross_entropy(_forward(parameters, problem.x, _relu), problem.target)

    return _training_step(problem.layers, loss)


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""

    def loss(parameters: Sequence[Any]) -> Any:
        return anp.mean(anp.square(_forward(parameters, problem.x, _gelu) - problem.target))

    return _training_step(problem.layers, loss)


def cnn(problem: problems.Cnn) -> Step:
    """Return a training step of the convolutional network, the channels last inside."""
    images = problem.x.transpose(0, 2, 3, 1)

    def block(x: Any, weight: Any, bias: Any) -> Any:
        n, height, width, channels = x.shape
        padded = anp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "constant")
        columns = anp.concatenate(
            [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)], axis=3
        )
        matrix = anp.reshape(anp.transpose(weight, (2, 3, 1, 0)), (9 * channels, -1))
        y = _relu(anp.dot(columns, matrix) + bias)
        windows = anp.reshape(y, (n, height // 2, 2, width // 2, 2, -1))
        return anp.max(windows, axis=(2, 4))

    def loss(parameters: Sequence[Any]) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        features = anp.transpose(block(block(images, w1, b1), w2, b2), (0, 3, 1, 2))
        flat = anp.reshape(features, (len(images), -1))
        return _cross_entropy(anp.dot(flat, w3.T) + b3, problem.labels)

    return _training_step((problem.first, problem.second, problem.out), loss)


def transformer(problem: problems.Transformer) -> Step:
    """Return a training step of the transformer."""
    batch, context = problem.ids.shape
    masked = anp.where(anp.tri(context, dtype=bool), 0.0, -1e9).astype("float32")

    def normalize(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - anp.mean(x, axis=-1, keepdims=True)
        variance = anp.mean(anp.square(centred), axis=-1, keepdims=True)
        return centred / anp.sqrt(variance + NORM_EPS) * weight + bias

    def attend(x: Any, w: Any, b: Any) -> Any:
        parts = anp.reshape(anp.dot(x, w.T) + b, (batch, context, 3, problem.heads, -1))
        parts = anp.transpose(parts, (2, 0, 3, 1, 4))
        query, key, value = parts[0], parts[1], parts[2]
        scores = anp.matmul(query, anp.swapaxes(key, -1, -2)) * query.shape[-1] ** -0.5 + masked
        e = anp.exp(scores - anp.max(scores, axis=-1, keepdims=True))
        heads = anp.matmul(e / anp.sum(e, axis=-1, keepdims=True), value)
        return anp.reshape(anp.swapaxes(heads, 1, 2), (batch, context, -1))

    def loss(parameters: Sequence[Any]) -> Any:
        tokens, positions, *rest = parameters
        x = tokens[problem.ids] + positions
        for start in range(0, 12 * len(problem.blocks), 12):
            n1, m1, w1, b1, w2, b2, n2, m2, w3, b3, w4, b4 = rest[start : start + 12]
            x = x + anp.dot(attend(normalize(x, n1, m1), w1, b1), w2.T) + b2
            x = x + anp.dot(_gelu(anp.dot(normalize(x, n2, m2), w3.T) + b3), w4.T) + b4
        norm, shift, head, bias = rest[-4:]
        logits = anp.dot(normalize(x, norm, shift), head.T) + bias
        return _cross_entropy(
            anp.reshape(logits, (batch * context, -1)), problem.following.reshape(-1)
        )

    blocks = [affine for block in problem.blocks for affine in block]
    tables = (problem.tokens, problem.positions)
    return _training_step((tables, *blocks, problem.norm, problem.head), loss)


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient."""

    def loss(x: Any) -> Any:
        return anp.mean(anp.tanh(x) * _sigmoid(x) + anp.exp(-anp.square(x)))

    run = autograd.value_and_grad(loss)

    def step() -> tuple[Any, ...]:
        value, gradient = run(problem.x)
        return float(value), gradient

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term, pairs = problem
    cotangent = anp.ones_like(x)

    def end(x: Any) -> Any:
        for _ in range(pairs):
            x = x * factor + term
        return x

    def step() -> tuple[Any, ...]:
        pullback, y = autograd.make_vjp(end)(x)
        return y, pullback(cotangent)

    return step


def scan(problem: problems.Scan) -> Step:
    """Return the states and the three gradients."""
    a, b, x, cotangent = problem

    def states(inputs: Any) -> Any:
        a, b, x = inputs
        driven = b * x
        state = driven[:, 0]
        history = [state]
        for t in range(1, x.shape[1]):
            state = a[:, t] * state + driven[:, t]
            history.append(state)
        return anp.stack(history, axis=1)

    def step() -> tuple[Any, ...]:
        pullback, h = autograd.make_vjp(states)(traced_tuple((a, b, x)))
        return h, *pullback(cotangent)

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    parameters = [one for layer in problem.layers for one in layer]

    def step() -> tuple[Any, ...]:
        return (_forward(parameters, problem.x, _relu),)

    return step


def _forward(parameters: Sequence[Any], x: Any, activation: Callable[[Any], Any]) -> Any:
    *hidden, weight, bias = parameters
    for w, b in zip(hidden[::2], hidden[1::2], strict=True):
        x = activation(anp.dot(x, w.T) + b)
    return anp.dot(x, weight.T) + bias


def _relu(x: Any) -> Any:
    return anp.maximum(x, 0)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + anp.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + anp.tanh(GELU_SCALE * x * (1 + GELU_CUBIC * anp.square(x))))


def _cross_entropy(logits: Any, labels: Array) -> Any:
    shifted = logits - anp.max(logits, axis=1, keepdims=True)
    log_probabilities = shifted - anp.log(anp.sum(anp.exp(shifted), axis=1, keepdims=True))
    return -anp.mean(log_probabilities[anp.arange(len(labels)), labels])


def _training_step(
    parameters: Sequence[Sequence[Array]], loss: Callable[[Sequence[Any]], Any]
) -> Step:
    run = autograd.value_and_grad(loss)

    def value_and_gradients(current: list[Array]) -> tuple[float, Sequence[Array]]:
        value, gradients = run(current)
        return float(value), gradients

    return training_step(parameters, value_and_gradients)


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
