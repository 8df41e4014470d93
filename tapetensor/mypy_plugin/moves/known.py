"""What is worked out of the functions of a file, and the parts of calls that it is about."""

from __future__ import annotations

from typing import NamedTuple

from mypy.nodes import Expression, FuncItem
from mypy.types import Type

from tapetensor.mypy_plugin.moves.keys import Key
from tapetensor.mypy_plugin.moves.steps import Steps


class Part(NamedTuple):
    """An operand or argument of a call.

    Attributes:
        expression: the argument.
        type: its type.
        each: whether the items of it are meant.
    """

    expression: Expression
    type: Type | None
    each: bool = False


class Known:
    """What is known of the functions of a file, or what holds while it is worked out.

    Whoever calls them reads it here: otherwise it would be worked out again for every function.

    Attributes:
        moved: what a function takes the tape of and what it leaves spent in the place of what it
            was called with, and whether mypy had checked the function by then.
        borrowed: whether it leaves an argument where it is, likewise.
        returned: which parts of what it returns are which of its parameters, likewise.
        spent: which parts of what it returns are spent by then, likewise.
        named: the names that the file speaks of, if they were asked for.
        steps: its graph, and what is done at its points.
    """

    def __init__(self) -> None:
        self.moved: dict[FuncItem, tuple[tuple[list[Key], list[Key]], bool]] = {}
        self.borrowed: dict[tuple[FuncItem, int, bool], tuple[bool, bool]] = {}
        self.returned: dict[FuncItem, tuple[list[tuple[Key, Key]], bool]] = {}
        self.spent: dict[FuncItem, tuple[list[Key], bool]] = {}
        self.named: set[str] = set()
        self.steps: dict[FuncItem, Steps] = {}
