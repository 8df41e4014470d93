"""BERT's encoder, typed, with a classifier on its pooled output.

Source: Devlin et al. (2018), "BERT: pre-training of deep bidirectional transformers for language
understanding", after https://github.com/google-research/bert (modeling.py). Token, segment and
position embeddings, post-norm encoder layers that see all positions but the padding, and a pooler
on the first position.

Run ``mypy --strict examples/models/bert.py`` and then ``python examples/models/bert.py``.
"""

from __future__ import annotations

import math
from typing import Literal as L
from typing import TypeAlias

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, M, T

Vocabulary: TypeAlias = L[40]
Context: TypeAlias = L[16]
Channels: TypeAlias = L[32]
Classes: TypeAlias = L[3]
CHANNELS: Channels = 32
HEADS: L[4] = 4
HEAD_CHANNELS: L[8] = 8
DROPOUT = 0.1

Ids: TypeAlias = Tensor2D[B, M, T, np.int64]
Visible: TypeAlias = Tensor2D[B, M, NoneTape, np.bool_]
Hidden: TypeAlias = Tensor3D[B, M, Channels, T]


class Embeddings(nn.Module):
    """The sum of what a token, its segment and its position say, normalized."""

    tokens: nn.Embedding[Vocabulary, Channels]
    segments: nn.Embedding[L[2], Channels]
    positions: nn.Embedding[Context, Channels]
    norm: nn.LayerNorm[Channels] = nn.options(eps=1e-12)
    drop: nn.Dropout = nn.options(p=DROPOUT)

    def forward(self, ids: Ids[B, M, T], segments: Ids[B, M, NoneTape]) -> Hidden[B, M, T]:
        """Return the embedded tokens."""
        _, m = ids.shape
        place = self.positions.forward(tt.arange(m))
        segment = self.segments.forward(segments)
        return self.drop.forward(self.norm.forward(self.tokens.forward(ids) + segment + place))


class SelfAttention(nn.Module):
    """Every position looks at all that are not padding, in several heads."""

    query: nn.Linear[Channels, Channels]
    key: nn.Linear[Channels, Channels]
    value: nn.Linear[Channels, Channels]
    output: nn.Linear[Channels, Channels]
    drop_weights: nn.Dropout = nn.options(p=DROPOUT)
    drop: nn.Dropout = nn.options(p=DROPOUT)

    def forward(self, x: Hidden[B, M, T], visible: Visible[B, M]) -> Hidden[B, M, T]:
        """Return the attended values."""
        b, m, _ = x.shape
        query, key, value = [
            layer.forward(x).reshape((b, m, HEADS, HEAD_CHANNELS)).permute_dims((0, 2, 1, 3))
            for layer in (self.query, self.key, self.value)
        ]
        mask = visible.expand_dims(1).expand_dims(1).broadcast_to((b, HEADS, m, m))
        scores = query @ key.transpose() * (1.0 / math.sqrt(HEAD_CHANNELS))
        weights = self.drop_weights.forward(tt.where(mask, scores, -1e9).softmax())
        heads = (weights @ value).permute_dims((0, 2, 1, 3))
        return self.drop.forward(self.output.forward(heads.reshape((b, m, CHANNELS))))


class EncoderLayer(nn.Module):
    """Attention, then a GELU MLP, each beside a residual connection and before a layer norm."""

    attention: SelfAttention
    attention_norm: nn.LayerNorm[Channels] = nn.options(eps=1e-12)
    intermediate: nn.Linear[Channels, L[128]]
    output: nn.Linear[L[128], Channels]
    drop: nn.Dropout = nn.options(p=DROPOUT)
    output_norm: nn.LayerNorm[Channels] = nn.options(eps=1e-12)

    def forward(self, x: Hidden[B, M, T], visible: Visible[B, M]) -> Hidden[B, M, T]:
        """Return the encoded positions."""
        attended = self.attention.forward(x, visible) + x
        x = self.attention_norm.forward(attended)
        wide = self.intermediate.forward(x).gelu()
        return self.output_norm.forward(self.drop.forward(self.output.forward(wide)) + x)


class Bert(nn.Module):
    """One vector per position that knows of all the others."""

    embeddings: Embeddings
    layers: list[EncoderLayer] = nn.repeat(2)

    def forward(
        self, ids: Ids[B, M, T], segments: Ids[B, M, NoneTape], visible: Visible[B, M]
    ) -> Hidden[B, M, T]:
        """Return the encoded sequence."""
        x = self.embeddings.forward(ids, segments)
        for layer in self.layers:
            x = layer.forward(x, visible)
        return x


class Pooler(nn.Module):
    """The first position stands for the whole sequence."""

    dense: nn.Linear[Channels, Channels]

    def forward(self, x: Hidden[B, M, T]) -> Tensor2D[B, Channels, T]:
        """Return one vector per sequence."""
        return self.dense.forward(x[:, 0]).tanh()


class Classifier(nn.Module):
    """A sequence's class, from its pooled vector."""

    bert: Bert
    pooler: Pooler
    drop: nn.Dropout = nn.options(p=DROPOUT)
    out: nn.Linear[Channels, Classes]

    def forward(
        self, ids: Ids[B, M, T], segments: Ids[B, M, NoneTape], visible: Visible[B, M]
    ) -> Tensor2D[B, Classes, T]:
        """Return one score per class."""
        pooled = self.pooler.forward(self.bert.forward(ids, segments, visible))
        return self.out.forward(self.drop.forward(pooled))


def main() -> None:
    """Learn the classes of a batch of random sequences by heart."""
    rng = np.random.default_rng(0)
    model = tt.build(Classifier, rng=rng)
    optimizer = optim.AdamW(model, lr=3e-3)
    ids: Ids[L[16], L[10], NoneTape] = tt.from_numpy(rng.integers(40, size=(16, 10)), (16, 10))
    segments: Ids[L[16], L[10], NoneTape] = tt.from_numpy(
        np.repeat([[0] * 5 + [1] * 5], 16, axis=0), (16, 10)
    )
    lengths = rng.integers(6, 11, size=(16, 1))
    visible: Visible[L[16], L[10]] = tt.from_numpy(np.arange(10) < lengths, (16, 10))
    labels: Tensor1D[L[16], NoneTape, np.int64] = tt.from_numpy(rng.integers(3, size=16), (16,))
    before = losses.cross_entropy(model.forward(ids, segments, visible), labels).item()
    for _ in range(30):
        loss = losses.cross_entropy(model.forward(ids.trace(), segments, visible), labels)
        optimizer.step(loss.backward(wrt=model))
    after = losses.cross_entropy(model.forward(ids, segments, visible), labels).item()
    print(f"BERT: loss {before:.3f} at first, {after:.3f} after 30 steps")


if __name__ == "__main__":
    main()
