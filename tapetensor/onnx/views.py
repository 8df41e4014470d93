"""Views of arrays, and what is written into them, in the ops of ONNX."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapetensor.compiler.trace.node import Kind, View, inverse
from tapetensor.onnx.graph import BEGINNING, END, Graph
from tapetensor.onnx.merging import Dim, Dims, Open, Value
from tapetensor.onnx.refusals import refusal


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
        return str(graph.add("Transpose", name, perm=list(view.parameter)))
    if view.name == "broadcast_to":
        return graph.repeated(name, result)
    index = index_of(view.parameter, shape)
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
    result: str = graph.add("Where", graph.constant(mask), name, names[base])
    return result
