"""LLaMA, typed: RMSNorm, rotary positions, grouped-query attention and SwiGLU.

Source: Touvron et al. (2023), "LLaMA: open and efficient foundation language models" and "Llama 2:
open foundation and fine-tuned chat models"; RMSNorm: Zhang & Sennrich (2019), "Root mean square
layer normalization"; rotary positions: Su et al. (2021), "RoFormer" (the halves of a head turn, as
in Hugging Face's port); grouped queries: Ainslie et al. (2023), "GQA"; SwiGLU: Shazeer (2020), "GLU
variants improve transformer". Projections have no bias.

Run ``mypy --strict examples/models/llama.py`` and then ``python examples/models/llama.py``.
"""

from __future__ import annotations

import math
from typing import Any, Generic, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor1D, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.nn.typing import In, Out
from tapetensor.typing import B, Ds, K, M, N, T

Vocabulary: TypeAlias = L[50]
Channels: TypeAlias = L[32]
CHANNELS: Channels = 32
HEADS: L[4] = 4
HEAD_CHANNELS: L[8] = 8
ROTARY_BASE = 10_000.0

Ids: TypeAlias = Tensor2D[B, M, T, np.int64]
Hidden: TypeAlias = Tensor3D[B, M, Channels, T]


def fan_in(
    shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return normal samples with the standard deviation ``1 / sqrt(shape[0])``."""
    return rng.normal(0.0, 1.0 / math.sqrt(shape[0]), shape).astype(dtype)


class Projection(nn.Module, Generic[In, Out]):
    """A matrix product along the last axis, without a bias."""

    weight: Tensor2D[In, Out] = nn.parameter(fan_in)

    def forward(self, x: Tensor[tuple[*Ds, In], T]) -> Tensor[tuple[*Ds, Out], T]:
        """Return ``x @ weight``."""
        return x @ self.weight


class RmsNorm(nn.Module, Generic[N]):
    """Divide by the root of the mean square along the last axis, then scale."""

    weight: Tensor1D[N] = nn.parameter(nn.init.ones)
    eps: float = 1e-5

    def forward(self, x: Tensor[tuple[*Ds, N], T]) -> Tensor[tuple[*Ds, N], T]:
        """Return the normalized input."""
        mean_square = x.square().mean(axis=-1, keepdims=True)
        return x / (mean_square + self.eps).sqrt() * self.weight


def rotary(x: Tensor[tuple[*Ds, M, K], T]) -> Tensor[tuple[*Ds, M, K], T]:
    """Return the vectors turned by angles that grow with their position.

    Channel ``i`` of the first half and of the second half are the plane that turns by
    ``position * ROTARY_BASE ** (-2 i / k)``, so that the product of two turned vectors depends on
    how far apart they are.

    Args:
        x: vectors, the last two axes are position and channel; the channels are even in number.
    """
    *_, m, k = x.shape
    speeds = ROTARY_BASE ** (-2.0 * np.arange(k // 2) / k)
    angles = np.tile(np.outer(np.arange(m), speeds), 2)
    cos = tt.from_numpy(np.cos(angles), (m, k), np.float32)
    sin = tt.from_numpy(np.sin(angles), (m, k), np.float32)
    first, second = x.split(2, axis=-1)
    return x * cos + tt.concat((-second, first), axis=-1) * sin


class GroupedQueryAttention(nn.Module, Generic[K]):
    """Causal attention in which several heads of queries share one head of keys and values.

    `K` is the number of channels of all key heads together; with that of the queries it is plain
    multi-head attention.
    """

    query: Projection[Channels, Channels]
    key: Projection[Channels, K]
    value: Projection[Channels, K]
    output: Projection[Channels, Channels]

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return the attended values."""
        b, m, _ = x.shape
        groups = self.key.weight.shape[1] // HEAD_CHANNELS
        query = (
            self.query.forward(x).reshape((b, m, HEADS, HEAD_CHANNELS)).permute_dims((0, 2, 1, 3))
        )
        key, value = [
            part.reshape((b, m, groups, HEAD_CHANNELS))
            .permute_dims((0, 2, 1, 3))
            .expand_dims(2)
            .broadcast_to((b, groups, HEADS // groups, m, HEAD_CHANNELS))
            .reshape((b, HEADS, m, HEAD_CHANNELS))
            for part in (self.key.forward(x), self.value.forward(x))
        ]
        turned = rotary(query) @ rotary(key).transpose()
        visible = tt.from_numpy(np.tri(m, dtype=np.bool_), (m, m))
        scores = tt.where(visible, turned * (1.0 / math.sqrt(HEAD_CHANNELS)), -1e9)
        heads = (scores.softmax() @ value).permute_dims((0, 2, 1, 3))
        return self.output.forward(heads.reshape((b, m, CHANNELS)))


class SwiGlu(nn.Module):
    """A feed-forward layer, one half of which gates the other."""

    gate: Projection[Channels, L[88]]
    up: Projection[Channels, L[88]]
    down: Projection[L[88], Channels]

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return ``down(silu(gate(x)) * up(x))``."""
        gate = self.gate.forward(x).silu()
        return self.down.forward(gate * self.up.forward(x))


class LlamaBlock(nn.Module):
    """Attention, then SwiGLU, each behind an RMSNorm and beside a residual connection."""

    attention_norm: RmsNorm[Channels]
    attention: GroupedQueryAttention[L[16]]
    feed_forward_norm: RmsNorm[Channels]
    feed_forward: SwiGlu

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return `x` with what both parts add."""
        x = self.attention.forward(self.attention_norm.forward(x)) + x
        return self.feed_forward.forward(self.feed_forward_norm.forward(x)) + x


class Llama(nn.Module):
    """The logits of the next token at every position."""

    tokens: nn.Embedding[Vocabulary, Channels]
    blocks: list[LlamaBlock] = nn.repeat(2)
    norm: RmsNorm[Channels]
    output: Projection[Channels, Vocabulary]

    def forward(self, ids: Ids[B, M, T]) -> Tensor3D[B, M, Vocabulary, T]:
        """Return one score per token of the vocabulary."""
        x = self.tokens.forward(ids)
        for block in self.blocks:
            x = block.forward(x)
        return self.output.forward(self.norm.forward(x))


def main() -> None:
    """Learn a batch of random tokens by heart."""
    rng = np.random.default_rng(0)
    model = tt.build(Llama, rng=rng)
    optimizer = optim.AdamW(model, lr=1e-2)
    text = rng.integers(50, size=(8, 13))
    ids: Ids[L[8], L[12], NoneTape] = tt.from_numpy(text[:, :-1], (8, 12))
    following: Ids[L[8], L[12], NoneTape] = tt.from_numpy(text[:, 1:], (8, 12))
    before = losses.cross_entropy(model.forward(ids), following).item()
    for _ in range(50):
        loss = losses.cross_entropy(model.forward(ids.trace()), following)
        optimizer.step(loss.backward(wrt=model))
    after = losses.cross_entropy(model.forward(ids), following).item()
    print(f"LLaMA: loss {before:.3f} at first, {after:.3f} after 50 steps")


if __name__ == "__main__":
    main()
