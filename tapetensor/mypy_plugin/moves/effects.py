"""Effects of a step of execution beside what it assigns, and whether execution goes on."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    AwaitExpr,
    CallExpr,
    ComparisonExpr,
    Decorator,
    Expression,
    FloatExpr,
    FuncBase,
    FuncItem,
    GeneratorExpr,
    IfStmt,
    IndexExpr,
    IntExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    OverloadedFuncDef,
    RefExpr,
    StarExpr,
    StrExpr,
    SymbolNode,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
    YieldExpr,
    YieldFromExpr,
)
from mypy.operators import op_methods
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    TupleType,
    Type,
    TypedDictType,
    UninhabitedType,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import bounded
from tapetensor.mypy_plugin.moves.borrowing import function_in, overriding
from tapetensor.mypy_plugin.moves.expressions import CONSUMERS
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import Key, children, key_of, place, root, root_name
from tapetensor.mypy_plugin.moves.lasting import attribute, object_of
from tapetensor.mypy_plugin.moves.objects import Objects
from tapetensor.mypy_plugin.moves.owners import is_container, is_iterator, is_tensor, signatures
from tapetensor.mypy_plugin.moves.points import Point
from tapetensor.mypy_plugin.moves.private import METHODS
from tapetensor.mypy_plugin.moves.records import type_of_field
from tapetensor.mypy_plugin.moves.sequences import listed
from tapetensor.mypy_plugin.moves.statements import graph_of
from tapetensor.mypy_plugin.names import MODULE
from tapetensor.mypy_plugin.symbols import member_of

# Builtins that change nothing by themselves; what they are given may (`__str__`, a generator).
_READERS = frozenset(
    f"builtins.{name}"
    for name in (
        *("abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "format"),
        *("frozenset", "getattr", "hasattr", "hash", "id", "int", "isinstance", "issubclass"),
        *(
            "iter",
            "len",
            "list",
            "max",
            "min",
            "open",
            "print",
            "range",
            "repr",
            "reversed",
            "round",
        ),
        *("set", "sorted", "str", "sum", "tuple", "type", "zip"),
    )
)
# What comes from these runs no code of the user's but that of what it holds.
_KNOWN = ("builtins.", "collections.", "numpy.", "tapetensor.")
# The results of these run the code of what they were given when they are iterated over.
_LAZY = frozenset(f"builtins.{name}" for name in ("enumerate", "filter", "map", "reversed", "zip"))


class Effects:
    """Answers for the points of one graph.

    A type that mypy has not come to yet (in a loop, of what stands further down) is worked out as
    far as declarations tell.
    """

    def __init__(
        self, checker: Any, graph: Graph, reading: dict[FuncItem, bool] | None = None
    ) -> None:
        self._checker = checker
        self._graph = graph
        # None before mypy checks the file.
        self._tree: MypyFile | None = getattr(checker, "tree", None)
        self._objects = Objects(self._tree)
        # The functions of this file that were looked at, and whether they change nothing.
        self._reading = {} if reading is None else reading
        # The values whose types are being worked out: in a loop, one may be computed from itself.
        self._asked: set[Expression] = set()

    def may_change(self, point: Point) -> bool:
        """Tell whether code may run here that gives attributes, items or globals other values."""
        if point.foreign or (point.runs is not None and not self._is_quiet(point.runs)):
            return True
        return point.node is not None and self._may_run_code(point.node)

    def never_returns(self, call: CallExpr) -> bool:
        """Tell whether execution does not go on after a call."""
        found = flow.type_of(self._checker, call)
        if found is not None:
            return isinstance(found, UninhabitedType)
        known = signatures(self._declared(call.callee))
        return bool(known) and all(
            isinstance(get_proper_type(one.ret_type), UninhabitedType) for one in known
        )

    def is_exhaustive(self, statement: IfStmt) -> bool:
        """Tell whether one of the branches of an `if` without `else` is taken, or may surely be."""
        if flow.type_of(self._checker, statement.expr[-1]) is None:
            # mypy has not come to it: one `if` may be passed by, a chain of them covers all cases.
            return statement in self._graph.elifs
        return statement.unreachable_else

    def suppresses(self, manager: Expression) -> bool:
        """Tell whether a context manager may swallow exceptions: its `__exit__` returns a bool."""
        found = flow.type_of(self._checker, manager)
        if not isinstance(found, Instance):
            return False
        for name in ("__exit__", "__aexit__"):
            declared: Any = getattr(member_of(found.type, name), "type", None)
            result: Any = get_proper_type(getattr(get_proper_type(declared), "ret_type", None))
            if isinstance(result, Instance) and result.type.fullname == "builtins.bool":
                return True
        return False

    def is_local(self, key: Key, point: Point) -> bool:
        """Tell whether only the code around a point gives a key another value."""
        if key[0] != "name":
            return False
        is_here = key[1] in point.fragment.bound and root_name(key) not in self._graph.shared
        return is_here or key[1] in self._graph.defaults.values()

    def is_fixed(self, key: Key, point: Point) -> bool:
        """Tell whether no code but that around a point gives a key another value.

        So it is with local names, with what they hold that nothing can change, as tuples do, and
        with the items of containers that only this code can reach.
        """
        while key[0] != "name":
            base = key[1]
            if key[0] == "member":
                is_kept = _is_frozen(self.type_at(base)) or self._is_kept(key, point)
                if not is_kept and not self._is_apart(base, point.node):
                    return False
            elif (not self._is_out_of_reach(base) and base not in self._graph.private) or (
                isinstance(key[2], tuple) and not self.is_local(key[2], point)
            ):
                return False
            key = base
        return self.is_local(key, point)

    @cached_property
    def _made(self) -> dict[Key, TypeInfo]:
        return self._objects.made_in(self._graph)

    def _is_kept(self, key: Key, point: Point) -> bool:
        """Tell whether an attribute of an object that nobody else has stays what it is."""
        info = self._made.get(key[1])
        return info is not None and key[2] not in self._objects.changed_by(point.node, key[1], info)

    def _is_apart(self, base: Key, node: Node | None) -> bool:
        """Tell whether a call knows nothing of the object of a method, which is in the name.

        So it is with a function of another file and the forward pass of a module, if they are given
        nothing that leads back to the object.
        """
        match node:
            case CallExpr(callee=MemberExpr(expr=owner, name="forward"), args=args):
                given = [owner, *args]
            case CallExpr(callee=RefExpr(node=FuncBase() | Decorator() as called), args=args):
                here = "" if self._tree is None else f"{self._tree.fullname}."
                if not here or called.info or called.fullname.startswith(here):
                    return False
                given = args
            case _:
                return False
        return base == ("name", self._graph.me) and all(
            key_of(one) != base and (self._is_inert(one) or _is_module(self._type(one)))
            for one in given
        )

    def _is_out_of_reach(self, key: Key) -> bool:
        """Tell whether nobody can change the items: of a tuple, or an iterator without a name."""
        found = self.type_at(key)
        if isinstance(key[1], CallExpr) and is_iterator(found):
            return True
        return isinstance(found, TupleType) or (
            isinstance(found, Instance) and found.type.fullname == "builtins.tuple"
        )

    def type_at(self, key: Key, depth: int = 4) -> Type | None:
        """Return the type of what a key names, as far as it is known by now.

        Of a variable that mypy has not come to, it is that of the one thing that it is assigned.
        """
        return listed(self._checker, self._declared_at(key, depth))

    def _declared_at(self, key: Key, depth: int) -> Type | None:
        if key[0] == "name":
            if isinstance(key[1], CallExpr):
                return self._type_of_value(key[1])
            if isinstance(key[1], TypeInfo):
                return object_of(key[1])
            if key[1].type is not None or not depth:
                return bounded(key[1].type)
            sources = {link.source for link in self._graph.links if link.target == key}
            values = self._graph.assigned.get(key, [])
            if len(sources) == 1 and len(values) < 2:
                return self.type_at(sources.pop(), depth - 1)
            made = values[0] if len(values) == 1 and not sources else None
            return None if made is None else self._type_of_value(made)
        owner = self.type_at(key[1], depth)
        if key[0] == "item":
            return bounded(_item_type(owner, key[2]))
        if isinstance(owner, TupleType):
            owner = owner.partial_fallback
        if not isinstance(key[2], str):
            return None
        node = member_of(owner.type, key[2]) if isinstance(owner, Instance) else None
        if not isinstance(node, Var) or not isinstance(owner, Instance):
            return None
        declared = node.type or type_of_field(node.info, key[2])
        if declared and node.info and owner.type.has_base(node.info.fullname):
            owner = map_instance_to_supertype(owner, node.info)
            return bounded(expand_type_by_instance(declared, owner))
        return bounded(declared)

    def _type_of_value(self, value: Expression) -> Type | None:
        """Return the type of what is computed; None where that is computed from itself."""
        if value in self._asked:
            return None
        self._asked.add(value)
        try:
            found = bounded(self._type(value))
            if isinstance(found, Instance) and found.type.fullname == "typing.Coroutine":
                return bounded(found.args[-1])
            return found
        finally:
            self._asked.discard(value)

    def _may_run_code(self, node: Node) -> bool:
        match node:
            case YieldExpr() | YieldFromExpr() | AwaitExpr():
                return True
            case CallExpr():
                return not self._is_reader(node)
            case OpExpr(op="and" | "or") | UnaryExpr(op="not"):
                return False
            case OpExpr(op=op, left=left) if self._only_reads(self._operator(op, left)):
                return False
            case OpExpr(left=left, right=right) | OperatorAssignmentStmt(lvalue=left, rvalue=right):
                return not (self._is_inert(left) and self._is_inert(right))
            case ComparisonExpr(operands=operands):
                return not all(map(self._is_inert, operands))
            case IndexExpr(base=container) if self._only_reads(self._getter(container)):
                return False
            case IndexExpr(base=container):
                return not self._is_quiet(container)
            case UnaryExpr(expr=operand):
                return not self._is_inert(operand)
            case MemberExpr(expr=owner, name=name):
                return self._is_property(self._type(owner), name)
        return False

    def _is_reader(self, call: CallExpr) -> bool:
        """Tell whether a call is known to change no attribute, item or global variable."""
        callee = call.callee
        if isinstance(callee, MemberExpr):
            owner = self._type(callee.expr)
            if is_tensor(owner):
                return True
            if self._is_of_library(owner, callee.name):
                return all(map(self._is_inert, call.args))
            if is_container(owner) and callee.name in METHODS:
                # What is appended is not even looked at.
                is_put = callee.name in ("append", "appendleft")
                return is_put or all(map(self._is_inert, call.args))
        if isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo):
            # The constructors of these are not written by the user.
            info = callee.node
            is_record = info.is_named_tuple or info.typeddict_type is not None
            if is_record or ("dataclass" in info.metadata and not info.get("__post_init__")):
                return True
        if self._only_reads(self._declared_as(call.callee)):
            return True
        known = isinstance(callee, RefExpr) and (
            callee.fullname in _READERS or callee.fullname.startswith("tapetensor.")
        )
        is_format = isinstance(callee, MemberExpr) and isinstance(callee.expr, StrExpr)
        args = call.args
        if isinstance(callee, RefExpr) and callee.fullname in CONSUMERS:
            # What a generator does when it is consumed at once is in the graph.
            args = [one for one in args if not isinstance(one, GeneratorExpr)]
        return (known or is_format) and all(map(self._is_inert, args))

    def _operator(self, op: str, left: Expression) -> SymbolNode | None:
        """Return the method that an operator stands for."""
        owner = self._type(left)
        name = op_methods.get(op, "")
        return member_of(owner.type, name) if isinstance(owner, Instance) else None

    def _getter(self, container: Expression) -> SymbolNode | None:
        """Return the method that gives an item."""
        owner = self._type(container)
        return member_of(owner.type, "__getitem__") if isinstance(owner, Instance) else None

    def _only_reads(self, node: SymbolNode | None) -> bool:
        """Tell whether the body of a function of this file is seen to change nothing."""
        body = None if self._tree is None else function_in(self._tree, node)
        if self._tree is None or body is None or body.is_generator or body.is_coroutine:
            return False
        if body not in self._reading:
            self._reading[body] = False
            inner = Effects(self._checker, graph_of(body), self._reading)
            # The object that a constructor makes is new.
            me = body.arguments[0].variable if body.name == "__init__" else None
            self._reading[body] = not inner.changes_anything(me) and all(
                map(self._only_reads, overriding(self._tree, body))
            )
        return self._reading[body]

    def changes_anything(self, new: Var | None) -> bool:
        """Tell whether code may run that gives attributes, items or globals other values.

        Args:
            new: the variable of an object that nobody else has.
        """
        return bool(self._graph.shared) or any(
            any(key[0] != "name" and root(key) is not new for key in point.stores)
            or self.may_change(point)
            for point in self._graph.points
        )

    def _is_of_library(self, owner: Type | None, name: str) -> bool:
        """Tell whether a method is one of the library's that runs no code of the user's."""
        if not isinstance(owner, Instance) or not _is_inert_type(owner):
            return False
        definer = getattr(member_of(owner.type, name), "info", None)
        return definer is not None and definer.fullname.startswith("tapetensor.")

    def _is_quiet(self, container: Expression) -> bool:
        """Tell whether no code of the user's runs when items of a value are asked for."""
        match container:
            case CallExpr(callee=MemberExpr(expr=owner, name="items" | "keys" | "values"), args=[]):
                return self._is_quiet(owner)
        found = self._type(container)
        if is_container(found) or self._is_inert(container):
            return True
        return isinstance(found, Instance) and self._only_reads(member_of(found.type, "__iter__"))

    def _is_inert(self, expression: Expression) -> bool:
        """Tell whether no code of the user's runs when a value is read, printed, iterated over."""
        match expression:
            case StarExpr(expr=inner):
                return self._is_inert(inner)
            case IntExpr() | FloatExpr() | StrExpr() | NameExpr(node=TypeInfo()):
                return True
            case CallExpr(callee=RefExpr(fullname=name), args=args) if name in _READERS:
                return all(map(self._is_inert, args))
        found = self._type(expression)
        is_open = found is None or isinstance(found, AnyType)
        if is_open and isinstance(expression, OpExpr | UnaryExpr | TupleExpr | ListExpr):
            return all(map(self._is_inert, children(expression)))
        if is_open and isinstance(expression, ListComprehension):
            return self._is_inert(expression.generator.left_expr)
        return _is_inert_type(found)

    def _type(self, expression: Expression) -> Type | None:
        """Return the type of an expression, as far as it is known by now.

        Any may stand for what mypy has put off, until it has seen a class further down.
        """
        found = flow.type_of(self._checker, expression)
        if found is not None and not isinstance(found, AnyType):
            return listed(self._checker, found)
        key = place(expression)
        if key is not None and not isinstance(expression, CallExpr):
            return self.type_at(key) or found
        match expression:
            case CallExpr(callee=callee):
                results = [
                    get_proper_type(one.ret_type) for one in signatures(self._declared(callee))
                ]
                return results[0] if results else found
            case OpExpr(left=operand) | UnaryExpr(expr=operand) if is_tensor(self._type(operand)):
                return self._type(operand)
        return found

    def _declared_as(self, callee: Expression) -> SymbolNode | None:
        """Return what is called."""
        node: SymbolNode | None = callee.node if isinstance(callee, RefExpr) else None
        if isinstance(node, TypeInfo):
            return member_of(node, "__init__")
        if isinstance(callee, MemberExpr) and node is None:
            owner = get_proper_type(self._type(callee.expr))
            node = member_of(owner.type, callee.name) if isinstance(owner, Instance) else None
        return node

    def _declared(self, callee: Expression) -> Type | None:
        """Return the declared type of what is called."""
        node = self._declared_as(callee)
        if isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo):
            return None
        return getattr(node, "type", None) if isinstance(node, FuncBase | Decorator) else None

    def _is_property(self, owner: Type | None, name: str) -> bool:
        owner = get_proper_type(owner)
        if not isinstance(owner, Instance) or _is_inert_type(owner):
            return False
        node = member_of(owner.type, name)
        if attribute(("name", None), owner, name) is not None:
            return False
        if isinstance(node, Decorator):
            return node.var.is_property
        return node is None or (isinstance(node, OverloadedFuncDef) and node.is_property)


