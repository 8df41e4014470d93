"""One of a few choices, and objects of one kind."""

from __future__ import annotations

import inspect
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
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        wanted = words or f"{article} {kind.__name__}"
        raise ArgumentTypeError(f"{op}: {name} must be {wanted}, got {type(value).__name__}")


def check_function(op: str, name: str, value: object, takes: Sequence[str] | None = None) -> None:
    """Raise ArgumentTypeError if `value` cannot be called, or not with what it will be given.

    Args:
        op: the name for the message.
        name: the argument's.
        value: what was given.
        takes: what each argument of its calls is, if they are known.
    """
    if not callable(value):
        raise ArgumentTypeError(f"{op}: {name} must be a function, got {type(value).__name__}")
    if takes is None:
        return
    try:
        signature = inspect.signature(value)
    except ValueError:  # functions written in C need not tell
        return
    try:
        signature.bind(*takes)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{op}: {name} is called as {name}({', '.join(takes)}), which what was given does not "
            f"take: {error}"
        ) from None


def check_path(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is no path, ArgumentValueError if it names no file."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{op}: {name} must be a path, got {type(value).__name__}")
    path = os.fspath(value)
    if not path or "\0" in path:
        raise ArgumentValueError(f"{op}: {name} must name a file, got {path!r}")


def check_rng(op: str, rng: object) -> None:
    """Raise ArgumentTypeError if `rng` is not a numpy generator."""
    if not isinstance(rng, np.random.Generator):
        raise ArgumentTypeError(
            f"{op}: rng must be a numpy Generator, got {type(rng).__name__}; "
            "write rng=np.random.default_rng(0)"
        )
