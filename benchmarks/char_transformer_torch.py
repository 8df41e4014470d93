"""Train the model of `examples/char_transformer.py` and its twin in PyTorch; compare the losses.

Both begin with the same weights and see the same batches; the twin is made of PyTorch's own layers,
attention, optimizer, clipping and schedule. Run with PyTorch installed:

    PYTHONPATH=examples python -m benchmarks.char_transformer_torch --steps 600 --width 64

That run gave a held-out loss of 1.8913 nats per character with PyTorch 2.13 and of 1.8912 with
tapetensor (Python 3.11, one thread each).
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

import numpy as np
from char_transformer import Settings, Text, Training, held_out_loss, load_text

from tapetensor import io

# Not imported by name: PyTorch is not there for mypy.
torch: Any = importlib.import_module("torch")
functional: Any = importlib.import_module("torch.nn.functional")


class Twin:
    """The same model, from the weights of ours; functions of PyTorch over named weights."""

    def __init__(self, weights: dict[str, Any], settings: Settings) -> None:
        self.settings = settings
        self.weights = {
            name: torch.nn.Parameter(torch.from_numpy(array)) for name, array in weights.items()
        }

    def linear(self, name: str, x: Any) -> Any:
        """Return the output of an affine layer."""
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, name: str, x: Any) -> Any:
        """Return the output of a layer norm."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, weight.shape, weight, bias)

    def attention(self, name: str, x: Any) -> Any:
        """Return what each position has found."""
        b, m, width = x.shape
        heads = (
            part.view(b, m, self.settings.heads, -1).transpose(1, 2)
            for part in self.linear(f"{name}.query_key_value", x).chunk(3, dim=-1)
        )
        found = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.linear(f"{name}.projection", found.transpose(1, 2).reshape(b, m, width))

    def loss(self, ids: Any, following: Any) -> Any:
        """Return the loss per character."""
        x = self.weights["tokens.weight"][ids] + self.weights["positions.weight"]
        for layer in range(self.settings.layers):
            block = f"blocks.{layer}"
            x = x + self.attention(f"{block}.attention", self.norm(f"{block}.attention_norm", x))
            h = self.linear(f"{block}.hidden", self.norm(f"{block}.mlp_norm", x))
            h = functional.gelu(h, approximate="tanh")
            x = x + self.linear(f"{block}.projection", h)
        logits = self.linear("head", self.norm("norm", x))
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def as_torch(batch: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return a batch as PyTorch's tensors."""
    ids, following = (torch.from_numpy(one.numpy().copy()) for one in batch)
    return ids, following


def train_twin(training: Training, settings: Settings, rng: np.random.Generator) -> float:
    """Train the twin; return its loss on held-out text."""
    twin = Twin(io.state_dict(training.model), settings)
    text: Text
    text, held_out = load_text(settings.context)
    parameters = list(twin.weights.values())
    optimizer = torch.optim.AdamW(parameters, lr=settings.lr, weight_decay=0.1)
    for step in range(settings.steps):
        loss = twin.loss(*as_torch(text.draw(settings.batch, rng)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.param_groups[0]["lr"] = training.schedule(step)
        optimizer.step()
    with torch.no_grad():
        reached: float = twin.loss(*as_torch(held_out.spread(128))).item()
    return reached


def main() -> None:
    """Train both and print both losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("steps", 600), ("width", 64), ("layers", 2), ("heads", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    settings = Settings(context=64, batch=16, lr=3e-3, **options)
    training = Training(settings)
    twin_rng = np.random.default_rng()
    io.load_state_dict(twin_rng, io.state_dict(training.rng))
    start = time.perf_counter()
    theirs = train_twin(training, settings, twin_rng)
    between = time.perf_counter()
    for _ in range(settings.steps):
        training.step()
    ours = held_out_loss(training.model, training.held_out)
    end = time.perf_counter()
    print(settings)
    print(f"held-out loss: PyTorch {theirs:.4f}, tapetensor {ours:.4f}, {ours / theirs - 1:+.2%}")
    print(f"seconds: PyTorch {between - start:.0f}, tapetensor {end - between:.0f}")


if __name__ == "__main__":
    main()
