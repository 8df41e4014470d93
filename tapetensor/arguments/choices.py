"""One of a few choices, and objects of one kind."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from tapetensor.errors import ArgumentTypeError, ArgumentValueError


def as_flag(op: str, name: str, value: object) -> bool:
    """Return `value` if it is True or False.

    Raises:
        ArgumentTypeError: if it is not.
    """
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{op}: {name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(op: str, name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ArgumentValueError if `value` is none of the choices."""
    # By ==, and not by hash: what is given may have none.
    if not isinstance(value, str) or value not in choices:
        named = " or ".join([f'"{choice}"' for choice in choices])
        raise ArgumentValueError(f"{op}: {name} must be {named}, got {value!r}")


def check_kind(op: str, name: str, value: object, kind: type, words: str = "") -> None:
    """Raise ArgumentTypeError if `value` is of another class.

    Args:
        op: the name for the message.
        name: the argument's.
        value: what was given.
        kind: the class that it must be of.
        words: what to say that it must be, if not the name of the class.
    """
    if not isinstance(value, kind):
        wanted = words or f"a {kind.__name__}"
        raise ArgumentTypeError(f"{op}: {name} must be {wanted}, got {type(value).__name__}")


def check_function(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` cannot be called."""
    if not callable(value):
        raise ArgumentTypeError(f"{op}: {name} must be a function, got {type(value).__name__}")


def check_path(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is no path."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{op}: {name} must be a path, got {type(value).__name__}")


def check_rng(op: str, rng: object) -> None:
    """Raise ArgumentTypeError if `rng` is not a numpy generator."""
    if not isinstance(rng, np.random.Generator):
        raise ArgumentTypeError(
            f"{op}: rng must be a numpy Generator, got {type(rng).__name__}; "
            "write rng=np.random.default_rng(0)"
        )
