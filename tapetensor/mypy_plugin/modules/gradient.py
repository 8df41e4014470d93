"""Parameters that get no gradient: those that are changed before they meet the tape.

An op on plain values is not recorded. Of ``x @ self.weight.transpose()`` the tape of `x` gets the
product alone, and `weight` trains as if it were not there: silently, where it takes part elsewhere
too, as a table of tokens does that is also the last layer.

Only what is plain to see is reported: in a method of a module, an op on an owner of a tape and on
what is computed from a parameter of that module, or from the weight or bias of a layer that it
holds. What is meant as a constant says so by `detach`. Elsewhere parameters may well be constants,
those of a teacher for one.
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
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, Type, TypeVarType, get_proper_type

from tapetensor.mypy_plugin import flow, names
from tapetensor.mypy_plugin.codes import MODULE_GRADIENT
from tapetensor.mypy_plugin.modules.fields import kinds_of_fields
from tapetensor.mypy_plugin.moves.borrowing import BORROWS, READS
from tapetensor.mypy_plugin.moves.hooks import Part, arguments_of, op_called, operands_of
from tapetensor.mypy_plugin.moves.judge import judge_of
from tapetensor.mypy_plugin.moves.keys import key_of, spelled
from tapetensor.mypy_plugin.moves.owners import is_open, owns
from tapetensor.mypy_plugin.shapes.reading import is_floating, is_plain, read_tensor
from tapetensor.mypy_plugin.shapes.sizes import value_of

# What is trained of the layers of the library.
_TRAINED: Final = ("weight", "bias")
_LAYERS: Final = "tapetensor.nn."
_OPERATORS: Final = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "**": "power",
    "@": "matmul",
}
# How many names to follow: `w = self.weight`, `v = w.exp()`, ...
_MOST_NAMES: Final = 10


class _Changed(NamedTuple):
    """What is computed from a parameter: how that is spelled, and the op that took it first."""

    parameter: str
    op: str


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
        changed = _changed(context.api, part.expression, _MOST_NAMES)
        if changed is not None and not _is_decided(context, owner):
            key = key_of(owner.expression)
            other = "x" if key is None else spelled(key)
            cure = f"{changed.parameter}.retaped({other}.tape_type)"
            flow.report(
                context.api,
                f'{op_called(name)}: "{changed.parameter}" gets no gradient here, for '
                f'"{changed.op}" on a plain value is not recorded; write {cure}'
                f"{', x being the other operand' if key is None else ''}, or "
                f"{changed.parameter}.detach() for a constant",
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
    return judge is None or (judge.asks_for_tape and is_open(owner.type))


def _changed(checker: Any, expression: Expression, names_left: int) -> _Changed | None:
    """Return what is computed from a parameter by ops that are not recorded."""
    found = read_tensor(flow.type_of(checker, expression))
    if found is None or not is_plain(found.tape) or not is_floating(found.dtype):
        return None
    match expression:
        case NameExpr():
            value = value_of(expression, checker) if names_left else None
            return None if value is None else _changed(checker, value, names_left - 1)
        case CallExpr(callee=MemberExpr(expr=inner, name=op)) if op != "detach":
            operands = [inner]
        case OpExpr(op=symbol, left=left, right=right) if symbol in _OPERATORS:
            operands, op = [left, right], _OPERATORS[symbol]
        case UnaryExpr(op="-", expr=inner):
            operands, op = [inner], "negative"
        case IndexExpr(base=inner):
            operands, op = [inner], "getitem"
        case _:
            return None
    for operand in operands:
        parameter = _parameter(checker, operand, names_left)
        if parameter is not None:
            return _Changed(parameter, op)
        changed = _changed(checker, operand, names_left)
        if changed is not None:
            return changed
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
        case MemberExpr(
            expr=MemberExpr(expr=NameExpr(node=Var(is_self=True)), name=layer) as owner, name=name
        ) if name in _TRAINED:
            module = _class(checker, owner)
            is_layer = module is not None and module.type.fullname.startswith(_LAYERS)
            return f"self.{layer}.{name}" if is_layer else None
    return None


def _class(checker: Any, expression: Expression) -> Instance | None:
    """Return the type of a module."""
    found = flow.type_of(checker, expression)
    if isinstance(found, TypeVarType):
        found = get_proper_type(found.upper_bound)
    is_module = isinstance(found, Instance) and found.type.has_base(names.MODULE)
    return found if is_module and isinstance(found, Instance) else None
