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
    decoupled: bool = False
    dampening: float = 0.0
    count: int = 0
    velocity: float = 0.0

    def step(self, p: float, gradient: float) -> float:
        g = gradient if self.decoupled else gradient + self.weight_decay * p
        self.count += 1
        share = 1.0 if self.count == 1 else 1.0 - self.dampening
        self.velocity = self.momentum * self.velocity + share * g
        decayed = p - self.lr * self.weight_decay * p if self.decoupled else p
        direction = g + self.momentum * self.velocity if self.nesterov else self.velocity
        return decayed - self.lr * direction


@dataclass
class TextbookAdam:
    """Kingma & Ba (2015), algorithm 1, for one number; the decay coupled or decoupled."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False
    amsgrad: bool = False
    count: int = field(default=0)
    mean: float = field(default=0.0)
    square: float = field(default=0.0)
    largest: float = field(default=0.0)

    def step(self, p: float, gradient: float) -> float:
        beta1, beta2 = self.betas
        g = gradient if self.decoupled else gradient + self.weight_decay * p
        self.count += 1
        self.mean = beta1 * self.mean + (1 - beta1) * g
        self.square = beta2 * self.square + (1 - beta2) * g * g
        mean = self.mean / (1 - beta1**self.count)
        self.largest = max(self.largest, self.square)
        square = (self.largest if self.amsgrad else self.square) / (1 - beta2**self.count)
        decayed = p - self.lr * self.weight_decay * p if self.decoupled else p
        return decayed - self.lr * mean / (math.sqrt(square) + self.eps)


@dataclass
class TextbookRmsprop:
    """Tieleman & Hinton (2012) and Graves (2013) in PyTorch's form, or dfdx's, for one number."""

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    centered: bool = False
    weight_decay: float = 0.0
    decoupled: bool = False
    eps_inside: bool = False
    square: float = 0.0
    mean: float = 0.0
    velocity: float = 0.0

    def step(self, p: float, gradient: float) -> float:
        g = gradient if self.decoupled else gradient + self.weight_decay * p
        self.square = self.alpha * self.square + (1 - self.alpha) * g * g
        variance = self.square
        if self.centered:
            self.mean = self.alpha * self.mean + (1 - self.alpha) * g
            variance -= self.mean * self.mean
        root = math.sqrt(variance + self.eps) if self.eps_inside else math.sqrt(variance) + self.eps
        self.velocity = self.momentum * self.velocity + g / root
        decayed = p - self.lr * self.weight_decay * p if self.decoupled else p
        return decayed - self.lr * self.velocity


@dataclass
class TextbookAdagrad:
    """Duchi, Hazan & Singer (2011) in PyTorch's form, for one number."""

    lr: float = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    decoupled: bool = False
    square: float = 0.0
    eps: float = 1e-10
    count: int = 0

    def step(self, p: float, gradient: float) -> float:
        g = gradient if self.decoupled else gradient + self.weight_decay * p
        lr = self.lr / (1 + self.count * self.lr_decay)
        self.count += 1
        self.square += g * g
        decayed = p - lr * self.weight_decay * p if self.decoupled else p
        return decayed - lr * g / (math.sqrt(self.square) + self.eps)