def _item_type(owner: Type | None, index: object) -> Type | None:
    """Return the type of an item of a container."""
    match owner:
        case TupleType(items=items) if isinstance(index, int):
            return items[index] if -len(items) <= index < len(items) else None
        case TupleType(items=[first, *others]) if all(one == first for one in others):
            return first
        case TypedDictType(items=named) if isinstance(index, str):
            return named.get(index)
        case Instance(args=[*_, held]) if is_container(owner):
            return held
        case Instance(args=[held, *_]) if is_iterator(owner):
            return held
    return None


def _is_module(found: Type | None) -> bool:
    found = bounded(found)
    return isinstance(found, Instance) and found.type.has_base(MODULE)


def _is_frozen(owner: Type | None) -> bool:
    """Tell whether the attributes of an object stay what they are."""
    if isinstance(owner, TupleType):
        return True
    if not isinstance(owner, Instance):
        return False
    return bool(owner.type.metadata.get("dataclass", {}).get("frozen"))


def _is_inert_type(type_: Type | None, within: tuple[Type | None, ...] = ()) -> bool:
    if type_ in within:
        # The bound of a type variable, or an alias, may name itself.
        return True
    seen, known = (*within, type_), bounded(type_)
    if isinstance(known, TupleType | UnionType):
        return all(_is_inert_type(one, seen) for one in known.items)
    if isinstance(known, Instance):
        name = known.type.fullname
        is_known = name.startswith(_KNOWN) and name not in _LAZY
        inert = is_known or is_tensor(known)
        return inert and all(_is_inert_type(one, seen) for one in known.args)
    return isinstance(known, NoneType | LiteralType | TypedDictType)
