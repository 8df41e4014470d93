"""Rows of the ops that read elements by position or by mask."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import ARRAY, AXIS, FLAG, HUGE, NAN, TOO_LARGE, refuses
from tests.ops.rows import Op, Refusal, each, given, named, refused, spaced

_X = spaced(2, 3)
_CUBE = spaced(2, 3, 4)
_INDICES = np.array([[1, 0], [-1, 1]])
_MASK = np.array([[True, False, True], [False, False, True]])
_COLUMN = np.array([[0], [0]])
_BYTES = np.arange(6, dtype=np.uint8).reshape(2, 3)


def _no_indices(*shape: int, axis: int) -> tuple[Refusal, ...]:
    kinds = (None, 0, [0], [[0]], np.zeros(shape, np.int64), ARRAY)
    dtypes = (tt.ones(shape), tt.ones(shape, np.bool_))
    return (
        refused(tt.ArgumentTypeError, "must be a tensor, got", _X, each(*kinds), axis=axis),
        refused(tt.DTypeError, "must be integers, got", _X, each(*dtypes), axis=axis),
    )


_SEGMENTS = np.array([2, 0, 2, 3])


def _segment_sum(x: Array, segments: Array, count: int) -> Array:
    sums = np.zeros((count, *x.shape[1:]), x.dtype)
    np.add.at(sums, segments, x)
    return sums


def _put_along_axis(
    x: Array, values: Array, indices: Array, axis: int = -1, accumulate: bool = False
) -> Array:
    result: Array = x.astype(np.result_type(x, values))
    if accumulate:
        # The only sample of it is a matrix, along its rows.
        np.add.at(result, (np.arange(len(x))[:, None], indices), values)
    else:
        np.put_along_axis(result, indices.astype(np.int64), values, axis)
    return result


INDEXING = (
    named(
        "segment_sum",
        _segment_sum,
        samples=(
            given(spaced(4, 3), _SEGMENTS, count=5),
            given(spaced(4, 2, 3), _SEGMENTS.astype(np.uint8), count=4),
            given(spaced(4), _SEGMENTS, count=4),
            given(spaced(1), _SEGMENTS[1:2], count=1),
            given(spaced(0, 3), _SEGMENTS[:0], count=2),
            given(spaced(0, 3), _SEGMENTS[:0], count=0),
        ),
        refusals=(
            refused(
                tt.ArgumentTypeError,
                "the first operand must",
                each(ARRAY, None),
                _SEGMENTS,
                count=4,
            ),
            refused(
                tt.ArgumentTypeError,
                "segments must be a tensor",
                spaced(4),
                each(None, [0, 0, 0, 0], 1),
                count=4,
            ),
            refused(tt.DTypeError, "segments must be integers", spaced(4), tt.ones((4,)), count=4),
            refused(tt.ArgumentTypeError, "count must be an int", spaced(4), _SEGMENTS, count=4.0),
            refused(
                tt.ArgumentValueError, "count must not be negative", spaced(4), _SEGMENTS, count=-1
            ),
            refused(
                tt.AxisError,
                "segments of 3 segments go from 0 to 2, found 3",
                spaced(4),
                _SEGMENTS,
                count=3,
            ),
            refused(
                tt.ShapeError, r"need segments of shape \(3,\), not", spaced(3), _SEGMENTS, count=4
            ),
            refused(tt.ShapeError, r"need segments", spaced(), _SEGMENTS, count=4),
            refused(tt.DTypeError, "dtype bool", _SEGMENTS > 1, _SEGMENTS, count=4),
        ),
        takes_integers=True,
    ),
    Op(
        name="getitem",
        covers=("__getitem__",),
        call=lambda x, *tensor, index=None: x[tensor[0] if tensor else index],
        reference=lambda x, *array, index=None: x[array[0] if array else index],
        samples=(
            *(
                given(_CUBE, index=index)
                for index in (
                    1,
                    -1,
                    slice(None, None, -2),
                    slice(5, 9),
                    ...,
                    None,
                    (slice(None), 1),
                    (0, slice(1, None), slice(None, None, 3)),
                    (..., None, -1),
                    (1, 2, 3),
                    (),
                    [1, 0, 1],
                    np.array([[-1, 0], [1, 1]]),
                    (slice(None), np.array([2, 0, 2])),
                    (np.array([[0], [1]]), slice(1), np.array([3, 3])),
                    (np.array([0, 1]), np.array([1, 1]), np.array([2, -1])),
                    (np.array([1, 1]), _MASK[0], 2),
                    np.int64(1),
                    (slice(None), _MASK[0]),
                    _MASK,
                    np.zeros((2, 3, 4), bool),
                    np.array([], dtype=np.int64),
                    [],
                )
            ),
            given(_CUBE, _INDICES),
            given(_X, _MASK),
            given(spaced(), index=()),
            given(spaced(), index=None),
            given(spaced(0, 3), index=(slice(None), 1)),
        ),
        refusals=(
            refused(tt.AxisError, "5", _X, np.array([5])),
            refused(tt.AxisError, "a mask of shape", _X, np.array([True])),
            refused(
                tt.AxisError,
                r"fit .*shape \(2, 3\)|\(2, 3\), which has|only have one|do not broadcast",
                _X,
                index=each(
                    *[2, -3, (0, 0, 0), (2, 0), (..., ...), TOO_LARGE, np.array([0, 5])],
                    *[np.ones((3, 3), bool), tt.full((1,), 7, np.int64), tt.ones((4,), np.bool_)],
                    (tt.arange(2), tt.arange(3)),
                ),
            ),
            refused(
                tt.ArgumentTypeError,
                "an index is an int, .* got",
                _X,
                index=each(1.0, "0", "rows", {0}, 1j),
            ),
            refused(
                tt.ArgumentTypeError,
                "slice indices must be integers",
                _X,
                index=each(slice("a", None), slice(0.5, None)),
            ),
            refused(tt.ArgumentTypeError, "ragged", _X, index=[[0], [0, 1]]),
            refused(
                tt.ShapeError, "cannot be 0", _X, index=each(slice(None, None, 0), slice(0, 2, 0))
            ),
            refused(
                tt.DTypeError,
                "an index tensor holds integers or bools, not",
                _X,
                index=each([0.5], np.array([0.5]), np.array(["a"]), tt.ones((2,))),
            ),
        ),
        takes_integers=True,
    ),
    named(
        "take",
        np.take,
        samples=(
            given(_CUBE, _INDICES, axis=0),
            given(_CUBE, np.array([2, 0, 2, -1]), axis=1),
            given(_CUBE, np.array([[0], [3]]), axis=-1),
            given(_CUBE, np.array(1), axis=0),
            given(_CUBE, np.array([1, 0], dtype=np.uint8), axis=0),
            # More rows than an int8 counts.
            given(spaced(300, 2), np.array([5, -3, 5], dtype=np.int8), axis=0),
            given(_CUBE, np.array([1, 0], dtype=np.uint64), axis=0),
            given(spaced(5), np.array([4, 4]), axis=0),
            given(_CUBE, np.zeros((0,), dtype=np.int64), axis=1),
            given(spaced(0, 3), np.zeros((2, 0), dtype=np.int64), axis=0),
            given(spaced(3, 0), np.array([1, 1]), axis=0),
            given(spaced(1), np.array([0, 0]), axis=0),
        ),
        refusals=(
            *refuses(_X, np.array([0]), axis=AXIS),
            *_no_indices(1, axis=0),
            refused(tt.AxisError, "from 2 to 2", _X, np.array([2]), axis=0),
            refused(tt.AxisError, "from -3 to -3", _X, np.array([-3]), axis=0),
            refused(tt.AxisError, "from -4 to 0", _X, np.array([0, -4]), axis=1),
            refused(tt.AxisError, "0-d", spaced(), np.array(0), axis=0),
        ),
        takes_integers=True,
    ),
    named(
        "take_along_axis",
        np.take_along_axis,
        samples=(
            given(_X, np.array([[2, 0], [-1, -1]]), axis=-1),
            given(_X, np.array([[1, 0, 1]]), axis=0),
            given(_CUBE, np.array([[[2], [0]], [[1], [1]]]), axis=1),
            given(_CUBE, np.array([[[2, 0, 1, -3]]]), axis=1),
            given(spaced(1, 3), np.array([[0, 2], [1, 1]]), axis=1),
            given(spaced(5), np.array([4, 4], dtype=np.uint8), axis=0),
            given(_X, np.zeros((2, 0), dtype=np.int64), axis=1),
            given(spaced(0, 3), np.zeros((0, 2), dtype=np.int64), axis=1),
            given(spaced(1), np.array([0, 0]), axis=0),
        ),
        refusals=(
            *refuses(_X, np.array([[0], [0]]), axis=AXIS),
            *_no_indices(2, 1, axis=-1),
            refused(tt.AxisError, "from 3 to 3", _X, np.array([[3]]), axis=1),
            refused(tt.AxisError, "from -4 to -4", _X, np.array([[-4]]), axis=1),
            refused(tt.ShapeError, "as many axes", _X, np.array([0, 0]), axis=1),
            refused(tt.ShapeError, r"\(3, 1\)", _X, np.zeros((3, 1), np.int64), axis=1),
        ),
        takes_integers=True,
    ),
    Op(
        name="put_along_axis",
        covers=("put_along_axis",),
        call=lambda x, values, indices, **o: x.put_along_axis(indices, values, **o),
        reference=_put_along_axis,
        samples=(
            given(_X, spaced(2, 2, seed=1), np.array([[2, 0], [-1, 0]])),
            given(_X, spaced(1, 3, seed=1), np.array([[1, 0, 1]]), axis=0),
            given(_CUBE, spaced(2, 1, 4, seed=1), np.array([[[2, 0, 1, 1]]] * 2), axis=-2),
            given(_X, spaced(2, 2, seed=1), np.array([[2, 2], [-1, 0]]), accumulate=True),
            given(spaced(5), spaced(2, seed=1), np.array([4, 1], dtype=np.uint8), axis=0),
            given(spaced(1), spaced(1, seed=1), np.array([0])),
            given(_X, spaced(2, 0), np.zeros((2, 0), dtype=np.int64), axis=1),
            given(spaced(0, 3), spaced(0, 2), np.zeros((0, 2), dtype=np.int64), axis=1),
        ),
        refusals=(
            *refuses(_X, spaced(2, 1), _COLUMN, axis=AXIS),
            *refuses(_X, spaced(2, 1), _COLUMN, accumulate=FLAG),
            refused(tt.AxisError, "from 3 to 3", _X, spaced(2, 1), np.array([[3], [3]])),
            refused(
                tt.ShapeError, r"for axis 1; got \(2,\) and \(2,\)", _X, spaced(2), np.array([0, 0])
            ),
            refused(tt.ShapeError, r"and \(1, 1\)", _X, spaced(1, 1), _COLUMN),
            refused(tt.ShapeError, r"got \(1, 1\)", _X, spaced(1, 1), np.array([[0]])),
            refused(tt.ArgumentTypeError, "values must", _X, each(None, 1.0), _COLUMN),
            refused(tt.DTypeError, "float64 and float32", _X, tt.ones((2, 1)), _COLUMN),
            refused(tt.DTypeError, "must be integers", _X, spaced(2, 1), tt.ones((2, 1))),
            refused(tt.DTypeError, "bool", _MASK, _MASK, np.zeros((2, 3), np.int64)),
            refused(
                tt.ArgumentValueError,
                "twice; write accumulate=True",
                _X,
                spaced(2, 2),
                np.array([[0, -3], [0, 1]]),
            ),
        ),
        takes_integers=True,
    ),
    named(
        "where",
        np.where,
        samples=(
            given(_MASK, _X, spaced(2, 3, seed=1)),
            given(_MASK, spaced(4, 2, 3), spaced(3)),
            given(_MASK[0], _X, spaced(2, 1)),
            given(_MASK, _X, 1.5),
            given(_MASK, 2, _X),
            given(_MASK, np.float64(1.5), _X),
            given(_MASK, spaced(3), 1.5),
            given(np.array(True), spaced(), spaced(seed=1)),
            given(_MASK[:0], spaced(0, 3), spaced(3)),
        ),
        refusals=(
            refused(tt.DTypeError, "the mask must be bool", _X, _X, _X),
            refused(tt.ArgumentTypeError, "the mask", each(None, True, ARRAY > 0), _X, _X),
            refused(tt.DTypeError, "300 does not fit dtype uint8", _MASK, _BYTES, 300),
            refused(tt.DTypeError, "-1", _MASK, -1, _BYTES),
            refused(tt.DTypeError, "does not fit dtype", _MASK, _BYTES, each(0.5, NAN)),
            refused(tt.DTypeError, "does not fit dtype float64", _MASK, _X, HUGE),
            refused(tt.DTypeError, "1 does not fit dtype bool", _MASK, _MASK, 1),
            refused(tt.ArgumentTypeError, "at least one", _MASK, each(None, 1.0), 2.0),
            refused(
                tt.ArgumentTypeError,
                "must be a tensor or a number, got",
                _MASK,
                _X,
                each(None, "1", 1j, ARRAY),
            ),
            refused(tt.DTypeError, "float64 and float32", _MASK, _X, tt.ones((2, 3))),
            refused(tt.ShapeError, r"\(2, 3\) and \(4,\)", _MASK, _X, spaced(4)),
            refused(tt.ShapeError, r"\(2, 3\) and \(2, 2\)", _MASK[:, :2], _X, 0.0),
        ),
        takes_integers=True,
    ),
)
