"""A graph of ONNX while it is written: nodes, known arrays, views, numbers of the batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType, Kind, View, inverse
from tapetensor.onnx.merging import Dim, Dims, Open, Value, refusal

# What ONNX takes for the end of an axis.
END = np.iinfo(np.int64).max
BEGINNING = np.iinfo(np.int64).min


class Graph:
    """Nodes and known arrays, each by the name of its result.

    Args:
        onnx: the package.
        names: those of the inputs, which nothing else may have.
    """

    def __init__(self, onnx: Any, names: Collection[str]) -> None:
        self.onnx = onnx
        self._taken = set(names)
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self._known: dict[Any, str] = {}
        # The input whose first axis is the batch.
        self.batched = ""

    def free(self, name: str) -> str:
        """Return a name that no input has."""
        while name in self._taken:
            name += "_"
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        return self.add_with_results(1, op, *inputs, **attributes)[0]

    def add_with_results(self, count: int, op: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node and return the names of its results."""
        name = f"{op}_{len(self.nodes)}"
        names = [self.free(f"{name}_{one}" if count > 1 else name) for one in range(count)]
        node = self.onnx.helper.make_node(op, inputs, names, name=names[0], **attributes)
        self.nodes.append(node)
        return names

    def constant(self, value: Any, dtype: DType | type | None = None, name: str = "") -> str:
        """Return the name of a known array, which equal small ones share."""
        array = np.array(value, dtype, order="C")
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 64 else None
        if not name and key in self._known:
            return self._known[key]
        name = self.free(name or f"constant_{len(self.arrays)}")
        while name in self.arrays:
            name += "_"
        self.arrays[name] = array
        if key is not None:
            self._known.setdefault(key, name)
        return name

    def drop_unread(self, results: Sequence[str]) -> None:
        """Leave out nodes and arrays that lead to none of the results."""
        read, kept = set(results), []
        for node in reversed(self.nodes):
            if not read.isdisjoint(node.output):
                kept.append(node)
                read.update(node.input)
        self.nodes = kept[::-1]
        self.arrays = {name: one for name, one in self.arrays.items() if name in read}

    def numbers(self, dims: Sequence[Dim]) -> str:
        """Return the name of integers, some of which may follow the batch size."""
        known = [dim for dim in dims if not isinstance(dim, Open)]
        if len(known) == len(dims):
            return self.constant(np.array(known, np.int64))
        if tuple(dims) not in self._known:
            pieces = [
                self._open(dim) if isinstance(dim, Open) else self.constant([dim], np.int64)
                for dim in dims
            ]
            joined = pieces[0] if len(pieces) == 1 else self.add("Concat", *pieces, axis=0)
            self._known[tuple(dims)] = joined
        return self._known[tuple(dims)]

    def _open(self, dim: Open) -> str:
        if "batch" not in self._known:
            self._known["batch"] = self.add("Shape", self.batched, start=0, end=1)
        name = self._known["batch"]
        if dim.times != 1:
            name = self.add("Mul", name, self.constant([dim.times], np.int64))
        if dim.plus:
            name = self.add("Add", name, self.constant([dim.plus], np.int64))
        return name

    def cast(self, name: str, dtype: DType, wanted: DType) -> str:
        """Return the name of the same elements in another dtype."""
        if dtype == wanted:
            return name
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(wanted))
        return self.add("Cast", name, to=to)

    def reshaped(self, name: str, dims: Sequence[Dim]) -> str:
        """Return the name of the same elements under another shape."""
        is_open = [isinstance(dim, Open) for dim in dims]
        if sum(is_open) == 1 and 0 not in dims:
            dims = [-1 if one else dim for one, dim in zip(is_open, dims, strict=True)]
        return self.add("Reshape", name, self.numbers(dims), allowzero=int(0 in dims))

    def repeated(self, name: str, dims: Sequence[Dim]) -> str:
        """Return the name of an array repeated to a shape."""
        return self.add("Expand", name, self.numbers(dims))

    def sliced(self, name: str, cuts: dict[int, tuple[Dim, Dim, int]]) -> str:
        """Return the name of a part: start, end and step by axis."""
        if not cuts:
            return name
        starts, ends, steps = zip(*cuts.values(), strict=True)
        return self.add(
            "Slice", name, self.numbers(starts), self.numbers(ends),
            self.numbers(list(cuts)), self.numbers(steps),
        )  # fmt: skip

    def unsqueezed(self, name: str, axes: Sequence[int]) -> str:
        """Return the name of an array with further axes of size 1."""
        return self.add("Unsqueeze", name, self.numbers(axes)) if axes else name

    def squeezed(self, name: str, axes: Sequence[int]) -> str:
        """Return the name of an array without axes of size 1."""
        return self.add("Squeeze", name, self.numbers(axes)) if axes else name


