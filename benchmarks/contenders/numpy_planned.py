"""numpy with everything planned by hand: a buffer for every result, and one flat one for Adam.

What a person who writes out one program for speed can get from numpy, and no library would ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.handwritten import GELU_CUBIC, GELU_SCALE
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, Affine, Array

# Elements that stay in the cache while a whole chain of ufuncs runs over them.
BLOCK = 1 << 15

Run = Callable[[], None]


class FlatAdam:
    """Parameters, gradients and moments end to end in one buffer each, updated block by block.

    Args:
        parameters: the first values.
    """

    def __init__(self, parameters: Sequence[Array]) -> None:
        flat = np.concatenate([one.reshape(-1) for one in parameters])
        gradient, means, squares = [np.zeros_like(flat) for _ in range(3)]
        scratch = np.empty(min(BLOCK, flat.size), np.float32)
        self._blocks = [
            (*[one[start : start + BLOCK] for one in (flat, gradient, means, squares)],)
            for start in range(0, flat.size, BLOCK)
        ]
        self._scratches = [scratch[: len(block[0])] for block in self._blocks]
        self._count = 0
        self.parameters = _views(flat, parameters)
        self.gradients = _views(gradient, parameters)

    def step(self) -> None:
        """Update the parameters by the gradients, which are spent."""
        self._count += 1
        beta1, beta2 = BETAS
        # The sums are kept without the factor 1 - beta, which goes into two numbers.
        root = ((1 - beta2**self._count) / (1 - beta2)) ** 0.5
        rate = LEARNING_RATE * (1 - beta1) / (1 - beta1**self._count) * root
        floor = EPS * root
        for (p, g, m, v), scratch in zip(self._blocks, self._scratches, strict=True):
            np.multiply(m, beta1, out=m)
            np.add(m, g, out=m)
            np.multiply(v, beta2, out=v)
            np.multiply(g, g, out=g)
            np.add(v, g, out=v)
            np.sqrt(v, out=scratch)
            np.add(scratch, floor, out=scratch)
            np.divide(m, scratch, out=scratch)
            np.multiply(scratch, rate, out=scratch)
            np.subtract(p, scratch, out=p)


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""
    rows = np.arange(len(problem.x))
    count = np.float32(len(problem.x))

    def loss(logits: Array, g: Array) -> Callable[[], float]:
        largest = np.empty((len(logits), 1), np.float32)
        totals = np.empty_like(largest)

        def run() -> float:
            np.maximum.reduce(logits, axis=1, keepdims=True, out=largest)
            np.subtract(logits, largest, out=logits)
            np.exp(logits, out=g)
            np.add.reduce(g, axis=1, keepdims=True, out=totals)
            at_labels = logits[rows, problem.target]
            np.divide(g, totals, out=g)
            np.log(totals, out=totals)
            value = (np.add.reduce(totals[:, 0]) - np.add.reduce(at_labels)) / count
            g[rows, problem.target] -= 1
            np.divide(g, count, out=g)
            return float(value)

        return run

    def relu(y: Array) -> tuple[Run, Callable[[Array], None]]:
        slope = np.empty_like(y)

        def backward(g: Array) -> None:
            np.sign(y, out=slope)
            np.multiply(g, slope, out=g)

        return lambda: _discard(np.maximum(y, 0, out=y)), backward

    return _training_step(problem, relu, loss)


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""

    def loss(prediction: Array, g: Array) -> Callable[[], float]:
        scale = np.float32(2 / prediction.size)

        def run() -> float:
            np.subtract(prediction, problem.target, out=g)
            flat = g.reshape(-1)
            value = float(np.dot(flat, flat)) / flat.size
            np.multiply(g, scale, out=g)
            return value

        return run

    return _training_step(problem, _gelu, loss)


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient, block by block."""
    x = problem.x
    gradient = np.empty_like(x)
    scratches = [np.empty(min(BLOCK, x.size), np.float32) for _ in range(5)]
    scale = np.float32(1 / x.size)

    def step() -> tuple[Any, ...]:
        total = 0.0
        for start in range(0, x.size, BLOCK):
            part, g = x[start : start + BLOCK], gradient[start : start + BLOCK]
            t, s, e, one, two = [scratch[: part.size] for scratch in scratches]
            np.tanh(part, out=t)
            np.negative(part, out=s)
            np.exp(s, out=s)
            np.add(s, 1, out=s)
            np.reciprocal(s, out=s)
            np.multiply(part, part, out=e)
            np.negative(e, out=e)
            np.exp(e, out=e)
            np.multiply(t, s, out=one)
            total += float(np.add.reduce(one)) + float(np.add.reduce(e))
            # The slope: (1 - t t) s + t s (1 - s) - 2 x e, which is s + t s - t s (t + s) - 2 x e.
            np.add(t, s, out=two)
            np.multiply(two, one, out=two)
            np.add(s, one, out=g)
            np.subtract(g, two, out=g)
            np.multiply(part, e, out=e)
            np.add(e, e, out=e)
            np.subtract(g, e, out=g)
            np.multiply(g, scale, out=g)
        return total / x.size, gradient

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term, pairs = problem
    y, g = np.empty_like(x), np.empty_like(x)

    def step() -> tuple[Any, ...]:
        multiply, add = np.multiply, np.add
        y[...] = x
        for _ in range(pairs):
            multiply(y, factor, y)
            add(y, term, y)
        g[...] = 1
        for _ in range(pairs):
            multiply(g, factor, g)
        return y, g

    return step


