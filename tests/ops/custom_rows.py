"""Rows of `custom_op`: two ops as a user would write them, one with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.typing import Array, Pullbacks
from tests.ops.rows import Op, given, refused, spaced


def softsign_kernel(x: Array) -> tuple[Array, Pullbacks]:
    scale = 1 + np.abs(x)
    return x / scale, (lambda g: g / (scale * scale),)


def row_scale_kernel(rows: Array, scales: Array) -> tuple[Array, Pullbacks]:
    return rows * scales, (
        lambda g: g * scales,
        lambda g: np.add.reduce(g * rows, axis=-1, keepdims=True),
    )


def _softsign(x: Any) -> Any:
    return tt.custom_op(softsign_kernel, x, shape=x.shape)


def _row_scale(rows: Any, scales: Any) -> Any:
    return tt.custom_op(row_scale_kernel, rows, scales, shape=rows.shape)


CUSTOM = (
    Op(
        name="softsign",
        covers=("custom_op",),
        call=_softsign,
        reference=lambda x: x / (1 + np.where(np.real(x) >= 0, x, -x)),
        samples=(given(spaced(3, 4)), given(spaced()), given(spaced(0, 2))),
    ),
    Op(
        name="row_scale",
        covers=("custom_op",),
        call=_row_scale,
        reference=lambda rows, scales: rows * scales,
        samples=tuple(
            given(spaced(*shape), spaced(shape[0], 1)) for shape in ((3, 4), (2, 0), (1, 1))
        ),
        refusals=(
            refused(
                tt.ShapeError,
                r"returned shape \(2, 3, 4\), not the declared shape=\(3, 4\)",
                spaced(3, 4),
                spaced(2, 3, 1),
            ),
        ),
        takes_integers=True,
    ),
)
