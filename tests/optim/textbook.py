"""The optimizers once more: slow, number by number, as the papers write them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class TextbookSgd:
    """Sutskever et al. (2013) in PyTorch's form, for one number."""

    lr: float = 1e-2
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    velocity: float = 0.0

    def step(self, p: float, gradient: float) -> float:
        g = gradient + self.weight_decay * p
        self.velocity = self.momentum * self.velocity + g
        return p - self.lr * (g + self.momentum * self.velocity if self.nesterov else self.velocity)


@dataclass
class TextbookAdam:
    """Kingma & Ba (2015), algorithm 1, for one number; the decay coupled or decoupled."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False
    count: int = field(default=0)
    mean: float = field(default=0.0)
    square: float = field(default=0.0)

    def step(self, p: float, gradient: float) -> float:
        beta1, beta2 = self.betas
        g = gradient if self.decoupled else gradient + self.weight_decay * p
        self.count += 1
        self.mean = beta1 * self.mean + (1 - beta1) * g
        self.square = beta2 * self.square + (1 - beta2) * g * g
        mean = self.mean / (1 - beta1**self.count)
        square = self.square / (1 - beta2**self.count)
        decayed = p - self.lr * self.weight_decay * p if self.decoupled else p
        return decayed - self.lr * mean / (math.sqrt(square) + self.eps)
