"""numpy's functions for tracers: ufuncs, and others by rules, or by trying what they give."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy._core import _methods

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import REARRANGED, Captured, CapturedArray, shadow
from tapetensor.compiler.trace.node import (
    DType,
    Kind,
    Node,
    Shape,
    View,
    found_in,
    repeated_shape,
    replaced,
)
from tapetensor.compiler.trace.number import COMPARISONS, NumberTracer, dummy
from tapetensor.compiler.trace.operations import alike, copied, looks, select, unwritten, write_all
from tapetensor.compiler.trace.refusals import WRITTEN, check_writer, trace_error
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer

_BOOL = np.dtype(np.bool_)
# Operands of these types follow numpy's rules.
_PLAIN = frozenset({np.ndarray, type(None), bool, int, float, complex, list, tuple})


def captured(
    self: ArrayTracer,
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Capture a method of a ufunc."""
    classes = dict.fromkeys(map(type, (self, *inputs, *options.get("out", ()))))
    # Mostly all are of one.
    if len(classes) > 1 and any(map(yields_to, classes)):
        return NotImplemented
    out, *others = options.pop("out", (None,))
    # A name of a scalar gets another one by ``+=``.
    out = None if issubclass(out.__class__, np.generic) else out
    name, is_call = f"np.{ufunc.__name__}", method == "__call__"
    called_method = ufunc if is_call else getattr(ufunc, method)
    if method == "at":
        inputs[0].write(ufunc.at, *inputs[1:])
        return None
    if out is not None or others:
        check_writer()
        if others:
            raise trace_error(WRITTEN)
    if options.get("where") is True:
        del options["where"]
    if "where" in options and (is_call or method == "outer"):
        raise trace_error(
            f"{name} with where leaves elements unwritten; write np.where(mask, a, b)"
        )
    if is_call:
        if len(classes) > 1:
            inputs = tuple(map(as_operand, inputs))
        if ufunc in COMPARISONS:
            inputs = tuple([_comparable(one, inputs) for one in inputs])
        if not _are_numbers(*[one.dtype for one in inputs if isinstance(one, np.ndarray)]):
            # This raises what numpy raises, unless the elements are objects that can be computed.
            ufunc(*map(dummy, inputs))
            raise trace_error(f"{name} of Python objects cannot be traced; make numbers of them")
    if is_call and not options.keys() - {"order"}:
        try:
            result = called(self, ufunc, inputs)
        except (ValueError, IndexError):
            # This raises what numpy raises.
            ufunc(*map(dummy, inputs))
            raise
    elif method == "reduce" and not {"where", "initial"} & options.keys():
        result = reduced(self, ufunc, *inputs, **options)
    else:
        result = self.capture_step(called_method, inputs, options)
    if out is None:
        return result
    made: Any = np.broadcast_to(result.astype(out.dtype, casting="same_kind"), out.shape)
    out.becomes(made.node)
    return out


@cache
def _are_numbers(*dtypes: DType) -> bool:
    return all(one.kind in "biufc" for one in dtypes)


def yields_to(cls: type, protocol: str = "__array_ufunc__") -> bool:
    """Tell whether numpy leaves a calculation to operands of a class; refuse if it is not known."""
    if cls in _PLAIN or issubclass(cls, Captured | np.generic):
        return False
    rules = getattr(cls, protocol, None)
    is_array = rules is getattr(np.ndarray, protocol)
    if is_array or (rules is None and hasattr(cls, "__array_priority__")):
        cure = "its filled(...)" if issubclass(cls, np.ma.MaskedArray) else "np.asarray of it"
        raise trace_error(
            f"a {cls.__name__} computes by rules of its own, which a plan does not know; pass "
            f"{cure}, or compute with it outside"
        )
    return rules is not None


def as_operand(value: Any) -> Any:
    """Return an operand as numpy sees it: of a list, and a subclass of float, it makes an array."""
    if hasattr(value, "dtype") or value.__class__ in (bool, int, float, complex):
        return value
    return np.asarray(value)


def _comparable(value: Any, operands: tuple[Any, ...]) -> Any:
    """Return an integer that is not known yet as numpy's, to be compared with integers exactly."""
    is_one = isinstance(value, NumberTracer) and value.array.dtype.kind == "i"
    has_integers = is_one and any(getattr(one, "dtype", _BOOL).kind in "iu" for one in operands)
    return value.array if has_integers else value


