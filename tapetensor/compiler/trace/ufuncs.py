"""numpy's functions of elements and their reductions, for tracers."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arrays.stand_ins import Captured
from tapetensor.compiler.trace.node import DType, Kind, Node, Shape, View, repeated_shape
from tapetensor.compiler.trace.number import COMPARISONS, NumberTracer, dummy
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
    """Return an integer of Python's that no integer of the operands is as one of numpy's."""
    kinds = [one.dtype for one in operands if getattr(one, "dtype", _BOOL).kind in "iu"]
    if isinstance(value, NumberTracer):
        return value.array if kinds and value.array.dtype.kind == "i" else value
    if value.__class__ is not int or all(_holds(kind, value) for kind in kinds):
        return value
    return np.int64(value) if _holds(np.dtype(np.int64), value) else np.float64(value)


def _holds(kind: DType, value: int) -> bool:
    return bool(np.iinfo(kind).min <= value <= np.iinfo(kind).max)


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
    """Return the shape of a matrix product.

    Raises:
        ValueError: if the inner dims differ.
    """
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if lhs[-1] != inner:
        raise ValueError(f"inner dims {lhs[-1]} and {inner} differ")
    leading = repeated_shape(lhs[:-2], rhs[:-2])
    return (*leading, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))
