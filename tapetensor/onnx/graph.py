"""A graph of ONNX while it is written: nodes, known arrays, numbers that follow the batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import DType
from tapetensor.onnx.merging import Dim, Open

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

    def add(self, op: str, *inputs: str, count: int = 0, **attributes: Any) -> Any:
        """Add a node and return the name of its result; with a count, the names of several."""
        names = [f"{op}_{len(self.nodes)}" + f"_{one}" * bool(count) for one in range(count or 1)]
        names = [self.free(name) for name in names]
        node = self.onnx.helper.make_node(op, inputs, names, name=names[0], **attributes)
        self.nodes.append(node)
        return names if count else names[0]

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
        result: str = self.add("Cast", name, to=to)
        return result

    def reshaped(self, name: str, dims: Sequence[Dim]) -> str:
        """Return the name of the same elements under another shape."""
        is_open = [isinstance(dim, Open) for dim in dims]
        if sum(is_open) == 1 and 0 not in dims:
            dims = [-1 if one else dim for one, dim in zip(is_open, dims, strict=True)]
        result: str = self.add("Reshape", name, self.numbers(dims), allowzero=int(0 in dims))
        return result

    def repeated(self, name: str, dims: Sequence[Dim]) -> str:
        """Return the name of an array repeated to a shape."""
        result: str = self.add("Expand", name, self.numbers(dims))
        return result

    def sliced(self, name: str, cuts: dict[int, tuple[Dim, Dim, int]]) -> str:
        """Return the name of a part: start, end and step by axis."""
        if not cuts:
            return name
        starts, ends, steps = zip(*cuts.values(), strict=True)
        result: str = self.add(
            "Slice", name, self.numbers(starts), self.numbers(ends),
            self.numbers(list(cuts)), self.numbers(steps),
        )  # fmt: skip
        return result

    def unsqueezed(self, name: str, axes: Sequence[int]) -> str:
        """Return the name of an array with further axes of size 1."""
        return self.add("Unsqueeze", name, self.numbers(axes)) if axes else name

    def squeezed(self, name: str, axes: Sequence[int]) -> str:
        """Return the name of an array without axes of size 1."""
        return self.add("Squeeze", name, self.numbers(axes)) if axes else name
