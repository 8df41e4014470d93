"""A function, run with and without a checkpoint, and something that changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tapetensor as tt

VALUES = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
# A global of another file than that of the function which reads it.
scale = 3.0


def scaled(x: Any) -> Any:
    """Multiply by what stands in this file."""
    return x * scale


def tensor(*values: float) -> Any:
    """Return a plain tensor of doubles."""
    return tt.from_numpy(list(values), dtype=np.float64)


class Trial(NamedTuple):
    """A function, the tensors it uses, what changes between its run and the backward pass."""

    f: Callable[[Any], Any]
    change: Callable[[], object]
    tensors: tuple[Any, ...] = ()
    # Where it can be seen whether state is left as without a checkpoint.
    state: Callable[[], object] = lambda: None


def outcome(trial: Trial, *, is_checkpointed: bool) -> list[Any]:
    """Return what f gives, the state after the backward pass, and all gradients, as lists."""
    x = tt.from_numpy(VALUES)
    y = tt.checkpoint(trial.f, x.trace()) if is_checkpointed else trial.f(x.trace())
    trial.change()
    grads = y.square().sum().backward()
    return [y.detach().numpy().tolist(), trial.state()] + [
        grads[one].numpy().tolist() for one in (x, *trial.tensors)
    ]


@dataclass
class Scale:
    """Holds a value."""

    value: Any