def called(self: ArrayTracer, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Capture a call of a ufunc."""
    if ufunc.nout != 1:
        return self.capture_step(ufunc, inputs, {})
    *loop, dtype = _resolved(ufunc, *map(_kind, inputs))
    operands = tuple(map(self.operand, inputs, loop))
    if ufunc is np.matmul:
        lhs, rhs = operands
        shape = product_shape(lhs.shape, rhs.shape)
        node = self.program.add(Kind.MATMUL, np.matmul, operands, shape, dtype)
        return self.wrap(node)
    if ufunc is np.vecdot and are_rows(*operands):
        rows = operands[0].shape[:-1]
        detail = (len(rows),), False
        node = self.program.add(Kind.REDUCE, np.vecdot, operands, (*rows, 1), dtype, detail)
        return self.wrap(self.program.view(View("reshape", rows), node, rows))
    if ufunc.signature is not None:
        return self.capture_step(ufunc, inputs, {})
    return self.wrap(self.program.elementwise(ufunc, operands, dtype))


def reduced(
    self: ArrayTracer,
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
) -> Any:
    """Capture a reduction, with the arguments that the method ``reduce`` of a ufunc takes."""
    array = array.array
    # These raise what numpy raises, also where nobody reads the result.
    pairs = np.ones((2,) * array.ndim, array.dtype)
    tried = np.asarray(ufunc.reduce(pairs, axis, dtype, keepdims=True))
    if not array.size:
        ufunc.reduce(np.empty(array.shape, array.dtype), axis, dtype)
    axes = tuple([one for one, size in enumerate(tried.shape) if size == 1])
    node = self.program.reduce(ufunc, array.node, axes, tried.dtype)
    if not keepdims:
        shape = tuple([size for one, size in enumerate(array.shape) if one not in axes])
        node = self.program.view(View("reshape", shape), node, shape)
    return self.wrap(node)


@lru_cache(None, typed=True)
def _resolved(ufunc: np.ufunc, *kinds: Any) -> tuple[DType, ...]:
    """Return the dtypes that a ufunc works in, its result's last."""
    return ufunc.resolve_dtypes((*kinds, None))


def _kind(value: Any) -> Any:
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    return getattr(value, "dtype", value.__class__)


def are_rows(lhs: Node, rhs: Node) -> bool:
    """Tell whether two arrays are rows that the BLAS multiplies pair by pair."""
    is_alike = lhs.shape == rhs.shape and lhs.dtype == rhs.dtype
    return is_alike and 0 not in lhs.shape[-1:] and lhs.shape != () and lhs.dtype in PRODUCT_DTYPES


def product_shape(lhs: Shape, rhs: Shape) -> Shape:
    """Return the shape of a matrix product; raise a ValueError if the inner dims differ."""
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if lhs[-1] != inner:
        raise ValueError(f"inner dims {lhs[-1]} and {inner} differ")
    leading = repeated_shape(lhs[:-2], rhs[:-2])
    return (*leading, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))


# The error for a result that a plan has no place for.
VALUES_DECIDE = (
    "{} gives a shape or a dtype that depends on the values; choose by np.where(mask, a, b), or "
    "call it outside on what the function returns"
)


def _broadcast_to(self: ArrayTracer, array: ArrayTracer, shape: Shape) -> ArrayTracer:
    wanted = np.broadcast_to(shadow(array), shape).shape
    return array.viewed(View("broadcast_to", wanted), wanted)


def _constant(self: ArrayTracer, a: Any) -> Any:
    if isinstance(a, Captured):
        return a
    array = np.asarray(a)
    return self.wrap(self.operand(array, array.dtype), array)


def _filled(
    fill: Callable[..., Array], self: ArrayTracer, a: ArrayTracer, *args: Any, **options: Any
) -> Any:
    like = np.empty_like(shadow(a), *args, **options)
    # That of zeros is an empty text, and numbers of Python's that do not fit raise an error.
    constant = self.program.constant(fill(dtype=like.dtype))
    return self.wrap(self.program.broadcast(constant, like.shape), like)


def _copyto(self: ArrayTracer, dst: Any, src: Any, **options: Any) -> None:
    check_writer()
    if options or not isinstance(dst, Captured):
        raise trace_error(WRITTEN)
    dst.array.write(write_all, src)


def _empty_like(self: ArrayTracer, prototype: ArrayTracer, *args: Any, **options: Any) -> Any:
    like = np.empty_like(shadow(prototype), *args, **options)
    # A detail of its own keeps it from being merged with another such array.
    own = object()
    made = self.program.add(Kind.ELEMENTWISE, unwritten, (), like.shape, like.dtype, own)
    return self.wrap(made, like)


def _full_like(
    self: ArrayTracer, a: ArrayTracer, fill_value: Any, *args: Any, **options: Any
) -> Any:
    if not isinstance(fill_value, Captured):
        fill = partial(np.full, np.shape(fill_value), fill_value)
        return _filled(fill, self, a, *args, **options)
    like = np.empty_like(shadow(a), *args, **options)
    value: Any = fill_value.array.astype(like.dtype)
    return np.broadcast_to(value, like.shape).copy()


