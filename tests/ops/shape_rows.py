"""Rows of the ops that rearrange or convert the elements of one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import (
    ARRAY,
    AXES,
    AXIS,
    DIMS,
    FILLED_DIMS,
    INTEGER,
    NEW_AXIS,
    SOME_DTYPE,
    TOO_LARGE,
    refuses,
)
from tests.ops.rows import Op, each, given, named, refused, spaced

_X = spaced(2, 3)
_CUBE = spaced(2, 3, 4)


def _split(x: Any, part: int, **options: Any) -> Any:
    return x.split(**options)[part]


def _split_reference(x: Array, part: int, sections: Any, axis: int = 0) -> Array:
    at = np.cumsum(sections[:-1]) if isinstance(sections, list) else sections
    return np.split(x, at, axis)[part]


_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(x: Array, widths: Any, mode: str = "constant", value: float = 0) -> Array:
    if x.ndim == 0:
        return x
    if mode == "constant":
        return np.pad(x, widths, constant_values=value)
    padded: Array = np.pad(x, widths, mode=_MODES[mode])  # type: ignore[call-overload]  # a str
    return padded


SHAPES = (
    named(
        "pad",
        _pad,
        samples=(
            given(_CUBE, widths=((0, 0), (1, 2), (3, 0))),
            given(_X, widths=((1, 0), (0, 2)), value=2),
            given(_X, widths=((0, 0), (0, 0))),
            given(spaced(), widths=()),
            given(spaced(0, 2), widths=((1, 1), (0, 0))),
            given(_CUBE, widths=((1, 1), (2, 2), (3, 1)), mode="reflect"),
            given(_CUBE, widths=((4, 1), (0, 0), (0, 7)), mode="replicate"),
            given(_CUBE, widths=((2, 1), (3, 3), (0, 4)), mode="circular"),
            given(_X, widths=[[1, 0], [0, 1]], mode="reflect"),
        ),
        refusals=(
            refused(
                tt.ArgumentTypeError,
                "a pair of ints for each axis",
                _X,
                widths=each(1, None, (1, 1), ((1, 1), (1,)), "ab"),
            ),
            refused(tt.ArgumentTypeError, "must be an int", _X, widths=((1, 1), (1.0, 0))),
            refused(tt.ArgumentValueError, "not be negative", _X, widths=((1, 1), (-1, 0))),
            refused(tt.ShapeError, r"3 pairs .* \(2, 3\)", _X, widths=((1, 1),) * 3),
            refused(tt.ShapeError, "at most 1 of", _X, widths=((2, 0), (0, 0)), mode="reflect"),
            refused(tt.ShapeError, "at most 2 of", _X, widths=((0, 3), (0, 0)), mode="circular"),
            refused(
                tt.ShapeError,
                "at most 0 of",
                spaced(0, 2),
                widths=((1, 0), (0, 0)),
                mode=each("reflect", "replicate", "circular"),
            ),
            refused(
                tt.ArgumentValueError, "mode", _X, widths=((1, 1), (1, 1)), mode=each("same", 1)
            ),
            refused(
                tt.ArgumentValueError,
                'for mode="constant"',
                _X,
                widths=((1, 1), (1, 1)),
                mode="reflect",
                value=1,
            ),
            refused(tt.DTypeError, "does not fit", np.arange(3), widths=((1, 1),), value=0.5),
            refused(tt.DTypeError, "not defined for dtype bool", _X > 0, widths=((1, 1), (1, 1))),
        ),
        takes_integers=True,
    ),
    named(
        "reshape",
        np.reshape,
        samples=(
            given(_CUBE, shape=(4, 6)),
            given(_CUBE, shape=(-1,)),
            given(_CUBE, shape=(2, -1, 2)),
            given(spaced(1), shape=()),
            given(spaced(), shape=(1, 1)),
            given(spaced(0, 3), shape=(3, 0, 2)),
            given(spaced(0, 3), shape=(-1,)),
        ),
        refusals=(
            *refuses(_X, shape=FILLED_DIMS),
            refused(tt.ShapeError, r"\(-1, 0\)", spaced(0), shape=(-1, 0)),
        ),
        takes_integers=True,
    ),
    named(
        "flatten",
        np.ravel,
        samples=tuple(given(spaced(*shape)) for shape in ((2, 3, 4), (3,), (), (2, 0))),
        takes_integers=True,
    ),
    named(
        "permute_dims",
        np.transpose,
        samples=(
            given(_CUBE, axes=(2, 0, 1)),
            given(_CUBE, axes=(-1, 0, -2)),
            given(_X, axes=(0, 1)),
            given(spaced(), axes=()),
            given(spaced(2, 0, 3), axes=(1, 2, 0)),
        ),
        refusals=(
            refused(
                tt.ArgumentTypeError,
                "axes must be a tuple of ints, got",
                _X,
                axes=each(None, 1, "ab", [1, 0]),
            ),
            refused(tt.ArgumentTypeError, "got 1.0", _X, axes=(1.0, 0)),
            refused(tt.AxisError, "exactly once", _X, axes=each((0,), (0, 0), ())),
            refused(tt.AxisError, "axis 2", _X, axes=each((0, 2), (0, 1, 2))),
        ),
        takes_integers=True,
    ),
    named(
        "transpose",
        lambda x: np.swapaxes(x, -1, -2),
        samples=tuple(
            given(spaced(*shape)) for shape in ((2, 3), (2, 3, 4), (0, 3), (2, 1, 3, 0), (1, 1))
        ),
        refusals=(
            refused(tt.AxisError, r"two axes.*\(3,\)", spaced(3)),
            refused(tt.AxisError, "two axes", spaced()),
        ),
        takes_integers=True,
    ),
    named(
        "broadcast_to",
        np.broadcast_to,
        samples=(
            given(_X, shape=(4, 2, 3)),
            given(spaced(2, 1), shape=(2, 5)),
            given(spaced(1, 3, 1), shape=(2, 3, 4)),
            given(spaced(), shape=(2, 2)),
            given(spaced(), shape=()),
            given(spaced(1), shape=(0,)),
            given(_X, shape=(0, 2, 3)),
            given(spaced(0, 1), shape=(2, 0, 3)),
        ),
        refusals=(
            *refuses(_X, shape=DIMS),
            refused(
                tt.ShapeError,
                r"\(2, 3\) does not broadcast to",
                _X,
                shape=each((3,), (3, 3), (2, 4), (2, 3, 1)),
            ),
            refused(
                tt.ArgumentValueError, "is more than an array can hold", _X, shape=(TOO_LARGE, 2, 3)
            ),
        ),
        takes_integers=True,
    ),
    named(
        "squeeze",
        np.squeeze,
        samples=(
            given(spaced(1, 3), axis=0),
            given(spaced(2, 3, 1), axis=-1),
            given(spaced(1, 3, 1), axis=(0, -1)),
            given(spaced(1), axis=0),
            given(spaced(0, 1), axis=1),
        ),
        refusals=(
            *refuses(_X, axis=AXES),
            refused(tt.ShapeError, r"of shape \(2, 3\)", _X, axis=each(0, (0, 1))),
            refused(tt.ArgumentTypeError, "name the axis", _X, axis=None),
        ),
        takes_integers=True,
    ),
    named(
        "expand_dims",
        np.expand_dims,
        samples=(
            *(given(_X, axis=axis) for axis in (0, 1, 2, -1, -3)),
            given(spaced(), axis=0),
            given(spaced(0), axis=-1),
        ),
        refusals=refuses(_X, axis=NEW_AXIS),
        takes_integers=True,
    ),
    Op(
        name="split",
        covers=("split",),
        call=_split,
        reference=_split_reference,
        samples=(
            given(spaced(6, 2), sections=3, part=1),
            given(spaced(6, 2), sections=[1, 0, 5], part=2),
            given(spaced(6, 2), sections=[1, 0, 5], part=1),
            given(_CUBE, sections=2, axis=-1, part=0),
            given(spaced(0, 2), sections=2, part=1),
            given(spaced(1), sections=[0, 1], part=1),
        ),
        refusals=(
            *refuses(_X, sections=1, part=0, axis=AXIS),
            refused(
                tt.ArgumentTypeError,
                "sections must be an int, got",
                _X,
                sections=each(None, 1.0, "11", {1}),
                part=0,
            ),
            refused(
                tt.ArgumentTypeError,
                "a section must be an int, got",
                _X,
                sections=each([1.0, 1.0], [True, 1]),
                part=0,
            ),
            refused(tt.ArgumentValueError, "> 0", _X, sections=0, part=0),
            refused(
                tt.ArgumentValueError,
                "must not be negative, got -1",
                _X,
                sections=each(-1, [3, -1]),
                part=0,
            ),
            refused(tt.ShapeError, "into [34] equal", _X, sections=each(3, 4), part=0),
            refused(
                tt.ShapeError, "add up to [13]", _X, sections=each([1], [1, 2], [1, 1, 1]), part=0
            ),
        ),
        takes_integers=True,
    ),
    named(
        "roll",
        np.roll,
        samples=(
            given(_CUBE, shift=1, axis=0),
            given(_CUBE, shift=-2, axis=1),
            given(_CUBE, shift=9, axis=-1),
            given(spaced(3), shift=0, axis=0),
            given(spaced(1), shift=np.int64(1), axis=0),
            given(spaced(2, 0), shift=1, axis=1),
        ),
        refusals=(
            *refuses(_X, shift=INTEGER, axis=0),
            *refuses(_X, shift=1, axis=AXIS),
            refused(tt.ArgumentTypeError, "shift must be", _X, shift=(1,), axis=0),
        ),
        takes_integers=True,
    ),
    named(
        "to",
        lambda x, library: x,
        samples=(given(_X, np), given(spaced(0, 3), np), given(spaced(), np)),
        refusals=(
            refused(
                tt.ArgumentTypeError,
                "to: expected a library of arrays.*got",
                _X,
                each(None, 1.0, 3, "cupy", ARRAY, list),
            ),
        ),
        takes_integers=True,
    ),
    named(
        "realize",
        lambda x, shape: x,
        samples=tuple(given(spaced(*shape), shape=shape) for shape in ((2, 3), (), (1,), (0, 2))),
        refusals=(
            *refuses(_X, shape=DIMS),
            refused(
                tt.ShapeError, r"the tensor has \(2, 3\)", _X, shape=each((6,), (3, 2), (2, 3, 1))
            ),
        ),
        takes_integers=True,
    ),
    *(
        named(
            name,
            getattr(np, name),
            samples=(
                given(spaced(3, 3)),
                given(spaced(2, 3, 4), k=1),
                given(spaced(4, 2), k=-2),
                given(spaced(2, 2), k=9),
                given(spaced(1, 1)),
                given(spaced(0, 3)),
            ),
            refusals=(
                *refuses(_X, k=INTEGER),
                refused(tt.AxisError, r"two axes.*\(3,\)", spaced(3)),
                refused(tt.AxisError, r"two axes.*\(\)", spaced()),
            ),
            takes_integers=True,
        )
        for name in ("tril", "triu")
    ),
    named(
        "astype",
        lambda x, dtype: x.astype(dtype),
        samples=tuple(given(x, dtype=np.float64) for x in (_X, spaced(), spaced(0, 2))),
        refusals=refuses(_X, dtype=SOME_DTYPE),
        result_dtype=np.float64,
        # A conversion to float64 drops the imaginary part.
        has_complex_step=False,
    ),
)
