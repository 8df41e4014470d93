"""Kinds of arguments: what is none of a kind, and how it is refused, whichever op is given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.errors import TapeTensorError
from tests.ops.rows import Each, Refusal, Sample

NAN = float("nan")
INF = float("inf")
HUGE = 10**400
TOO_LARGE = 10**30
ARRAY = np.ones((2, 3), np.float32)

_TYPE, _VALUE, _SHAPE = tt.ArgumentTypeError, tt.ArgumentValueError, tt.ShapeError


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of argument: groups of values that are none, each with the error and the message."""

    mistakes: tuple[tuple[tuple[Any, ...], type[TapeTensorError], str], ...]

    def __add__(self, other: Kind) -> Kind:
        return Kind((*self.mistakes, *other.mistakes))


def no(*values: Any, error: type[TapeTensorError], message: str) -> Kind:
    """Return the kind that some values are none of."""
    return Kind(((values, error, message),))


def refuses(*operands: Any, **options: Any) -> tuple[Refusal, ...]:
    """Return the refusals of a call in which one argument is given as the kind that it is of."""
    (kind,) = {one for one in (*operands, *options.values()) if isinstance(one, Kind)}
    return tuple(
        Refusal(
            Sample(
                tuple(Each(values) if one is kind else one for one in operands),
                {k: Each(values) if one is kind else one for k, one in options.items()},
            ),
            error,
            message,
        )
        for values, error, message in kind.mistakes
    )


def _tensors(*shapes: tuple[int, ...], dtype: Any = np.float64) -> tuple[Any, ...]:
    return tuple(tt.ones(shape, dtype) for shape in shapes)


INTEGER = no(None, 1.0, "1", error=_TYPE, message="must be an int, got")
FLAG = no(1, None, "yes", error=_TYPE, message="is a bool, got")
_OTHERS = no("1", 1j, [1.0], ARRAY, error=_TYPE, message="must be a number, got")
NUMBER = _OTHERS + no(None, error=_TYPE, message="must be a number, got NoneType")
NOT_FINITE = (NAN, INF, -INF)
FINITE = NUMBER + no(*NOT_FINITE, error=_VALUE, message="must be finite, got")
NOT_NEGATIVE = FINITE + no(-1.0, -1e-5, error=_VALUE, message="must be >= 0, got -1")
_NOT_SMALL = no(HUGE, error=_VALUE, message="must be finite, got 1000")
SMALL = FINITE + _NOT_SMALL
# Where None is the op's own choice.
FACTOR = _OTHERS + no(*NOT_FINITE, error=_VALUE, message="must be finite, got") + _NOT_SMALL
GENERATOR = no(
    *[None, 0, "seed", np.random, np.random.RandomState(0)],
    error=_TYPE,
    message="rng must be a numpy Generator, got",
)
DTYPE = no(
    *[np.float16, np.complex64, np.complex128, object, str, ">f4", "M8[s]"],
    error=tt.DTypeError,
    message="a tensor cannot have dtype .*; use float32",
) + no("float33", 5, [1], error=tt.DTypeError, message=r"is not a dtype; write np.float32")
SOME_DTYPE = DTYPE + no(None, error=tt.DTypeError, message="a tensor cannot have dtype None")

# Of a tensor of shape (2, 3).
_NO_AXIS = no(2, -3, 7, error=tt.AxisError, message=r"axis (2|-3|7) is outside the shape \(2, 3\)")
_NO_AXIS += no(1.0, "0", "rows", [0], error=_TYPE, message="axis must be an int, got")
AXIS = _NO_AXIS + no((0,), None, error=_TYPE, message="axis must be an int, got")
AXES = (
    _NO_AXIS
    + no((0, 0), (0, -2), error=tt.AxisError, message="twice")
    + no((0, 2), error=tt.AxisError, message="axis 2 is outside")
    + no((0.5,), error=_TYPE, message="axis must be an int, got 0.5")
)
NEW_AXIS = no(3, -4, 7, error=tt.AxisError, message="is outside the shape.*-3 to 2")
NEW_AXIS += no(1.0, "0", None, (0,), error=_TYPE, message="axis must be an int, got")

_NO_DIMS = no(None, 3, 6, 2.0, "ab", error=_TYPE, message="a shape is a tuple of ints, got")
_NO_DIMS += no((2.0, 3), (2, 1.5), (True, 6), ((2, 3),), (2, None), error=_TYPE, message="a dim")
DIMS = _NO_DIMS + no((2, -1), (-1, 3), error=_VALUE, message="a dim must not be negative, got -1")
NEW_DIMS = DIMS + no((TOO_LARGE,), error=_VALUE, message="Maximum allowed dimension exceeded")
# Of six elements, one of which may be left to the op.
FILLED_DIMS = _NO_DIMS + no(
    *[(4,), (4, 2), (-1, -1), (-2, -3), (4, -1), (0, -1), (TOO_LARGE,)],
    error=_SHAPE,
    message=r"\(2, 3\) holds 6 elements, which do not fill",
)

_NEITHER = (None, "1", 1j, [1.0], ARRAY, {}, np.datetime64("2020"))
# Beside a tensor of shape (2, 3) and dtype float64.
_NO_PARTNER = no(*_tensors((2, 3), dtype=np.float32), *_tensors((2, 3), dtype=np.int64),
                 error=tt.DTypeError, message="dtypes differ")  # fmt: skip
_NO_PARTNER += no(*_tensors((4,), (4, 2)), error=_SHAPE, message=r"\(4,( 2)?\)")
TENSOR = _NO_PARTNER + no(*_NEITHER, 0.1, 2.0, error=_TYPE, message="must be a tensor, got")
NUMBER_OR_TENSOR = _NO_PARTNER + no(
    *_NEITHER, error=_TYPE, message="must be a tensor or a number, got .*from_numpy"
)


def steps(axes: int) -> Kind:
    """Return steps of a window along so many axes, in a tuple or one for all of them."""
    nothing = no(0, (*(1,) * (axes - 1), 0), error=_VALUE, message="must be > 0, got 0")
    return _counts(axes, 1) + nothing


def sizes(axes: int) -> Kind:
    """Return sizes of a window: as `steps`, and always given."""
    return steps(axes) + no(None, error=_TYPE, message="must be an int, got None")


def paddings(axes: int) -> Kind:
    """Return the padding along so many axes, in a tuple or for all of them."""
    return _counts(axes, 0) + no(None, error=_TYPE, message="must be an int, got None")


def _counts(axes: int, least: int) -> Kind:
    wrong = [0.5, 1.0, 1.5, "2", "same", NAN, True, [*(1,) * (axes - 1), None], (1,) * (axes + 1)]
    wrong += [(1,)] * (axes > 1)
    message = "must be an int, got|is an int or [12] of them in a tuple, got"
    negative = (*(least,) * (axes - 1), -1)
    return no(*wrong, error=_TYPE, message=message) + no(
        -1, negative, error=_VALUE, message="must not be negative, got -1"
    )
