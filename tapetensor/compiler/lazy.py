"""Arrays without elements, which record what numpy is asked to do with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Never

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from typing_extensions import override

from tapetensor.compiler.program import DType, Kind, Node, Program, Shape, View, replaced
from tapetensor.errors import TraceError

_PACKAGE = __name__.split(".", maxsplit=1)[0]


class LazyArray(NDArrayOperatorsMixin):
    """Stands for an array while a function is traced.

    Views see what is written into the array that they view, and the other way round, as numpy's do.

    Args:
        program: where it records.
        node: the value that it stands for, which writing replaces; of a view, that of its base.
        base: the array that it is a view of.
        view: how it views it.
    """

    __slots__ = ("_base", "_node", "_seen", "_view", "program")

    def __init__(
        self,
        program: Program,
        node: Node,
        base: LazyArray | None = None,
        view: Callable[[Node], Node] | None = None,
    ) -> None:
        self.program = program
        self._node = node
        self._base = base
        self._view = view
        self._seen = None if base is None else base.node

    @property
    def node(self) -> Node:
        """The value that it stands for at the moment."""
        if self._base is not None and self._view is not None:
            current = self._base.node
            if current is not self._seen:
                self._seen, self._node = current, self._view(current)
        return self._node

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.node.shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self.node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.node.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.node.size

    @property
    def T(self) -> LazyArray:  # noqa: N802  # numpy's name
        """The axes in reverse order."""
        return self.transpose(tuple(reversed(range(self.ndim))))

    def transpose(self, axes: Sequence[int]) -> LazyArray:
        """Return the axes in another order."""
        order = tuple([axis % self.ndim for axis in axes])
        shape = tuple([self.shape[axis] for axis in order])
        return self._viewed(View("transpose", order), shape)

    def reshape(self, *shape: Any) -> LazyArray:
        """Return the elements in C order under another shape."""
        wanted = shape[0] if len(shape) == 1 else shape
        known = np.broadcast_to(np.zeros((), bool), self.shape).reshape(wanted).shape
        return self._viewed(View("reshape", known), known)

    def astype(self, dtype: Any, copy: bool = True) -> LazyArray:
        """Return the elements converted."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        return self._wrap(
            self.program.elementwise(cast_to(wanted), (self.node,), self.shape, wanted)
        )

    def copy(self) -> LazyArray:
        """Return the array; writing into either replaces only its own value."""
        return self._wrap(self.node)

    def min(self, **options: Any) -> Any:
        """Return the smallest element, or the smallest along axes."""
        return np.minimum.reduce(self, **{"axis": None, **options})

    def max(self, **options: Any) -> Any:
        """Return the largest element, or the largest along axes."""
        return np.maximum.reduce(self, **{"axis": None, **options})

    def sum(self, **options: Any) -> Any:
        """Return the sum, or the sums along axes."""
        return np.add.reduce(self, **{"axis": None, **options})

    def __getitem__(self, index: Any) -> LazyArray:
        """Return the elements at an index."""
        if _is_basic(index):
            shape = np.broadcast_to(np.zeros((), bool), self.shape)[index].shape
            parts = index if isinstance(index, tuple) else (index,)
            # With an ellipsis numpy gives a view also of a single element, in place of a scalar.
            full = parts if any(one is ... for one in parts) else (*parts, ...)
            return self._viewed(View("index", full), shape)
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(one, LazyArray) and one.dtype.kind == "b" for one in parts):
            raise trace_error("a mask as an index gives a shape that depends on the values")
        return self.call(read_index, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write elements."""
        if _is_basic(index):
            target = self[index]
            if isinstance(value, LazyArray) and value.node is target.node:
                # The second half of ``array[index] += ...``: what is written is there already.
                return
            target.write(np.copyto, value)
        else:
            self.write(write_index, index, value)

    def write(self, function: Callable[..., Any], *args: Any) -> None:
        """Record that `function` writes into this array, its first argument."""
        owner = self
        while owner._base is not None:
            owner = owner._base
        program = self.program
        if owner._node.kind is not Kind.WRITE:
            # Fresh memory, with a detail that no equal value has, for writing changes it.
            before = owner._node
            owner._node = program.add(
                Kind.ELEMENTWISE, cast_to(before.dtype), (before,), before.shape, before.dtype,
                detail=object(),
            )  # fmt: skip
        nodes = replaced(args, self._unwrap)
        owner._node = program.add(
            Kind.WRITE, function, (owner._node, self.node, *nodes), owner.shape, owner.dtype
        )

    def record_step(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Record a call of `function` as one step, whatever it does inside."""
        return self.call(function, args, options)

    def record_write(self, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Record a call of `function`, which writes into this array, its first argument."""
        self.write(function, *args[1:])

    def record_check(self, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Record a call of `function`, which may raise, to be repeated at every replay."""
        nodes = replaced(args, self._unwrap)
        self.program.add(Kind.EFFECT, function, nodes, (), np.dtype(np.bool_))

    def record_update(self, update: Any, gradients: Sequence[LazyArray]) -> list[LazyArray]:
        """Record the step of an optimizer's group; return its parameters after it."""
        args = tuple([gradient.node for gradient in gradients])
        node = self.program.add(Kind.UPDATE, update, args, (), np.dtype(np.bool_))
        return [
            self._wrap(
                self.program.add(Kind.PART, None, (node,), one.shape, one.dtype, detail=position)
            )
            for position, one in enumerate(gradients)
        ]

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Record a call of which only the results' shapes matter; they are found by trying."""
        dummies = replaced((args, options), _dummy)
        with np.errstate(all="ignore"):
            results = function(*dummies[0], **dummies[1])
        nodes = replaced(args, self._unwrap)
        keywords = replaced(options, self._unwrap)
        if isinstance(results, tuple | list):
            whole = self.program.add(
                Kind.CALL, function, (*nodes, Keywords(keywords)), (), np.dtype(np.bool_)
            )
            return tuple(
                [
                    self._wrap(
                        self.program.add(
                            Kind.PART, None, (whole,), one.shape, one.dtype, detail=position
                        )
                    )
                    for position, one in enumerate(results)
                ]
            )
        array = np.asarray(results)
        return self._wrap(
            self.program.add(
                Kind.CALL, function, (*nodes, Keywords(keywords)), array.shape, array.dtype
            )
        )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Record a ufunc."""
        (out,) = options.pop("out", (None,))
        if method == "__call__" and not options:
            result = self._ufunc(ufunc, inputs)
        elif method == "reduce":
            result = self._reduce(ufunc, *inputs, **options)
        elif method == "at":
            target = inputs[0]
            if not isinstance(target, LazyArray):
                raise trace_error(f"{ufunc.__name__}.at writes into an array of another kind")
            target.write(ufunc.at, *inputs[1:])
            return None
        else:
            result = self.call(getattr(ufunc, method), inputs, options)
        if out is None:
            return result
        if not isinstance(out, LazyArray):
            raise trace_error(f"{ufunc.__name__} writes into an array of another kind")
        converted = result.astype(out.dtype)
        if out._base is None and out.shape == result.shape:
            out._node = converted.node
        else:
            out.write(np.copyto, converted)
        return out

    def _ufunc(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
        if ufunc.nout != 1:
            return self.call(ufunc, inputs, {})
        *loop, dtype = _resolve(ufunc, inputs)
        operands = tuple(
            [self._operand(one, wanted) for one, wanted in zip(inputs, loop, strict=True)]
        )
        if ufunc is np.matmul:
            lhs, rhs = operands
            node = self.program.add(
                Kind.MATMUL, np.matmul, operands, _product_shape(lhs.shape, rhs.shape), dtype
            )
            return self._wrap(node)
        if ufunc.signature is not None:
            return self.call(ufunc, inputs, {})
        shape = np.broadcast_shapes(*[operand.shape for operand in operands])
        return self._wrap(self.program.elementwise(ufunc, operands, shape, dtype))

    def _reduce(
        self,
        ufunc: np.ufunc,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        axes = tuple(range(self.ndim)) if axis is None else axis
        axes = (axes,) if isinstance(axes, int) else axes
        axes = tuple(sorted([one % array.ndim for one in axes]))
        kind = dtype or ufunc.reduce(np.ones((1,), array.dtype)).dtype
        shape = tuple([1 if one in axes else size for one, size in enumerate(array.shape)])
        detail = (axes, tuple(options.items()))
        node = self.program.add(
            Kind.REDUCE, ufunc, (array.node,), shape, np.dtype(kind), detail
        )
        kept = self._wrap(node)
        if keepdims:
            return kept
        return kept.reshape(
            tuple([size for one, size in enumerate(array.shape) if one not in axes])
        )

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: Any
    ) -> Any:
        """Record one of numpy's functions that are no ufuncs."""
        known = _FUNCTIONS.get(function)
        if known is not None:
            return known(self, *args, **options)
        if function in _SHAPE_DEPENDS_ON_VALUES:
            raise trace_error(f"np.{function.__name__} gives a shape that depends on the values")
        return self.call(function, args, options)

    def _operand(self, value: Any, dtype: DType) -> Node:
        if isinstance(value, LazyArray):
            return value.node
        return self.program.constant(value, None if hasattr(value, "dtype") else dtype)

    def _unwrap(self, value: Any) -> Any:
        if isinstance(value, LazyArray):
            return value.node
        return value

    def _wrap(self, node: Node) -> LazyArray:
        return LazyArray(self.program, node)

    def _viewed(self, view: View, shape: Shape) -> LazyArray:
        def of(node: Node) -> Node:
            return self.program.view(view, node, shape)

        return LazyArray(self.program, of(self.node), self, of)

    def __len__(self) -> int:
        """Return the size of the first axis."""
        return self.shape[0]

    def __bool__(self) -> Never:
        """Refuse: the answer depends on values, which there are none of."""
        raise trace_error(
            "a condition depends on the values of a tensor; "
            "write tt.where(mask, a, b) to choose by value"
        )

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Never:
        """Refuse: there are no values."""
        raise trace_error(
            "the values of a tensor are read (by printing it, numpy(), item() or a numpy function "
            "without dispatch); return the tensor and read it outside"
        )

    def item(self) -> Never:
        """Refuse: there are no values."""
        self.__array__()

    def __float__(self) -> Never:
        """Refuse: there are no values."""
        self.__array__()

    def __int__(self) -> Never:
        """Refuse: there are no values."""
        self.__array__()

    def __index__(self) -> Never:
        """Refuse: there are no values."""
        self.__array__()

    @override
    def __repr__(self) -> str:
        """Show shape and dtype, without values."""
        return f"LazyArray(shape={self.shape}, dtype={self.dtype})"


class LazyGenerator(np.random.Generator):
    """Stands for a random generator while a function is traced: draws become steps.

    Args:
        program: where it records.
        source: the node of the generator.
    """

    def __init__(self, program: Program, source: Node) -> None:
        super().__init__(np.random.PCG64(0))
        self.program = program
        self.source = source

    @override
    def __getattribute__(self, name: str) -> Any:
        """Return what records the draw, in place of what draws."""
        if name.startswith("_") or name in ("program", "source"):
            return object.__getattribute__(self, name)
        method = getattr(np.random.Generator, name, None)
        if not callable(method) or name in ("spawn", "bit_generator", "shuffle"):
            raise trace_error(f"rng.{name} cannot be traced")

        def draw(*args: Any, **options: Any) -> LazyArray:
            result = np.asarray(getattr(np.random.default_rng(0), name)(*args, **options))
            node = self.program.add(
                Kind.RANDOM,
                name,
                (self.source, args, Keywords(options)),
                result.shape,
                result.dtype,
            )
            return LazyArray(self.program, node)

        return draw


class Keywords(dict[str, Any]):
    """The keyword arguments of a recorded call, the last of its arguments."""


def cast_to(dtype: DType) -> Any:
    """Return the function ``cast(x, out)`` to a dtype; one object to a dtype, so equal casts merge."""
    known = _CASTS.get(dtype)
    if known is None:

        def cast(x: Any, out: Any = None) -> Any:
            if out is None:
                return x.astype(dtype)
            np.copyto(out, x, casting="unsafe")
            return out

        known = _CASTS[dtype] = cast
    return known


_CASTS: dict[DType, Any] = {}


def select(mask: Any, lhs: Any, rhs: Any, out: Any = None) -> Any:
    """``np.where`` that can write to `out`."""
    if out is None:
        return np.where(mask, lhs, rhs)
    np.copyto(out, rhs)
    np.copyto(out, lhs, where=mask)
    return out


def read_index(array: Any, index: Any) -> Any:
    """``array[index]``."""
    return array[index]


def write_index(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value``."""
    array[index] = value


def trace_error(what: str) -> TraceError:
    """Return the error for what cannot be traced, with the place in the user's program."""
    frame = sys._getframe(1)
    place = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".", maxsplit=1)[0] not in (_PACKAGE, "numpy"):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}: "
            break
        frame = frame.f_back  # type: ignore[assignment]  # the loop ends at the outermost
    return TraceError(f"{place}compile: {what}")


def _dummy(value: Any) -> Any:
    """Return an array that looks like a lazy one and takes no memory."""
    if isinstance(value, LazyArray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return value


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        one is None or one is ... or isinstance(one, slice | int | np.integer) for one in parts
    )


def _resolve(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> tuple[DType, ...]:
    """Return the dtypes that a ufunc works in, its result's last."""
    kinds = tuple([getattr(one, "dtype", one.__class__) for one in inputs])
    known = _RESOLVED.get((ufunc, kinds))
    if known is None:
        known = ufunc.resolve_dtypes((*kinds, None))
        _RESOLVED[ufunc, kinds] = known
    return known


_RESOLVED: dict[Any, tuple[DType, ...]] = {}


def _product_shape(lhs: Shape, rhs: Shape) -> Shape:
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if lhs[-1] != inner:
        raise ValueError(f"inner dims {lhs[-1]} and {inner} differ")
    leading = np.broadcast_shapes(lhs[:-2], rhs[:-2])
    return (*leading, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    def record(
        self: LazyArray, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any
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
    return array._viewed(View("broadcast_to", tuple(shape)), tuple(shape))


def _expand_dims(self: LazyArray, a: LazyArray, axis: Any) -> LazyArray:
    return a.reshape(np.expand_dims(_dummy(a), axis).shape)


def _squeeze(self: LazyArray, a: LazyArray, axis: Any = None) -> LazyArray:
    return a.reshape(np.squeeze(_dummy(a), axis).shape)


def _like(value: float) -> Callable[..., Any]:
    def record(
        self: LazyArray, a: LazyArray, dtype: Any = None, order: str = "K", shape: Any = None
    ) -> LazyArray:
        kind = np.dtype(dtype or a.dtype)
        wanted = a.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
        filled = self.program.broadcast(self.program.constant(value, kind), wanted)
        return self._wrap(filled)

    return record


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
        self._operand(mask, np.dtype(np.bool_)),
        *[self._operand(one, dtype) for one in choices],
    )
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    return self._wrap(self.program.elementwise(select, operands, shape, dtype))


def _clip(self: LazyArray, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    if a_min is not None:
        a = np.maximum(a, a_min)
    return a if a_max is None else np.minimum(a, a_max)


def _copyto(self: LazyArray, dst: Any, src: Any, **options: Any) -> None:
    if options or not isinstance(dst, LazyArray):
        raise trace_error("np.copyto writes into an array of another kind")
    dst.write(np.copyto, src)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
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
    np.ones_like: _like(1),
    np.zeros_like: _like(0),
    np.empty_like: _like(0),
    np.full_like: _full_like,
    np.where: _where,
    np.clip: _clip,
    np.copyto: _copyto,
}

_SHAPE_DEPENDS_ON_VALUES = frozenset(
    {np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.repeat, np.compress, np.extract}
)
