"""Rows of the ops that read elements by position or by mask."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tests.ops.rows import Op, given, refused, spaced

_X = spaced(2, 3)
_CUBE = spaced(2, 3, 4)
_INDICES = np.array([[1, 0], [-1, 1]])
_MASK = np.array([[True, False, True], [False, False, True]])
_BYTES = np.arange(6, dtype=np.uint8).reshape(2, 3)

INDEXING = (
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
            refused(_X, index=2, error=tt.AxisError, message=r"\(2, 3\)"),
            refused(_X, index=(0, 0, 0), error=tt.AxisError, message=r"\(2, 3\)"),
            refused(_X, np.array([5]), error=tt.AxisError, message="5"),
            refused(_X, np.array([True]), error=tt.AxisError, message="boolean"),
            refused(_X, index=1.0, error=tt.ArgumentTypeError, message="got 1.0"),
            refused(_X, index="rows", error=tt.ArgumentTypeError, message="rows"),
            refused(_X, index=[0.5], error=tt.DTypeError, message="float64"),
            refused(_X, index=[[0], [0, 1]], error=tt.ArgumentTypeError, message="index"),
            refused(_X, index=slice(None, None, 0), error=tt.ShapeError, message="zero"),
        ),
        takes_integers=True,
    ),
    Op(
        name="take",
        covers=("take",),
        call=tt.Tensor.take,
        reference=np.take,
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
            refused(_X, np.array([2]), axis=0, error=tt.AxisError, message="from 2 to 2"),
            refused(_X, np.array([0, -4]), axis=1, error=tt.AxisError, message="from -4 to 0"),
            refused(_X, np.array([0]), axis=2, error=tt.AxisError, message="axis 2"),
            refused(_X, _X, axis=0, error=tt.DTypeError, message="must be integers"),
            refused(_X, _MASK, axis=0, error=tt.DTypeError, message="bool"),
            refused(_X, [0], axis=0, error=tt.ArgumentTypeError, message="list"),
            refused(spaced(), np.array(0), axis=0, error=tt.AxisError, message="0-d"),
        ),
        takes_integers=True,
    ),
    Op(
        name="take_along_axis",
        covers=("take_along_axis",),
        call=tt.Tensor.take_along_axis,
        reference=np.take_along_axis,
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
            refused(_X, np.array([[3]]), axis=1, error=tt.AxisError, message="from 3 to 3"),
            refused(_X, np.array([[0]]), axis=2, error=tt.AxisError, message="axis 2"),
            refused(_X, np.array([0]), axis=1, error=tt.ShapeError, message="as many axes"),
            refused(
                _X, np.zeros((3, 1), np.int64), axis=1, error=tt.ShapeError, message=r"\(3, 1\)"
            ),
            refused(_X, _X, axis=1, error=tt.DTypeError, message="must be integers"),
            refused(_X, [[0]], axis=1, error=tt.ArgumentTypeError, message="list"),
        ),
        takes_integers=True,
    ),
    Op(
        name="where",
        covers=("where",),
        call=tt.where,
        reference=np.where,
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
            refused(_X, _X, _X, error=tt.DTypeError, message="the mask must be bool"),
            refused(True, _X, _X, error=tt.ArgumentTypeError, message="the mask"),
            refused(
                _MASK, _BYTES, 300, error=tt.DTypeError, message="300 does not fit dtype uint8"
            ),
            refused(_MASK, -1, _BYTES, error=tt.DTypeError, message="-1"),
            refused(_MASK, _BYTES, 0.5, error=tt.DTypeError, message="0.5"),
            refused(_MASK, _MASK, 1, error=tt.DTypeError, message="1 does not fit dtype bool"),
            refused(_MASK, 1.0, 2.0, error=tt.ArgumentTypeError, message="at least one"),
            refused(_MASK, _X, "2", error=tt.ArgumentTypeError, message="str"),
            refused(_MASK, _X, spaced(4), error=tt.ShapeError, message=r"\(2, 3\) and \(4,\)"),
            refused(_MASK[:, :2], _X, 0.0, error=tt.ShapeError, message=r"\(2, 3\) and \(2, 2\)"),
        ),
        takes_integers=True,
    ),
)
