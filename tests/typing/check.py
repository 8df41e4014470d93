"""`check(assert_type(expr, type), shape)`: the static claim and the run-time truth on one line.

To the type checkers `assert_type` is typing's own. At run time it compares the value with the type
that was claimed - every dim, the tape state, the dtype - so the two halves cannot drift apart; and
`check` pins the shape where the type leaves a dim open.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import numpy as np
from typing_extensions import TypeAliasType

from tapetensor import NoneTape, OwnedTape, Tensor

if TYPE_CHECKING:
    from typing import assert_type as assert_type
else:

    def assert_type(value: object, claimed: Any) -> object:
        """Compare a value with the type claimed for it, as far as that type can be read."""
        if _is_open(claimed):
            return value
        alias = get_origin(claimed) or claimed
        if isinstance(alias, TypeAliasType | getattr(typing, "TypeAliasType", TypeAliasType)):
            rank = len(alias.__type_params__) - 2
            arguments = get_args(claimed)
            _compare(value, arguments[:rank], *arguments[rank:])
        elif alias is Tensor:
            shape, *state = get_args(claimed)
            _compare(value, None if _is_open(shape) else get_args(shape), *state)
        elif alias is tuple:
            for one, dim in zip(value, get_args(claimed), strict=True):
                assert_type(one, dim)
        elif alias is Literal:
            assert get_args(claimed) == (value,)
        elif isinstance(alias, type):
            assert isinstance(value, alias), f"{value!r} is not a {alias}"
        else:
            raise AssertionError(f"cannot compare a value with {claimed}")
        return value


def check(value: object, shape: tuple[int, ...]) -> None:
    """Assert the run-time shape of a tensor."""
    assert isinstance(value, Tensor)
    assert shape == value.shape


def _compare(value: object, dims: Any, tape: Any = NoneTape, dtype: Any = np.float32) -> None:
    assert isinstance(value, Tensor)
    if dims is not None:
        assert len(dims) == value.ndim, f"{value.shape} has not rank {len(dims)}"
        for dim, size in zip(dims, value.shape, strict=True):
            assert _is_open(dim) or get_args(dim) == (size,), f"{dim} is not {size}"
    if not _is_open(tape):
        assert (tape is OwnedTape) == value.owns_tape, f"{tape} is not the tape of {value!r}"
    if not _is_open(dtype):
        assert value.dtype == dtype, f"{dtype} is not {value.dtype}"


def _is_open(part: object) -> bool:
    """Tell whether a part of a type says nothing that a value could contradict."""
    # A computed dim has no size of its own either: `Mul[N, K]`.
    return (
        part in (Any, int)
        or isinstance(part, TypeVar)
        or hasattr(part, "__supertype__")
        or getattr(get_origin(part), "__value__", None) is Any
    )
