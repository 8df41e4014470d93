"""Every optimizer in every mode, beside the textbook's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, Sgd
from tests.optim.models import Array, Model
from tests.optim.textbook import TextbookAdagrad, TextbookAdam, TextbookRmsprop, TextbookSgd

Make = Callable[[Model], Optimizer]

BY_TEXTBOOK: dict[str, tuple[Make, Callable[[], Any]]] = {
    "sgd": (Sgd, TextbookSgd),
    "sgd with decay": (
        lambda m: Sgd(m, lr=0.1, weight_decay=0.3),
        lambda: TextbookSgd(lr=0.1, weight_decay=0.3),
    ),
    "sgd with momentum": (
        lambda m: Sgd(m, lr=0.1, momentum=0.8),
        lambda: TextbookSgd(lr=0.1, momentum=0.8),
    ),
    "sgd with momentum and decay": (
        lambda m: Sgd(m, lr=0.1, momentum=0.8, weight_decay=0.3),
        lambda: TextbookSgd(lr=0.1, momentum=0.8, weight_decay=0.3),
    ),
    "sgd, nesterov": (
        lambda m: Sgd(m, lr=0.1, momentum=0.8, nesterov=True),
        lambda: TextbookSgd(lr=0.1, momentum=0.8, nesterov=True),
    ),
    "sgd, nesterov, with decay": (
        lambda m: Sgd(m, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.3),
        lambda: TextbookSgd(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.3),
    ),
    "sgd, decoupled decay": (
        lambda m: Sgd(m, lr=0.1, weight_decay=0.3, decoupled_weight_decay=True),
        lambda: TextbookSgd(lr=0.1, weight_decay=0.3, decoupled=True),
    ),
    "sgd, nesterov, decoupled decay": (
        lambda m: Sgd(
            m, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.3, decoupled_weight_decay=True
        ),
        lambda: TextbookSgd(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.3, decoupled=True),
    ),
    "adam": (Adam, TextbookAdam),
    "adam, other betas": (
        lambda m: Adam(m, lr=0.1, betas=(0.5, 0.7), eps=1e-3),
        lambda: TextbookAdam(lr=0.1, betas=(0.5, 0.7), eps=1e-3),
    ),
    "adam without memory": (
        lambda m: Adam(m, betas=(0.0, 0.0)),
        lambda: TextbookAdam(betas=(0.0, 0.0)),
    ),
    "adam, coupled decay": (
        lambda m: Adam(m, lr=0.1, weight_decay=0.3),
        lambda: TextbookAdam(lr=0.1, weight_decay=0.3),
    ),
    "adamw": (AdamW, lambda: TextbookAdam(weight_decay=1e-2, decoupled=True)),
    "adamw, strong decay": (
        lambda m: AdamW(m, lr=0.1, weight_decay=0.3),
        lambda: TextbookAdam(lr=0.1, weight_decay=0.3, decoupled=True),
    ),
    "sgd with dampening": (
        lambda m: Sgd(m, lr=0.1, momentum=0.8, weight_decay=0.3, dampening=0.4),
        lambda: TextbookSgd(lr=0.1, momentum=0.8, weight_decay=0.3, dampening=0.4),
    ),
    "adam, amsgrad": (
        lambda m: Adam(m, lr=0.1, betas=(0.5, 0.4), weight_decay=0.3, amsgrad=True),
        lambda: TextbookAdam(lr=0.1, betas=(0.5, 0.4), weight_decay=0.3, amsgrad=True),
    ),
    "adamw, amsgrad": (
        lambda m: AdamW(m, lr=0.1, betas=(0.5, 0.4), amsgrad=True),
        lambda: TextbookAdam(
            lr=0.1, betas=(0.5, 0.4), weight_decay=1e-2, decoupled=True, amsgrad=True
        ),
    ),
    "adagrad": (Adagrad, TextbookAdagrad),
    "adagrad with both decays": (
        lambda m: Adagrad(m, lr=0.1, lr_decay=0.2, weight_decay=0.3),
        lambda: TextbookAdagrad(lr=0.1, lr_decay=0.2, weight_decay=0.3),
    ),
    "adagrad, decoupled decay, from ones": (
        lambda m: Adagrad(
            m,
            lr_decay=0.2,
            weight_decay=0.3,
            initial_accumulator_value=1.0,
            decoupled_weight_decay=True,
        ),
        lambda: TextbookAdagrad(lr_decay=0.2, weight_decay=0.3, decoupled=True, square=1.0),
    ),
    "rmsprop": (RMSprop, TextbookRmsprop),
    "rmsprop with momentum and decay": (
        lambda m: RMSprop(m, alpha=0.7, eps=1e-3, momentum=0.8, weight_decay=0.3),
        lambda: TextbookRmsprop(alpha=0.7, eps=1e-3, momentum=0.8, weight_decay=0.3),
    ),
    "rmsprop, centered": (
        lambda m: RMSprop(m, alpha=0.9, eps=1e-3, centered=True),
        lambda: TextbookRmsprop(alpha=0.9, eps=1e-3, centered=True),
    ),
    "rmsprop, decoupled decay": (
        lambda m: RMSprop(m, weight_decay=0.3, decoupled_weight_decay=True),
        lambda: TextbookRmsprop(weight_decay=0.3, decoupled=True),
    ),
    "rmsprop as dfdx's, all at once": (
        lambda m: RMSprop(
            m,
            alpha=0.9,
            momentum=0.8,
            centered=True,
            weight_decay=0.3,
            decoupled_weight_decay=True,
            initial_square=1.0,
            eps_inside_root=True,
        ),
        lambda: TextbookRmsprop(
            alpha=0.9,
            momentum=0.8,
            centered=True,
            weight_decay=0.3,
            decoupled=True,
            eps_inside=True,
            square=1.0,
        ),
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
