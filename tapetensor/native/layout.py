"""How the arrays of a group are seen by its loops: as rows, and elements in a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Kind, Node, Shape


class Form(Enum):
    """The part of an array that one turn of a loop over rows sees."""

    WIDE = auto()
    """A row of several elements."""
    ROW = auto()
    """One element."""
    COMMON = auto()
    """A row of several elements, the same in every turn."""
    SCALAR = auto()
    """One element, the same in every turn."""


@dataclass(frozen=True)
class Seen:
    """How the loops see an array.

    Args:
        form: what one turn sees.
        shape: the shape under which the loops get the array.
        row: the row of the array that belongs to row ``i``: "i", or an expression of where the
            share of the rows begins, ``begin``, of ``i`` in it, of the count of all ``rows`` and of
            the count of its own rows, ``own``.
        is_apart: whether its rows do not lie end to end; where they begin is then an array, too.
    """

    form: Form
    shape: Shape
    row: str = "i"
    is_apart: bool = False


class Total(Enum):
    """The kinds of results of a reduction."""

    ROW = auto()
    """A number for every row."""
    COLUMNS = auto()
    """A row."""
    ALL = auto()
    """A number."""


@dataclass
class Layout:
    """The leading axes of all steps of a group as one, its rows, and the other axes as another.

    Args:
        lead: the sizes of the leading axes.
        rank: the number of axes of the step that has most.
    """

    lead: Shape
    rank: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.lead)

    def see(self, node: Node, reader: Node) -> Seen | None:
        """Return how the loops see what a step computes or reads; None where they cannot."""
        shape = self._aligned(node.shape, len(reader.shape))
        split = len(self.lead)
        lead, inner = shape[:split], shape[split:]
        width = math.prod(inner)
        if all(size == 1 for size in lead) and self.rows > 1:
            return Seen(Form.SCALAR, ()) if width == 1 else Seen(Form.COMMON, (width,))
        own = math.prod(lead)
        row = "i"
        if lead != self.lead:
            places = [place for place in range(split) if lead[place] != self.lead[place]]
            if any(lead[place] != 1 for place in places):
                return None
            if all(size == 1 for size in lead[: places[-1]]):
                row = "(begin + i) % own"
            elif all(size == 1 for size in lead[places[0] :]):
                row = "(begin + i) // (rows // own)"
            else:
                return None
        return Seen(Form.ROW, (own,), row) if width == 1 else Seen(Form.WIDE, (own, width), row)

    def inner(self, node: Node, reader: Node) -> Shape:
        """Return the sizes of the axes that do not lead of what a step computes or reads."""
        return self._aligned(node.shape, len(reader.shape))[len(self.lead) :]

    def total(self, node: Node) -> Total | None:
        """Return what a reduction leaves; None where the loops have no such reduction."""
        (first, *others) = node.args
        shape = self._aligned(first.shape, len(first.shape))
        axes = {axis for axis in node.detail[0] if shape[axis] != 1}
        split = len(self.lead)
        leading = {axis for axis in range(split) if shape[axis] != 1}
        others_axes = {axis for axis in range(split, self.rank) if shape[axis] != 1}
        if any(one.shape != first.shape for one in others) or shape[:split] != self.lead:
            return None
        if axes == others_axes:
            return Total.ROW
        if axes == leading:
            return Total.COLUMNS if others_axes else Total.ALL
        return Total.ALL if axes == leading | others_axes else None

    def _aligned(self, shape: Shape, rank: int) -> Shape:
        """Return a shape of the rank of the group: rows stand first, in all its steps."""
        return (1,) * (rank - len(shape)) + shape + (1,) * (self.rank - rank)


def layout_of(group: Group, *, is_apart: bool = False) -> Layout | None:
    """Return the layout with the longest loops inside; None if there is none that fits.

    Args:
        group: the steps.
        is_apart: whether rows of an operand do not lie end to end, so that no loop runs over all.
    """
    steps = [node for node in group.nodes if node.kind is not Kind.VIEW]
    # A reduction has the rank of what it reduces.
    rank = max([len(node.shape) for node in group.nodes])
    if group.rows < 2:
        return None
    shapes = [
        (one.shape + (1,) * (rank - len(one.shape)))
        for step in steps
        for one in ((step,) if step.kind is Kind.ELEMENTWISE else step.args)
    ]
    full = tuple([max(sizes) for sizes in zip(*shapes, strict=True)])
    for split in range(rank - is_apart, 0, -1):
        layout = Layout(full[:split], rank)
        if _fits(layout, group, steps, shapes):
            return layout
    return None


def _fits(layout: Layout, group: Group, steps: list[Node], shapes: list[Shape]) -> bool:
    split = len(layout.lead)
    if any(shape[:split] != layout.lead for shape in shapes):
        return False
    is_flat = split == layout.rank
    for step in steps:
        for parent in step.parents():
            seen = layout.see(parent, step)
            # Element by element, another row would have to be looked up each time.
            if seen is None or (is_flat and seen.row != "i"):
                return False
            # Of a row, an operand has all elements that its step has, or one.
            is_row = seen.form in (Form.WIDE, Form.COMMON) and step.kind is Kind.ELEMENTWISE
            if is_row and layout.inner(parent, step) != layout.inner(step, step):
                return False
            if parent in group and seen.row != "i":
                return False
        if step.kind is Kind.REDUCE:
            total = layout.total(step)
            if total is None or (step in group.totals) is (total is Total.ROW):
                return False
            if is_flat and total is Total.ROW:
                return False
    return True
