"""Use after move: what takes the tape of a tensor, and the use of a tensor whose tape was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Decorator,
    Expression,
    FuncBase,
    IndexExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    RefExpr,
    SymbolNode,
    TypeInfo,
    UnaryExpr,
    Var,
)
from mypy.plugin import AttributeContext, FunctionContext, MethodContext
from mypy.types import Type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import class_of, is_class
from tapetensor.mypy_plugin.moves.applying import APPLIERS, RUNNERS
from tapetensor.mypy_plugin.moves.borrowing import MOVERS, READS, leaves
from tapetensor.mypy_plugin.moves.calls import Callee, bound_arguments
from tapetensor.mypy_plugin.moves.judge import judge_of
from tapetensor.mypy_plugin.moves.known import Part
from tapetensor.mypy_plugin.moves.owners import (
    is_open,
    is_tensor,
    owns,
    signatures,
)
from tapetensor.mypy_plugin.names import TENSOR_BASE, TENSOR_ROOMS, op_called
from tapetensor.mypy_plugin.symbols import class_of as class_named
from tapetensor.mypy_plugin.symbols import member_of

_Context: TypeAlias = MethodContext | FunctionContext
# mypy asks for what `functions["a"]` is before it comes to a call of it.
_ITEMS = ("builtins.dict.__getitem__", "builtins.list.__getitem__", "builtins.tuple.__getitem__")


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Return the hook for the calls of a method."""
    if fullname in _ITEMS:
        return _item
    if _is_foreign(fullname):
        return None
    name = fullname.rpartition(".")[2]

    if fullname in RUNNERS or fullname == "functools.partial.__call__":
        return _indirect_method

    # The name by which an internal error would be told of: one note for methods and functions.
    def use_after_move(context: MethodContext) -> Type:
        info = class_of(context.type)
        if info is None or not info.has_base(TENSOR_BASE) or not _is_ours(info, name):
            method = None if info is None else member_of(info, name)
            if isinstance(method, Var) and isinstance(context.context, CallExpr):
                # An attribute that is a function.
                _indirect(context.api, context.context)
            else:
                _declared(context, method, name, skip=bound_arguments(method, context.type))
        elif name not in READS:
            _tensor_method(context, name)
        return context.default_return_type

    return use_after_move


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Return the hook for the calls of a function."""
    is_known = fullname in MOVERS or fullname in APPLIERS
    return None if _is_foreign(fullname) and not is_known else use_after_move


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Return the hook for reading a property, which is a call of its getter."""
    owner, _, name = fullname.rpartition(".")
    info = None if _is_foreign(fullname) else class_named(owner)
    getter = None if info is None else member_of(info, name)
    if not isinstance(getter, Decorator) or not getter.var.is_property:
        return None

    def use_after_move(context: AttributeContext) -> Type:
        where = context.context
        judge = judge_of(context.api, where) if isinstance(where, MemberExpr) else None
        if judge is not None and isinstance(where, MemberExpr):
            judge.add(where, name, judge.reader.moved_by_getter(getter, where.expr), [])
        return context.default_attr_type

    return use_after_move


def _is_foreign(fullname: str) -> bool:
    """Tell whether a function is of a package that knows nothing of tensors."""
    return fullname.startswith(("builtins.", "typing.", "numpy.", "_typeshed."))


def use_after_move(context: FunctionContext) -> Type:
    """Note what a function does to its arguments."""
    call = context.context
    if not isinstance(call, CallExpr):
        return context.default_return_type
    node = call.callee.node if isinstance(call.callee, RefExpr) else None
    name = call.callee.fullname if isinstance(call.callee, RefExpr) else ""
    if name in MOVERS:
        if (judge := judge_of(context.api, call)) is not None:
            judge.add(call, name.rpartition(".")[2], judge.reader.moved_by_builtin(call), [])
    elif (
        node is None
        or isinstance(node, Var)
        or name in APPLIERS
        or name in RUNNERS
        or isinstance(node, TypeInfo)
    ):
        _indirect(context.api, call)
    else:
        _declared(context, node, node.name, skip=bound_arguments(node, None))
    return context.default_return_type


def _item(context: MethodContext) -> Type:
    """Note what a call of an item of a container does, for which mypy asks nothing itself."""
    judge = judge_of(context.api, context.context)
    if judge is not None:
        for call in judge.graph.calls_of_items:
            if call.callee is context.context:
                _indirect(context.api, call)
    return context.default_return_type


def _indirect_method(context: MethodContext) -> Type:
    """Note what a function does that an executor or a partial is given."""
    if isinstance(context.context, CallExpr):
        _indirect(context.api, context.context)
    return context.default_return_type


