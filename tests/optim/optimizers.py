"""Every optimizer in every mode, and once more: slow and plain, as the papers write it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapetensor.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, Sgd
from tests.optim.models import Array, Model

Make = Callable[[Model], Optimizer]
# The parameter, its gradient and what it remembers so far, in; the new parameter out.
Formula = Callable[[Any, Any, dict[str, Any]], Any]


def decayed(
    p: Any,
    gradient: Any,
    lr: float,
    weight_decay: float = 0.0,
    decoupled_weight_decay: bool = False,
) -> tuple[Any, Any]:
    if decoupled_weight_decay:
        return p - lr * weight_decay * p, gradient
    return p, gradient + weight_decay * p


def sgd(
    p: Any,
    gradient: Any,
    state: dict[str, Any],
    lr: float = 1e-2,
    momentum: float = 0.0,
    nesterov: bool = False,
    dampening: float = 0.0,
    **decay: Any,
) -> Any:
    """Sutskever et al. (2013) in PyTorch's form."""
    p, g = decayed(p, gradient, lr, **decay)
    share = 1.0 - dampening if state else 1.0
    state["v"] = momentum * state.get("v", 0.0) + share * g
    return p - lr * (g + momentum * state["v"] if nesterov else state["v"])


def adam(
    p: Any,
    gradient: Any,
    state: dict[str, Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    amsgrad: bool = False,
    **decay: Any,
) -> Any:
    """Kingma & Ba (2015), algorithm 1; the decay coupled or decoupled."""
    p, g = decayed(p, gradient, lr, **decay)
    beta1, beta2 = betas
    t = state["t"] = state.get("t", 0) + 1
    state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g * g
    state["largest"] = np.maximum(state.get("largest", 0.0), state["v"])
    square = state["largest" if amsgrad else "v"] / (1 - beta2**t)
    return p - lr * state["m"] / (1 - beta1**t) / (np.sqrt(square) + eps)


def rmsprop(
    p: Any,
    gradient: Any,
    state: dict[str, Any],
    lr: float = 1e-2,
    alpha: float = 0.99,
    eps: float = 1e-8,
    momentum: float = 0.0,
    centered: bool = False,
    initial_square: float = 0.0,
    eps_inside_root: bool = False,
    **decay: Any,
) -> Any:
    """Tieleman & Hinton (2012) and Graves (2013) in PyTorch's form, or dfdx's."""
    p, g = decayed(p, gradient, lr, **decay)
    state["s"] = alpha * state.get("s", initial_square) + (1 - alpha) * g * g
    state["a"] = alpha * state.get("a", 0.0) + (1 - alpha) * g if centered else 0.0
    variance = state["s"] - state["a"] ** 2
    root = np.sqrt(variance + eps) if eps_inside_root else np.sqrt(variance) + eps
    state["v"] = momentum * state.get("v", 0.0) + g / root
    return p - lr * state["v"]


def adagrad(
    p: Any,
    gradient: Any,
    state: dict[str, Any],
    lr: float = 1e-2,
    lr_decay: float = 0.0,
    initial_accumulator_value: float = 0.0,
    eps: float = 1e-10,
    **decay: Any,
) -> Any:
    """Duchi, Hazan & Singer (2011) in PyTorch's form."""
    t = state["t"] = state.get("t", 0) + 1
    rate = lr / (1 + (t - 1) * lr_decay)
    p, g = decayed(p, gradient, rate, **decay)
    state["s"] = state.get("s", initial_accumulator_value) + g * g
    return p - rate * g / (np.sqrt(state["s"]) + eps)


def _both(make: Any, formula: Any, **options: Any) -> tuple[Make, Formula]:
    """Return an optimizer and the formula with the same options."""
    return partial(make, **options), partial(formula, **options)


_sgd = partial(_both, Sgd, sgd)
_adam = partial(_both, Adam, adam)
_adamw = partial(_both, AdamW, partial(adam, weight_decay=1e-2, decoupled_weight_decay=True))
_adagrad = partial(_both, Adagrad, adagrad)
_rmsprop = partial(_both, RMSprop, rmsprop)
_NESTEROV: dict[str, Any] = {"lr": 0.1, "momentum": 0.8, "nesterov": True}
_DECOUPLED: dict[str, Any] = {"weight_decay": 0.3, "decoupled_weight_decay": True}

BY_TEXTBOOK: dict[str, tuple[Make, Formula]] = {
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
    """Parameters, to which a formula is applied one by one."""

    def __init__(self, arrays: dict[str, Array], formula: Formula) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self._formula = formula
        self._states: dict[str, dict[str, Any]] = {name: {} for name in arrays}

    def step(self, gradients: dict[str, Array]) -> None:
        for name, gradient in gradients.items():
            self.arrays[name] = self._formula(self.arrays[name], gradient, self._states[name])
