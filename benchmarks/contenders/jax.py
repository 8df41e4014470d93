"""JAX: a jitted step with donated parameters, dispatched synchronously.

On the CPU synchronous dispatch is the faster one for small steps (W1 30 against 48 microseconds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, NORM_EPS

jax.config.update("jax_cpu_enable_async_dispatch", False)


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""
    x, labels = jnp.asarray(problem.x), jnp.asarray(problem.target)

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        return _cross_entropy(_forward(layers, x, jax.nn.relu), labels)

    return _training_step(problem.layers, loss, x, labels)


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""
    x, target = jnp.asarray(problem.x), jnp.asarray(problem.target)

    def loss(layers: Any, x: Any, target: Any) -> Any:
        return jnp.mean(jnp.square(_forward(layers, x, jax.nn.gelu) - target))

    return _training_step(problem.layers, loss, x, target)


def cnn(problem: problems.Cnn) -> Step:
    """Return a training step of the convolutional network."""
    x, labels = jnp.asarray(problem.x), jnp.asarray(problem.labels)

    def block(layer: Any, x: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, layer.weight, (1, 1), "SAME")
        y = jax.nn.relu(y + layer.bias[:, None, None])
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        first, second, out = layers
        features = block(second, block(first, x)).reshape(len(x), -1)
        return _cross_entropy(features @ out.weight.T + out.bias, labels)

    return _training_step((problem.first, problem.second, problem.out), loss, x, labels)


def transformer(problem: problems.Transformer) -> Step:
    """Return a training step of the transformer."""
    ids, following = jnp.asarray(problem.ids), jnp.asarray(problem.following)
    batch, context = problem.ids.shape
    heads = problem.heads

    def affine(layer: Any, x: Any) -> Any:
        return x @ layer.weight.T + layer.bias

    def normalize(layer: Any, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return centred / jnp.sqrt(variance + NORM_EPS) * layer.weight + layer.bias

    def attend(block: Any, x: Any) -> Any:
        parts = affine(block.query_key_value, x).reshape(batch, context, 3, heads, -1)
        query, key, value = parts.transpose(2, 0, 3, 1, 4)
        scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
        scores = jnp.where(jnp.tri(context, dtype=bool), scores, -jnp.inf)
        mixed = (jax.nn.softmax(scores) @ value).swapaxes(1, 2)
        return affine(block.projection, mixed.reshape(batch, context, -1))

    def loss(parameters: Any, ids: Any, following: Any) -> Any:
        tokens, positions, blocks, norm, head = parameters
        x = tokens[ids] + positions
        for block in blocks:
            x = x + attend(block, normalize(block.attention_norm, x))
            hidden = jax.nn.gelu(affine(block.hidden, normalize(block.mlp_norm, x)))
            x = x + affine(block.out, hidden)
        logits = affine(head, normalize(norm, x))
        return _cross_entropy(logits.reshape(batch * context, -1), following.reshape(-1))

    parameters = (problem.tokens, problem.positions, problem.blocks, problem.norm, problem.head)
    return _training_step(parameters, loss, ids, following)


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient."""
    x = jnp.asarray(problem.x)

    def loss(x: Any) -> Any:
        return jnp.mean(jnp.tanh(x) * jax.nn.sigmoid(x) + jnp.exp(-jnp.square(x)))

    run = jax.jit(jax.value_and_grad(loss))

    def step() -> tuple[Any, ...]:
        value, gradient = jax.block_until_ready(run(x))
        return float(value), gradient

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term = [jnp.asarray(one) for one in (problem.x, problem.factor, problem.term)]

    def end(x: Any, factor: Any, term: Any) -> Any:
        for _ in range(problem.pairs):
            x = x * factor + term
        return x.sum(), x

    run = jax.jit(jax.grad(end, has_aux=True))

    def step() -> tuple[Any, ...]:
        gradient, y = jax.block_until_ready(run(x, factor, term))
        return y, gradient

    return step


def scan(problem: problems.Scan) -> Step:
    """Return the states and the three gradients."""
    a, b, x, cotangent = [jnp.asarray(one) for one in problem]

    def states(a: Any, b: Any, x: Any) -> Any:
        def advance(state: Any, now: Any) -> Any:
            a_t, driven_t = now
            state = a_t * state + driven_t
            return state, state

        over_time = (a.swapaxes(0, 1), (b * x).swapaxes(0, 1))
        return jax.lax.scan(advance, jnp.zeros_like(x[:, 0]), over_time)[1].swapaxes(0, 1)

    def states_and_gradients(a: Any, b: Any, x: Any, cotangent: Any) -> Any:
        h, pullback = jax.vjp(states, a, b, x)
        return h, *pullback(cotangent)

    run = jax.jit(states_and_gradients)

    def step() -> tuple[Any, ...]:
        results: tuple[Any, ...] = jax.block_until_ready(run(a, b, x, cotangent))
        return results

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    x = jnp.asarray(problem.x)
    layers = jax.tree.map(jnp.asarray, problem.layers)
    run = jax.jit(lambda layers, x: _forward(layers, x, jax.nn.relu))

    def step() -> tuple[Any, ...]:
        return (jax.block_until_ready(run(layers, x)),)

    return step


def _forward(layers: Any, x: Any, activation: Callable[[Any], Any]) -> Any:
    *hidden, out = layers
    for layer in hidden:
        x = activation(x @ layer.weight.T + layer.bias)
    return x @ out.weight.T + out.bias


def _cross_entropy(logits: Any, labels: Any) -> Any:
    log_probabilities = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=1).mean()


def _training_step(parameters: Any, loss: Callable[..., Any], *data: Any) -> Step:
    """Return a jitted step of Adam; `data` are arguments, so that nothing is folded away."""
    beta1, beta2 = BETAS

    def update(state: Any, *data: Any) -> Any:
        count, current, means, squares = state
        value, gradients = jax.value_and_grad(loss)(current, *data)
        count = count + 1
        means = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, means, gradients)
        squares = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, squares, gradients)

        def moved(p: Any, m: Any, v: Any) -> Any:
            mean, square = m / (1 - beta1**count), v / (1 - beta2**count)
            return p - LEARNING_RATE * mean / (jnp.sqrt(square) + EPS)

        return (count, jax.tree.map(moved, current, means, squares), means, squares), value

    run = jax.jit(update, donate_argnums=0)
    # Copies: the arrays of the state are given away in every step.
    current = jax.tree.map(lambda array: jnp.array(array, copy=True), parameters)
    zeros = [jax.tree.map(jnp.zeros_like, current) for _ in range(2)]
    state = (jnp.zeros((), jnp.float32), current, *zeros)

    def step() -> tuple[Any, ...]:
        nonlocal state
        state, value = jax.block_until_ready(run(state, *data))
        return (float(value),)

    return step


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
