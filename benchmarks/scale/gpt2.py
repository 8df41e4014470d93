"""A training step of GPT-2 small with Adam, by the length of the sequence.

python -m benchmarks.scale.gpt2 --sizes 256
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 768, 12, 50_257
SMALL = 16
LEARNING_RATE = 1e-4


def _sizes(length: int) -> tuple[int, int]:
    """Return how many layers and tokens there are, few where nothing is measured."""
    return (1, 256) if length <= SMALL else (LAYERS, VOCABULARY)


def _ids(length: int, vocabulary: int) -> tuple[Any, Any]:
    ids = np.random.default_rng(0).integers(vocabulary, size=(1, length + 1))
    return ids[:, :-1].copy(), ids[:, 1:].copy()


def _step(length: int) -> Callable[[], Any]:
    import tapetensor as tt
    from tapetensor import losses, nn, optim

    layers, vocabulary = _sizes(length)
    rng = np.random.default_rng(1)

    class Block(nn.Module):
        attention_norm: nn.LayerNorm[int]
        attention: nn.Linear[int, int]
        projection: nn.Linear[int, int]
        mlp_norm: nn.LayerNorm[int]
        hidden: nn.Linear[int, int]
        out: nn.Linear[int, int]

        def forward(self, x: Any) -> Any:
            y = self.attention.forward(self.attention_norm.forward(x))
            parts = y.reshape((1, length, 3 * HEADS, -1)).permute_dims((0, 2, 1, 3))
            heads: Any = tt.scaled_dot_product_attention(*parts.split(3, axis=1), causal=True)
            joined = heads.permute_dims((0, 2, 1, 3)).reshape((1, length, WIDTH))
            x = self.projection.forward(joined) + x
            y = self.hidden.forward(self.mlp_norm.forward(x))
            return self.out.forward(y.gelu(approximate="tanh")) + x

    class Gpt(nn.Module):
        tokens: nn.Embedding[int, int]
        positions: nn.Embedding[int, int]
        blocks: list[Block]
        norm: nn.LayerNorm[int]

        def forward(self, ids: Any, places: Any) -> Any:
            x: Any = self.tokens.forward(ids) + self.positions.forward(places)
            for block in self.blocks:
                x = block.forward(x)
            head = self.tokens.weight.transpose()
            return self.norm.forward(x) @ head

    def linear(inputs: int, outputs: int) -> Any:
        return nn.Linear(inputs, outputs, rng=rng)

    model: Any = Gpt(
        tokens=nn.Embedding(vocabulary, WIDTH, rng=rng),
        positions=nn.Embedding(1024, WIDTH, rng=rng),
        blocks=[
            Block(
                attention_norm=nn.LayerNorm(WIDTH),
                attention=linear(WIDTH, 3 * WIDTH),
                projection=linear(WIDTH, WIDTH),
                mlp_norm=nn.LayerNorm(WIDTH),
                hidden=linear(WIDTH, 4 * WIDTH),
                out=linear(4 * WIDTH, WIDTH),
            )
            for _ in range(layers)
        ],
        norm=nn.LayerNorm(WIDTH),
    )
    optimizer = optim.Adam(model, lr=LEARNING_RATE)
    ids, following = [tt.from_numpy(one) for one in _ids(length, vocabulary)]
    places: Any = tt.arange(length)

    def step() -> Any:
        logits = model.forward(ids.trace(), places)
        loss = losses.cross_entropy(logits, following)
        optimizer.step(loss.backward(wrt=model))
        return loss.item()

    return step


def eager(length: int) -> Step:
    """Return a step of tapetensor."""
    return _step(length)


def compiled(length: int) -> Step:
    """Return a compiled step of tapetensor."""
    import tapetensor as tt

    return tt.compile(_step(length))


def theirs(length: int) -> Step:
    """Return a step of PyTorch."""
    import torch
    from torch.nn import functional

    layers, vocabulary = _sizes(length)

    class Block(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not checked
        def __init__(self) -> None:
            super().__init__()
            self.attention_norm, self.mlp_norm = [torch.nn.LayerNorm(WIDTH) for _ in range(2)]
            self.attention = torch.nn.Linear(WIDTH, 3 * WIDTH)
            self.projection = torch.nn.Linear(WIDTH, WIDTH)
            self.hidden = torch.nn.Linear(WIDTH, 4 * WIDTH)
            self.out = torch.nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.attention(self.attention_norm(x)).view(1, length, 3, HEADS, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.projection(heads.transpose(1, 2).reshape(1, length, WIDTH))
            y = functional.gelu(self.hidden(self.mlp_norm(x)), approximate="tanh")
            return x + self.out(y)

    tokens, positions = torch.nn.Embedding(vocabulary, WIDTH), torch.nn.Embedding(1024, WIDTH)
    blocks, norm = [Block() for _ in range(layers)], torch.nn.LayerNorm(WIDTH)
    modules = [tokens, positions, *blocks, norm]
    optimizer = torch.optim.Adam(
        [one for module in modules for one in module.parameters()], lr=LEARNING_RATE
    )
    ids, following = [torch.from_numpy(one) for one in _ids(length, vocabulary)]
    places = torch.arange(length)

    def step() -> Any:
        optimizer.zero_grad()
        x = tokens(ids) + positions(places)
        for block in blocks:
            x = block(x)
        logits = norm(x) @ tokens.weight.T
        loss = functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    main(
        Growth(
            "GPT-2 small, a training step with Adam, by length",
            {"tapetensor": eager, "compiled": compiled, "torch": theirs},
            (128, 256, 512),
            SMALL,
        )
    )
