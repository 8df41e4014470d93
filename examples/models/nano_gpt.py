"""nanoGPT, typed: a causal transformer over tokens, every dim of which mypy has checked.

Source: Karpathy, https://github.com/karpathy/nanoGPT (model.py), after Radford et al. (2019),
"Language models are unsupervised multitask learners". Token and position embeddings, pre-norm
blocks, one projection for query, key and value, a GELU MLP, a final layer norm, and a head that
shares its weight with the token embedding. Dropout is left out, as in nanoGPT's default.

Run ``mypy --strict examples/models/nano_gpt.py`` and then ``python examples/models/nano_gpt.py``.
"""

from __future__ import annotations

import math
from typing import Literal as L
from typing import TypeAlias

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, M, T

Vocabulary: TypeAlias = L[65]
Context: TypeAlias = L[16]
Channels: TypeAlias = L[32]
CHANNELS: Channels = 32
HEADS: L[4] = 4
HEAD_CHANNELS: L[8] = 8
LAYERS = 2

Ids: TypeAlias = Tensor2D[B, M, T, np.int64]
Hidden: TypeAlias = Tensor3D[B, M, Channels, T]


def causal_mask(size: M) -> Tensor2D[M, M, NoneTape, np.bool_]:
    """Return which positions (columns) each position (row) may see: itself and those before."""
    return tt.from_numpy(np.tri(size, dtype=np.bool_), (size, size))


class CausalSelfAttention(nn.Module):
    """Every position looks at itself and at those before it, in several heads."""

    query_key_value: nn.Linear[Channels, L[96]]
    projection: nn.Linear[Channels, Channels]

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return the attended values."""
        b, m, _ = x.shape
        query, key, value = [
            part.reshape((b, m, HEADS, HEAD_CHANNELS)).permute_dims((0, 2, 1, 3))
            for part in self.query_key_value.forward(x).split(3, axis=-1)
        ]
        scores = query @ key.transpose() * (1.0 / math.sqrt(HEAD_CHANNELS))
        weights = tt.where(causal_mask(m), scores, -1e9).softmax()
        heads = (weights @ value).permute_dims((0, 2, 1, 3))
        return self.projection.forward(heads.reshape((b, m, CHANNELS)))


class Mlp(nn.Module):
    """Four times as wide inside."""

    hidden: nn.Linear[Channels, L[128]]
    projection: nn.Linear[L[128], Channels]

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return the transformed features of every position."""
        return self.projection.forward(self.hidden.forward(x).gelu())


class Block(nn.Module):
    """Attention, then an MLP, each behind a layer norm and beside a residual connection."""

    attention_norm: nn.LayerNorm[Channels]
    attention: CausalSelfAttention
    mlp_norm: nn.LayerNorm[Channels]
    mlp: Mlp

    def forward(self, x: Hidden[B, M, T]) -> Hidden[B, M, T]:
        """Return `x` with what both parts add."""
        x = self.attention.forward(self.attention_norm.forward(x)) + x
        return self.mlp.forward(self.mlp_norm.forward(x)) + x


class NanoGpt(nn.Module):
    """The logits of the next token at every position."""

    tokens: nn.Embedding[Vocabulary, Channels]
    positions: nn.Embedding[Context, Channels]
    blocks: list[Block] = nn.repeat(LAYERS)
    norm: nn.LayerNorm[Channels]

    def forward(self, ids: Ids[B, M, T]) -> Tensor3D[B, M, Vocabulary, T]:
        """Return one score per token of the vocabulary; the head is the token embedding."""
        _, m = ids.shape
        positions = self.positions.forward(tt.arange(m))
        x = self.tokens.forward(ids) + positions
        for block in self.blocks:
            x = block.forward(x)
        return self.norm.forward(x) @ self.tokens.weight.transpose()


def build_nano_gpt(rng: np.random.Generator) -> NanoGpt:
    """Build the model with nanoGPT's first values.

    Weights are normal with standard deviation 0.02, those before a residual connection smaller with
    the number of such connections; biases are 0.
    """
    model = tt.build(NanoGpt, rng=rng)
    for name, module in model.modules().items():
        if isinstance(module, nn.Embedding | nn.Linear):
            depth = 2 * LAYERS if name.endswith(".projection") else 1
            std = 0.02 / math.sqrt(depth)
            module.weight = tt.normal(module.weight.shape, rng=rng, std=std)
        if isinstance(module, nn.Linear):
            module.bias = tt.zeros(module.bias.shape)
    return model


def train_step(
    model: NanoGpt,
    optimizer: optim.AdamW,
    ids: Ids[B, M, NoneTape],
    following: Ids[B, M, NoneTape],
) -> float:
    """Train on one batch; return the loss before the step."""
    loss = losses.cross_entropy(model.forward(ids.trace()), following)
    optimizer.step(loss.backward(wrt=model))
    return loss.item()


def main() -> None:
    """Learn a batch of random tokens by heart."""
    rng = np.random.default_rng(0)
    model = build_nano_gpt(rng)
    optimizer = optim.AdamW(model, lr=1e-2)
    text = rng.integers(65, size=(8, 17))
    ids: Ids[L[8], L[16], NoneTape] = tt.from_numpy(text[:, :-1], (8, 16))
    following: Ids[L[8], L[16], NoneTape] = tt.from_numpy(text[:, 1:], (8, 16))
    curve = [train_step(model, optimizer, ids, following) for _ in range(100)]
    right = model.forward(ids).argmax(-1) == following
    share = right.astype(np.float32).mean().item()
    print(f"nanoGPT: loss {curve[0]:.3f} at first, {curve[-1]:.3f} after {len(curve)} steps")
    print(f"it knows {share:.0%} of the tokens that follow")


if __name__ == "__main__":
    main()
