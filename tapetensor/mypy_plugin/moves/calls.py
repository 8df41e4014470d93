"""What is called: by whatever name, with which arguments, and what those are to its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mypy.argmap import map_actuals_to_formals
from mypy.nodes import (
    ARG_POS,
    ArgKind,
    Block,
    CallExpr,
    Decorator,
    DictExpr,
    Expression,
    FuncBase,
    FuncDef,
    FuncItem,
    IndexExpr,
    LambdaExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    ReturnStmt,
    SuperExpr,
    SymbolNode,
    TupleExpr,
    TypeInfo,
    Var,
)
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    Type,
)

from tapetensor.mypy_plugin.kinds import ANYTHING, bounded, class_of, is_class
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import Key, key_of, place
from tapetensor.mypy_plugin.moves.owners import is_tensor, signatures
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.points import Link, Point
from tapetensor.mypy_plugin.symbols import member_of

# So many names are followed from what is called to what it is.
_MOST = 4


class Callee(NamedTuple):
    """What is called.

    Attributes:
        node: how it is declared; None if only its type is known.
        known: its signatures, `self` included.
        args: the arguments that it is given before those of the call: `self`, those of a partial.
        kinds: how each of them is given.
        names: by which name each of them is given, if by one.
        tensor: whether it is a method of a tensor, which is the first argument.
        function: the body of a lambda, or of a function that a function returns.
        bound: the names that such a body reads of the code that made it, with their keys here.
    """

    node: SymbolNode | None
    known: list[CallableType]
    args: list[Expression]
    kinds: list[ArgKind]
    names: list[str | None]
    tensor: bool = False
    function: FuncItem | None = None
    bound: Mapping[Var, Key] = MappingProxyType({})


class Calls:
    """Finds out what is called in a function."""

    def __init__(
        self,
        graph: Graph,
        type_of: Callable[[Expression], Type | None],
        paths: Paths,
        body: Callable[[SymbolNode | None], FuncItem | None],
    ) -> None:
        self._graph = graph
        self._body = body
        self._type_of = type_of
        self._paths = paths
        self._at: Point | None = None

    def called(self, call: CallExpr) -> list[Callee]:
        """Return what a call may be one of; nothing if that is not known."""
        points = self._graph.of_node.get(call)
        self._at = points[0] if points else None
        if isinstance(call.callee, RefExpr) and isinstance(call.callee.node, TypeInfo):
            # The object that is made is the first argument of its constructor.
            return [*self._declared(member_of(call.callee.node, "__init__"), call)]
        return self.callees(call.callee)

    def callees(self, expression: Expression, depth: int = _MOST) -> list[Callee]:
        """Return what an expression may be when it is called; nothing if that is not known."""
        if not depth:
            return []
        match expression:
            case SuperExpr(name=name, info=TypeInfo() as info, call=call):
                for base in info.mro[1:]:
                    if name in base.names and (me := self._graph.me) is not None:
                        receiver = NameExpr(me.name)
                        receiver.node = me
                        receiver.set_line(call)
                        node = base.names[name].node
                        bound = bound_arguments(node, ANYTHING)
                        return [*self._declared(node, receiver if bound else None)]
            case LambdaExpr():
                known = signatures(self._type_of(expression))
                return [Callee(None, known, [], [], [], function=expression)]
            case NameExpr(node=Var()):
                return self._variable(expression, depth)
            case CallExpr(callee=RefExpr(fullname="functools.partial"), args=[inner, *given]):
                return [
                    one._replace(
                        args=[*one.args, *given],
                        kinds=[*one.kinds, *expression.arg_kinds[1:]],
                        names=[*one.names, *expression.arg_names[1:]],
                    )
                    for one in self.callees(inner, depth - 1)
                ]
            case CallExpr() if expression in self._graph.of_node:
                return self._made(expression, depth) or self._typed(expression)
            case IndexExpr(base=base):
                return self._item(expression, base, depth)
            case RefExpr(node=FuncBase() | Decorator() as node) if not getattr(node, "info", None):
                return [*self._declared(node, None)]
            case MemberExpr(expr=owner, name=name):
                found = self._type_of(owner)
                if is_tensor(found):
                    return [Callee(_member(found, name), [], [owner], [ARG_POS], [None], True)]
                node = _member(found, name)
                if node is None and isinstance(owner, RefExpr) and isinstance(owner.node, TypeInfo):
                    # mypy has not come to it yet.
                    node = member_of(owner.node, name)
                    return [*self._declared(node, owner if bound_arguments(node, None) else None)]
                if not isinstance(node, Var):
                    return [*self._declared(node, owner if bound_arguments(node, found) else None)]
        return self._typed(expression)

    def _made(self, call: CallExpr, depth: int) -> list[Callee]:
        """Return the function or lambda that stands in the body of what is called."""
        makers = self.callees(call.callee, depth - 1)
        maker = makers[0] if len(makers) == 1 else None
        body = None if maker is None else self._body(maker.node)
        match body:
            case FuncDef(body=Block(body=[*others, ReturnStmt(expr=value)])):
                made = value.node if isinstance(value, NameExpr) else value
                is_only = not any(isinstance(one, ReturnStmt | Block) for one in others)
                if is_only and isinstance(made, FuncDef | LambdaExpr) and maker is not None:
                    known = signatures(made.type or self._type_of(call))
                    bound = self._graph.bind(call, body, arguments(maker, call))
                    return [Callee(None, known, [], [], [], function=made, bound=bound)]
        return []

    def _declared(self, node: SymbolNode | None, owner: Expression | None) -> Iterator[Callee]:
        if isinstance(node, FuncBase | Decorator):
            args = [] if owner is None else [owner]
            known = signatures(node.type)
            yield Callee(node, known, args, [ARG_POS] * len(args), [None] * len(args))

    def _variable(self, expression: NameExpr, depth: int) -> list[Callee]:
        """Return what a variable holds if it is assigned once, or what its type says."""
        key: Key = ("name", expression.node)
        values = self._graph.assigned.get(key, [])
        is_once = sum(key in point.stores for point in self._graph.points) == 1
        if len(values) == 1 and is_once and isinstance(values[0], Expression):
            found = self.callees(values[0], depth - 1)
            if found:
                is_same = all(self._is_same(key, arg) for one in found for arg in one.args)
                return found if is_same else []
        return self._typed(expression)

    def _is_same(self, name: Key, argument: Expression) -> bool:
        """Tell whether an argument that was bound to a function is what its name still means."""
        key = place(argument)
        if key is None or self._at is None:
            return True
        [bound] = [one for one in self._graph.points if name in one.stores]
        return self._at.fragment is bound.fragment and self._paths.holds(
            Link(name, key, bound), self._at
        )

    def _item(self, expression: IndexExpr, base: Expression, depth: int) -> list[Callee]:
        """Return what may stand in a display of functions under any index."""
        key = key_of(base)
        values = self._graph.assigned.get(key, []) if key is not None else []
        held: list[Expression] = []
        match values:
            case [DictExpr(items=pairs)]:
                held = [value for _, value in pairs]
            case [ListExpr(items=items) | TupleExpr(items=items)]:
                held = items
        found = [self.callees(one, depth - 1) for one in held]
        if found and all(found):
            return [one for several in found for one in several]
        return self._typed(expression)

    def _typed(self, expression: Expression) -> list[Callee]:
        """Return what the type of an expression says of its calls."""
        found = bounded(self._type_of(expression))
        if isinstance(found, Instance):
            return [*self._declared(_member(found, "__call__"), expression)]
        if isinstance(found, FunctionLike) and not found.is_type_obj():
            return [Callee(None, signatures(found), [], [], [])]
        return []


def arguments(callee: Callee, call: CallExpr) -> list[list[Expression]]:
    """Return what the parameters of a callee are given, in their order."""
    if len(callee.known) != 1:
        return []
    [signature] = callee.known
    args = [*callee.args, *call.args]
    mapped = map_actuals_to_formals(
        [*callee.kinds, *call.arg_kinds],
        [*callee.names, *(call.arg_names or [])],
        signature.arg_kinds,
        signature.arg_names,
        lambda _: ANYTHING,
    )
    return [[args[number] for number in numbers] for numbers in mapped]


def is_exactly_meant(call: CallExpr) -> bool:
    """Tell whether a call means the very function that it names, and none that overrides it."""
    callee = call.callee
    return isinstance(callee, SuperExpr) or (
        isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo)
    )


def bound_arguments(node: SymbolNode | None, receiver: Type | None) -> int:
    """Return how many arguments of a function stand before the dot of a call.

    Args:
        node: the function.
        receiver: the type of what stands there, if anything does that is no module.
    """
    function: Any = node.func if isinstance(node, Decorator) else node
    # What is no method has a class that is false.
    if not getattr(function, "info", None) or not isinstance(function, FuncBase):
        return 0
    if function.is_static:
        return 0
    return int(function.is_class or (receiver is not None and not is_class(receiver)))


def _member(owner: Type | None, name: str) -> SymbolNode | None:
    info = class_of(owner)
    return None if info is None else member_of(info, name)