def _where(self: ArrayTracer, mask: Any, *choices: Any) -> ArrayTracer:
    if len(choices) != 2:
        raise trace_error(VALUES_DECIDE.format("np.where(mask)"))
    if any(isinstance(one, type) for one in choices):
        raise trace_error("np.where of classes cannot be traced; choose among numbers")
    mask, choices = as_operand(mask), tuple(map(as_operand, choices))
    dtype = np.result_type(
        *[np.dtype(one.dtype) if hasattr(one, "dtype") else one for one in choices]
    )
    operands = (
        self.operand(mask, np.dtype(np.bool_)),
        *[self.operand(one, dtype) for one in choices],
    )
    # Without axes, too, it is an array.
    return self.wrap(self.program.elementwise(select, operands, dtype), np.empty(()))


def _expand_dims(a: Any, axis: Any) -> Any:
    # numpy makes an array of a scalar, also where it gets no axis.
    array = a.as_scalar(False) if getattr(a, "is_scalar", False) else a
    return REARRANGED[np.expand_dims](array, axis)


# Written by other functions of numpy.
REWRITTEN: dict[Any, Callable[..., Any]] = {
    **REARRANGED,
    np.expand_dims: _expand_dims,
    np.ravel: lambda a, order="C": np.reshape(a, -1, order),
    # These call the method of their first argument.
    **{
        one: inspect.unwrap(one)
        for one in (np.all, np.any, np.clip, np.max, np.min, np.prod, np.reshape, np.sum,
                    np.transpose)
    },
}  # fmt: skip
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.asarray: _constant,
    np.broadcast_to: _broadcast_to,
    np.copyto: _copyto,
    # An axis may be captured, too, whose value counts.
    np.size: lambda self, a, axis=None: np.size(dummy(a), axis),
    np.ones_like: partial(_filled, partial(np.ones, ())),
    np.zeros_like: partial(_filled, partial(np.zeros, ())),
    np.empty_like: _empty_like,
    np.full_like: _full_like,
    np.where: _where,
}
# These read no elements.
KNOWN_BY_SHAPE = frozenset(
    {np.shape, np.ndim, np.iscomplexobj, np.isrealobj, np.einsum_path, np.result_type,
     np.can_cast, np.common_type}
)  # fmt: skip
# numpy's methods of these names are its functions; others are functions of their own.
METHODS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in ("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "cumprod",
                     "cumsum", "diagonal", "dot", "mean", "nonzero", "ravel", "repeat", "round",
                     "searchsorted", "squeeze", "std", "swapaxes", "take", "trace", "var")
    },
    **{name: vars(_methods)[f"_{name}"] for name in ("all", "any", "clip", "prod", "sum")},
    "max": vars(_methods)["_amax"],
    "min": vars(_methods)["_amin"],
}  # fmt: skip
# These write into their first argument.
WRITING = frozenset(
    {np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
)  # fmt: skip

# The others show it where they are tried on two kinds of values.
SHAPE_DEPENDS_ON_VALUES = frozenset(
    {np.unique, np.nonzero, np.flatnonzero, np.argwhere, np.compress, np.extract,
     np.intersect1d, np.setdiff1d, np.setxor1d, np.union1d, np.trim_zeros,
     np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.linalg.eig,
     np.linalg.eigvals, np.real_if_close, *[getattr(np.emath, name) for name in np.emath.__all__]}
)  # fmt: skip


def other_values(array: Array) -> Array:
    """Return an array of the shape and the dtype of another, with ones among its zeros."""
    if array.ndim > 1:
        pattern = np.eye(*array.shape[-2:])
    else:
        pattern = 1.0 - np.arange(array.size).reshape(array.shape) % 2
    return np.broadcast_to(np.array(pattern, array.dtype), array.shape)


def shaped(function: Callable[..., Any], arguments: Any, results: Any) -> Callable[..., Any]:
    """Return a function as a step; one of numpy's sees to its shape if it may be given an axis."""
    module = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc) or not module.startswith("numpy"):
        return function
    numbers: Iterable[Any] = found_in(arguments, Captured)
    may_be_axes = [one for one in numbers if not one.array.shape and one.array.dtype.kind in "iu"]
    return alike(function, results) if may_be_axes else function


def is_basic(index: Any) -> bool:
    """Tell whether numpy answers an index with a view."""
    return all(
        one is None or one is ...
        or (isinstance(one, slice | int | np.integer) and not isinstance(one, bool | Captured))
        for one in with_dots(index)
    )  # fmt: skip


