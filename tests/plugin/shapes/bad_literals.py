"""Bare ints of two sizes meet, through variables without an annotation. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn

rng = np.random.default_rng(0)
WIDTH: Final = 4

x = tt.zeros((5, 3))
weight = tt.normal((3, WIDTH), rng=rng)
bias = tt.full((6,), 0.0)
counted = tt.arange(7)
identity = tt.eye(2)
data = tt.from_numpy([[1.0, 2.0]], (1, 2))
narrow = nn.Linear(3, 8, rng=rng)
wide = nn.Linear(9, 2, rng=rng)
norm = nn.LayerNorm(6)
narrowed = narrow.forward(x)


def taken(x: Tensor1D[L[3]]) -> object:
    return narrow.forward(x)


BAD: tuple[Callable[[], object], ...] = (
    lambda: x @ x,  # E: matmul: inner dims differ: (5, 3) @ (5, 3), 3 != 5
    lambda: x @ weight + bias,  # E: add: shapes (5, 4) and (6,) do not broadcast, 4 != 6
    lambda: x @ identity,  # E: matmul: inner dims differ: (5, 3) @ (2, 2), 3 != 2
    lambda: counted + tt.arange(8),  # E: add: shapes (7,) and (8,) do not broadcast, 7 != 8
    lambda: data @ weight,  # E: matmul: inner dims differ: (1, 2) @ (3, 4), 2 != 3
    lambda: wide.forward(narrowed),  # E: Linear: the last axis of the input must have size 9
    lambda: tt.from_numpy([[1.0, -2.0]], (2, 1)),  # E: from_numpy: the array has shape (1, 2), the
    lambda: tt.from_numpy(((1, 2), (3, 4)), (4,), np.int8),  # E: shape (2, 2), the annotation says
    lambda: tt.from_numpy(np.ones((2, 3)), (3, 2)),  # E: has shape (2, 3), the annotation says (3
    lambda: tt.from_numpy(np.zeros(4).astype(np.float32), (5,)),  # E: has shape (4,), the annotat
    lambda: tt.from_numpy(rng.integers(0, 5, 10), (5,)),  # E: has shape (10,), the annotation says
    lambda: tt.from_numpy(rng.random(size=(2, 3)), (3, 2)),  # E: has shape (2, 3), the annotation s
    lambda: taken(tt.from_numpy(np.zeros(3, np.float64), (3,))),  # E: Argument 1 to "taken" has inc
    lambda: taken(tt.from_array(np.zeros(3, np.float64), (3,))),  # E: Argument 1 to "taken" has inc
    lambda: tt.from_numpy(np.array([0, 1, 2]), (2,)),  # E: has shape (3,), the annotation says (2,)
    lambda: f"{x:.2f}",  # E: format: a tensor of shape (5, 3) has 15 elements, not one; reduce it
    lambda: norm.forward(x),  # E: LayerNorm: the last axis of the input must have size 6
)


def pixels() -> object:
    squares = np.zeros((2, 1, 4, 4), np.float32)
    for square in squares:
        square[:, 1:3, 1:3] = 1.0
    return tt.from_numpy(squares, (2, 4, 4))  # E: has shape (2, 1, 4, 4), the annotation says (2,


BAD += (pixels,)


def by_name() -> object:
    place = 7
    return x[place]  # E: getitem: index 7 is outside axis 0 of shape (5, 3), which has size 5


def with_fractions() -> object:
    labels = tt.from_numpy(np.array([0, 1]), (2,))
    return labels + 0.5  # E: add: not defined for dtype int64, the result would be float64; convert


def fractions_first() -> object:
    return 0.5 * tt.arange(3)  # E: multiply: not defined for dtype int64, the result would be floa


def of_one() -> object:
    one: Tensor2D[L[1], L[4]] = tt.ones((1, 4))
    # E: BatchNorm1d: a variance needs two values per channel or more, a training input of shape (1,
    return nn.BatchNorm1d(4).forward(one.trace())


def unpacked() -> object:
    layers = nn.Sequential(*[nn.Linear(3, 8, rng=rng), nn.ReLU(), nn.Linear(7, 2, rng=rng)])
    return layers.forward(x)  # E: Sequential: layers 1 and 2 do not fit: ReLU gives (5, 8), Linear


BAD += (by_name, with_fractions, fractions_first, of_one, unpacked)
BAD += (
    lambda: tt.stack([]),  # E: stack: expected one tensor or more in a tuple or list
    lambda: tt.concat([]),  # E: concat: expected one tensor or more in a tuple or list
)
