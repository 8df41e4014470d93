"""Functions of whole arrays in the ops of ONNX: numpy's, and steps of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.onnx.graph import END, Graph, index_of
from tapetensor.onnx.merging import Open, Value, refusal

_INT64 = np.dtype(np.int64)


def arguments(value: Value, names: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of a signature; the defaults are there, too.

    Raises:
        TraceError: if there are others.
    """
    *args, keywords = value.args
    given = dict(zip(names, args, strict=False)) | dict(keywords)
    if len(args) > len(names) or given.keys() - names.keys():
        raise _unknown(value)
    return names | given


def _unknown(value: Value) -> Exception:
    return refusal(f"{value.called} has no form in ONNX, called like this", value.place)


class Operands:
    """The operands of a call, which may be values or plain arrays."""

    def __init__(self, graph: Graph, names: dict[Value, str], value: Value) -> None:
        self.graph, self._names, self._value = graph, names, value

    def name(self, operand: Any) -> str:
        """Return the name of an operand."""
        if isinstance(operand, Value):
            return self._names[operand]
        if isinstance(operand, Open):
            raise _unknown(self._value)
        return self.graph.constant(operand)

    def cast(self, operand: Any, dtype: np.dtype[Any]) -> str:
        """Return the name of an operand in a dtype."""
        if isinstance(operand, Value):
            return self.graph.cast(self._names[operand], operand.dtype, dtype)
        if isinstance(operand, Open):
            raise _unknown(self._value)
        return self.graph.constant(operand, dtype)

    def whole(self, operand: Any) -> str:
        """Return the name of integers as ONNX takes them for places."""
        return self.cast(operand, _INT64)

    def shape(self, operand: Any) -> tuple[Any, ...]:
        """Return the shape of an operand."""
        return operand.shape if isinstance(operand, Value) else np.shape(operand)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        """Return the dtype of an operand."""
        return operand.dtype if isinstance(operand, Value) else np.asarray(operand).dtype


def _take(on: Operands, value: Value) -> str:
    given = arguments(value, {"a": None, "indices": None, "axis": None})
    name, axis = on.name(given["a"]), given["axis"]
    if axis is None:
        name, axis = on.graph.reshaped(name, [-1]), 0
    return on.graph.add("Gather", name, on.whole(given["indices"]), axis=axis)


def _take_along_axis(on: Operands, value: Value) -> str:
    given = arguments(value, {"arr": None, "indices": None, "axis": -1})
    array, indices, axis = given["arr"], given["indices"], given["axis"]
    shape = on.shape(array)
    axis %= len(shape)
    # ONNX repeats neither of the two, and takes fewer places than there are.
    wanted = [
        size if one == axis else value.shape[one] for one, size in enumerate(on.shape(indices))
    ]
    places = on.graph.repeated(on.whole(indices), wanted)
    others = [size if one == axis else value.shape[one] for one, size in enumerate(shape)]
    name = on.graph.repeated(on.name(array), others)
    return on.graph.add("GatherElements", name, places, axis=axis)


def _joined(axis_is_new: bool) -> Callable[[Operands, Value], str]:
    def rule(on: Operands, value: Value) -> str:
        given = arguments(value, {"arrays": None, "axis": 0})
        axis = given["axis"] % len(value.shape) if given["axis"] is not None else 0
        names = [on.cast(one, value.dtype) for one in given["arrays"]]
        if given["axis"] is None:
            names = [on.graph.reshaped(one, [-1]) for one in names]
        if axis_is_new:
            names = [on.graph.unsqueezed(one, [axis]) for one in names]
        return on.graph.add("Concat", *names, axis=axis)

    return rule


def _extreme(op: str) -> Callable[[Operands, Value], str]:
    def rule(on: Operands, value: Value) -> str:
        given = arguments(value, {"a": None, "axis": None, "out": None, "keepdims": False})
        name, axis = on.name(given["a"]), given["axis"]
        if on.dtype(given["a"]) == np.bool_:
            name = on.graph.cast(name, np.dtype(np.bool_), np.dtype(np.int32))
        if axis is None:
            name = on.graph.reshaped(name, [-1])
        found = on.graph.add(op, name, axis=axis or 0, keepdims=int(given["keepdims"] is True))
        return on.graph.reshaped(found, value.shape) if axis is None else found

    return rule


def _argsort(on: Operands, value: Value) -> str:
    given = arguments(value, {"a": None, "axis": -1, "kind": None, "order": None, "stable": None})
    axis = given["axis"]
    size = value.shape[-1 if axis is None else axis]
    if axis is None or given["order"] is not None:
        raise _unknown(value)
    # Of equals the first comes first, as in a stable sort.
    name, count = on.name(given["a"]), on.graph.numbers([size])
    _, places = on.graph.add_with_results(2, "TopK", name, count, axis=axis, largest=0)
    return places


