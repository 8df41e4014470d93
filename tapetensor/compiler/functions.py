"""numpy's functions that are no ufuncs, for lazy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.compiler.node import Kind, Shape
from tapetensor.compiler.operations import select, unwritten
from tapetensor.compiler.refusals import trace_error
from tapetensor.compiler.view import View

if TYPE_CHECKING:
    from tapetensor.compiler.lazy import LazyArray


# The error for `total += x` where `total` is an array of numpy's.
INTO_ANOTHER = (
    "{} writes what depends on an argument into an array of numpy's; write total = total + x in "
    "place of total += x, or make the array of the arguments, as np.zeros_like(x)"
)


def dummy(value: Any) -> Any:
    """Return an array that looks like one that records, and takes no memory."""
    if hasattr(value, "record_number") and not hasattr(value, "shape"):
        return value.kind()
    if hasattr(value, "record_step"):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return value


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    def record(
        self: LazyArray,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        **options: Any,
    ) -> Any:
        return ufunc.reduce(a, axis=axis, dtype=dtype, **options)

    return record


def _reshape(self: LazyArray, a: LazyArray, shape: Any) -> LazyArray:
    return a.reshape(shape)


def _transpose(self: LazyArray, a: LazyArray, axes: Any = None) -> LazyArray:
    return a.T if axes is None else a.transpose(axes)


def _swapaxes(self: LazyArray, a: LazyArray, axis1: int, axis2: int) -> LazyArray:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return a.transpose(order)


def _moveaxis(self: LazyArray, a: LazyArray, source: int, destination: int) -> LazyArray:
    order = list(range(a.ndim))
    moved = order.pop(source)
    order.insert(destination % a.ndim, moved)
    return a.transpose(order)


def _broadcast_to(self: LazyArray, array: LazyArray, shape: Shape) -> LazyArray:
    np.broadcast_shapes(array.shape, shape)
    return array.viewed(View("broadcast_to", tuple(shape)), tuple(shape))


def _expand_dims(self: LazyArray, a: LazyArray, axis: Any) -> LazyArray:
    return a.reshape(np.expand_dims(dummy(a), axis).shape)


def _squeeze(self: LazyArray, a: LazyArray, axis: Any = None) -> LazyArray:
    return a.reshape(np.squeeze(dummy(a), axis).shape)


def _split(
    self: LazyArray, ary: LazyArray, indices_or_sections: Any, axis: int = 0
) -> list[LazyArray]:
    parts = np.split(np.arange(ary.shape[axis]), indices_or_sections)
    ends = np.cumsum([0, *[part.size for part in parts]]).tolist()
    before = (slice(None),) * (axis % ary.ndim)
    return [ary[(*before, slice(*pair))] for pair in itertools.pairwise(ends)]


def _like(value: float) -> Callable[..., Any]:
    def record(
        self: LazyArray, a: LazyArray, dtype: Any = None, order: str = "K", shape: Any = None
    ) -> LazyArray:
        kind = np.dtype(dtype or a.dtype)
        wanted = a.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
        filled = self.program.broadcast(self.program.constant(value, kind), wanted)
        return self.wrap(filled)

    return record


def _empty_like(self: LazyArray, a: LazyArray, **options: Any) -> LazyArray:
    like: LazyArray = _like(0)(self, a, **options)
    program = self.program
    # A detail of its own keeps it from being merged with another such array.
    return self.wrap(
        program.add(Kind.ELEMENTWISE, unwritten, (), like.shape, like.dtype, detail=object())
    )


def _full_like(self: LazyArray, a: LazyArray, fill_value: Any, **options: Any) -> LazyArray:
    result: LazyArray = _like(fill_value)(self, a, **options)
    return result


def _where(self: LazyArray, mask: Any, *choices: Any) -> LazyArray:
    if len(choices) != 2:
        raise trace_error("np.where(mask) gives a shape that depends on the values")
    dtype = np.result_type(
        *[np.dtype(one.dtype) if hasattr(one, "dtype") else one for one in choices]
    )
    operands = (
        self.operand(mask, np.dtype(np.bool_)),
        *[self.operand(one, dtype) for one in choices],
    )
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    return self.wrap(self.program.elementwise(select, operands, shape, dtype))


def _clip(self: LazyArray, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    if a_min is not None:
        a = np.maximum(a, a_min)
    return a if a_max is None else np.minimum(a, a_max)


def _asarray(self: LazyArray, a: Any) -> Any:
    # A constant beside a lazy array may stay an array of numpy's.
    return a


def _copyto(self: LazyArray, dst: Any, src: Any, **options: Any) -> None:
    if options or not hasattr(dst, "record_write"):
        raise trace_error(INTO_ANOTHER.format("np.copyto"))
    dst.write(np.copyto, src)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.asarray: _asarray,
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.any: _reduction(np.logical_or),
    np.all: _reduction(np.logical_and),
    np.reshape: _reshape,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.split: _split,
    np.ones_like: _like(1),
    np.zeros_like: _like(0),
    np.empty_like: _empty_like,
    np.full_like: _full_like,
    np.where: _where,
    np.clip: _clip,
    np.copyto: _copyto,
}

SHAPE_DEPENDS_ON_VALUES = frozenset(
    {np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.repeat, np.compress, np.extract}
)