class Index(NamedTuple):
    """An index of slices and numbers, axis by axis.

    Attributes:
        cuts: start, end and step of the axes that are cut.
        numbers: the place along the axes that are left out.
        new: the axes of size 1 that the result has besides.
    """

    cuts: dict[int, tuple[Dim, Dim, int]]
    numbers: dict[int, Dim]
    new: list[int]


def index_of(parameter: tuple[Any, ...], shape: Dims) -> Index:
    """Return what an index does to an array of a shape."""
    named = sum([one is not None and one is not ... for one in parameter])
    rest = [slice(None)] * (len(shape) - named)
    place = parameter.index(...) if any(one is ... for one in parameter) else len(parameter)
    parts = [*parameter[:place], *rest, *parameter[place + 1 :]]
    found = Index({}, {}, [])
    axis = kept = 0
    for part in parts:
        if part is None:
            found.new.append(kept)
            kept += 1
            continue
        if isinstance(part, slice):
            step = 1 if part.step is None else part.step
            start = (0 if step > 0 else END) if part.start is None else part.start
            end = (END if step > 0 else BEGINNING) if part.stop is None else part.stop
            if (start, step) != (0, 1) or end not in (END, shape[axis]):
                found.cuts[axis] = start, end, step
            kept += 1
        else:
            found.numbers[axis] = part
        axis += 1
    return found


def seen(graph: Graph, view: View, name: str, shape: Dims, result: Dims) -> str:
    """Return the name of an array of a shape seen in a way."""
    if view.name == "reshape":
        return graph.reshaped(name, result)
    if view.name == "transpose":
        return graph.add("Transpose", name, perm=list(view.parameter))
    if view.name == "broadcast_to":
        return graph.repeated(name, result)
    return indexed(graph, name, index_of(view.parameter, shape))


def indexed(graph: Graph, name: str, index: Index) -> str:
    """Return the name of an array at an index."""
    name = graph.sliced(name, index.cuts)
    for axis in sorted(index.numbers, reverse=True):
        place = graph.squeezed(graph.numbers([index.numbers[axis]]), [0])
        name = graph.add("Gather", name, place, axis=axis)
    return graph.unsqueezed(name, index.new)


def written(graph: Graph, target: Value, into: Value, name: str, names: dict[Value, str]) -> str:
    """Return the name of `target` after an array was written to a view `into` it.

    Args:
        graph: where the nodes go.
        target: the array.
        into: the view, which leads to the array by further ones.
        name: the array that is written, of the shape of the view.
        names: those of the values.
    """
    if into is target:
        return name
    if target.kind is Kind.VIEW and into.kind is not Kind.VIEW:
        # The array itself is seen another way round than it lies in memory.
        (base,) = target.args
        whole = written(graph, base, into, name, names)
        return seen(graph, target.function, whole, base.shape, target.shape)
    if into.kind is not Kind.VIEW:
        raise refusal("what is written into two arrays at once has no form in ONNX", into.place)
    view, (base,) = into.function, into.args
    if view.name == "reshape":
        whole = graph.reshaped(name, base.shape)
    elif view.name == "transpose":
        whole = graph.add("Transpose", name, perm=list(inverse(view.parameter)))
    elif view.name == "index":
        whole = _put(graph, base, index_of(view.parameter, base.shape), name, into, names)
    else:
        raise refusal("what is written into repeated elements has no form in ONNX", into.place)
    return written(graph, target, base, whole, names)


def _put(
    graph: Graph, base: Value, index: Index, name: str, into: Value, names: dict[Value, str]
) -> str:
    """Return the name of an array with elements at an index replaced.

    What is written is gathered to the size of the array, and a mask chooses it where it belongs.
    """
    name = graph.unsqueezed(graph.squeezed(name, index.new), sorted(index.numbers))
    mask = np.ones((1,) * len(base.shape), np.bool_)
    for axis in sorted({*index.cuts, *index.numbers}):
        size: Any = base.shape[axis]
        part: Any = slice(*index.cuts[axis]) if axis in index.cuts else index.numbers[axis]
        if any(isinstance(one, Open) for one in (size, part, *index.cuts.get(axis, ()))):
            raise refusal(
                "what is written into a part of the batch has no form in ONNX", into.place
            )
        covered = np.zeros(size, np.bool_)
        covered[part] = True
        # Where each element of the array is in what is written.
        positions = np.zeros(size, np.int64)
        positions[part] = np.arange(covered.sum()) if axis in index.cuts else 0
        name = graph.add("Gather", name, graph.constant(positions), axis=axis)
        shape = [1] * len(base.shape)
        shape[axis] = size
        mask = mask & covered.reshape(shape)
    return graph.add("Where", graph.constant(mask), name, names[base])