def _cumsum(on: Operands, value: Value) -> str:
    given = arguments(value, {"a": None, "axis": None, "dtype": None})
    name = on.cast(given["a"], value.dtype)
    if given["axis"] is None:
        name = on.graph.reshaped(name, [-1])
    return on.graph.add("CumSum", name, on.graph.constant(given["axis"] or 0, np.int64))


def _einsum(on: Operands, value: Value) -> str:
    *args, keywords = value.args
    if not args or not isinstance(args[0], str) or keywords.keys() - {"optimize"}:
        raise _unknown(value)
    names = [on.cast(one, value.dtype) for one in args[1:]]
    return on.graph.add("Einsum", *names, equation=args[0])


def _roll(on: Operands, value: Value) -> str:
    given = arguments(value, {"a": None, "shift": None, "axis": None})
    array, shift, axis = on.name(given["a"]), given["shift"], given["axis"]
    if axis is None:
        flat = _rolled(on.graph, on.graph.reshaped(array, [-1]), shift, 0)
        return on.graph.reshaped(flat, value.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    for by, one in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        size = value.shape[one]
        array = _rolled(on.graph, array, by % size if isinstance(size, int) and size else by, one)
    return array


def _rolled(graph: Graph, name: str, shift: int, axis: int) -> str:
    if not shift:
        return name
    front = graph.sliced(name, {axis: (-shift, END, 1)})
    back = graph.sliced(name, {axis: (0, -shift, 1)})
    return graph.add("Concat", front, back, axis=axis)


def _moved(on: Operands, value: Value) -> str:
    array, first, second, _ = value.args
    move: Any = getattr(np, value.function.__name__)
    # Where the axes go is seen from an array whose sizes are the places, and one more.
    shown = move(np.empty(range(1, len(value.shape) + 1), np.bool_), first, second).shape
    return on.graph.add("Transpose", on.name(array), perm=[one - 1 for one in shown])


def _of_first(op: str) -> Callable[[Operands, Value], str]:
    return lambda on, value: on.graph.add(op, on.name(value.args[0]))


def _read_index(on: Operands, value: Value) -> str:
    """Return the elements at arrays of places, which stand beside each other."""
    array, index, _ = value.args
    parts = index if isinstance(index, tuple) else (index,)
    is_array = [isinstance(one, Value | np.ndarray | list) for one in parts]
    first, count = is_array.index(True), sum(is_array)
    basic = tuple([slice(None) if one else part for one, part in zip(is_array, parts, strict=True)])
    before = [one for one in parts[:first] if one is not ...]
    plain = all(one is ... or isinstance(one, slice) for one in basic)
    dtypes = [on.dtype(part) for one, part in zip(is_array, parts, strict=True) if one]
    if not plain or not all(is_array[first : first + count]) or any(d.kind == "b" for d in dtypes):
        raise _unknown(value)
    shape = on.shape(array)
    axis = first if len(before) == first else len(shape) - (len(parts) - first)
    name = on.graph.sliced(on.name(array), index_of(basic, shape).cuts)
    places = [on.whole(one) for one in parts[first : first + count]]
    if count == 1:
        return on.graph.add("Gather", name, places[0], axis=axis)
    if axis:
        raise _unknown(value)
    ranks = [len(on.shape(one)) for one in parts[first : first + count]]
    common = value.shape[: max(ranks)]
    deep = [on.graph.unsqueezed(on.graph.repeated(one, common), [max(ranks)]) for one in places]
    return on.graph.add("GatherND", name, on.graph.add("Concat", *deep, axis=max(ranks)))


def _segment_sum(on: Operands, value: Value) -> str:
    rows, targets, *_ = value.args
    zeros = on.graph.repeated(on.graph.constant(0, value.dtype), value.shape)
    places = on.graph.unsqueezed(on.whole(targets), [1])
    return on.graph.add("ScatterND", zeros, places, on.name(rows), reduction="add")


_HERE = "tapetensor.kernels"
RULES: dict[str, Callable[[Operands, Value], Any]] = {
    "np.take": _take,
    "np.take_along_axis": _take_along_axis,
    "np.concatenate": _joined(axis_is_new=False),
    "np.stack": _joined(axis_is_new=True),
    "np.argmax": _extreme("ArgMax"),
    "np.argmin": _extreme("ArgMin"),
    "np.argsort": _argsort,
    "np.cumsum": _cumsum,
    "np.einsum": _einsum,
    "np.roll": _roll,
    "np.moveaxis": _moved,
    "np.swapaxes": _moved,
    "np.copy": _of_first("Identity"),
    "np.linalg.det": _of_first("Det"),
    "tapetensor.compiler.trace.operations.read_index": _read_index,
    f"{_HERE}.numerics.segments.segment_sum": _segment_sum,
}
