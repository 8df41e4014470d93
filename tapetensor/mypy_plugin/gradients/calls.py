"""The values of calls: of ops, layers, functions of the same file, and of all others."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import Final, NamedTuple

from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    ArgKind,
    CallExpr,
    Context,
    Decorator,
    Expression,
    FuncDef,
    FuncItem,
    IndexExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    OverloadedFuncDef,
    RefExpr,
    StrExpr,
    SuperExpr,
    TupleExpr,
    TypeInfo,
)
from mypy.types import CallableType, Instance, Type
from typing_extensions import override

from tapetensor.mypy_plugin.gradients.expressions import Expressions, instance_of
from tapetensor.mypy_plugin.gradients.fields import (
    declared,
    has_parameters,
    is_gradients,
    is_of_library,
    is_optimizer,
    method_of,
)
from tapetensor.mypy_plugin.gradients.ledger import Operand
from tapetensor.mypy_plugin.gradients.places import ANY_ITEM, Place
from tapetensor.mypy_plugin.gradients.values import (
    NOTHING,
    Function,
    Origin,
    Ownership,
    Value,
    content,
    flattened,
    joined,
    together,
)
from tapetensor.mypy_plugin.kinds import is_module
from tapetensor.mypy_plugin.moves.borrowing import BORROWS, READS
from tapetensor.mypy_plugin.moves.keys import key_of, spelled
from tapetensor.mypy_plugin.moves.owners import signatures, takes
from tapetensor.mypy_plugin.names import (
    BUILD,
    MODULE,
    NONE_TAPE,
    OWNED_TAPE,
    TENSOR_ROOMS,
    op_called,
)
from tapetensor.mypy_plugin.symbols import class_of

_FORWARD: Final = ("forward", "__call__")
_LOSSES: Final = "tapetensor.losses."
_CREATED: Final = "tapetensor.tensor.creation."
_SELECTION: Final = "tapetensor.nn.selection.Selection"
_GRADIENTS: Final = "tapetensor.tape.gradients.Gradients"
_COPIES: Final = ("copy.copy", "copy.deepcopy")
_IN_ORDER: Final = frozenset(
    f"builtins.{name}" for name in ("iter", "list", "reversed", "set", "sorted", "tuple")
)


class Argument(NamedTuple):
    """An argument of a call."""

    kind: ArgKind
    name: str | None
    operand: Operand

    @property
    def value(self) -> Value:
        """What it is."""
        return self.operand.value


class Calls(Expressions, ABC):
    """Works out what calls return."""

    def __init__(self, unit: FuncItem | MypyFile, tree: MypyFile) -> None:
        super().__init__(unit, tree)
        # Backward passes for all parameters: by the gradients, where they started from.
        self.pending: dict[object, Value] = {}

    @override
    def call(self, call: CallExpr) -> Value:
        callee = call.callee
        if isinstance(callee, SuperExpr):
            function = self.super_method(callee) or NOTHING
            return self.call_value(call, callee.name, function, self._arguments(call))
        if isinstance(callee, NameExpr | MemberExpr) and not _is_local(callee):
            return self._function(call, callee, self._arguments(call))
        if isinstance(callee, MemberExpr):
            receiver = Operand(self.value(callee.expr), callee.expr)
            return self.call_method(call, receiver, callee.name, self._arguments(call))
        function = self.value(callee)
        name = callee.name if isinstance(callee, NameExpr) else "call"
        return self.call_value(call, name, function, self._arguments(call))

    def _arguments(self, call: CallExpr) -> list[Argument]:
        return [
            Argument(kind, name, Operand(self.value(one), one))
            for one, kind, name in zip(call.args, call.arg_kinds, call.arg_names, strict=True)
        ]

    def call_value(
        self, call: CallExpr, name: str, function: Value, arguments: list[Argument]
    ) -> Value:
        """Return what a value that is called returns."""
        if is_module(function.type):
            return self.call_method(call, Operand(function), "forward", arguments)
        if isinstance(function.library, NameExpr | MemberExpr):
            return self._function(call, function.library, arguments)
        known = function.function
        if known is not None:
            return self._run(call, name, known, arguments)
        return self._unknown(call, None, arguments)

    def _run(
        self, call: CallExpr, name: str, function: Function, arguments: list[Argument]
    ) -> Value:
        bound = _bound(function, arguments)
        result = None if bound is None else self.run(call, function, bound)
        receiver = function.receiver
        if result is None:
            if receiver is not None and is_module(receiver.type) and name in _FORWARD:
                return self._layer(call, receiver, arguments)
            return self._unknown(call, _result(function.item), arguments)
        if receiver is not None and is_module(receiver.type):
            return self._as_run(result, receiver, name, arguments)
        return result

    def _as_run(
        self, result: Value, receiver: Value, name: str, arguments: list[Argument]
    ) -> Value:
        """Return what a method of a module computed of plain values as something that was run."""
        given = [one for one in arguments if one.value.is_tensor and not one.value.is_parameter]
        if result.owns or not result.origins or not given:
            return result
        layer = self._layer_origin(receiver, receiver.place, arguments, name)
        origins = [
            layer._replace(place=one.place)
            if receiver.place is not None and one.place.meets(receiver.place)
            else one
            for one in result.origins
        ]
        return replace(result, origins=together([origins]))

    def call_method(
        self, call: CallExpr, receiver: Operand, name: str, arguments: list[Argument]
    ) -> Value:
        """Return what a method returns."""
        owner = receiver.value
        if owner.is_tensor or name in ("trace", "traced"):
            return self._tensor_method(call, receiver, name, arguments)
        if is_gradients(owner):
            for one in arguments:
                self.ask_for(owner, one.value)
            return NOTHING
        if is_optimizer(owner.type) and name == "step":
            for one in arguments:
                self._step(owner, one.value)
            return NOTHING
        if owner.items is not None or owner.item is not None:
            return self._container_method(call, receiver, name, arguments)
        if is_module(owner.type) and name in ("parameters", "modules"):
            return self._parts(owner, name)
        function = self.attribute(owner, name, call)
        if function.function is not None:
            return self._run(call, name, function.function, arguments)
        if is_module(function.type):
            return self.call_method(call, Operand(function), "forward", arguments)
        if is_module(owner.type) and name in _FORWARD:
            return self._layer(call, owner, arguments)
        return self._unknown(call, _result(method_of(owner, name)), arguments)

    def _parts(self, module: Value, name: str) -> Value:
        """Return the parameters or the modules of a module."""
        if module.place is None:
            return NOTHING
        place = module.place.within(ANY_ITEM)
        if name == "parameters":
            return Value(item=Value(is_tensor=True, is_parameter=True, place=place))
        info = class_of(MODULE)
        return Value(item=Value(type=None if info is None else instance_of(info), place=place))

    def _step(self, optimizer: Value, grads: Value) -> None:
        place = optimizer.place
        asked = [one.place for one in optimizer.items or () if one.place is not None]
        if place is not None and place.model is not None:
            asked.append(place)
        if asked or optimizer.items is not None:
            for token in grads.tokens:
                start = self.pending.pop(token, None)
                if start is not None:
                    self.ask(start, asked)

    # ---------------------------------------------------------------------------------- tensors

    def _tensor_method(
        self, call: CallExpr, receiver: Operand, name: str, arguments: list[Argument]
    ) -> Value:
        value = receiver.value
        first = arguments[0].value if arguments else NOTHING
        match name:
            case "trace" | "traced":
                return self.trace(call, name, value, "owned")
            case "retaped":
                return self._retaped(call, value, arguments)
            case "with_empty_tape":
                key = key_of(receiver.expression)
                return self.lend(call, value, "" if key is None else spelled(key))
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
                return self._backward(call, value, arguments)
            case "astype" if not _is_floating(call.args):
                self.use(value)
                return replace(value, origins=(), is_parameter=False, place=None)
        if name in BORROWS:
            return Value(is_tensor=True)
        if name in READS:
            return NOTHING
        operands = [receiver, *(one.operand for one in arguments)]
        return self._op(call, op_called(name), operands)

    def _op(self, node: Context, name: str, operands: list[Operand]) -> Value:
        parts = [
            Operand(value, one.expression if value is one.value else None)
            for one in operands
            for value in flattened(one.value)
            if value.is_tensor
        ]
        return self.operate(node, name, parts)

    def _retaped(self, call: CallExpr, value: Value, arguments: list[Argument]) -> Value:
        if not arguments:
            return value
        kind = arguments[0].operand.expression
        named = kind.fullname if isinstance(kind, RefExpr) else ""
        if named == NONE_TAPE:
            return Value(is_tensor=True, origins=value.origins)
        state: Ownership = "owned" if named == OWNED_TAPE else arguments[0].value.ownership
        if named != OWNED_TAPE and not isinstance(kind, MemberExpr) and state == "plain":
            # A variable that holds the kind of a tape: some kind.
            state = "open"
        return value if state == "plain" else self.trace(call, "retaped", value, state)

    def _backward(self, call: CallExpr, start: Value, arguments: list[Argument]) -> Value:
        """Return gradients; those of which parameters may be known now, or later."""
        wanted = [one.value for one in arguments if one.name == "wrt"]
        for one in arguments:
            self.use(one.value)
        self.use(start)
        info = class_of(_GRADIENTS)
        type_ = None if info is None else Instance(info, [])
        grads = Value(type=type_, met=start.met, noted=start.noted)
        if wanted:
            self.ask(start, _asked(wanted[0]))
            return grads
        token = (*self.trail, call)
        self.pending[token] = start
        return replace(grads, tokens=(token,))

    # ----------------------------------------------------------------------------------- layers

    def _layer(self, call: CallExpr, layer: Value, arguments: list[Argument]) -> Value:
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
        if place is None or not trains:
            return result
        if result.owns:
            return replace(result, met=together([result.met, (place,)]))
        if not is_of_library(info) if info is not None else True:
            # It is a constant perhaps, as a teacher is.
            place = place._replace(home=len(place.path))
        origin = self._layer_origin(layer, place, arguments, "forward")
        return replace(result, origins=together([(origin,), result.origins]))

    def _layer_origin(
        self, layer: Value, place: Place | None, arguments: list[Argument], method: str
    ) -> Origin:
        key = key_of(arguments[0].operand.expression) if len(arguments) == 1 else None
        run = f"{layer.name}.{method.replace('__call__', 'forward')}"
        run += f"({'input' if key is None else spelled(key)}"
        cure, constant = f"{run}.retaped({{tape}}))", f"{run}).detach()"
        why = "a layer on a plain value"
        return Origin(place or Place(layer), layer.name, why, cure, constant, ran=True)

    # -------------------------------------------------------------------------------- functions

    def _function(
        self, call: CallExpr, callee: NameExpr | MemberExpr, arguments: list[Argument]
    ) -> Value:
        """Return what a function or class, known by its full name, returns."""
        name, node = callee.fullname, callee.node
        first = arguments[0].value if arguments else NOTHING
        if isinstance(node, TypeInfo):
            return self._made(call, node, first, arguments)
        if node in self.variables or not name:
            return self.call_value(call, callee.name, self.value(callee), arguments)
        if name.startswith("builtins."):
            return self._builtin(call, name, arguments)
        if name == BUILD:
            return self._new(call, _class_given(call.args))
        if name in _COPIES:
            return self._new(call, first.type.type if isinstance(first.type, Instance) else None)
        if name == "tapetensor.checkpointing.checkpoint.checkpoint" and arguments:
            return self.call_value(call, "checkpoint", first, arguments[1:])
        if name == "tapetensor.tensor.backward.compute_gradients" and arguments:
            return self._backward(call, first, arguments)
        if name.startswith("tapetensor.compiler."):
            return first
        if name.startswith((_LOSSES, TENSOR_ROOMS)) and not name.startswith(_CREATED):
            known = signatures(getattr(node, "type", None))
            targets = name.startswith(_LOSSES)
            operands = [
                one.operand
                for number, one in enumerate(arguments)
                if not targets or _is_differentiated(one, number, known)
            ]
            return self._op(call, callee.name, operands)
        function = self.value(callee).function
        if function is not None:
            return self._run(call, callee.name, function, arguments)
        return self._unknown(call, _result(node), arguments)

    def _made(
        self, call: CallExpr, info: TypeInfo, first: Value, arguments: list[Argument]
    ) -> Value:
        """Return an object of a class that is constructed here."""
        if is_optimizer(instance_of(info)):
            return replace(first, type=instance_of(info), name="")
        if info.fullname == _SELECTION:
            return _selected(first, call)
        for one in arguments:
            self.ask(one.value, None)
        return self._new(call, info)

    def _new(self, call: CallExpr, info: TypeInfo | None) -> Value:
        if info is None:
            return NOTHING
        return declared(instance_of(info), Place((*self.trail, call)))

    def _builtin(self, call: CallExpr, name: str, arguments: list[Argument]) -> Value:
        values = [one.value for one in arguments]
        match name, values:
            case "builtins.sum", [items, *start]:
                parts = [one for one in (content(items), *start) if one is not None]
                return self._op(call, "sum", [Operand(one) for one in parts])
            case "builtins.abs", [_]:
                return self._op(call, "abs", [arguments[0].operand])
            case "builtins.enumerate", [items, *_]:
                return Value(item=Value(items=(NOTHING, content(items) or items)))
            case "builtins.zip", _:
                return Value(item=Value(items=tuple(content(one) or one for one in values)))
            case _, [items, *_] if name in _IN_ORDER:
                return Value(item=content(items) or items)
        return NOTHING

    def _container_method(
        self, call: CallExpr, receiver: Operand, name: str, arguments: list[Argument]
    ) -> Value:
        container, values = receiver.value, [one.value for one in arguments]
        found = content(container)
        match name:
            case "append" | "add" | "extend" | "insert":
                for one in values:
                    self.use(one)
                added = [content(one) or one for one in values] if name == "extend" else values
                whole = [*([found] if found is not None else ()), *added[-1:]]
                key = receiver.expression
                if isinstance(key, NameExpr) and key.node in self.variables:
                    self.variables[key.node] = replace(container, items=None, item=joined(whole))
                else:
                    for one in values:
                        self.ask(one, None)
                return NOTHING
            case "items":
                return Value(item=Value(items=(NOTHING, found or NOTHING)))
            case "values" | "copy":
                return container
            case "get" | "pop" | "setdefault":
                return self.part(container, call)
        return NOTHING

    def _unknown(self, call: CallExpr, result: Type | None, arguments: list[Argument]) -> Value:
        """Return what something returns of which the signature is known at most."""
        found = declared(result, Place((*self.trail, call)))
        tensors = [one for each in arguments for one in flattened(each.value)]
        owners = [one for one in tensors if one.owns]
        for one in tensors:
            self.use(one)
        if not owners:
            return found
        hands_on = [one for one in flattened(found) if one.owns]
        if not hands_on:
            for one in owners:
                self.ask(one, None)
            if result is not None:
                return found
        modules = [one.place for one in tensors if one.place is not None and is_module(one.type)]
        return Value(
            is_tensor=True,
            ownership=joined(owners).ownership,
            met=together([*(one.met for one in owners), modules]),
            noted=together(one.noted for one in owners),
            tokens=((*self.trail, call),),
        )


def _is_local(callee: RefExpr) -> bool:
    """Tell whether a name is that of an attribute of a value, and not of a function or class."""
    return isinstance(callee, MemberExpr) and not (
        isinstance(callee.expr, RefExpr) and isinstance(callee.expr.node, MypyFile | TypeInfo)
    )


def _result(node: object) -> Type | None:
    """Return the declared type of what a function returns."""
    if not isinstance(node, FuncDef | Decorator | OverloadedFuncDef):
        return None
    known = signatures(node.type)
    return known[-1].ret_type if known else None


def _bound(function: Function, arguments: list[Argument]) -> dict[int, Value] | None:
    """Return the arguments by the number of the parameter; None if that is not plain to see."""
    names = [one.variable.name for one in function.item.arguments]
    has_receiver = function.receiver is not None and bool(function.item.info)
    bound = {0: function.receiver} if has_receiver and function.receiver is not None else {}
    position = len(bound)
    for one in arguments:
        if one.kind == ARG_POS and position < len(names):
            bound[position] = one.value
            position += 1
        elif one.kind == ARG_NAMED and one.name in names:
            bound[names.index(one.name)] = one.value
        else:
            return None
    return bound


def _is_differentiated(argument: Argument, number: int, known: list[CallableType]) -> bool:
    """Tell whether a loss has a derivative by an argument: a target has not."""
    for one in known:
        by_name = argument.name in one.arg_names
        at = one.arg_names.index(argument.name) if by_name else number
        if at < len(one.arg_types) and takes(one.arg_types[at]):
            return True
    return False


def _is_floating(arguments: list[Expression]) -> bool:
    """Tell whether a dtype is one of floats, or not known."""
    match arguments:
        case [RefExpr() as dtype, *_]:
            name = dtype.fullname.rpartition(".")[2]
            return not name.startswith(("int", "uint", "bool"))
    return True


def _class_given(arguments: list[Expression]) -> TypeInfo | None:
    """Return the class that is given to `build`."""
    match arguments:
        case [RefExpr(node=TypeInfo() as info), *_]:
            return info
        case [IndexExpr(base=RefExpr(node=TypeInfo() as info)), *_]:
            return info
    return None


def _asked(wanted: Value) -> list[Place] | None:
    """Return whose gradients are asked for; None if it is not known."""
    places = []
    for one in flattened(wanted):
        if one.place is not None and (one.is_parameter or one.place.model is not None):
            places.append(one.place)
        elif not one.is_tensor:
            return None
    return places


def _selected(model: Value, call: CallExpr) -> Value:
    """Return what a selection selects, as far as that is plain to see; else nothing."""
    for name, one in zip(call.arg_names, call.args, strict=True):
        if name == "only" and isinstance(one, ListExpr | TupleExpr) and model.place is not None:
            paths = [item.value.split(".") for item in one.items if isinstance(item, StrExpr)]
            place = model.place
            return Value(
                items=tuple(
                    Value(place=place._replace(path=(*place.path, *path))) for path in paths
                )
            )
    return Value(items=())
