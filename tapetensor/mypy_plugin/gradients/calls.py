"""The values of calls: of ops, layers, functions of the same file, and of all others."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import Final

from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    ARG_STAR,
    CallExpr,
    Decorator,
    Expression,
    FuncDef,
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
    TypeApplication,
    TypeInfo,
)
from mypy.types import CallableType, Instance, Type
from typing_extensions import override

from tapetensor.mypy_plugin.gradients.expressions import instance_of
from tapetensor.mypy_plugin.gradients.fields import (
    declared,
    field_names,
    is_gradients,
    is_model,
    is_of_library,
    is_optimizer,
    method_of,
)
from tapetensor.mypy_plugin.gradients.ledger import Operand
from tapetensor.mypy_plugin.gradients.places import ANY_ITEM, Place
from tapetensor.mypy_plugin.gradients.tensors import Argument, Tensors
from tapetensor.mypy_plugin.gradients.values import (
    NOTHING,
    Function,
    Origin,
    Value,
    content,
    flattened,
    joined,
    together,
)
from tapetensor.mypy_plugin.moves.keys import key_of, spelled
from tapetensor.mypy_plugin.moves.owners import signatures, takes
from tapetensor.mypy_plugin.names import (
    BUILD,
    CREATED,
    MODULE,
    TENSOR_ROOMS,
)
from tapetensor.mypy_plugin.symbols import class_of

_FORWARD: Final = ("forward", "__call__")
_LOSSES: Final = "tapetensor.losses."
_SELECTION: Final = "tapetensor.nn.selection.Selection"
_GRAD: Final = "tapetensor.higher_order.derivatives.grad"
_COPIES: Final = ("copy.copy", "copy.deepcopy")
_IN_ORDER: Final = frozenset(
    f"builtins.{name}" for name in ("iter", "list", "reversed", "set", "sorted", "tuple")
)


class Calls(Tensors, ABC):
    """Works out what calls return."""

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
        if is_model(function.type):
            return self.call_method(call, Operand(function), "forward", arguments)
        if isinstance(function.library, NameExpr | MemberExpr):
            return self._function(call, function.library, arguments)
        known = function.function or self.attribute(function, "__call__", call).function
        if known is not None:
            return self._run(call, name, known, arguments)
        return self._unknown(call, None, arguments)

    def _run(
        self, call: CallExpr, name: str, function: Function, arguments: list[Argument]
    ) -> Value:
        bound = bound_to(function, arguments)
        result = None if bound is None else self.run(call, function, bound)
        receiver = function.receiver
        if result is None:
            if receiver is not None and is_model(receiver.type) and name in _FORWARD:
                return self.layer(call, receiver, arguments)
            return self._unknown(call, _result(function.item), arguments)
        if receiver is not None and is_model(receiver.type):
            return self._as_run(result, receiver, name, arguments)
        return result

    def _as_run(
        self, result: Value, receiver: Value, name: str, arguments: list[Argument]
    ) -> Value:
        """Return what a method of a module computed of plain values as something that was run."""
        given = [one for one in arguments if one.value.is_tensor and not one.value.is_parameter]
        if result.owns or not result.origins or not given:
            return result
        layer = self.layer_origin(receiver, receiver.place, arguments, name)
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
            return self.tensor_method(call, receiver, name, arguments)
        if is_gradients(owner):
            for one in arguments:
                self.ask_for(owner, one.value)
            return NOTHING
        if is_optimizer(owner.type) and name == "step":
            for one in arguments:
                self.step(call, owner, one.value)
            return NOTHING
        if owner.items is not None or owner.item is not None:
            return self._container_method(call, receiver, name, arguments)
        if is_model(owner.type) and name in ("parameters", "modules"):
            return self._parts(owner, name)
        function = self.attribute(owner, name, call)
        if function.function is not None:
            return self._run(call, name, function.function, arguments)
        if is_model(owner.type) and name in _FORWARD:
            return self.layer(call, owner, arguments)
        if is_model(function.type):
            return self.call_method(call, Operand(function), "forward", arguments)
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

    def _function(
        self, call: CallExpr, callee: NameExpr | MemberExpr, arguments: list[Argument]
    ) -> Value:
        """Return what a function or class, known by its full name, returns."""
        name, node = callee.fullname, callee.node
        first = arguments[0].value if arguments else NOTHING
        if node in self.variables or not name:
            return self.call_value(call, callee.name, self.value(callee), arguments)
        if name.startswith("builtins."):
            return self._builtin(call, name, arguments)
        if name == "functools.partial" and len(arguments) == 1:
            return first
        if isinstance(node, TypeInfo):
            return self._made(call, node, first, arguments)
        if name == BUILD:
            return self._new(call, _class_given(call.args))
        if name in _COPIES:
            return self._new(call, first.type)
        if name == "tapetensor.checkpointing.checkpoint.checkpoint" and arguments:
            return self.call_value(call, "checkpoint", first, arguments[1:])
        if name == _GRAD and len(arguments) == 2 and not arguments[1].value.owns:
            return self._gradient_of_plain(call, first, arguments[1])
        if name == "tapetensor.tensor.backward.compute_gradients" and arguments:
            return self.backward(call, first, arguments)
        if name.startswith("tapetensor.compiler."):
            return first
        if name.startswith(CREATED):
            return Value(is_tensor=True, place=Place((*self.trail, call)))
        if name.startswith((_LOSSES, TENSOR_ROOMS)):
            known = signatures(getattr(node, "type", None))
            targets = name.startswith(_LOSSES)
            operands = [
                one.operand
                for number, one in enumerate(arguments)
                if not targets or _is_differentiated(one, number, known)
            ]
            return self.op(call, callee.name, operands)
        function = self.value(callee).function
        if function is not None:
            return self._run(call, callee.name, function, arguments)
        return self._unknown(call, _result(node), arguments)

    def _gradient_of_plain(self, call: CallExpr, function: Value, point: Argument) -> Value:
        """Return the gradient of a function at a plain value: no tape knows what it is made of."""
        traced = Value(is_tensor=True, ownership="owned", place=point.value.place)
        given = point._replace(operand=Operand(traced, point.operand.expression))
        result = self.call_value(call, "grad", function, [given])
        self.use(result)
        key = key_of(point.operand.expression)
        x = "x" if key is None else spelled(key)
        why = '"grad" at a plain value'
        cure, constant = f"{x}.trace() in its place", "grad(...).detach()"
        origins = [
            Origin(place, place.spelled, why, cure, constant, ran=True)
            for place in result.met
            if place != point.value.place
        ]
        return Value(is_tensor=True, origins=together([point.value.origins, origins]))

    def _made(
        self, call: CallExpr, info: TypeInfo, first: Value, arguments: list[Argument]
    ) -> Value:
        """Return an object of a class that is constructed here."""
        if is_optimizer(instance_of(info)):
            return replace(first, type=instance_of(info), name="")
        if info.fullname == _SELECTION:
            return _selected(first, call)
        made = self._new(call, instance_of(info))
        given = [one for each in arguments for one in flattened(each.value)]
        held = together((one.place, *one.parts) for one in given if one.place is not None)
        if is_model(made.type):
            return replace(made, parts=held)
        if not self._hold(call, made, info, arguments):
            for one in arguments:
                self.ask(one.value, None)
        return made

    def _hold(self, call: CallExpr, made: Value, info: TypeInfo, arguments: list[Argument]) -> bool:
        """Take note of what a new object holds, if that is plain to see."""
        if is_of_library(info) or info.has_base(MODULE):
            return False
        names = field_names(info)
        written = None if names else self.attribute(made, "__init__", call).function
        if written is not None:
            bound = bound_to(written, arguments)
            if bound is not None:
                self.run(call, written, bound)
            return bound is not None
        positions = iter(names)
        for one in arguments:
            name = one.name or next(positions, None)
            if name is not None and name in names:
                self.use(one.value)
                self.hold(made, name, one.value)
        return bool(names)

    def _new(self, call: CallExpr, made: Type | None) -> Value:
        return declared(made, Place((*self.trail, call)))

    def _builtin(self, call: CallExpr, name: str, arguments: list[Argument]) -> Value:
        values = [one.value for one in arguments]
        match name, values:
            case "builtins.sum", [items, *start]:
                parts = [one for one in (content(items), *start) if one is not None]
                return self.op(call, "sum", [Operand(one) for one in parts])
            case "builtins.abs", [_]:
                return self.op(call, "abs", [arguments[0].operand])
            case "builtins.enumerate", [items, *_]:
                return Value(item=Value(items=(NOTHING, content(items) or items)))
            case "builtins.zip", [items, *_]:
                rows = zip(*(one.items or () for one in values), strict=False)
                if items.items and all(one.items is not None for one in values):
                    return Value(items=tuple(Value(items=row) for row in rows))
                return Value(item=Value(items=tuple(content(one) or one for one in values)))
            case "builtins.map", [function, *items]:
                given = [Argument(ARG_POS, None, Operand(self.part(one, call))) for one in items]
                return Value(item=self.call_value(call, "map", function, given))
            case _, [items, *_] if name in _IN_ORDER:
                return items if items.items is not None else Value(item=content(items) or items)
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
        modules = [one.place for one in tensors if one.place is not None and is_model(one.type)]
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


def bound_to(function: Function, arguments: list[Argument]) -> dict[int, Value] | None:
    """Return the arguments by the number of the parameter; None if that is not plain to see."""
    names = [one.variable.name for one in function.item.arguments]
    kinds = function.item.arg_kinds
    has_receiver = function.receiver is not None and bool(function.item.info)
    bound = {0: function.receiver} if has_receiver and function.receiver is not None else {}
    position, others = len(bound), []
    for one in arguments:
        if one.kind == ARG_POS and position < len(names) and kinds[position].is_positional():
            bound[position] = one.value
            position += 1
        elif one.kind == ARG_POS and ARG_STAR in kinds:
            others.append(one.value)
        elif one.kind == ARG_NAMED and one.name in names:
            bound[names.index(one.name)] = one.value
        else:
            return None
    if others:
        bound[kinds.index(ARG_STAR)] = Value(items=tuple(others))
    return bound


def _is_differentiated(argument: Argument, number: int, known: list[CallableType]) -> bool:
    """Tell whether a loss has a derivative by an argument: a target has not."""
    for one in known:
        by_name = argument.name in one.arg_names
        at = one.arg_names.index(argument.name) if by_name else number
        if at < len(one.arg_types) and takes(one.arg_types[at]):
            return True
    return False


def _class_given(arguments: list[Expression]) -> Instance | None:
    """Return the type of what `build` makes of its argument."""
    match arguments:
        case [RefExpr(node=TypeInfo() as info), *_]:
            return instance_of(info)
        case [
            IndexExpr(base=RefExpr(node=TypeInfo() as info), analyzed=TypeApplication() as given),
            *_,
        ]:
            return Instance(info, given.types)
    return None


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
