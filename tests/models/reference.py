"""The forward passes of `examples/models` in plain numpy, written down a second time.

Each takes the parameters by dotted name, in any floating dtype, and arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Parameters: TypeAlias = Mapping[str, Array]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def under(p: Parameters, prefix: str) -> Parameters:
    """Return the parameters of one module."""
    return {
        name.removeprefix(prefix + "."): value
        for name, value in p.items()
        if name.startswith(prefix + ".")
    }


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(-1, keepdims=True))


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))))


def linear(p: Parameters, name: str, x: Array) -> Array:
    return np.asarray(x @ p[f"{name}.weight"].T + p[f"{name}.bias"])


def layer_norm(p: Parameters, name: str, x: Array, eps: float = 1e-5) -> Array:
    deviation = x - x.mean(-1, keepdims=True)
    scale = np.sqrt((deviation**2).mean(-1, keepdims=True) + eps)
    return np.asarray(deviation / scale * p[f"{name}.weight"] + p[f"{name}.bias"])


def attention(query: Array, key: Array, value: Array, heads: int, visible: Array) -> Array:
    """Return what all heads see, one after another in the last axis; `visible` is (B, M, M)."""
    size = query.shape[-1] // heads
    seen = []
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        scores = np.einsum("bmc,bnc->bmn", query[..., own], key[..., own]) / math.sqrt(size)
        seen.append(softmax(np.where(visible, scores, -np.inf)) @ value[..., own])
    return np.concatenate(seen, axis=-1)


def causal(size: int) -> Array:
    return np.arange(size)[:, None] >= np.arange(size)


def nano_gpt(p: Parameters, ids: Array) -> Array:
    table = p["tokens.weight"]
    x = table[ids] + p["positions.weight"][: ids.shape[1]]
    for index in range(2):
        block = under(p, f"blocks.{index}")
        normed = layer_norm(block, "attention_norm", x)
        together = linear(block, "attention.query_key_value", normed)
        query, key, value = np.split(together, 3, axis=-1)
        seen = attention(query, key, value, 4, causal(ids.shape[1]))
        x = x + linear(block, "attention.projection", seen)
        wide = gelu(linear(block, "mlp.hidden", layer_norm(block, "mlp_norm", x)))
        x = x + linear(block, "mlp.projection", wide)
    return np.asarray(layer_norm(p, "norm", x) @ table.T)


def rms_norm(p: Parameters, name: str, x: Array) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.weight"])


def rotary(x: Array, size: int) -> Array:
    """Turn every head of `size` channels, as the complex numbers that its halves make."""
    turned = np.empty_like(x)
    half = size // 2
    for head in range(x.shape[-1] // size):
        real, imaginary = head * size, head * size + half
        plane = x[..., real : real + half] + 1j * x[..., imaginary : imaginary + half]
        for position in range(x.shape[1]):
            angles = position * 10_000.0 ** (-np.arange(half) / half)
            at = plane[:, position] * np.exp(1j * angles)
            turned[:, position, real : real + half] = at.real
            turned[:, position, imaginary : imaginary + half] = at.imag
    return turned


def grouped_query_attention(p: Parameters, x: Array) -> Array:
    query, key, value = [x @ p[f"{name}.weight"] for name in ("query", "key", "value")]
    key = rotary(key, 8)
    shared = query.shape[-1] // key.shape[-1]
    # Head h of the queries reads head h // shared of keys and values.
    key, value = [
        np.concatenate([part[..., 8 * (h // shared) :][..., :8] for h in range(4)], axis=-1)
        for part in (key, value)
    ]
    seen = attention(rotary(query, 8), key, value, 4, causal(x.shape[1]))
    return np.asarray(seen @ p["output.weight"])


def llama(p: Parameters, ids: Array) -> Array:
    x = p["tokens.weight"][ids]
    for index in range(2):
        block = under(p, f"blocks.{index}")
        normed = rms_norm(block, "attention_norm", x)
        x = x + grouped_query_attention(under(block, "attention"), normed)
        normed = rms_norm(block, "feed_forward_norm", x)
        gate = normed @ block["feed_forward.gate.weight"]
        up = normed @ block["feed_forward.up.weight"]
        x = x + (gate / (1.0 + np.exp(-gate)) * up) @ block["feed_forward.down.weight"]
    return np.asarray(rms_norm(p, "norm", x) @ p["output.weight"])


def bert(p: Parameters, ids: Array, segments: Array, visible: Array) -> Array:
    """Return the logits of the classifier."""
    e = under(p, "bert.embeddings")
    x = e["tokens.weight"][ids] + e["segments.weight"][segments]
    x = layer_norm(e, "norm", x + e["positions.weight"][: ids.shape[1]], eps=1e-12)
    for index in range(2):
        layer = under(p, f"bert.layers.{index}")
        query, key, value = [
            linear(layer, f"attention.{name}", x) for name in ("query", "key", "value")
        ]
        seen = attention(query, key, value, 4, visible[:, None, :])
        attended = x + linear(layer, "attention.output", seen)
        x = layer_norm(layer, "attention_norm", attended, eps=1e-12)
        wide = gelu(linear(layer, "intermediate", x))
        x = layer_norm(layer, "output_norm", x + linear(layer, "output", wide), eps=1e-12)
    return linear(p, "out", np.tanh(linear(p, "pooler.dense", x[:, 0])))


def mixture_of_experts(p: Parameters, x: Array) -> Array:
    """Return what the layer says, one token after another."""
    scores = linear(p, "gate", x)
    mixed = np.zeros_like(x)
    for token, row in enumerate(scores):
        chosen = np.argsort(-row)[:2]
        for expert, weight in zip(chosen, softmax(row[chosen]), strict=True):
            own = under(p, f"experts.{expert}")
            mixed[token] += weight * linear(own, "out", gelu(linear(own, "hidden", x[token])))
    return mixed


def mixture_model(p: Parameters, x: Array) -> Array:
    return linear(p, "out", x + mixture_of_experts(under(p, "mixture"), layer_norm(p, "norm", x)))
