"""Losses, layers and Adam in plain numpy, with their pullbacks spelled out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.contenders import Step
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, NORM_EPS, Affine, Array, Block

GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715

# Parameters in; loss and their gradients out.
ValueAndGradients = Callable[[list[Array]], tuple[float, Sequence[Array]]]


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


def convolution_block(x: Array, layer: Affine) -> tuple[Array, Callable[..., list[Array]]]:
    """Convolve 3x3 with padding 1, relu, max pool 2x2; the pullback gives x, weight and bias.

    The channels are the last axis.
    """
    n, height, width, channels = x.shape
    matrix = layer.weight.transpose(2, 3, 1, 0).reshape(9 * channels, -1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    places = [(slice(i, i + height), slice(j, j + width)) for i in range(3) for j in range(3)]
    patches = np.concatenate([padded[:, i, j] for i, j in places], axis=3)
    columns = patches.reshape(-1, 9 * channels)
    y = np.maximum(columns @ matrix + layer.bias, 0)
    windows = y.reshape(n, height // 2, 2, width // 2, 2, -1)
    pooled = windows.max(axis=(2, 4), keepdims=True)

    def pullback(g: Array, *, wants_input: bool = True) -> list[Array]:
        # Where all of a window is 0 the slope of relu is too, so ties need no care.
        won = (windows == pooled) & (windows > 0)
        g = (won * g.reshape(pooled.shape)).reshape(y.shape)
        g_weight = (columns.T @ g).reshape(3, 3, channels, -1).transpose(3, 2, 0, 1)
        g_x = np.zeros_like(padded)
        if wants_input:
            g_columns = (g @ matrix.T).reshape(n, height, width, 9, channels)
            for place, (i, j) in enumerate(places):
                g_x[:, i, j] += g_columns[:, :, :, place]
        return [g_x[:, 1:-1, 1:-1], g_weight, g.sum(0)]

    return pooled.reshape(n, height // 2, width // 2, -1), pullback


def layer_norm(x: Array, layer: Affine) -> tuple[Array, Callable[[Array], list[Array]]]:
    """Normalize rows; the pullback gives x, weight and bias."""
    centred = x - x.mean(axis=1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + NORM_EPS)
    normalized = centred * inverse

    def pullback(g: Array) -> list[Array]:
        scaled = g * layer.weight
        mean = scaled.mean(axis=1, keepdims=True)
        projection = (scaled * normalized).mean(axis=1, keepdims=True)
        g_x = (scaled - mean - normalized * projection) * inverse
        return [g_x, (g * normalized).sum(0), g.sum(0)]

    return normalized * layer.weight + layer.bias, pullback


def attention(x: Array, batch: int, heads: int) -> tuple[Array, Callable[[Array], Array]]:
    """Attend causally; a row of `x` holds query, key and value side by side."""
    parts = x.reshape(batch, len(x) // batch, 3, heads, -1).transpose(2, 0, 3, 1, 4)
    query, key, value = parts
    scale = np.float32(query.shape[-1] ** -0.5)
    hidden = np.triu(np.full((query.shape[2],) * 2, -np.inf, np.float32), 1)
    scores = query @ key.swapaxes(2, 3) * scale + hidden
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)

    def joined(part: Array) -> Array:
        return part.transpose(0, 2, 1, 3).reshape(len(x), -1)

    def pullback(g: Array) -> Array:
        g = g.reshape(batch, -1, heads, value.shape[-1]).transpose(0, 2, 1, 3)
        g_weights = g @ value.swapaxes(2, 3)
        projection = (g_weights * weights).sum(axis=-1, keepdims=True)
        g_scores = weights * (g_weights - projection) * scale
        found = (g_scores @ key, g_scores.swapaxes(2, 3) @ query, weights.swapaxes(2, 3) @ g)
        return np.concatenate([joined(one) for one in found], axis=1)

    return joined(weights @ value), pullback


def transformer_block(
    x: Array, block: Block, batch: int, heads: int
) -> tuple[Array, Callable[[Array], list[Array]]]:
    """One layer; the pullback gives x and the parameters, in the order of `Block`."""
    one, back_norm = layer_norm(x, block.attention_norm)
    parts = one @ block.query_key_value.weight.T + block.query_key_value.bias
    mixed, back_attention = attention(parts, batch, heads)
    middle = x + mixed @ block.projection.weight.T + block.projection.bias
    two, back_mlp_norm = layer_norm(middle, block.mlp_norm)
    active, slope = gelu(two @ block.hidden.weight.T + block.hidden.bias)

    def pullback(g: Array) -> list[Array]:
        of_out = [g.T @ active, g.sum(0)]
        g_hidden = (g @ block.out.weight) * slope
        of_hidden = [g_hidden.T @ two, g_hidden.sum(0)]
        g_two, *of_mlp_norm = back_mlp_norm(g_hidden @ block.hidden.weight)
        g = g + g_two
        of_projection = [g.T @ mixed, g.sum(0)]
        g_parts = back_attention(g @ block.projection.weight)
        of_parts = [g_parts.T @ one, g_parts.sum(0)]
        g_one, *of_norm = back_norm(g_parts @ block.query_key_value.weight)
        return [g + g_one, *of_norm, *of_parts, *of_projection, *of_mlp_norm, *of_hidden, *of_out]

    return middle + active @ block.out.weight.T + block.out.bias, pullback
