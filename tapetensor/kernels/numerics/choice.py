"""Which elements: choices between two arrays, masks, and the order along an axis.

`np.where` and `np.copyto` decide at every element which way to go. Where the processor cannot
foresee it, as for the signs of activations, that takes seven to seventeen times as long as to blend
the bits of both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like

# Smaller arrays take less time than the calls.
_SMALLEST = 1 << 10
# The bits of a dtype are read as these integers.
_BITS: dict[Any, Any] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}


def choose(mask: Array, lhs: Any, rhs: Any) -> Array:
    """Return ``np.where(mask, lhs, rhs)``; one side may be a Python number."""
    if type(mask) is np.ndarray and mask.size >= _SMALLEST:
        one, other = _with_dtype_of(rhs, lhs), _with_dtype_of(lhs, rhs)
        is_in_order = mask.flags.c_contiguous or all(map(_is_fortrans, (mask, one, other)))
        if is_in_order and can_blend(mask, one, other):
            return blend(mask, one, other)
    chosen: Array = np.where(mask, lhs, rhs)
    return chosen


def _is_fortrans(x: Any) -> bool:
    """Tell whether an array lies in Fortran's order: `np.where` asks all, `blend` the mask alone.

    Of a mask in C order both give an array in C order.
    """
    return isinstance(x, np.ndarray) and x.flags.f_contiguous


def can_blend(mask: Array, lhs: Any, rhs: Any) -> bool:
    """Tell whether `blend` can take these arrays, and is faster."""
    return (
        mask.size >= _SMALLEST
        and mask.dtype == np.bool_
        and type(lhs) is np.ndarray
        and type(rhs) is np.ndarray
        and lhs.dtype == rhs.dtype
        and lhs.dtype in _BITS
        and _fits(mask, lhs)
        and _fits(mask, rhs)
    )


def _fits(mask: Array, side: Array) -> bool:
    """Tell whether a side has the shape of the mask, or is repeated to that."""
    if side.shape in (mask.shape, ()):
        return True
    sizes = zip(reversed(side.shape), reversed(mask.shape), strict=False)
    return side.ndim <= mask.ndim and all(size in (1, whole) for size, whole in sizes)


def blend(mask: Array, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
    """Return ``np.where(mask, lhs, rhs)`` for floats of one dtype; `out` may be one of them."""
    kind = _BITS[lhs.dtype]
    one, other = lhs.view(kind), rhs.view(kind)
    # A bool is a byte, 0 or 1; its negative, cast to more bytes, has all bits or none.
    bits = np.negative(mask.view(np.int8), dtype=kind)
    is_zero = rhs.ndim == 0 and not other
    bits &= one if is_zero else one ^ other
    if out is not None:
        np.bitwise_xor(bits, other, out=out.view(kind))
        return out
    if not is_zero:
        bits ^= other
    blended: Array = bits.view(lhs.dtype)
    return blended


def _with_dtype_of(other: Any, side: Any) -> Any:
    """Return a Python number as an array of the float dtype of the other side; else the side."""
    if side.__class__ in (int, float) and type(other) is np.ndarray and other.dtype in _BITS:
        return np.array(side, other.dtype)
    return side


def scaled_mask(
    shape: tuple[int, ...], p: float, dtype: np.dtype[Any], rng: np.random.Generator
) -> Array:
    """Return 0 with probability `p` and ``1 / (1 - p)`` otherwise; all 0 for ``p = 1``."""
    kept = rng.random(shape, dtype=np.float32) >= p
    mask: Array = kept * dtype.type(1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return mask


def where_labels_are(scores: Array, labels: Array) -> Array:
    """Return a mask of scores ``(*Ds, N)``: true at the class that each label ``(*Ds)`` names."""
    classes = like(np.arange(scores.shape[-1]), scores)
    is_label: Array = np.expand_dims(like(labels, scores), -1) == classes
    return is_label


def order_of(x: Array, axis: int, descending: bool) -> Array:
    """Return the positions that sort; equal elements keep their order, NaN is the largest."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Backwards there and back again, so that equal elements keep their order here too.
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    order = np.argsort(x[backwards], axis=axis, kind="stable")[backwards]
    positions: Array = x.shape[axis] - 1 - order
    return positions
