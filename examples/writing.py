"""Write with a trained transformer: each new character meets keys and values that are kept.

Without a cache, a text of n characters is read n times, from its beginning. Here `Cache` keeps what
every block has computed of the characters so far, and `read` gives it the next ones alone. `choose`
draws a character: by temperature, from the `top_k` likeliest, from those that make up `top_p`.

Run ``python examples/writing.py``, which trains a small model first; or have
``char_transformer.py --checkpoint gpt.npz`` train one, and give the same sizes and
``--checkpoint gpt.npz`` here.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from char_transformer import ALPHABET, Attention, Features, Gpt, Ids, Settings, Training

import tapetensor as tt
from tapetensor import NoneTape, Tensor4D
from tapetensor.typing import B, M

Row: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]


class Seen(NamedTuple):
    """The keys and values of one block for all characters so far: (1, heads, characters, width)."""

    keys: Tensor4D[Any, Any, Any, Any]
    values: Tensor4D[Any, Any, Any, Any]


Cache: TypeAlias = list[Seen]


def attend(
    attention: Attention, x: Features[B, M, NoneTape], seen: Seen | None
) -> tuple[Features[B, M, NoneTape], Seen]:
    """Return what the new positions find in all, and the keys and values of all."""
    b, m, width = x.shape
    query, keys, values = [
        part.reshape((b, m, attention.heads, width // attention.heads)).permute_dims((0, 2, 1, 3))
        for part in attention.query_key_value.forward(x).split(3, axis=-1)
    ]
    if seen is not None:
        keys = tt.concat((seen.keys, keys), axis=2)
        values = tt.concat((seen.values, values), axis=2)
    # A new position sees all before it, itself and none after it.
    known = keys.shape[2]
    mask = tt.arange(known) <= (tt.arange(m) + (known - m)).expand_dims(-1)
    found = tt.scaled_dot_product_attention(query, keys, values, mask=mask)
    joined = found.permute_dims((0, 2, 1, 3)).reshape((b, m, width))
    return attention.projection.forward(joined), Seen(keys, values)


def read(model: Gpt, ids: Ids[B, M, NoneTape], cache: Cache) -> tuple[Row, Cache]:
    """Return the scores of what follows, and the cache with the new characters in it.

    Args:
        model: the model.
        ids: the characters that the cache does not hold yet.
        cache: what came before; empty at first.
    """
    _, m = ids.shape
    before = cache[0].keys.shape[2] if cache else 0
    x = model.tokens.forward(ids) + model.positions.forward(tt.arange(m) + before)
    kept: Cache = []
    for number, block in enumerate(model.blocks):
        seen = cache[number] if cache else None
        found, now = attend(block.attention, block.attention_norm.forward(x), seen)
        kept.append(now)
        x = found + x
        x = block.projection.forward(block.hidden.forward(block.mlp_norm.forward(x)).gelu()) + x
    scores: Row = model.head.forward(model.norm.forward(x)).numpy()[0, -1]
    return scores, kept


class Choice(Protocol):
    """Draws a class by its scores."""

    def __call__(self, scores: Row, rng: np.random.Generator) -> int:
        """Return the number of a class."""


def choose(
    scores: Row,
    rng: np.random.Generator,
    temperature: float = 0.8,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> int:
    """Return a class, drawn by its scores.

    Args:
        scores: the logits.
        rng: draws.
        temperature: below 1 likely classes become likelier; 0 takes the likeliest.
        top_k: how many of the likeliest may be drawn; None for all.
        top_p: of the likeliest those are drawn that together have this probability.
    """
    order = np.argsort(-scores, kind="stable")[:top_k]
    if temperature == 0:
        return int(order[0])
    logits = scores[order].astype(np.float64) / temperature
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    # The likeliest stays in any case.
    among = (np.arange(len(order)) == 0) | (np.cumsum(chances) - chances < top_p)
    chances = chances * among
    return int(rng.choice(order, p=chances / chances.sum()))


def write(
    model: Gpt, start: str, length: int, rng: np.random.Generator, choice: Choice = choose
) -> str:
    """Return `start` and what the model makes of it, character by character.

    Positions are learned for `context` characters. When they are used up, the last half of the text
    is read again from position 0.
    """
    context = model.positions.num_embeddings
    text, cache = start, Cache()
    unread = start[-context:]
    for _ in range(length):
        if cache and cache[0].keys.shape[2] + len(unread) > context:
            unread, cache = text[-(context // 2) :], Cache()
        numbers = np.array([[ALPHABET.index(one) for one in unread]])
        scores, cache = read(model, tt.from_numpy(numbers, (1, len(unread))), cache)
        unread = ALPHABET[choice(scores, rng)]
        text += unread
    return text


def main() -> None:
    """Load or train a model, and write in three ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, help="a file of char_transformer.py")
    parser.add_argument("--steps", type=int, default=150, help="of training, without a checkpoint")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--length", type=int, default=160, help="characters to write")
    options = parser.parse_args()
    sizes = options.width, options.layers, options.heads, options.context
    training = Training(Settings(*sizes, batch=16, steps=options.steps, lr=3e-3, seed=0))
    if options.checkpoint is not None:
        training.resume(options.checkpoint)
    else:
        training.run(evaluations=1, checkpoint=None)
    ways: dict[str, Choice] = {
        "the likeliest": lambda scores, rng: choose(scores, rng, temperature=0.0),
        "of the 10 likeliest": lambda scores, rng: choose(scores, rng, top_k=10),
        "of those that make up 0.9": lambda scores, rng: choose(scores, rng, top_p=0.9),
    }
    for name, choice in ways.items():
        start = time.perf_counter()
        text = write(training.model, "The ", options.length, np.random.default_rng(0), choice)
        rate = options.length / (time.perf_counter() - start)
        print(f"{name}, {rate:.0f} characters a second:\n{text}\n")


if __name__ == "__main__":
    main()
