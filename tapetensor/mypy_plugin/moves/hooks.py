"""Use after move: what takes the tape of a tensor, and the use of a tensor whose tape was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Decorator,
    Expression,
    FuncBase,
    IndexExpr,
    IntExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    RefExpr,
    StarExpr,
    SymbolNode,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
)
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import CallableType, Instance, TupleType, Type, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import bounded
from tapetensor.mypy_plugin.moves.borrowing import BORROWS, READS, function_in, is_borrowed
from tapetensor.mypy_plugin.moves.contents import wholes
from tapetensor.mypy_plugin.moves.judge import judge_of
from tapetensor.mypy_plugin.moves.keys import EACH, item_of, key_of
from tapetensor.mypy_plugin.moves.lasting import place_of
from tapetensor.mypy_plugin.moves.owners import (
    accepts_anything,
    hands_on,
    is_container,
    is_open,
    is_tensor,
    owns,
    signatures,
    takes,
    tensor_type,
)
from tapetensor.mypy_plugin.moves.steps import Place
from tapetensor.mypy_plugin.names import TENSOR_ROOMS, op_called
from tapetensor.mypy_plugin.symbols import member_of

_Context: TypeAlias = MethodContext | FunctionContext
# Functions that move whatever owns a tape, and do not say so in their types.
_MOVERS: Final = {
    "builtins.abs": "abs",
    "tapetensor.checkpointing.checkpoint.checkpoint": "checkpoint",
}


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Return the hook for the calls of a method."""
    if _is_foreign(fullname):
        return None
    name = fullname.rpartition(".")[2]

    # The name by which an internal error would be told of: one note for methods and functions.
    def use_after_move(context: MethodContext) -> Type:
        tensor = tensor_type(context.type)
        if tensor is None or not _is_ours(tensor.type, name):
            _declared(context, _method(context.type, name), skip=1)
        elif name not in READS:
            _tensor_method(context, name)
        return context.default_return_type

    return use_after_move


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Return the hook for the calls of a function."""
    return None if _is_foreign(fullname) and fullname not in _MOVERS else use_after_move


def _is_foreign(fullname: str) -> bool:
    """Tell whether a function is of a package that knows nothing of tensors."""
    return fullname.startswith(("builtins.", "typing.", "numpy.", "_typeshed."))


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


def use_after_move(context: FunctionContext) -> Type:
    """Note what a function does to its arguments."""
    call = context.context
    if isinstance(call, CallExpr) and isinstance(call.callee, RefExpr):
        node = call.callee.node
        name = _MOVERS.get(call.callee.fullname)
        if name is not None:
            _note(context, name, [one for one in arguments_of(context) if owns(one.type)])
        elif not getattr(node, "info", None):
            # The first argument of `Class.method(...)` is `self`: it is rare, and not followed.
            _declared(context, node, skip=0)
    return context.default_return_type


def _tensor_method(context: MethodContext, name: str) -> None:
    """Note what a method or operator of Tensor itself does to its operands."""
    operands = operands_of(context, name)
    tensors = [one for one in operands if is_tensor(one.type)]
    owners = [one for one in operands if owns(one.type)]
    if name in BORROWS and not (name == "share" and operands[1:]):
        _note(context, name, [one for one in owners if one not in tensors], tensors)
    elif name == "traced":
        _note(context, name, operands[:1])
    else:
        _note(context, name, owners, tensors)


def operands_of(context: MethodContext, name: str) -> list[Part]:
    """Return what a method of Tensor works on, the receiver first."""
    where = context.context
    arguments = arguments_of(context)
    receiver: Expression | None = None
    match where:
        case CallExpr(callee=MemberExpr(expr=receiver)):
            pass
        case OpExpr(left=left, right=right):
            # mypy hands on a stand-in for one of the two.
            mirrored = name.startswith("__r") and name != "__rshift__"
            receiver, other = (right, left) if mirrored else (left, right)
            arguments = [Part(other, one.type) for one in arguments]
        case ComparisonExpr(operands=[left, right]):
            api = context.api
            return [Part(left, flow.type_of(api, left)), Part(right, flow.type_of(api, right))]
        case UnaryExpr(expr=receiver) | IndexExpr(base=receiver):
            pass
    return [] if receiver is None else [Part(receiver, context.type), *arguments]


def _note(context: _Context, name: str, moves: list[Part], uses: list[Part] | None = None) -> None:
    """Hand a step to the judge."""
    api, where = context.api, context.context
    judge = judge_of(api, where)
    if judge is not None:
        if judge.graph.asks_for_tape:
            # Where the tape state decides what is done, nothing is known of a tape in general.
            moves = [one for one in moves if not is_open(one.type)]
        judge.add(where, op_called(name), _places(api, moves), _places(api, uses or []))


def _places(checker: Any, parts: list[Part]) -> list[Place]:
    found = []
    for one in parts:
        spelled, key = key_of(one.expression), place_of(checker, one.expression)
        if spelled is not None and key is not None:
            found.append(
                Place(item_of(spelled, EACH), item_of(key, EACH))
                if one.each
                else Place(spelled, key)
            )
    return found


def _declared(context: _Context, declared: SymbolNode | None, skip: int) -> None:
    """Note what a function does to its arguments, as far as its signature or its body tells."""
    known = signatures(getattr(declared, "type", None))
    call = context.context
    if not known or not isinstance(call, CallExpr):
        return
    moves: list[Part] = []
    body = function_in(flow.tree(context.api), declared)
    judge = judge_of(context.api, context.context)
    dropped = judge is not None and call in judge.graph.dropped
    for number, (expressions, types) in enumerate(
        zip(context.args, context.arg_types, strict=True)
    ):
        fitting = [one for one in known if _may_accept(one, number + skip)]
        # A parameter that may own a tape does not say that the tape is taken: a function that only
        # prints has one too. That a tape comes back, or gradients do, says it.
        if fitting and all(
            takes(one.arg_types[number + skip]) and hands_on(one.ret_type) for one in fitting
        ):
            owning = [
                part
                for expression, type_ in zip(expressions, types, strict=True)
                for part in _owning_parts(context.api, expression, type_)
                if not part.each or part not in moves
            ]
            if owning and not (body and is_borrowed(body, number + skip, dropped=dropped)):
                moves += owning
    name = call.callee.name if isinstance(call.callee, NameExpr | MemberExpr) else "the call"
    _note(context, name, moves)


def _may_accept(signature: CallableType, number: int) -> bool:
    """Tell whether an overload may be the one for an argument that owns a tape."""
    if number >= len(signature.arg_types):
        return False
    declared = signature.arg_types[number]
    return takes(declared) or accepts_anything(declared)


def _owning_parts(checker: Any, expression: Expression, type_: Type | None) -> Iterator[Part]:
    """Yield what owns a tape in an argument: itself, or what a container holds."""
    if isinstance(expression, TupleExpr | ListExpr):
        for item in expression.items:
            yield from _owning_parts(checker, item, flow.type_of(checker, item))
    elif isinstance(expression, OpExpr) and isinstance(expression.left, ListExpr):
        # [x] * 2 + items: a display again.
        number = expression.right
        times = number.value if isinstance(number, IntExpr) and expression.op == "*" else 1
        parts = [*_owning_parts(checker, expression.left, None)]
        yield from parts * min(times, 2)
        if expression.op == "+":
            yield from _owning_parts(checker, number, flow.type_of(checker, number))
    elif isinstance(expression, StarExpr) or not owns(type_):
        for one in wholes(expression):
            found = flow.type_of(checker, one)
            if is_container(found) and _holds_owners(found):
                yield Part(one, found, each=True)
    else:
        yield Part(expression, type_)


def _holds_owners(container: Type | None) -> bool:
    """Tell whether every item of a container owns a tape."""
    match bounded(container):
        case TupleType(items=items) if items:
            return all(map(owns, items))
        case Instance(args=[*_, held]):
            return owns(held)
    return False


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


def _method(receiver: Type, name: str) -> SymbolNode | None:
    """Return what a method is declared as, `self` included."""
    receiver = get_proper_type(receiver)
    node = member_of(receiver.type, name) if isinstance(receiver, Instance) else None
    if isinstance(node, Decorator) and (node.func.is_static or node.func.is_class):
        return None
    return node if isinstance(node, FuncBase | Decorator) else None
