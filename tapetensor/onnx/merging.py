"""One program with an open batch size, of programs that were captured at several sizes.

What is a number here and another there is a number times the batch size and another number more;
a third size says whether that is so. All else must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.plan.storage import made_of
from tapetensor.compiler.trace.node import DType, Keywords, Kind, Node, NodeKind, View
from tapetensor.errors import TraceError
from tapetensor.pictures import Place


@dataclass(frozen=True)
class Open:
    """A number that depends on the batch size: ``times * size + plus``."""

    times: int
    plus: int


Dim: TypeAlias = int | Open
Dims: TypeAlias = tuple[Dim, ...]


class Uniform(NamedTuple):
    """A constant that repeats along the axes that depend on the batch size."""

    base: Array


class Counted(NamedTuple):
    """A constant row of numbers, as many as the batch says: start and step."""

    start: int
    step: int


@dataclass(eq=False)
class Value:
    """A node of the merged program; what is as in `Node` has its name.

    Attributes:
        args: as in `Node`, with values in the place of nodes.
        array: what an input is, if it is known.
    """

    kind: NodeKind
    function: Any
    args: tuple[Any, ...]
    shape: Dims
    dtype: DType
    detail: Any
    label: str
    place: Place | None
    array: Array | None = field(default=None)

    @property
    def called(self) -> str:
        """The name of its function in messages and tables."""
        module: str = getattr(self.function, "__module__", "") or ""
        name: str = getattr(self.function, "__name__", self.kind.name)
        short = "np" if isinstance(self.function, np.ufunc) else module.replace("numpy", "np")
        return f"{short}.{name}"


class _DiffersError(Exception):
    """Two captures do not do the same."""


class Merger:
    """Merges the nodes of programs.

    Args:
        sizes: the batch size of each; one, if it is not open.
        inputs: the nodes of each that come in with a call.
        known: the arrays of the others that come in.
    """

    def __init__(
        self, sizes: Sequence[int], inputs: Sequence[Sequence[Node]], known: dict[Node, Any]
    ) -> None:
        self._sizes = sizes
        self._inputs = {one for nodes in inputs for one in nodes}
        self._known = known
        self._values: dict[Node | None, tuple[tuple[Node, ...], Value]] = {}

    def values(self, results: Sequence[Sequence[Node]]) -> list[Value]:
        """Return the results of all programs as one.

        Raises:
            TraceError: if the programs differ in more than numbers that follow the batch size.
        """
        orders = [sorted(made_of(nodes), key=lambda node: node.index) for nodes in results]
        place = None
        try:
            for nodes in _matched(orders):
                place = nodes[0].place
                self._values[nodes[0]] = nodes, self._value(nodes)
            return [self._merged(nodes) for nodes in _matched(results)]
        except _DiffersError as error:
            raise refusal(
                f"{error} depends on the batch size otherwise than a shape does",
                place,
                "write it without the size, or export with open_batch=False",
            ) from None

    def value(self, node: Node | None) -> Value | None:
        """Return the value of a node of the first program; None if no result needs it."""
        return self._values[node][1] if node in self._values else None

    def _value(self, nodes: tuple[Node, ...]) -> Value:
        first = nodes[0]
        kinds = {(one.kind, one.dtype, _name(one.function)) for one in nodes}
        if len(kinds) > 1:
            raise _DiffersError("what is computed")
        shape = self._merged(tuple([one.shape for one in nodes]))
        array = detail = None
        function = first.function
        if first.kind is Kind.CONSTANT:
            detail = self._constant([one.detail for one in nodes], shape)
        elif first.kind is Kind.INPUT:
            array = None if first in self._inputs else self._known.get(first)
            if any(self._known.get(one) is not array for one in nodes if one not in self._inputs):
                raise _DiffersError("what comes in")
        elif first.kind is Kind.VIEW:
            views: list[View] = [one.function for one in nodes]
            function = View(views[0].name, self._merged(tuple([one.parameter for one in views])))
        elif first.kind in (Kind.REDUCE, Kind.PART):
            detail = self._merged(tuple([one.detail for one in nodes]))
        args = self._merged(tuple([one.args for one in nodes]))
        return Value(
            first.kind, function, args, shape, first.dtype, detail, first.label, first.place, array
        )

    def _constant(self, arrays: list[Array], shape: Dims) -> Any:
        first = arrays[0]
        is_open = [isinstance(dim, Open) for dim in shape]
        if not any(is_open):
            if all(one.tobytes() == first.tobytes() for one in arrays):
                return first
            if first.ndim or first.dtype.kind not in "iuf":
                raise _DiffersError("a constant array")
            return self._number([one.item() for one in arrays])
        index = tuple([slice(0, 1) if one else slice(None) for one in is_open])
        base = first[index]
        if first.ndim == 1 and first.dtype.kind in "iu" and first[0] != first[1]:
            start, step = int(first[0]), int(first[1]) - int(first[0])
            if all(np.array_equal(one, start + step * np.arange(one.size)) for one in arrays):
                return Counted(start, step)
        for one in arrays:
            same = np.broadcast_to(base, one.shape)
            if not np.array_equal(same, one, equal_nan=one.dtype.kind == "f"):
                raise _DiffersError("a constant array")
        return Uniform(base)

    def _number(self, numbers: Sequence[Any]) -> Any:
        if all(one == numbers[0] for one in numbers):
            return numbers[0]
        times, rest = divmod(numbers[1] - numbers[0], self._sizes[1] - self._sizes[0])
        found = Open(int(times), int(numbers[0] - times * self._sizes[0]))
        fits = [found.times * size + found.plus for size in self._sizes]
        if rest or fits != list(numbers):
            raise _DiffersError("a number")
        return found

    def _merged(self, several: tuple[Any, ...]) -> Any:
        """Return what the same place holds in all programs, as one."""
        first = several[0]
        if any(one.__class__ is not first.__class__ for one in several):
            raise _DiffersError("what is computed")
        if isinstance(first, Node):
            nodes, value = self._values[first]
            if any(one is not other for one, other in zip(nodes, several, strict=True)):
                raise _DiffersError("what is computed")
            return value
        if first.__class__ in (tuple, list):
            return first.__class__([self._merged(one) for one in _matched(several)])
        if isinstance(first, dict):
            if any(list(one) != list(first) for one in several):
                raise _DiffersError("what is computed")
            made = {name: self._merged(tuple([one[name] for one in several])) for name in first}
            return Keywords(made) if isinstance(first, Keywords) else made
        if isinstance(first, slice):
            ends = [(one.start, one.stop, one.step) for one in several]
            return slice(*[self._merged(one) for one in _matched(ends)])
        if isinstance(first, int) and not isinstance(first, bool):
            return self._number(several)
        if isinstance(first, np.ndarray):
            shape = self._merged(tuple([one.shape for one in several]))
            detail = self._constant(list(several), shape)
            if detail is first:
                return first
            return Value(Kind.CONSTANT, None, (), shape, first.dtype, detail, "", None)
        if any(one is not first and one != first for one in several):
            raise _DiffersError("what is computed")
        return first


def _matched(several: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    if len({len(one) for one in several}) > 1:
        raise _DiffersError("what is computed")
    return list(zip(*several, strict=True))


def _name(function: Callable[..., Any] | None) -> tuple[str, str]:
    return getattr(function, "__module__", "") or "", getattr(function, "__name__", "")


def refusal(what: str, place: Place | None, cure: str = "") -> TraceError:
    """Return the error, with the place in the user's program."""
    told = f"export: {what}; {cure or 'compute it outside of what is exported'}"
    return TraceError(f"{place}: {told}" if place else told)
