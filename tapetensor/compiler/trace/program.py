"""A captured program: values in static single assignment, simplified while they are added."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from threading import get_ident
from typing import Any

import numpy as np
from numpy._core import umath

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import (
    Backend,
    DType,
    Kind,
    Node,
    NodeKind,
    Shape,
    View,
    inverse,
    laid_out,
    shape_of_all,
)
from tapetensor.compiler.trace.operations import cast_to
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.pictures import users_place

# Nodes of these kinds may be merged with equal ones, or left out when nobody reads them.
_PURE = frozenset(
    {Kind.ELEMENTWISE, Kind.REDUCE, Kind.MATMUL, Kind.VIEW, Kind.CALL, Kind.PART, Kind.CONSTANT}
)
# A result of at most so many elements is computed once, while it is captured.
_SMALL = 65_536


class Program:
    """The captured nodes in the order in which they ran, all in the thread that began it.

    For exporters, which know ops better than their parts, it prefers steps: a whole op is one node.

    Attributes:
        groups: the groups of parameters of the optimizers that came in.
        ignored: the errors of floating-point numbers that the function has numpy not warn of.
        checkpoint: the number of the checkpoint that is captured; 0 outside of one.
    """

    def __init__(self, backend: Backend = "numpy", prefers_steps: bool = False) -> None:
        self.backend = backend
        self.prefers_steps = prefers_steps
        self.thread = get_ident()
        self._errors = None if errors_raise() else _state_of_errors()
        self._answers = _answers()
        self.ignored: set[str] = set()
        self.nodes: list[Node] = []
        self.groups: list[Any] = []
        self.checkpoint = self.checkpoints = 0
        self._known: dict[Hashable, Node] = {}
        # Constants are told apart by identity, so they have to stay alive.
        self._kept: list[Any] = []
        # Each array of the user's by its id, with a copy of what it held.
        self._snapshots: dict[int, tuple[Array, Array]] = {}

    def check_thread(self) -> None:
        """Refuse another thread, which found a tracer in something that both threads use."""
        if get_ident() != self.thread:
            raise trace_error(
                "what is used here is being traced in another thread, for a compiled function's "
                "first call of a kind, and has no values meanwhile; make that call before other "
                "threads begin, or give each thread a model of its own (a function that is "
                "compiled works in one thread)"
            )

    def add(
        self,
        kind: NodeKind,
        function: Any,
        args: tuple[Any, ...],
        shape: Shape,
        dtype: DType,
        detail: Any = None,
        label: str = "",
    ) -> Node:
        """Add a node, or return the one that computes the same."""
        if get_ident() != self.thread:
            self.check_thread()
        if self._errors is None or self._errors is not _state_of_errors():
            if errors_raise():
                raise trace_error(
                    "np.errstate, or np.seterr, changes within the function what raises an error, "
                    "which a replay would not repeat; put it around the call"
                )
            answers = _answers().items()
            before = self._answers
            self.ignored |= {one for one, answer in answers if answer == "ignore" != before[one]}
        if dtype.hasobject and kind is not Kind.INPUT:
            raise trace_error(
                "an array of Python objects cannot be traced; make numbers of them outside"
            )
        key = None
        if kind in _PURE:
            key = kind, function, _key(args, self._kept), dtype, _key(detail, self._kept)
            try:
                known = self._known.get(key)
            except TypeError:
                # Something in it cannot be compared.
                key = known = None
            if known is not None:
                return known
        place = users_place()
        node = Node(kind, function, args, shape, dtype, detail, len(self.nodes), label, place)
        node.checkpoint = self.checkpoint
        self.nodes.append(node)
        if key is not None:
            self._known[key] = node
        return node

    def constant(self, value: Any, dtype: DType | None = None) -> Node:
        """Add a known array, or a number of a dtype."""
        array = np.asarray(value, dtype)
        # Numbers are told apart by value: 0.5 and 0.5 are one constant.
        key = None if array.ndim else (Kind.CONSTANT, array.dtype, array.tobytes())
        node = self._known.get(key)
        if node is None:
            node = self.add(Kind.CONSTANT, None, (), array.shape, array.dtype, array)
            if key is not None:
                self._known[key] = node
        return node

    def snapshot(self, array: Array) -> Array:
        """Return a copy of the present elements of an array, which may be written to later."""
        if not array.flags.writeable:
            return array
        known = self._snapshots.get(id(array))
        if known is None or known[1].tobytes() != array.tobytes():
            known = self._snapshots[id(array)] = array, array.copy()
        return known[1]

    def elementwise(self, function: Any, operands: tuple[Node, ...], dtype: DType) -> Node:
        """Add a function of elements."""
        shape = shape_of_all(operands)
        orders = {_order_of(one) for one in operands if one.shape == shape != ()}
        order = orders.pop() if len(orders) == 1 else None
        if order is not None:
            return self._reordered(function, operands, order, shape, dtype)
        if {one.kind for one in operands} == {Kind.CONSTANT} and math.prod(shape) <= _SMALL:
            with np.errstate(all="ignore"):
                folded = function(*[operand.detail for operand in operands])
            return self.constant(np.asarray(folded, dtype, order="C"))
        return self.add(Kind.ELEMENTWISE, function, operands, shape, dtype)

    def reduce(self, ufunc: np.ufunc, operand: Node, axes: Shape, dtype: DType) -> Node:
        """Add a reduction over `axes`, which stay with size 1."""
        shape = tuple([1 if axis in axes else size for axis, size in enumerate(operand.shape)])
        if operand.kind is Kind.CONSTANT and operand.size <= _SMALL:
            with np.errstate(all="ignore"):
                known = ufunc.reduce(operand.detail, axes, dtype, keepdims=True)
            return self.constant(known)
        return self.add(Kind.REDUCE, ufunc, (operand,), shape, dtype, (axes, False))

    def _reordered(
        self, function: Any, operands: tuple[Node, ...], order: Shape, shape: Shape, dtype: DType
    ) -> Node:
        """Add a function of elements, on operands with their axes in the order of their memory.

        `order` is how the axes of that memory are seen; the result is seen the same way. To read
        memory across takes several times as long.
        """
        back = inverse(order)
        turned: list[Node] = []
        for operand in operands:
            if operand.shape == ():
                turned.append(operand)
                continue
            full = (*[1] * (len(shape) - len(operand.shape)), *operand.shape)
            spread = self.view(View("reshape", full), operand, full)
            inner = tuple([full[axis] for axis in back])
            turned.append(self.view(View("transpose", back), spread, inner))
        node = self.elementwise(function, tuple(turned), dtype)
        return self.view(View("transpose", order), node, shape)

    def view(self, function: View, operand: Node, shape: Shape) -> Node:
        """Add a view: the same elements under another shape or order."""
        if function.is_identity(operand):
            return operand
        if operand.kind is Kind.CONSTANT:
            return self.constant(function(operand.detail))
        if operand.kind is Kind.VIEW:
            (base,) = operand.args
            merged = function.after(operand.function)
            if merged is not None:
                return self.view(merged, base, shape)
        return self.add(Kind.VIEW, function, (operand,), shape, operand.dtype)

    def write(
        self, whole: Node, views: Iterable[tuple[View, Shape]], function: Any, args: Iterable[Any]
    ) -> Node:
        """Add what becomes of an array when a function writes into what some views show of it.

        The array itself stays as it is: a copy of it, with a detail of its own that keeps it from
        being merged with another, is written into. Where nobody reads the array later, the copy
        lies in its memory, and costs nothing.
        """
        cast, own = cast_to(whole.dtype), object()
        whole = part = self.add(Kind.ELEMENTWISE, cast, (whole,), whole.shape, whole.dtype, own)
        for view, shape in views:
            part = self.view(view, part, shape)
        return self.add(Kind.WRITE, function, (whole, part, *args), whole.shape, whole.dtype)

    def broadcast(self, operand: Node, shape: Shape) -> Node:
        """Add `operand` repeated to `shape`."""
        if operand.shape == shape:
            return operand
        return self.view(View("broadcast_to", shape), operand, shape)


def _order_of(operand: Node) -> Shape | None:
    """Return the order in which the axes of memory are seen, where that is another."""
    is_turned = operand.kind is Kind.VIEW and operand.function.name == "transpose"
    if not is_turned or laid_out(operand).flags.c_contiguous:
        return None
    order: Shape = operand.function.parameter
    return order


# Within np.errstate it gives another object. To ask np.geterr would take 20 times as long.
_error_state: Any = getattr(umath, "_extobj_contextvar", None)
_USUAL_STATE: Any = None


def _state_of_errors() -> Any:
    """Return the object that says how numpy answers errors; None if it says it in another way."""
    return None if _error_state is None else _error_state.get()


def _answers() -> dict[str, object]:
    return dict(np.geterr().items())


def errors_raise() -> bool:
    """Tell whether errors of floating-point numbers raise, or call a function."""
    if _USUAL_STATE is not None and _state_of_errors() is _USUAL_STATE:
        return False
    return any(answer in ("raise", "call") for answer in np.geterr().values())


# Where errors raise from the start, that is no usual state.
if not errors_raise():
    _USUAL_STATE = _state_of_errors()


def _key(value: Any, kept: list[Any]) -> Hashable:
    """Return a key that equal computations share; it has no hash where that cannot be told."""
    cls = value.__class__
    if cls is Node or value is None:
        return value  # type: ignore[no-any-return]  # its hash is by identity
    if cls is np.ndarray:
        kept.append(value)
        return (id(value),)
    if cls is tuple or isinstance(value, tuple | list):
        # Most are nodes, for which a call would take longer than all that it does.
        return (cls, *[one if one.__class__ is Node else _key(one, kept) for one in value])
    if isinstance(value, dict):
        return _key(tuple(value.items()), kept)
    if cls is slice:
        return _key((slice, value.start, value.stop, value.step), kept)
    if isinstance(value, float | complex | np.generic):
        # 0.0 and -0.0 are equal, and a NaN is not equal to itself; the spelling decides.
        return (cls, repr(value))
    return (cls, value)
