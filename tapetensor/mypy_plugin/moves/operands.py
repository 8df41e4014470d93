"""The operands and arguments of calls: which own a tape, and the places that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mypy.nodes import (
    Expression,
    IndexExpr,
    IntExpr,
    ListExpr,
    NameExpr,
    OpExpr,
    SliceExpr,
    StarExpr,
    TupleExpr,
)
from mypy.types import NoneType, Type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import members
from tapetensor.mypy_plugin.moves.contents import cut_out, wholes
from tapetensor.mypy_plugin.moves.keys import EACH, Key, item_of, place, replaced
from tapetensor.mypy_plugin.moves.known import Part
from tapetensor.mypy_plugin.moves.lasting import place_of
from tapetensor.mypy_plugin.moves.owners import holds_owners, is_container, is_open, owns
from tapetensor.mypy_plugin.moves.sequences import listed
from tapetensor.mypy_plugin.moves.steps import Place, Steps


class Operands:
    """Answers for the expressions of one function, or of the top level of a module.

    Args:
        checker: that of mypy.
        steps: the function; its types may not be known yet.
    """

    def __init__(self, checker: Any, steps: Steps) -> None:
        self._checker = checker
        self.steps = steps

    def type_of(self, expression: Expression) -> Type | None:
        """Return the type of an expression, worked out from declarations if mypy has not yet."""
        found = flow.type_of(self._checker, expression)
        if found is not None:
            return listed(self._checker, found)
        key = place(expression)
        return None if key is None else self.type_at(key)

    def type_at(self, key: Key) -> Type | None:
        """Return the type of what a key names, where it is not None."""
        declared = self.steps.effects.type_at(key)
        held = [one for one in members(declared) if not isinstance(one, NoneType)]
        return held[0] if len(held) == 1 else declared

    def owns(self, type_: Type | None) -> bool:
        """Tell whether a value owns a tape, as far as the function does not ask for that."""
        return owns(type_) and not (self.steps.graph.asks_for_tape and is_open(type_))

    def places(self, parts: Iterable[Part]) -> list[Place]:
        """Return the places of parts that have one."""
        found = []
        for one in parts:
            spelled, key = place(one.expression), self.place_of(one.expression)
            if spelled is not None and key is not None:
                each = Place(item_of(spelled, EACH), item_of(key, EACH))
                found.append(each if one.each else Place(spelled, key))
        return found

    def place_of(self, expression: Expression) -> Key | None:
        """Return the key of what an expression names; None if it names nothing that lasts."""
        if flow.type_of(self._checker, expression) is not None or isinstance(expression, NameExpr):
            return place_of(self._checker, expression)
        key = place(expression)
        return None if key is None else self.steps.aliases.canonical(key)

    def owning_parts(self, expression: Expression, type_: Type | None) -> Iterator[Part]:
        """Yield what owns a tape in an argument: itself, or what a container holds."""
        if isinstance(expression, TupleExpr | ListExpr):
            for item in expression.items:
                yield from self.owning_parts(item, self.type_of(item))
        elif (
            isinstance(expression, IndexExpr)
            and isinstance(expression.index, SliceExpr)
            and (numbers := cut_out(expression.index))
        ):
            for index in numbers:
                one_of_them = IndexExpr(expression.base, IntExpr(index))
                yield from self.owning_parts(one_of_them, self.type_of(one_of_them))
        elif isinstance(expression, OpExpr) and isinstance(expression.left, ListExpr):
            # [x] * 2 + items: a display again.
            number = expression.right
            times = number.value if isinstance(number, IntExpr) and expression.op == "*" else 1
            yield from [*self.owning_parts(expression.left, None)] * min(times, 2)
            if expression.op == "+":
                yield from self.owning_parts(number, self.type_of(number))
        elif isinstance(expression, StarExpr) or not self.owns(type_):
            for one in wholes(expression):
                found = self.type_of(one)
                if is_container(found) and holds_owners(found):
                    yield Part(one, found, each=True)
        else:
            yield Part(expression, type_)

    def owners_in(self, given: list[Expression]) -> list[Place]:
        """Return the places of what owns a tape in arguments."""
        return self.places(
            part for one in given for part in self.owning_parts(one, self.type_of(one))
        )

    def place_at(self, path: Key, me: Key, given: Expression) -> Iterator[Place]:
        """Yield the part of an argument to which a path leads, if that owns a tape."""
        spelled, key = place(given), self.place_of(given)
        at = None if spelled is None else replaced(path, me, spelled)
        moved = None if key is None else replaced(path, me, key)
        if at is not None and moved is not None and self.owns(self.type_at(moved)):
            yield Place(at, moved)

    def parts_at(self, display: ListExpr | TupleExpr, path: Key, me: Key) -> Iterator[Part]:
        """Yield what stands in a display where a path from a parameter leads."""
        for number, item in enumerate(display.items):
            if path in (item_of(me, EACH), item_of(me, number)) and self.owns(self.type_of(item)):
                yield Part(item, None)
