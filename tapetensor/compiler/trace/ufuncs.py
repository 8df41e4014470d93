"""numpy's functions of elements and their reductions, for tracers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arrays.stand_ins import Captured, CapturedArray
from tapetensor.compiler.trace.node import (
    DType,
    Keywords,
    Kind,
    Node,
    Shape,
    found_in,
    repeated_shape,
    shape_of_all,
)
from tapetensor.compiler.trace.number import COMPARISONS, NumberTracer, dummy
from tapetensor.compiler.trace.operations import into
from tapetensor.compiler.trace.refusals import check_writer, trace_error
from tapetensor.compiler.trace.view import View, is_in_order, lying
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
    """Capture a method of a ufunc, whose result may go into an array."""
    classes = dict.fromkeys(map(type, (self, *inputs, *options.get("out", ()))))
    # Mostly all are of one.
    if len(classes) > 1 and any(map(yields_to, classes)):
        return NotImplemented
    out, *others = options.pop("out", (None,))
    name, is_call = f"np.{ufunc.__name__}", method == "__call__"
    called_method = ufunc if is_call else getattr(ufunc, method)
    if any(one is not None for one in others) or (out is not None and ufunc.nout > 1):
        raise trace_error(
            f"{name} with several arrays as out cannot be traced; write x[...] = of each result"
        )
    if options.get("where") is True:
        del options["where"]
    is_masked = "where" in options and (is_call or method == "outer")
    if is_masked and out is None and ufunc.signature is None:
        raise trace_error(
            f"{name} with where leaves elements unwritten; give it out=np.zeros_like(...)"
        )
    if method == "at":
        written(inputs[0], ufunc.at, inputs[1:], {}, name)
        return None
    if out is not None and (is_masked or not is_call):
        return written(out, into(called_method), inputs, options, name)
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
            result = called(self, ufunc, inputs, out)
        except (ValueError, IndexError):
            # This raises what numpy raises.
            ufunc(*map(dummy, inputs), out=None if out is None else _writable(out))
            raise
    elif method == "reduce" and not {"where", "initial"} & options.keys():
        result = reduced(self, ufunc, *inputs, **options)
    else:
        result = self.capture_step(called_method, inputs, options)
    if out is None:
        return result
    target: Any = out
    is_array = isinstance(out, CapturedArray) and not issubclass(out.__class__, np.generic)
    fits = is_array and not options and out.shape == result.shape
    if not fits or not np.can_cast(result.dtype, out.dtype, "same_kind"):
        return written(out, into(ufunc), inputs, options, name)
    node = result.node
    if node.dtype != out.dtype or not is_in_order(node):
        node = result.astype(out.dtype).node
    if not target.becomes(node):
        target.write(into(ufunc), *inputs)
    return out


@cache
def _are_numbers(*dtypes: DType) -> bool:
    return all(one.kind in "biufc" for one in dtypes)


def yields_to(cls: type, protocol: str = "__array_ufunc__") -> bool:
    """Tell whether numpy leaves what is computed to operands of a class; refuse if untold."""
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


def written(target: Any, write: Any, args: Any, options: dict[str, Any], name: str) -> Any:
    """Capture ``write(target, *args, **options)``, by which numpy writes into an array.

    What is returned is the array, or its element where numpy returns that.
    """
    check_writer()
    if not isinstance(target, CapturedArray):
        raise trace_error(f"{name} writes what is captured into an array of numpy's")
    arrays: Iterable[Any] = found_in((args, options), CapturedArray)
    for one in arrays:
        one.ordered()
    target.write(write, *args, *([Keywords(options)] if options else []))
    return target


def _shown(value: Any) -> Any:
    """Return an operand, or an array that lies in memory as one that is captured."""
    return value.laid_out() if isinstance(value, CapturedArray) else value


def _writable(target: Any) -> Any:
    zeros = dummy(target)
    # The values of a constant stay as they are.
    return np.zeros_like(zeros) if isinstance(zeros, np.ndarray) else zeros


def called(self: ArrayTracer, ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> Any:
    """Capture a call of a ufunc, whose result takes the order of `out` where there is one."""
    if ufunc.nout != 1:
        return self.capture_step(ufunc, inputs, {})
    *loop, dtype = _resolved(ufunc, *map(_kind, inputs))
    if ufunc.signature is not None:
        tracers: list[Any] = [one for one in inputs if isinstance(one, CapturedArray)]
        for one in tracers:
            one.ordered()
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
        node = self.program.view(View("reshape", rows), node, rows)
        firsts = [one.laid_out()[..., 0] for one in inputs if isinstance(one, CapturedArray)]
        return self.wrap(node, computed_like(firsts, rows))
    if ufunc.signature is not None:
        return self.capture_step(ufunc, inputs, {})
    shape = shape_of_all(operands)
    if isinstance(out, CapturedArray) and out.shape == shape:
        return self.wrap(self.program.elementwise(ufunc, operands, dtype, out.laid_out()))
    like = computed_like(inputs, shape)
    return self.wrap(self.program.elementwise(ufunc, operands, dtype, like), like)


def lies_in_order(value: Any) -> bool:
    """Tell whether an operand lies in C order, as a number does."""
    if isinstance(value, CapturedArray):
        tracer: Any = value
        is_plain = tracer.part is None and is_in_order(tracer.node)
        value = None if is_plain else tracer.laid_out()
    return not isinstance(value, np.ndarray) or value.flags.c_contiguous


def computed_like(inputs: Iterable[Any], shape: Shape) -> Any:
    """Return what numpy has in the place of what it computes element by element, elements aside."""
    inputs = list(inputs)
    if all(map(lies_in_order, inputs)):
        return _lying_like(shape)
    arrays = [one for one in map(_shown, inputs) if isinstance(one, np.ndarray)]
    return _lying_like(shape, *[(one.shape, one.strides) for one in arrays])


@lru_cache(1024)
def _lying_like(shape: Shape, *layouts: tuple[Shape, Shape]) -> Any:
    """Return what numpy has in the place of what it computes of arrays of some layouts."""
    if not layouts:
        return lying(shape, _BOOL, None)[()]
    # Its stubs take no list that ends in None.
    nditer: Any = np.nditer
    made = nditer(
        [*[lying(one, _BOOL, strides) for one, strides in layouts], None],
        flags=["zerosize_ok"],
        op_flags=[*[["readonly"]] * len(layouts), ["writeonly", "allocate"]],
        op_dtypes=[*[None] * len(layouts), _BOOL],
        order="K",
    )
    return lying(shape, _BOOL, made.operands[-1].strides)[()]


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
    node = self.program.reduce(ufunc, array.ordered(), axes, tried.dtype)
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
