"""Learn to write like Python's own documentation: a small GPT whose every dim mypy has checked.

The text is the language reference that every Python ships (``pydoc_data.topics``), nothing is
downloaded. The sizes come from the command line, so they are nominal dims (`Width`, `Hidden`, ...):
mypy keeps them apart, whatever their values are. The architecture is that of Radford et al. (2019),
"Language models are unsupervised multitask learners".

Run ``mypy --strict examples/char_transformer.py`` and then ``python examples/char_transformer.py``;
with ``--checkpoint gpt.npz`` training can be stopped at any time, and with ``--resume`` as well it
goes on from the last save with the same steps, to the bit.

It writes with a cache: `read` keeps the keys and values of what was read, so that each new
character is computed alone, and `choose` draws it by temperature, top-k and top-p.

One line more in the constructor of `Training`, after ``self.gradients_of = ...``, and it trains
under ``mpiexec -n 2``, with half of each batch on either rank::

    self.gradients_of = tt.distributed.data_parallel(self.gradients_of)
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, NamedTuple, NewType, TypeAlias
from typing import Literal as L

import numpy as np
from tqdm import tqdm

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor2D, Tensor3D, Tensor4D, io, losses, nn, optim
from tapetensor.optim import schedules
from tapetensor.typing import B, M, T

# A line break and the printable characters of ASCII.
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
VOCABULARY: L[96] = 96
HELD_OUT = 0.1

Width = NewType("Width", int)
Hidden = NewType("Hidden", int)
Projected = NewType("Projected", int)
Context = NewType("Context", int)

Ids: TypeAlias = Tensor2D[B, M, T, np.int64]
Features: TypeAlias = Tensor3D[B, M, Width, T]


class Settings(NamedTuple):
    """The sizes of the model and of its training."""

    width: int
    layers: int
    heads: int
    context: int
    batch: int
    steps: int
    lr: float
    seed: int


class Attention(nn.Module):
    """Every position looks at itself and at those before it, in several heads."""

    query_key_value: nn.Linear[Width, Projected]
    projection: nn.Linear[Width, Width]
    heads: int

    def forward(self, x: Features[B, M, T]) -> Features[B, M, T]:
        """Return what each position has found."""
        b, m, width = x.shape
        query, key, value = [
            part.reshape((b, m, self.heads, width // self.heads)).permute_dims((0, 2, 1, 3))
            for part in self.query_key_value.forward(x).split(3, axis=-1)
        ]
        found = tt.scaled_dot_product_attention(query, key, value, causal=True)
        return self.projection.forward(found.permute_dims((0, 2, 1, 3)).reshape((b, m, width)))


class Block(nn.Module):
    """Attention, then a layer that is wider inside, each normed before and added to its input."""

    attention_norm: nn.LayerNorm[Width]
    attention: Attention
    mlp_norm: nn.LayerNorm[Width]
    hidden: nn.Linear[Width, Hidden]
    projection: nn.Linear[Hidden, Width]

    def forward(self, x: Features[B, M, T]) -> Features[B, M, T]:
        """Return `x` with what both parts add."""
        x = self.attention.forward(self.attention_norm.forward(x)) + x
        h = self.hidden.forward(self.mlp_norm.forward(x)).gelu()
        return self.projection.forward(h) + x


class Gpt(nn.Module):
    """The logits of the next character at every position."""

    tokens: nn.Embedding[L[96], Width]
    positions: nn.Embedding[Context, Width]
    blocks: list[Block]
    norm: nn.LayerNorm[Width]
    head: nn.Linear[Width, L[96]]

    def forward(self, ids: Ids[B, M, T]) -> Tensor3D[B, M, L[96], T]:
        """Return one score per character of the alphabet."""
        _, m = ids.shape
        positions = self.positions.forward(tt.arange(m))
        x = self.tokens.forward(ids) + positions
        for block in self.blocks:
            x = block.forward(x)
        return self.head.forward(self.norm.forward(x))


def build_gpt(settings: Settings, rng: np.random.Generator) -> Gpt:
    """Build the model with GPT-2's first values.

    Weights are normal with standard deviation 0.02, those before a residual connection smaller with
    the number of such connections; biases are 0.
    """
    width, hidden = Width(settings.width), Hidden(4 * settings.width)

    def block() -> Block:
        return Block(
            attention_norm=nn.LayerNorm(width),
            attention=Attention(
                query_key_value=nn.Linear(width, Projected(3 * width), rng=rng),
                projection=nn.Linear(width, width, rng=rng),
                heads=settings.heads,
            ),
            mlp_norm=nn.LayerNorm(width),
            hidden=nn.Linear(width, hidden, rng=rng),
            projection=nn.Linear(hidden, width, rng=rng),
        )

    model = Gpt(
        tokens=nn.Embedding(VOCABULARY, width, rng=rng),
        positions=nn.Embedding(Context(settings.context), width, rng=rng),
        blocks=[block() for _ in range(settings.layers)],
        norm=nn.LayerNorm(width),
        head=nn.Linear(width, VOCABULARY, rng=rng),
    )
    for name, module in model.modules().items():
        if isinstance(module, nn.Embedding | nn.Linear):
            depth = 2 * settings.layers if name.endswith(".projection") else 1
            std = 0.02 / math.sqrt(depth)
            module.weight = tt.normal(module.weight.shape, rng=rng, std=std)
        if isinstance(module, nn.Linear):
            module.bias = tt.zeros(module.bias.shape)
    return model


class Text:
    """Characters by number, and windows of them."""

    def __init__(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]], context: int) -> None:
        self._ids = ids
        self._context = Context(context)

    def windows(
        self, starts: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> tuple[Ids[int, Context, NoneTape], Ids[int, Context, NoneTape]]:
        """Return the windows that begin there, and the characters that follow each character."""
        rows = self._ids[starts[:, np.newaxis] + np.arange(self._context + 1)]
        shape = (len(starts), self._context)
        return tt.from_numpy(rows[:, :-1], shape), tt.from_numpy(rows[:, 1:], shape)

    def draw(
        self, count: int, rng: np.random.Generator
    ) -> tuple[Ids[int, Context, NoneTape], Ids[int, Context, NoneTape]]:
        """Return windows from anywhere."""
        return self.windows(rng.integers(len(self._ids) - self._context, size=count))

    def spread(self, count: int) -> tuple[Ids[int, Context, NoneTape], Ids[int, Context, NoneTape]]:
        """Return windows spread evenly, the same at every call."""
        last = len(self._ids) - self._context - 1
        return self.windows(np.linspace(0, last, count).astype(np.int64))


def load_text(context: int) -> tuple[Text, Text]:
    """Return the text to learn from, and its last tenth, held out."""
    plain = "\n\n".join([topics[name] for name in sorted(topics)])
    numbers = {character: number for number, character in enumerate(ALPHABET)}
    # A few typographic quotes and dashes are left out.
    ids = np.array([numbers[one] for one in plain if one in numbers], np.int64)
    seen = round(len(ids) * (1 - HELD_OUT))
    return Text(ids[:seen], context), Text(ids[seen:], context)


def held_out_loss(model: Gpt, text: Text, windows: int = 128) -> float:
    """Return the loss per character of held-out text, in nats."""
    ids, following = text.spread(windows)
    return losses.cross_entropy(model.forward(ids), following).item()


def schedule_of(settings: Settings) -> schedules.Schedule:
    """Return the learning rate by step: a short rise, then a long fall to a tenth."""
    rising = max(1, settings.steps // 20)
    falling = schedules.cosine(settings.lr, settings.steps, final_lr=0.1 * settings.lr)
    return schedules.warm_up(falling, steps=rising)


class Point(NamedTuple):
    """A point of the loss curve."""

    step: int
    training: float
    held_out: float


def gradients_of(
    model: Gpt, ids: Ids[B, M, NoneTape], following: Ids[B, M, NoneTape]
) -> tuple[Tensor0D, tt.Gradients]:
    """Return the loss on a batch and its gradients."""
    loss = losses.cross_entropy(model.forward(ids.trace()), following)
    value = loss.detach()
    return value, loss.backward(wrt=model)


class Training:
    """All that a step changes, in one place, so that it can be saved and go on."""

    def __init__(self, settings: Settings, *, compiled: bool = False) -> None:
        self.gradients_of = tt.compile(gradients_of) if compiled else gradients_of
        self.settings = settings
        self.rng = np.random.default_rng(settings.seed)
        self.model = build_gpt(settings, self.rng)
        self.optimizer = optim.AdamW(self.model, lr=settings.lr, weight_decay=0.1)
        self.schedule = schedule_of(settings)
        self.text, self.held_out = load_text(settings.context)

    def step(self) -> float:
        """Train on one batch; return the loss before the step."""
        ids, following = self.text.draw(self.settings.batch, self.rng)
        loss, grads = self.gradients_of(self.model, ids, following)
        grads.clip_by_global_norm(1.0)
        self.optimizer.lr = self.schedule(self.optimizer.steps)
        self.optimizer.step(grads)
        return loss.item()

    def save(self, path: Path) -> None:
        """Write everything to one file."""
        io.save_checkpoint(path, model=self.model, optimizer=self.optimizer, rng=self.rng)

    def resume(self, path: Path) -> None:
        """Go on from such a file."""
        io.load_checkpoint(path, model=self.model, optimizer=self.optimizer, rng=self.rng)

    def run(self, evaluations: int, checkpoint: Path | None) -> list[Point]:
        """Train to the end; return the loss curve of these steps."""
        curve: list[Point] = []
        recent: list[float] = []
        every = max(1, self.settings.steps // evaluations)
        progress = tqdm(
            range(self.optimizer.steps, self.settings.steps), desc="training", unit="step"
        )
        for step in progress:
            recent.append(self.step())
            if (step + 1) % every == 0 or step + 1 == self.settings.steps:
                mean = sum(recent) / len(recent)
                curve.append(Point(step + 1, mean, held_out_loss(self.model, self.held_out)))
                progress.set_postfix_str(f"loss {mean:.3f}, held out {curve[-1].held_out:.3f}")
                recent.clear()
                if checkpoint is not None:
                    self.save(checkpoint)
        return curve


class Seen(NamedTuple):
    """The keys and values of one block for all characters so far: (1, heads, characters, width)."""

    keys: Tensor4D[Any, Any, Any, Any]
    values: Tensor4D[Any, Any, Any, Any]


Cache: TypeAlias = list[Seen]
Row: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]


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
    is_seen = np.arange(known) <= np.arange(known - m, known)[:, np.newaxis]
    mask = tt.from_numpy(is_seen, (m, known))
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
    scores: Any = model.head.forward(model.norm.forward(x)).numpy()[0, -1]
    return scores, kept


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
    model: Gpt,
    start: str,
    length: int,
    rng: np.random.Generator,
    choice: Callable[[Row, np.random.Generator], int] = choose,
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


def draw(path: Path, curve: list[Point]) -> None:
    """Write the loss curve to a file."""
    from matplotlib.figure import Figure  # not needed without a picture

    axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
    steps = [point.step for point in curve]
    axes.plot(steps, [point.training for point in curve], label="training")
    axes.plot(steps, [point.held_out for point in curve], label="held out")
    axes.set(title="Loss per character", xlabel="step", ylabel="nats")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train, report, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64, help="characters that are seen at once")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="a .npz or .safetensors file to save to")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--picture", type=Path, help="a .png file for the loss curve of this run")
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
    parser.add_argument("--temperature", type=float, default=0.8, help="of the sample")
    parser.add_argument("--top-k", type=int, help="draw from so many of the likeliest")
    parser.add_argument("--top-p", type=float, default=1.0, help="and from this share of them")
    parser.add_argument("--compile", action="store_true", help="plan the gradients once")
    options = parser.parse_args()
    if options.resume and options.checkpoint is None:
        parser.error("--resume needs --checkpoint")
    if options.heads < 1 or options.width % options.heads:
        parser.error("--width must be a multiple of --heads")
    start = time.perf_counter()
    settings = Settings(*(getattr(options, name) for name in Settings._fields))
    training = Training(settings, compiled=options.compile)
    print(f"{training.model.parameter_count():,} parameters")
    if options.resume:
        training.resume(options.checkpoint)
        print(f"resumed after {training.optimizer.steps} steps")
    try:
        curve = training.run(evaluations=20, checkpoint=options.checkpoint)
    except KeyboardInterrupt:
        # Perhaps in the middle of a step, so this is no moment to save.
        hint = "--resume goes on from the last save" if options.checkpoint else "nothing was saved"
        parser.exit(130, f"stopped after {training.optimizer.steps} steps; {hint}\n")
    if options.picture is not None:
        draw(options.picture, curve)
    loss = held_out_loss(training.model, training.held_out)
    print(
        f"held-out loss {loss:.4f} nats per character after {training.optimizer.steps} steps "
        f"and {time.perf_counter() - start:.1f} s"
    )
    chosen = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p")}
    rng = np.random.default_rng(options.seed)
    print(write(training.model, "The ", options.sample, rng, partial(choose, **chosen)))


if __name__ == "__main__":
    main()
