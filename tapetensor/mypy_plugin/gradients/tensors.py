"""What ops and layers make of tensors, and where gradients go back from."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import Final, NamedTuple

from mypy.nodes import (
    ArgKind,
    CallExpr,
    Context,
    Expression,
    FuncItem,
    MemberExpr,
    MypyFile,
    RefExpr,
    TypeInfo,
)
from mypy.types import Instance

from tapetensor.mypy_plugin.codes import MODULE_GRADIENT
from tapetensor.mypy_plugin.gradients.expressions import Expressions
from tapetensor.mypy_plugin.gradients.fields import (
    has_parameters,
    is_of_library,
)
from tapetensor.mypy_plugin.gradients.ledger import Operand
from tapetensor.mypy_plugin.gradients.places import Place
from tapetensor.mypy_plugin.gradients.values import (
    NOTHING,
    Origin,
    Ownership,
    Value,
    flattened,
    together,
)
from tapetensor.mypy_plugin.moves.borrowing import BORROWS, READS
from tapetensor.mypy_plugin.moves.keys import key_of, spelled
from tapetensor.mypy_plugin.names import (
    BUILD,
    CREATED,
    NONE_TAPE,
    OWNED_TAPE,
    op_called,
)
from tapetensor.mypy_plugin.symbols import class_of

_GRADIENTS: Final = "tapetensor.tape.gradients.Gradients"
_NO_PARAMETER: Final = "no parameter"


class Argument(NamedTuple):
    """An argument of a call."""

    kind: ArgKind
    name: str | None
    operand: Operand

    @property
    def value(self) -> Value:
        """What it is."""
        return self.operand.value


class Tensors(Expressions, ABC):
    """Works out what methods of tensors return, and layers that are not looked into."""

    def __init__(self, unit: FuncItem | MypyFile, tree: MypyFile) -> None:
        super().__init__(unit, tree)
        # Backward passes for all parameters: by the gradients, where they started from.
        self.pending: dict[object, Value] = {}

    def step(self, call: CallExpr, optimizer: Value, grads: Value) -> None:
        """Take note that an optimizer asks gradients for those of its parameters."""
        place = optimizer.place
        asked = [one.place for one in optimizer.items or () if one.place is not None]
        if place is not None and place.model is not None:
            asked += [place, *optimizer.parts]
        if asked or optimizer.items is not None:
            for token in grads.tokens:
                start = self.pending.pop(token, None)
                if start is not None:
                    self.ask(start, asked)
        are_apart = not any(one.meets(other) for one in asked for other in grads.parts)
        if asked and grads.parts and are_apart and all(map(_is_made_here, [*asked, *grads.parts])):
            kind = optimizer.type.type.name if isinstance(optimizer.type, Instance) else "step"
            self.said[self.at(call)] = (
                MODULE_GRADIENT,
                f"{kind}.step: these are the gradients by {grads.name}, of which {kind} updates "
                "nothing: none of its own parameters gets one; write backward(wrt=...) with the "
                f"model that {kind} was made for",
            )

    def tensor_method(
        self, call: CallExpr, receiver: Operand, name: str, arguments: list[Argument]
    ) -> Value:
        """Return what a method of a tensor returns."""
        value = receiver.value
        first = arguments[0].value if arguments else NOTHING
        match name:
            case "trace" | "traced":
                return self.trace(call, name, value, "owned")
            case "retaped":
                return self._retaped(call, receiver, arguments)
            case "with_empty_tape":
                return self.lend(call, name, value, _spelled(receiver))
            case "share":
                # All handles have the record, so that any of them may be dropped.
                self.use(value)
                return replace(value, name="", tokens=())
            case "split_tape":
                plain = replace(value, ownership="plain", met=(), noted=(), tokens=())
                return Value(items=(plain, replace(value, name="", place=None)))
            case "put_tape":
                whole = self.trace(call, name, value, first.ownership)
                self.use(first)
                return replace(
                    whole,
                    met=together([whole.met, first.met]),
                    noted=together([whole.noted, first.noted]),
                    tokens=first.tokens,
                )
            case "backward":
                return self.backward(call, value, arguments)
            case "astype" if not _is_floating(call.args):
                self.use(value)
                return replace(value, origins=(), is_parameter=False, place=None)
        if name in BORROWS:
            return Value(is_tensor=True)
        if name in READS:
            return NOTHING
        operands = [receiver, *(one.operand for one in arguments)]
        return self.op(call, op_called(name), operands)

    def op(self, node: Context, name: str, operands: list[Operand]) -> Value:
        """Return the result of an op on what is a tensor, or holds some, among its arguments."""
        parts = [
            Operand(value, one.expression if value is one.value else None)
            for one in operands
            for value in flattened(one.value)
            if value.is_tensor
        ]
        return self.operate(node, name, parts)

    def _retaped(self, call: CallExpr, receiver: Operand, arguments: list[Argument]) -> Value:
        value = receiver.value
        if not arguments:
            return value
        kind, known = arguments[0].operand.expression, arguments[0].value
        named = kind.fullname if isinstance(kind, RefExpr) else ""
        if named == NONE_TAPE:
            return Value(is_tensor=True, origins=value.origins)
        state: Ownership = "owned" if named == OWNED_TAPE else known.ownership
        if state == "plain" and not (known.is_kind or isinstance(kind, MemberExpr)):
            # A variable that holds the kind of a tape: some kind.
            state = "open"
        if state == "plain":
            return value
        if value.owns:
            return self.lend(call, "retaped", value, _spelled(receiver))
        return self.trace(call, "retaped", value, state)

    def backward(self, call: CallExpr, start: Value, arguments: list[Argument]) -> Value:
        """Return gradients; those of which parameters may be known now, or later."""
        wanted = [one.value for one in arguments if one.name == "wrt"]
        for one in arguments:
            self.use(one.value)
        for handle in (one for each in wanted for one in flattened(each)):
            self.keep(handle)
        self.use(start)
        info = class_of(_GRADIENTS)
        type_ = None if info is None else Instance(info, [])
        grads = Value(type=type_, met=start.met, noted=start.noted)
        if wanted:
            asked = _asked(wanted[0])
            self.ask(start, asked)
            # What owns a tape, or an op has computed, is no parameter.
            is_result = asked == [] and wanted[0].is_tensor
            parts = [Place(_NO_PARAMETER)] if is_result else asked or []
            name = wanted[0].name and f'"{wanted[0].name}"'
            return replace(grads, parts=tuple(parts), name=name or "other tensors")
        token = (*self.trail, call)
        self.pending[token] = start
        return replace(grads, tokens=(token,))

    def layer(self, call: CallExpr, layer: Value, arguments: list[Argument]) -> Value:
        """Return what a module that is not looked into makes of its arguments."""
        operands = [
            Operand(value, one.operand.expression)
            for one in arguments
            for value in flattened(one.value)
            if value.is_tensor
        ]
        place = layer.place
        info = layer.type.type if isinstance(layer.type, Instance) else None
        trains = place is not None and (info is None or has_parameters(info))
        result = self.operate(call, "forward", operands)
        # What a model makes of data is not data any more.
        origins = tuple(one for one in result.origins if one.place.model is not None)
        result = replace(result, origins=origins)
        if place is None or not trains:
            return result
        if result.owns:
            return replace(result, met=together([result.met, (place, *layer.parts)]))
        if not is_of_library(info) if info is not None else True:
            # It is a constant perhaps, as a teacher is.
            place = place._replace(home=len(place.path))
        origin = self.layer_origin(layer, place, arguments, "forward")
        return replace(result, origins=together([(origin,), result.origins]))

    def layer_origin(
        self, layer: Value, place: Place | None, arguments: list[Argument], method: str
    ) -> Origin:
        """Return a layer as the origin of what it has made of plain values."""
        key = key_of(arguments[0].operand.expression) if len(arguments) == 1 else None
        run = f"{layer.name}.{method.replace('__call__', 'forward')}"
        run += f"({'input' if key is None else spelled(key)}"
        cure, constant = f"{run}.retaped({{tape}}))", f"{run}).detach()"
        why = "a layer on a plain value"
        return Origin(place or Place(layer), layer.name, why, cure, constant, ran=True)


def _spelled(operand: Operand) -> str:
    key = key_of(operand.expression)
    return "" if key is None else spelled(key)


def _asked(wanted: Value) -> list[Place] | None:
    """Return whose gradients are asked for; None if it is not known."""
    places = []
    for one in flattened(wanted):
        if one.place is not None and (one.is_tensor or one.place.model is not None):
            places += [one.place, *one.parts]
        elif not one.is_tensor:
            return None
    return places


def _is_made_here(place: Place) -> bool:
    """Tell whether something is made in the code that is looked at: it is no part of another."""
    match place.root:
        case (*trail, CallExpr(callee=RefExpr(node=node, fullname=name))):
            is_model = isinstance(node, TypeInfo) or name == BUILD
            return name.startswith(CREATED) or (is_model and not trail)
    return place.root == _NO_PARAMETER


def _is_floating(arguments: list[Expression]) -> bool:
    """Tell whether a dtype is one of floats, or not known."""
    match arguments:
        case [RefExpr() as dtype, *_]:
            name = dtype.fullname.rpartition(".")[2]
            return not name.startswith(("int", "uint", "bool"))
    return True
