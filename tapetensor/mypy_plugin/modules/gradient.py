"""Parameters that get no gradient: those that do not meet the tape, but what was computed of them.

An op on plain values is not recorded. Of ``x @ self.weight.transpose()`` the tape of `x` gets the
product alone, and `weight` trains as if it were not there: silently, where it takes part elsewhere
too, as a table of tokens does that is also the last layer.

The same goes for a layer that is given a plain value, as a table of positions is by ``arange``.

Only what is plain to see is reported: in a method of a module, an op on an owner of a tape and on
what is computed from a parameter of that module, from the weight or bias of a layer of the library
that it holds, or by such a layer. What is meant as a constant says so by `detach`. Elsewhere
parameters may well be constants, those of a teacher for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from mypy.nodes import (
    CallExpr,
    Expression,
    IndexExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    TupleExpr,
    UnaryExpr,
    Var,
)
from mypy.operators import op_methods
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, Type

from tapetensor.mypy_plugin import flow, names
from tapetensor.mypy_plugin.codes import MODULE_GRADIENT
from tapetensor.mypy_plugin.kinds import bounded
from tapetensor.mypy_plugin.modules.fields import kinds_of_fields
from tapetensor.mypy_plugin.moves.borrowing import BORROWS, READS
from tapetensor.mypy_plugin.moves.hooks import Part, arguments_of, operands_of
from tapetensor.mypy_plugin.moves.judge import judge_of
from tapetensor.mypy_plugin.moves.keys import key_of, spelled
from tapetensor.mypy_plugin.moves.owners import is_open, owns
from tapetensor.mypy_plugin.shapes.reading import is_floating, is_plain, read_tensor
from tapetensor.mypy_plugin.shapes.sizes import value_of

# These parts of the layers of the library are trained.
_TRAINED: Final = ("weight", "bias")
_LAYERS: Final = "tapetensor.nn."
_OPERATORS: Final = ("+", "-", "*", "/", "**", "@")
# So many names are followed: `w = self.weight`, `v = w.exp()`, ...
_MOST_NAMES: Final = 10


class _Lost(NamedTuple):
    """A value that is computed from a parameter, or by a layer, and is not recorded.

    Attributes:
        name: how the parameter or layer is spelled.
        why: the step that is not recorded.
        cure: what to write, where ``{}`` is the tensor with the tape.
        constant: what to write for a constant.
    """

    name: str
    why: str
    cure: str
    constant: str


def check_method(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Return the hook for a method or operator of Tensor, if it is an op with a derivative."""
    name = fullname.rpartition(".")[2]
    if name in READS or name in BORROWS:
        return None

    def gradient(context: MethodContext) -> Type:
        _check(context, name, operands_of(context, name))
        return context.default_return_type

    return gradient


def check_function(context: FunctionContext) -> Type:
    """Report what a function of tensors is given too late."""
    call = context.context
    if isinstance(call, CallExpr) and isinstance(call.callee, MemberExpr | NameExpr):
        _check(context, call.callee.name, arguments_of(context))
    return context.default_return_type


def _check(context: MethodContext | FunctionContext, name: str, parts: list[Part]) -> None:
    parts = [item for part in parts for item in _items(context.api, part)]
    owner = next((one for one in parts if owns(one.type)), None)
    if owner is None:
        return
    for part in parts:
        lost = _lost(context.api, part.expression, _MOST_NAMES)
        if lost is not None and not _is_decided(context, owner):
            key = key_of(owner.expression)
            other = "x" if key is None else spelled(key)
            flow.report(
                context.api,
                f'{names.op_called(name)}: "{lost.name}" gets no gradient here, for {lost.why} is '
                f"not recorded; write {lost.cure.format(other)}"
                f"{', x being the other operand' if key is None else ''}, or {lost.constant} for "
                "a constant",
                context.context,
                MODULE_GRADIENT,
            )