def with_dots(index: Any) -> tuple[Any, ...]:
    """Return an index by which numpy gives a view even of a single element, and no scalar."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if any(one is ... for one in parts) else (*parts, ...)


# What a trial may give.
_NUMBERS = (np.ndarray, np.generic, bool, int, float)
# Functions of these modules, and types, may be called as often as anybody likes.
_CALLED = ("numpy", "builtins", "math")
# What these write or show are values, or memory that a plan has not.
_READING = frozenset(
    {np.array2string, np.array_repr, np.array_str, np.may_share_memory, np.save, np.savetxt,
     np.savez, np.savez_compressed, np.shares_memory}
)  # fmt: skip


def capture_function(
    self: ArrayTracer, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Capture a call of one of numpy's functions that are no ufuncs."""
    if function in REWRITTEN:
        # These ask their first argument for what numbers do not have.
        first: Any = args[0] if args else None
        if isinstance(first, NumberTracer):
            args = (first.array.as_scalar(False), *args[1:])
        return REWRITTEN[function](*args, **options)
    if function in FUNCTIONS:
        return FUNCTIONS[function](self, *args, **options)
    if function in KNOWN_BY_SHAPE:
        given = replaced((args, options), dummy)
        return function(*given[0], **given[1])
    return capture_by_trial(self, function, args, options)


def capture_by_trial(
    self: ArrayTracer, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Capture a call of one of numpy's functions: views where it gives views, else a step.

    A trial on arrays that lie in memory as the real ones will do shows which, and another one
    on other values shows whether shapes depend on them.
    """
    name = f"np.{function.__name__}"
    if function in WRITING or options.get("out") is not None:
        raise trace_error(WRITTEN)
    if function in SHAPE_DEPENDS_ON_VALUES:
        raise trace_error(VALUES_DECIDE.format(name))
    if function in _READING:
        raise trace_error(f"{name} reads values or memory; return the array, and call it outside")
    args, options = replaced((args, options), _known_scalar)
    handed: list[tuple[Array, Any]] = []
    results = _tried(name, function, args, options, handed)
    many = isinstance(results, tuple | list)
    listed = list(results) if many else [results]
    if not all(isinstance(one, _NUMBERS) for one in listed):
        raise trace_error(f"{name} gives no arrays; call it outside on what the function returns")
    # A plan writes over its memory, of which a result is to show nothing.
    is_view = any(np.may_share_memory(one, each) for one in listed for each, _ in handed)
    made = self.capture_step(copied(function) if is_view else function, args, options, results)
    if any(one is each for one in listed for each, _ in handed):
        # An array that is given back is the very same.
        parts = [
            next((value for each, value in handed if one is each), part)
            for one, part in zip(listed, made if many else [made], strict=True)
        ]
        return results.__class__(parts) if many else parts[0]
    return NumberTracer(made) if results.__class__ in (bool, int, float) else made


def _tried(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    handed: list[tuple[Array, Any]],
) -> Any:
    """Return what a function gives for arrays of zeros, or of other values if it must."""

    def fixed(array: Array) -> Array:
        seen = array.view()
        seen.flags.writeable = False
        return seen

    def zeros(value: Any) -> Any:
        given = dummy(value)
        if isinstance(given, np.ndarray):
            given = fixed(given)
            handed.append((given, value))
        elif callable(value) and str(value.__module__) not in _CALLED:
            raise trace_error(
                f"{name} calls a function whose effects are not known; write it with functions "
                "of numpy that work on whole arrays"
            )
        return given

    def others(value: Any, values: Callable[[Array], Array] = other_values) -> Any:
        if isinstance(value, NumberTracer):
            return value.__class__(1)
        if not _is_tracer(value):
            return fixed(value) if isinstance(value, np.ndarray) else value
        if value.node.kind is Kind.CONSTANT and not value.is_scalar:
            return value.node.detail
        one = np.ones((), value.dtype)[()]
        return one if value.is_scalar else values(shadow(value))

    def ones(value: Any) -> Any:
        # Weights of an average, or the ends of a geometric sequence, may not be zero.
        return others(value, lambda like: np.broadcast_to(np.ones_like(like), like.shape))

    tries, error = list[Any](), None
    for kind in (zeros, others, ones):
        if kind is ones and tries:
            break
        given = replaced((args, options), kind)
        if kind is zeros and function is np.polyfit:
            # Of these LAPACK prints a complaint.
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tries.append(function(*given[0], **given[1]))
        except Exception as raised:  # The other values may do.
            error = error or raised
    if not tries:
        assert error is not None
        if "read-only" in str(error) or "output array" in str(error):
            raise trace_error(WRITTEN)
        raise error
    if len(tries) == 2 and looks(tries[0]) != looks(tries[1]):
        raise trace_error(VALUES_DECIDE.format(name))
    return tries[0]


def _known_scalar(value: Any) -> Any:
    """Return a scalar that is a constant as numpy's, for it may be an axis, say."""
    is_one = _is_tracer(value) and value.is_scalar and value.node.kind is Kind.CONSTANT
    return value.read() if is_one else value


def _is_tracer(value: Any) -> TypeGuard[ArrayTracer]:
    return isinstance(value, CapturedArray)