def scan(problem: problems.Scan) -> Step:
    """Return the states and the three gradients, with the time axis first inside."""
    a, b, x, cotangent = [np.ascontiguousarray(one.swapaxes(0, 1)) for one in problem]
    h, g, g_a, g_b, g_x = [np.empty_like(x) for _ in range(5)]
    product = np.empty_like(x[0])
    length = len(x)
    forward = [(a[t], h[t - 1], h[t]) for t in range(1, length)]
    backward = [(a[t + 1], g[t + 1], g[t]) for t in range(length - 2, -1, -1)]

    def step() -> tuple[Any, ...]:
        np.multiply(b, x, out=h)
        for gate, before, now in forward:
            np.multiply(gate, before, out=product)
            np.add(now, product, out=now)
        g[...] = cotangent
        for gate, after, now in backward:
            np.multiply(gate, after, out=product)
            np.add(now, product, out=now)
        g_a[0] = 0
        np.multiply(g[1:], h[:-1], out=g_a[1:])
        np.multiply(g, x, out=g_b)
        np.multiply(g, b, out=g_x)
        return tuple(one.swapaxes(0, 1) for one in (h, g_a, g_b, g_x))

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    outputs = [
        np.empty((len(problem.x), len(layer.weight)), np.float32) for layer in problem.layers
    ]
    inputs = [problem.x, *outputs]

    def step() -> tuple[Any, ...]:
        for layer, x, y in zip(problem.layers, inputs, outputs):  # noqa: B905  # inputs are more
            np.matmul(x, layer.weight.T, out=y)
            np.add(y, layer.bias, out=y)
            if y is not outputs[-1]:
                np.maximum(y, 0, out=y)
        return (outputs[-1],)

    return step


def _training_step(
    problem: problems.Mlp,
    activation: Callable[[Array], tuple[Run, Callable[[Array], None]]],
    loss: Callable[[Array, Array], Callable[[], float]],
) -> Step:
    """Return a step of an MLP.

    Args:
        problem: the data.
        activation: a buffer in, which it transforms when it is run; and what it does to a
            cotangent.
        loss: the output in and a buffer for its cotangent, which it fills when it is run.
    """
    optimizer = FlatAdam([one for layer in problem.layers for one in layer])
    layers = _pairs(optimizer.parameters)
    gradients = _pairs(optimizer.gradients)
    batch = len(problem.x)
    outputs = [np.empty((batch, len(layer.weight)), np.float32) for layer in layers]
    cotangents = [np.empty_like(output) for output in outputs]
    inputs = [problem.x, *outputs[:-1]]
    activations = [activation(output) for output in outputs[:-1]]
    run_loss = loss(outputs[-1], cotangents[-1])
    ones = np.ones(batch, np.float32)
    last = len(layers) - 1

    def step() -> tuple[Any, ...]:
        for i, layer in enumerate(layers):
            np.matmul(inputs[i], layer.weight.T, out=outputs[i])
            np.add(outputs[i], layer.bias, out=outputs[i])
            if i < last:
                activations[i][0]()
        value = run_loss()
        for i in range(last, -1, -1):
            g = cotangents[i]
            np.matmul(g.T, inputs[i], out=gradients[i].weight)
            # Faster than a sum over the rows.
            np.dot(ones, g, out=gradients[i].bias)
            if i:
                np.matmul(g, layers[i].weight, out=cotangents[i - 1])
                activations[i - 1][1](cotangents[i - 1])
        optimizer.step()
        return (value,)

    return step


def _gelu(y: Array) -> tuple[Run, Callable[[Array], None]]:
    """Run gelu (tanh) a block at a time, which leaves its slope for the way back."""
    flat = y.reshape(-1)
    slope = np.empty_like(flat)
    squared, t, half = [np.empty(min(BLOCK, flat.size), np.float32) for _ in range(3)]
    blocks = [
        (flat[start : start + BLOCK], slope[start : start + BLOCK])
        for start in range(0, flat.size, BLOCK)
    ]

    def forward() -> None:
        for x, out in blocks:
            q, u, h = squared[: x.size], t[: x.size], half[: x.size]
            np.multiply(x, x, out=q)
            np.multiply(q, GELU_SCALE * GELU_CUBIC, out=u)
            np.add(u, GELU_SCALE, out=u)
            np.multiply(u, x, out=u)
            np.tanh(u, out=u)
            # The slope: (1 + t) / 2 + x / 2 (1 - t t) (scale + 3 scale cubic x x).
            np.multiply(q, 1.5 * GELU_SCALE * GELU_CUBIC, out=q)
            np.add(q, 0.5 * GELU_SCALE, out=q)
            np.multiply(q, x, out=q)
            np.multiply(u, 0.5, out=h)
            np.add(h, 0.5, out=h)
            np.multiply(u, u, out=u)
            np.subtract(1, u, out=u)
            np.multiply(q, u, out=q)
            np.add(h, q, out=out)
            np.multiply(x, h, out=x)

    slope_of_y = slope.reshape(y.shape)
    return forward, lambda g: _discard(np.multiply(g, slope_of_y, out=g))


def _views(flat: Array, like: Sequence[Array]) -> list[Array]:
    ends = np.cumsum([one.size for one in like]).tolist()
    return [
        flat[end - one.size : end].reshape(one.shape) for one, end in zip(like, ends, strict=True)
    ]


def _pairs(parameters: Sequence[Array]) -> list[Affine]:
    return [Affine(*pair) for pair in zip(parameters[::2], parameters[1::2], strict=True)]


def _discard(_: object) -> None:
    """Let a lambda return nothing."""


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