def _items(checker: Any, part: Part) -> Iterator[Part]:
    """Yield an argument, or what a tuple or list display holds."""
    if isinstance(part.expression, TupleExpr | ListExpr):
        for item in part.expression.items:
            yield Part(item, flow.type_of(checker, item))
    else:
        yield part


def _is_decided(context: MethodContext | FunctionContext, owner: Part) -> bool:
    """Tell whether the code asks for the tape: it may be that no owner comes here."""
    judge = judge_of(context.api, context.context)
    return judge is None or (judge.graph.asks_for_tape and is_open(owner.type))


def _lost(checker: Any, expression: Expression, names_left: int) -> _Lost | None:
    """Return what is lost of a parameter, or of a layer, by ops that are not recorded."""
    found = read_tensor(flow.type_of(checker, expression))
    if found is None or not is_plain(found.tape) or not is_floating(found.dtype):
        return None
    match expression:
        case NameExpr():
            value = value_of(expression, checker) if names_left else None
            return None if value is None else _lost(checker, value, names_left - 1)
        case CallExpr(callee=MemberExpr() as called) if _layer(checker, called) is not None:
            return _lost_layer(f"self.{called.name}", expression)
        case CallExpr(callee=MemberExpr(expr=inner, name=op)) if op != "detach":
            layer = _layer(checker, inner) if op == "forward" else None
            if layer is not None:
                return _lost_layer(layer, expression)
            operands = [inner]
        case OpExpr(op=symbol, left=left, right=right) if symbol in _OPERATORS:
            operands, op = [left, right], names.op_called(op_methods[symbol])
        case UnaryExpr(op="-", expr=inner):
            operands, op = [inner], "negative"
        case IndexExpr(base=inner):
            operands, op = [inner], "getitem"
        case _:
            return None
    for operand in operands:
        parameter = _parameter(checker, operand, names_left)
        if parameter is not None:
            why = f'"{op}" on a plain value'
            return _Lost(
                parameter, why, f"{parameter}.retaped({{}}.tape_type)", f"{parameter}.detach()"
            )
        lost = _lost(checker, operand, names_left)
        if lost is not None:
            return lost
    return None


def _lost_layer(layer: str, call: CallExpr) -> _Lost:
    key = key_of(call.args[0]) if len(call.args) == 1 else None
    run = f"{layer}.forward({'input' if key is None else spelled(key)}"
    why = "a layer on a plain value"
    return _Lost(layer, why, f"{run}.retaped({{}}.tape_type))", f"{run}).detach()")


def _layer(checker: Any, expression: Expression) -> str | None:
    """Return how a layer of the library with a weight is spelled, in a field of the module."""
    match expression:
        case MemberExpr(expr=NameExpr(node=Var(is_self=True)), name=name):
            module = _class(checker, expression)
            if module is None or not module.type.fullname.startswith(_LAYERS):
                return None
            return f"self.{name}" if module.type.get("weight") is not None else None
    return None


def _parameter(checker: Any, expression: Expression, names_left: int) -> str | None:
    """Return how a parameter of the module itself, or of a layer in it, is spelled."""
    match expression:
        case NameExpr():
            value = value_of(expression, checker) if names_left else None
            return None if value is None else _parameter(checker, value, names_left - 1)
        case MemberExpr(expr=NameExpr(node=Var(is_self=True)) as owner, name=name):
            module = _class(checker, owner)
            kinds = None if module is None else kinds_of_fields(module.type)
            kind, _ = (kinds or {}).get(name, ("", None))
            return f"self.{name}" if kind == "parameter" else None
        case MemberExpr(expr=owner, name=name) if name in _TRAINED:
            layer = _layer(checker, owner)
            return None if layer is None else f"{layer}.{name}"
    return None


def _class(checker: Any, expression: Expression) -> Instance | None:
    """Return the type of a module."""
    found = bounded(flow.type_of(checker, expression))
    return found if isinstance(found, Instance) and found.type.has_base(names.MODULE) else None