def _indirect(checker: Any, call: CallExpr) -> None:
    """Note what a call does that goes by a variable, an item, `super()`, ..."""
    judge = judge_of(checker, call)
    if judge is not None:
        reader = judge.reader
        judge.add(call, reader.op_of(call), reader.taken(call), reader.used(call))


def _tensor_method(context: MethodContext, name: str) -> None:
    """Note what a method or operator of Tensor itself does to its operands."""
    operands = operands_of(context, name)
    if name == "backward":
        # What the gradients are asked for by is only read, and a cotangent is plain.
        operands = operands[:1]
    tensors = [one for one in operands if is_tensor(one.type)]
    owners = [one for one in operands if owns(one.type)]
    if leaves(name, given=bool(operands[1:])):
        _note(context, name, [one for one in owners if one not in tensors], tensors)
    elif name == "traced":
        _note(context, name, operands[:1], [])
    else:
        _note(context, name, owners, tensors)


def operands_of(context: MethodContext, name: str) -> list[Part]:
    """Return what a method of Tensor works on, the receiver first."""
    where = context.context
    arguments = arguments_of(context)
    receiver: Expression | None = None
    match where:
        case CallExpr() if is_class(context.type):
            return arguments
        case CallExpr(callee=MemberExpr(expr=receiver)):
            pass
        case OpExpr(left=left, right=right):
            # mypy hands on a stand-in for one of the two.
            receiver, other = (right, left) if _is_mirrored(name) else (left, right)
            arguments = [Part(other, one.type) for one in arguments]
        case ComparisonExpr(operands=[left, right]):
            api = context.api
            return [Part(left, flow.type_of(api, left)), Part(right, flow.type_of(api, right))]
        case UnaryExpr(expr=receiver) | IndexExpr(base=receiver):
            pass
    return [] if receiver is None else [Part(receiver, context.type), *arguments]


def _is_mirrored(name: str) -> bool:
    """Tell whether an operator is that of its right operand."""
    return name.startswith("__r") and name != "__rshift__"


def _note(context: MethodContext, name: str, moves: list[Part], uses: list[Part]) -> None:
    """Hand what a method of Tensor does to the judge."""
    judge = judge_of(context.api, context.context)
    if judge is not None:
        if judge.graph.asks_for_tape:
            # Where the tape state decides what is done, nothing is known of a tape in general.
            moves = [one for one in moves if not is_open(one.type)]
        places = judge.reader.places
        judge.add(context.context, op_called(name), places(moves), places(uses))


def _declared(context: _Context, declared: SymbolNode | None, name: str, skip: int) -> None:
    """Note what a function does to its arguments, as far as its signature or its body tells."""
    known = signatures(declared.type) if isinstance(declared, FuncBase | Decorator) else []
    where = context.context
    judge = judge_of(context.api, where)
    if not known or judge is None:
        return
    receiver, given = _given(context, name)
    if skip:
        given = [[] if receiver is None else [receiver], *given]
    taken = judge.reader.taken_with(Callee(declared, known, [], [], []), given, where, skip)
    called = where.callee if isinstance(where, CallExpr) else None
    # An object that is called has no name for that.
    name = called.name if isinstance(called, NameExpr | MemberExpr) else name
    judge.add(where, op_called(name), taken, [])


def _given(context: _Context, name: str) -> tuple[Expression | None, list[list[Expression]]]:
    """Return what a method is called on, and what each of its parameters is given."""
    match context.context:
        case OpExpr(left=left, right=right):
            return (right, [[left]]) if _is_mirrored(name) else (left, [[right]])
        case CallExpr(callee=MemberExpr(expr=receiver, name=called)) if called == name:
            return receiver, context.args
        case CallExpr(callee=receiver):
            return receiver, context.args
        case UnaryExpr(expr=receiver) | IndexExpr(base=receiver):
            return receiver, context.args
    return None, []


def arguments_of(context: _Context) -> list[Part]:
    """Return the arguments of a call."""
    return [
        Part(expression, type_)
        for expressions, types in zip(context.args, context.arg_types, strict=True)
        for expression, type_ in zip(expressions, types, strict=True)
    ]


def _is_ours(info: TypeInfo, name: str) -> bool:
    """Tell whether a method of a class is one of Tensor's own."""
    definer = getattr(getattr(member_of(info, name), "info", None), "fullname", "")
    return isinstance(definer, str) and definer.startswith(TENSOR_ROOMS)


__all__ = [
    "Part",
    "arguments_of",
    "attribute",
    "function_result",
    "method_result",
    "operands_of",
]
