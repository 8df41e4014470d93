"""The layout of values: at which place, and in which order of axes, nobody has to copy them."""

from __future__ import annotations

from tapetensor.compiler.plan.groups import Unit, nodes_of
from tapetensor.compiler.plan.memory import Memory
from tapetensor.compiler.plan.storage import TAKES_OUT, source_of
from tapetensor.compiler.trace.node import Kind, Node, Shape
from tapetensor.compiler.trace.operations import writes_anywhere

# Steps of these kinds can write to memory with gaps, or in another order of axes.
_WITH_ORDER = frozenset({Kind.ELEMENTWISE, Kind.MATMUL})
# Steps of these kinds read one order of axes as well as another.
_READERS = _WITH_ORDER | {Kind.VIEW, Kind.WRITE}


def lay_out(memory: Memory, units: list[Unit]) -> None:
    """Give values their places among gradients and in larger arrays, and their orders of axes."""
    for unit in units:
        if isinstance(unit, Node) and unit.kind is Kind.UPDATE:
            _lay_end_to_end(unit, memory)
    for unit in units:
        if isinstance(unit, Node) and unit.kind is Kind.WRITE and unit.detail is not None:
            _lay_in_place(unit, memory)
    for unit in units:
        for node in nodes_of(unit):
            source = source_of(node)
            if source is not None:
                _save_copy(source, memory)


def _lay_end_to_end(update: Node, memory: Memory) -> None:
    """Have gradients lie where the step of the optimizer reads them."""
    places = [memory.storage(gradient) for gradient in update.args]
    for number, (gradient, storage) in enumerate(zip(update.args, places, strict=True)):
        root = storage.owner
        is_in_order = gradient is root or (
            gradient.kind is Kind.VIEW
            and gradient.function.name == "reshape"
            and gradient.args[0] is root
        )
        if (
            is_in_order
            and root.kind in TAKES_OUT
            and places.count(storage) == 1
            and not storage.escapes
            # The optimizer's step may write new values over it.
            and storage.last_use == memory.positions[update]
        ):
            storage.gradient = update, number


def _lay_in_place(write: Node, memory: Memory) -> None:
    """Have a part of a larger array lie where a write would copy it to."""
    before, part, value = write.args
    if not isinstance(value, Node) or value.shape != part.shape:
        return
    made, reader, storage = value, write, memory.storage(write)
    if value.kind is Kind.VIEW and value.function.name == "transpose":
        (made,), reader = value.args, value
    positions, whole = memory.positions, storage.owner
    if (
        made.kind in _WITH_ORDER
        and writes_anywhere(made)
        and memory.readers(value) == [write]
        and memory.readers(made) == [reader]
        and value.dtype == write.dtype
        and memory.storage(value).is_free
        # What is there before comes first, and so does the memory of an array that leaves.
        and (write.detail or positions[before] < positions[made])
        and (not storage.escapes or positions[whole] < positions[made])
    ):
        memory.storage(value).copied_by = write


def _save_copy(transposed: Node, memory: Memory) -> None:
    """Have a value lie in transposed order that is transposed, and then copied."""
    if transposed.kind is not Kind.VIEW or transposed.function.name != "transpose":
        return
    (node,) = transposed.args
    while node.kind is Kind.WRITE:
        node = node.args[0]
    if node.kind in _WITH_ORDER:
        _set_order(node, transposed.function.parameter, memory)


def _set_order(node: Node, order: Shape, memory: Memory) -> None:
    """Give an order to a value, and to operands of it that nobody else reads.

    Never one in which a sum is added up in another order than numpy's: the BLAS multiplies matrices
    otherwise when they, or their product, lie transposed.
    """
    waiting = [node]
    while waiting:
        node = waiting.pop()
        storage = memory.storage(node)
        if (
            storage.order is not None
            or (node.kind is Kind.MATMUL and not _keeps_rows(order))
            or not storage.is_free
            or not writes_anywhere(node)
            or not _suits_readers(node, order, memory)
        ):
            continue
        storage.order = order
        if node.kind is Kind.ELEMENTWISE:
            waiting += [
                operand
                for operand in reversed(node.args)
                if operand.kind in _WITH_ORDER
                and operand.shape == node.shape
                and set(memory.readers(operand)) == {node}
            ]


def _suits_readers(node: Node, order: Shape, memory: Memory) -> bool:
    waiting = [*memory.readers(node)]
    while waiting:
        reader = waiting.pop()
        is_reshape = reader.kind is Kind.VIEW and reader.function.name == "reshape"
        is_turned = reader.kind is Kind.MATMUL and not _keeps_rows(order)
        if reader.kind not in _READERS or is_reshape or is_turned:
            return False
        if reader.kind in (Kind.VIEW, Kind.WRITE):
            waiting += memory.readers(reader)
    return True


def _keeps_rows(order: Shape) -> bool:
    """Tell whether the elements of a row still lie side by side."""
    return order[-1] == len(order) - 1
