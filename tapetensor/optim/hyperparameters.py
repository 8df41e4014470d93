"""Hyperparameters, checked."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.errors import ArgumentTypeError, ArgumentValueError


def as_hyperparameter(op: str, name: str, value: object, below: float = math.inf) -> float:
    """Return `value` as a float in ``[0, below)``.

    Raises:
        ArgumentTypeError: if it is not a real number.
        ArgumentValueError: if it is negative, NaN, infinite, or not below `below`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{op}: {name} must be a number, got {value!r}")
    number = float(value)
    if not 0 <= number < below:
        allowed = ">= 0 and finite" if below == math.inf else f"in [0, {below:g})"
        raise ArgumentValueError(f"{op}: {name} must be {allowed}, got {value!r}")
    return number


def as_flag(op: str, name: str, value: object) -> bool:
    """Return `value` if it is True or False.

    Raises:
        ArgumentTypeError: if it is not.
    """
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{op}: {name} must be True or False, got {value!r}")
    return value


def as_betas(op: str, value: object) -> tuple[float, float]:
    """Return `value` as two floats in ``[0, 1)``.

    Raises:
        ArgumentTypeError: if it is not a pair of numbers.
        ArgumentValueError: if one is outside the range.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentTypeError(f"{op}: betas must be two numbers, (0.9, 0.999), got {value!r}")
    return (
        as_hyperparameter(op, "betas[0]", value[0], below=1),
        as_hyperparameter(op, "betas[1]", value[1], below=1),
    )


def split_decay(lr: float, weight_decay: float, is_decoupled: bool) -> tuple[float, float]:
    """Return what is added to the gradient per parameter, and what is kept of the parameter."""
    return (0.0, 1 - lr * weight_decay) if is_decoupled else (weight_decay, 1.0)
