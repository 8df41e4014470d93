"""Every optimizer in every mode, and once more: slow, number by number, as the papers write it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tapetensor.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, Sgd
from tests.optim.models import Array, Model


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
    count: int = 0
    mean: float = 0.0
    square: float = 0.0
    largest: float = 0.0

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


Make = Callable[[Model], Optimizer]
# What the textbook calls otherwise.
OPTIONS = {
    "decoupled_weight_decay": "decoupled",
    "initial_accumulator_value": "square",
    "initial_square": "square",
    "eps_inside_root": "eps_inside",
}


def _both(make: Any, textbook: Any, **options: Any) -> tuple[Make, Callable[[], Any]]:
    """Return an optimizer and the textbook's with the same options."""
    theirs = {OPTIONS.get(name, name): value for name, value in options.items()}
    return partial(make, **options), partial(textbook, **theirs)


_sgd = partial(_both, Sgd, TextbookSgd)
_adam = partial(_both, Adam, TextbookAdam)
_adamw = partial(_both, AdamW, partial(TextbookAdam, weight_decay=1e-2, decoupled=True))
_adagrad = partial(_both, Adagrad, TextbookAdagrad)
_rmsprop = partial(_both, RMSprop, TextbookRmsprop)
_NESTEROV: dict[str, Any] = {"lr": 0.1, "momentum": 0.8, "nesterov": True}
_DECOUPLED: dict[str, Any] = {"weight_decay": 0.3, "decoupled_weight_decay": True}

BY_TEXTBOOK: dict[str, tuple[Make, Callable[[], Any]]] = {
    "sgd": _sgd(),
    "sgd with decay": _sgd(lr=0.1, weight_decay=0.3),
    "sgd with momentum": _sgd(lr=0.1, momentum=0.8),
    "sgd with momentum and decay": _sgd(lr=0.1, momentum=0.8, weight_decay=0.3),
    "sgd, nesterov": _sgd(**_NESTEROV),
    "sgd, nesterov, with decay": _sgd(**_NESTEROV, weight_decay=0.3),
    "sgd, decoupled decay": _sgd(lr=0.1, **_DECOUPLED),
    "sgd, nesterov, decoupled decay": _sgd(**_NESTEROV, **_DECOUPLED),
    "sgd with dampening": _sgd(lr=0.1, momentum=0.8, weight_decay=0.3, dampening=0.4),
    "adam": _adam(),
    "adam, other betas": _adam(lr=0.1, betas=(0.5, 0.7), eps=1e-3),
    "adam without memory": _adam(betas=(0.0, 0.0)),
    "adam, coupled decay": _adam(lr=0.1, weight_decay=0.3),
    "adam, amsgrad": _adam(lr=0.1, betas=(0.5, 0.4), weight_decay=0.3, amsgrad=True),
    "adamw": _adamw(),
    "adamw, strong decay": _adamw(lr=0.1, weight_decay=0.3),
    "adamw, amsgrad": _adamw(lr=0.1, betas=(0.5, 0.4), amsgrad=True),
    "adagrad": _adagrad(),
    "adagrad with both decays": _adagrad(lr=0.1, lr_decay=0.2, weight_decay=0.3),
    "adagrad, decoupled decay, from ones": _adagrad(
        lr_decay=0.2, initial_accumulator_value=1.0, **_DECOUPLED
    ),
    "rmsprop": _rmsprop(),
    "rmsprop with momentum and decay": _rmsprop(
        alpha=0.7, eps=1e-3, momentum=0.8, weight_decay=0.3
    ),
    "rmsprop, centered": _rmsprop(alpha=0.9, eps=1e-3, centered=True),
    "rmsprop, decoupled decay": _rmsprop(**_DECOUPLED),
    "rmsprop as dfdx's, all at once": _rmsprop(
        alpha=0.9,
        momentum=0.8,
        centered=True,
        initial_square=1.0,
        eps_inside_root=True,
        **_DECOUPLED,
    ),
}


class Textbook:
    """A textbook optimizer for each number of each parameter."""

    def __init__(self, arrays: dict[str, Array], make: Callable[[], Any]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self._optimizers = {
            name: {index: make() for index in np.ndindex(array.shape)}
            for name, array in arrays.items()
        }

    def step(self, gradients: dict[str, Array]) -> None:
        for name, gradient in gradients.items():
            array = self.arrays[name]
            for index, optimizer in self._optimizers[name].items():
                array[index] = optimizer.step(float(array[index]), float(gradient[index]))
