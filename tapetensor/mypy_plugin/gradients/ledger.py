"""What ops do to values, and which of that is worth a report once a gradient is asked for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from mypy.errorcodes import ErrorCode
from mypy.nodes import Context, Expression, FuncDef, FuncItem, MypyFile
from mypy.server.subexpr import get_subexpressions

from tapetensor.mypy_plugin.gradients.fields import is_model
from tapetensor.mypy_plugin.gradients.places import Place
from tapetensor.mypy_plugin.gradients.values import (
    Inside,
    Lent,
    Lost,
    Origin,
    Ownership,
    Value,
    flattened,
    together,
)
from tapetensor.mypy_plugin.moves.keys import asks_for_tape, key_of, spelled


class Operand(NamedTuple):
    """An operand of an op, and where it is written."""

    value: Value
    expression: Expression | None = None


class Call(NamedTuple):
    """A function that is being looked into.

    Attributes:
        function: the function.
        node: the call, where the function does not stand in the code that is looked at.
        asks: whether it asks for the tape of a tensor.
    """

    function: FuncItem
    node: Context | None
    asks: bool


class Ledger:
    """Notes what is lost on the ways of gradients, and decides what of it is missed.

    Args:
        unit: an outermost function, or the top level of a module.
    """

    def __init__(self, unit: FuncItem | MypyFile) -> None:
        self.unit = unit
        # The module whose method is looked at.
        self.module: Place | None = None
        self.calls: list[Call] = []
        # The calls and passes of loops that led here: tells makings of the same line apart.
        self.trail: tuple[Hashable, ...] = ()
        self.lost: dict[Context, Lost] = {}
        # What is to be said where an optimizer steps, or a value is computed in vain.
        self.said: dict[Context, tuple[ErrorCode, str]] = {}
        self._lent: dict[Lent, None] = {}
        self._used: set[Hashable] = set()
        # Tensors that are traced themselves: what is computed of them apart is a constant.
        self._inputs: set[Place] = set()

    def unused(self) -> list[Lent]:
        """Return the handles whose owners are dropped."""
        return [one for one in self._lent if one.token not in self._used]

    def use(self, value: Value) -> None:
        """Take note that whatever owns a tape in a value is consumed, or kept for later."""
        for one in flattened(value):
            self._used.update(one.tokens)

    def keep(self, handle: Value) -> None:
        """Take note that the gradient of a handle is asked for, and none further back."""
        self._used.update(one.token for one in handle.noted if isinstance(one, Lent))

    def at(self, node: Context) -> Context:
        """Return where, in the code that is looked at, something happens."""
        return next((one.node for one in self.calls if one.node is not None), node)

    def inside(self, node: Context) -> Inside:
        """Return the functions that are called up to an op, and the place within each."""
        entered = [one for one in self.calls if one.node is not None]
        nodes = [*(one.node for one in entered[1:] if one.node is not None), node]
        return tuple((one.function, at) for one, at in zip(entered, nodes, strict=False))

    def operate(self, node: Context, op: str, operands: Sequence[Operand]) -> Value:
        """Return the result of an op with a derivative by all of its operands."""
        values = [one.value for one in operands]
        owners = [one for one in operands if one.value.owns]
        if not owners:
            origins = together(self._origins(one, f'"{op}"') for one in values)
            return Value(is_tensor=True, origins=origins)
        for one in owners:
            self.use(one.value)
        is_owned = any(one.value.ownership == "owned" for one in owners)
        state: Ownership = "owned" if is_owned else "open"
        lost: list[Lost] = []
        if not self._is_decided(state):
            tape, note = self._tape(owners[0])
            lost = [
                self._event(node, op, origin, tape, note)
                for one in values
                if not one.owns
                for origin in one.origins
            ]
        return Value(
            is_tensor=True,
            ownership=state,
            met=together(self._met(one) for one in values),
            noted=together([*(one.noted for one in values), lost]),
            tokens=((*self.trail, node),),
        )

    def trace(self, node: Context, op: str, value: Value, state: Ownership) -> Value:
        """Return a handle of a plain value that owns a tape."""
        if value.place is not None:
            self._inputs.add(value.place)
        origins = [one for one in value.origins if one.place.model is not None]
        lost = [self._event(node, op, one, "", "", traced=True) for one in origins]
        return Value(
            is_tensor=True,
            name=value.name,
            ownership=state,
            met=self._met(value),
            noted=tuple(lost),
        )

    def lend(self, node: Context, op: str, value: Value, name: str) -> Value:
        """Return a second handle of a value."""
        if not value.owns:
            return value
        at, inside = self.at(node), self.inside(node)
        handles = tuple(Lent(at, op, token, name, inside) for token in value.tokens)
        return replace(value, tokens=(), noted=handles)

    def ask(self, value: Value, asked: Sequence[Place] | None) -> None:
        """Take note that gradients go back from a value, or may do so somewhere else.

        Args:
            value: where they start.
            asked: the parameters and modules whose gradients are asked for; None if unknown.
        """
        self.use(value)
        for one in flattened(value):
            for noted in one.noted:
                if isinstance(noted, Lent):
                    self._lent.setdefault(noted)
                elif self._is_missed(noted, one.met, asked):
                    self.lost.setdefault(noted.node, noted)

    def _is_missed(self, lost: Lost, met: tuple[Place, ...], asked: Sequence[Place] | None) -> bool:
        place = lost.origin.place
        if place.model is None and place in self._inputs:
            return False
        if asked is not None:
            return any(place.meets(one) for one in asked)
        if any(place.meets(one) for one in met):
            return True
        if lost.traced and lost.origin.ran:
            # So does what trains a part of a model on the features of another, which is frozen.
            return False
        if self.module is not None and place.root == self.module.root and not place.home:
            return True
        return not lost.origin.ran and any(place.shares_model(one) for one in met)

    def _met(self, value: Value) -> tuple[Place, ...]:
        if value.place is not None and (value.is_parameter or is_model(value.type)):
            return (*value.met, value.place, *value.parts)
        return value.met

    def _origins(self, value: Value, op: str) -> tuple[Origin, ...]:
        if value.place is None:
            return value.origins
        why = f"{op} on a plain value"
        name = value.name or "the parameter"
        cure, constant = f"{name}.retaped({{tape}})", f"{name}.detach()"
        return (Origin(value.place, name, why, cure, constant, ran=False),)

    def _is_decided(self, state: Ownership) -> bool:
        """Tell whether the code asks for the tape: it may be that no owner comes here."""
        return any(one.asks and (one.node is not None or state == "open") for one in self.calls)

    def _event(
        self, node: Context, op: str, origin: Origin, tape: str, note: str, *, traced: bool = False
    ) -> Lost:
        at, by = self.at(node), ""
        if at is not node:
            tape, note, by = "", "", f' by "{op}" on line {node.line}'
            function = self.inside(node)[0][0]
            op = function.name if isinstance(function, FuncDef) else op
        return Lost(at, op, origin, tape or "OwnedTape", note, by, self.inside(node), traced)

    def _tape(self, owner: Operand) -> tuple[str, str]:
        """Return how the type of a tape is spelled, and what is to be said of that."""
        key = key_of(owner.expression)
        if key is not None:
            return f"{spelled(key)}.tape_type", ""
        if owner.value.ownership == "owned":
            return "OwnedTape", ""
        return "x.tape_type", ", x being the other operand"


def asks(function: FuncItem) -> bool:
    """Tell whether a function asks a tensor if it owns a tape."""
    return any(map(asks_for_tape, get_subexpressions(function.body)))
