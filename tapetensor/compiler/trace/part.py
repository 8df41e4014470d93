"""What an array shows of another one, in the same memory or, where a program cannot, read anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import Keywords, Kind, Node, replaced
from tapetensor.compiler.trace.operations import copied, read_index, write_index, write_part
from tapetensor.compiler.trace.view import Memory, View

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer


class Part(NamedTuple):
    """Where a part of an array comes from.

    Attributes:
        array: what it is a part of.
        view: what gives numpy's view of it: a `View`, or a function that a program has no view for,
            such as that of a row at an index that is computed.
        args: the further arguments of `view`, as nodes.
    """

    array: ArrayTracer
    view: Callable[..., Any]
    args: tuple[Any, ...] = ()

    @property
    def is_view(self) -> bool:
        """Whether a program has it in the memory of the array."""
        return isinstance(self.view, View)

    def laid_out(self, *memory: Memory) -> Array:
        """Return an array that lies in memory as numpy's view does: all indices lie alike."""
        args = replaced(self.args, _zero)
        seen: Array = self.view(self.array.laid_out(*memory), *args)
        return seen

    def reread(self, like: Node) -> Node:
        """Return the elements as they are now."""
        if isinstance(self.view, View):
            return self.array.program.view(self.view, self.array.node, like.shape)
        args = self.array.ordered(), *self.args, Keywords()
        return self.array.program.add(Kind.CALL, copied(self.view), args, like.shape, like.dtype)

    def is_of(self, array: ArrayTracer, view: Callable[..., Any], *args: Any) -> bool:
        """Tell whether it is what `view` shows of an array."""
        return self.array is array and self.view is view and self.args == args

    def hand_on(self, node: Node) -> None:
        """Write what was written into the part into the array."""
        write = write_index if self.view is read_index else write_part(self.view)
        self.array.write(write, *self.args, node)


def _zero(argument: Any) -> Any:
    """Return what numpy has in the place of an argument, with a zero for what is computed."""
    return np.zeros((), argument.dtype)[()] if isinstance(argument, Node) else argument
