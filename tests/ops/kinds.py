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


def no(error: type[TapeTensorError], message: str, *values: Any) -> Kind:
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


INTEGER = no(_TYPE, "must be an int, got", None, 1.0, "1")
FLAG = no(_TYPE, "must be True or False, got", 1, None, "yes")
_OTHERS = no(_TYPE, "must be a number, got", "1", 1j, [1.0], ARRAY)
NUMBER = _OTHERS + no(_TYPE, "must be a number, got None", None)
NOT_FINITE = (NAN, INF, -INF)
FINITE = NUMBER + no(_VALUE, "must be finite, got", *NOT_FINITE)
NOT_NEGATIVE = NUMBER + no(_VALUE, "must be >= 0 and finite, got", *NOT_FINITE, -1.0, -1e-5)
_NOT_SMALL = no(_VALUE, "is too large for a float", HUGE)
SMALL = FINITE + _NOT_SMALL
# Where None is the op's own choice.
FACTOR = _OTHERS + no(_VALUE, "must be finite, got", *NOT_FINITE) + _NOT_SMALL
GENERATOR = no(
    _TYPE,
    "rng must be a numpy Generator, got",
    *[None, 0, "seed", np.random, np.random.RandomState(0)],
)
DTYPE = no(
    tt.DTypeError,
    "a tensor cannot have dtype .*; use float32",
    *[np.float16, np.complex64, np.complex128, object, str, "M8[s]"],
) + no(tt.DTypeError, r"is not a dtype; write np.float32", "float33", 5, [1])
SOME_DTYPE = DTYPE + no(tt.DTypeError, "a tensor cannot have dtype None", None)

# Of a tensor of shape (2, 3).
_NO_AXIS = no(tt.AxisError, r"axis (2|-3|7) is outside the shape \(2, 3\)", 2, -3, 7)
_NO_AXIS += no(_TYPE, "axis must be an int, got", 1.0, "0", "rows", [0])
ONE_OR_ALL_AXES = _NO_AXIS + no(_TYPE, "axis must be an int, got", (0,))
AXIS = ONE_OR_ALL_AXES + no(_TYPE, "axis must be an int, got", None)
AXES = (
    _NO_AXIS
    + no(tt.AxisError, "twice", (0, 0), (0, -2))
    + no(tt.AxisError, "axis 2 is outside", (0, 2))
    + no(_TYPE, "axis must be an int, got 0.5", (0.5,))
)
NEW_AXIS = no(tt.AxisError, "is outside the shape.*-3 to 2", 3, -4, 7)
NEW_AXIS += no(_TYPE, "axis must be an int, got", 1.0, "0", None, (0,))

_NO_DIMS = no(_TYPE, "a shape is a tuple of ints, got", None, 3, 6, 2.0, "ab")
_NO_DIMS += no(_TYPE, "a dim", (2.0, 3), (2, 1.5), (True, 6), ((2, 3),), (2, None))
DIMS = _NO_DIMS + no(_VALUE, "a dim must not be negative, got -1", (2, -1), (-1, 3))
NEW_DIMS = DIMS + no(_VALUE, "is more than an array can hold", (TOO_LARGE,))
# Of six elements, one of which may be left to the op.
FILLED_DIMS = _NO_DIMS + no(
    _SHAPE,
    r"\(2, 3\) holds 6 elements, which do not fill",
    *[(4,), (4, 2), (-1, -1), (-2, -3), (4, -1), (0, -1), (TOO_LARGE,)],
)

_NEITHER: tuple[Any, ...] = (None, "1", 1j, [1.0], ARRAY, {}, np.datetime64("2020"))
# Beside a tensor of shape (2, 3) and dtype float64.
_OTHER_DTYPES = [tt.ones((2, 3), np.float32), tt.ones((2, 3), np.int64)]
_OTHER_SHAPES = [tt.ones((4,), np.float64), tt.ones((4, 2), np.float64)]
_NO_PARTNER = no(tt.DTypeError, "dtypes differ", *_OTHER_DTYPES)
_NO_PARTNER += no(_SHAPE, r"\(4,( 2)?\)", *_OTHER_SHAPES)
TENSOR = _NO_PARTNER + no(_TYPE, "must be a tensor, got", *_NEITHER, 0.1, 2.0)
NUMBER_OR_TENSOR = _NO_PARTNER + no(
    _TYPE, "must be a tensor or a number, got .*from_numpy", *_NEITHER
)


def steps(axes: int) -> Kind:
    """Return steps of a window along so many axes, in a tuple or one for all of them."""
    nothing = no(_VALUE, "must be > 0, got 0", 0, (*(1,) * (axes - 1), 0))
    return _counts(axes, 1) + nothing


def sizes(axes: int) -> Kind:
    """Return sizes of a window: as `steps`, and always given."""
    return steps(axes) + no(_TYPE, "must be an int, got None", None)


def paddings(axes: int) -> Kind:
    """Return the padding along so many axes, in a tuple or for all of them."""
    return _counts(axes, 0) + no(_TYPE, "must be an int, got None", None)


def _counts(axes: int, least: int) -> Kind:
    wrong = [0.5, 1.0, 1.5, "2", "same", NAN, True, [*(1,) * (axes - 1), None], (1,) * (axes + 1)]
    wrong += [(1,)] * (axes > 1)
    message = "must be an int, got|is an int or [12] of them in a tuple, got"
    negative = (*(least,) * (axes - 1), -1)
    return no(_TYPE, message, *wrong) + no(_VALUE, "must not be negative, got -1", -1, negative)
