"""Objects that a function has made and handed to nobody: only its code gives them other values."""

from __future__ import annotations

from mypy.nodes import (
    CallExpr,
    Decorator,
    Expression,
    FuncDef,
    MypyFile,
    NameExpr,
    Node,
    RefExpr,
    SuperExpr,
    SymbolNode,
    TypeInfo,
    Var,
)

from tapetensor.mypy_plugin.moves.borrowing import function_in
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import Key
from tapetensor.mypy_plugin.moves.statements import graph_of

# Methods that run without being called by their names.
_MAKERS = ("__new__", "__init__", "__post_init__", "__setattr__", "__getattribute__")


class Objects:
    """Answers for the objects of a class of the file, or of a data class of another one.

    Args:
        tree: the file; None before mypy checks it.
    """

    def __init__(self, tree: MypyFile | None) -> None:
        self._tree = tree
        # What each method assigns to of its object; None if it hands the object on.
        self._stored: dict[FuncDef, set[str] | None] = {}

    def made_in(self, graph: Graph) -> dict[Key, TypeInfo]:
        """Return the names of a function that hold such objects, with their classes."""
        found = {}
        for name, values in graph.assigned.items():
            info = _class_of(values) if isinstance(name[1], Var) else None
            if info is None:
                continue
            is_here = name[1] in graph.fragments[0].bound - graph.fragments[0].arguments
            is_shared = name[1] in graph.reached or name[1].name in graph.shared
            is_alone = is_here and not is_shared and self._is_closed(info)
            if is_alone and self._stores(graph, name[1], info) is not None:
                found[name] = info
        return found

    def changed_by(self, node: Node | None, name: Key, info: TypeInfo) -> set[str]:
        """Return the attributes of an object that a call of a method, or a property, changes."""
        member = node.callee if isinstance(node, CallExpr) else node
        owner = getattr(member, "expr", None)
        if not isinstance(owner, NameExpr) or ("name", owner.node) != name:
            return set()
        symbol = info.get(getattr(member, "name", ""))
        return self._of_method(symbol.node if symbol else None, info) or set()

    def _is_closed(self, info: TypeInfo) -> bool:
        """Tell whether what makes an object, and reads its attributes, hands it to nobody."""
        for name in _MAKERS:
            symbol = info.get(name)
            if symbol is None or symbol.plugin_generated:
                continue
            is_plain = (symbol.fullname or "").startswith("builtins.")
            if not is_plain and self._of_method(symbol.node, info) is None:
                return False
        return True

    def _stores(self, graph: Graph, variable: Var, info: TypeInfo) -> set[str] | None:
        """Return the attributes that code assigns to; None if it hands the object on."""
        found = {
            key[2]
            for point in graph.points
            for key in point.stores
            if key[:2] == ("member", ("name", variable))
        }
        called = {node.callee for node in graph.of_node if isinstance(node, CallExpr)}
        for node, points in graph.of_node.items():
            if isinstance(node, SuperExpr):
                return None
            if not isinstance(node, NameExpr) or node.node is not variable:
                continue
            member = graph.members.get(node)
            if member is None or any(one.fragment is not graph.fragments[0] for one in points):
                return None
            symbol = info.get(member.name)
            if symbol is None or isinstance(symbol.node, Var):
                if member.name.startswith("__"):
                    return None
                continue
            inner = self._of_method(symbol.node, info)
            is_run = member in called or isinstance(symbol.node, Decorator)
            if inner is None or not is_run:
                return None
            found |= inner
        return found

    def _of_method(self, node: SymbolNode | None, info: TypeInfo) -> set[str] | None:
        """Return the attributes that a method assigns to; None if it hands its object on."""
        if isinstance(node, Decorator) and node.var.is_property:
            node = node.func
        body = None if self._tree is None else function_in(self._tree, node)
        if body is None or not body.arguments or body.is_generator or body.is_coroutine:
            return None
        if body not in self._stored:
            self._stored[body] = set()
            self._stored[body] = self._stores(graph_of(body), body.arguments[0].variable, info)
        return self._stored[body]


def _class_of(values: list[Expression | None]) -> TypeInfo | None:
    """Return the class of the new object that a name is assigned, wherever it is."""
    found = {
        one.callee.node if isinstance(one, CallExpr) and isinstance(one.callee, RefExpr) else None
        for one in values
    }
    only = found.pop() if len(found) == 1 else None
    return only if isinstance(only, TypeInfo) else None
