"""Views that numpy gives and a program has none of: what they show is read anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tapetensor.compiler.trace.node import Keywords, Kind, Node
from tapetensor.compiler.trace.operations import copied, read_index, write_index

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer


class Part(NamedTuple):
    """Where a part of an array comes from, such as a row at an index that is computed.

    Attributes:
        array: what it is a part of.
        view: what gives numpy's view of it.
        args: the further arguments of `view`, as nodes.
    """

    array: ArrayTracer
    view: Callable[..., Any]
    args: tuple[Any, ...]

    def reread(self, like: Node) -> Node:
        """Return the elements as they are now."""
        args = self.array.ordered(), *self.args, Keywords()
        return self.array.program.add(Kind.CALL, copied(self.view), args, like.shape, like.dtype)

    def is_at(self, array: ArrayTracer, index: Any) -> bool:
        """Tell whether it is what stands at an index of an array."""
        return self.array is array and self.view is read_index and self.args == (index,)

    def hand_on(self, node: Node) -> None:
        """Write what was written into the part into the array."""
        self.array.write(write_index, *self.args, node)
