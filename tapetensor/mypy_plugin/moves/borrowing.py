"""Functions of the same file that are seen to leave the tape of an argument where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Decorator,
    Expression,
    FuncDef,
    FuncItem,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    RefExpr,
    ReturnStmt,
    StrExpr,
    SymbolNode,
    TypeInfo,
)

from tapetensor.mypy_plugin.moves.graph import Graph

# Methods of Tensor that read a tensor, spent or not.
READS: Final = frozenset(
    {
        "numpy",
        "item",
        "tolist",
        "wrap_gradient",
        "__float__",
        "__int__",
        "__bool__",
        "__len__",
        "__repr__",
    }
    | {"__hash__", "__str__", "__format__", "__init__", "__reduce__", "__copy__", "__deepcopy__"}
)
# Methods that a spent tensor refuses, but that leave the tape where it is.
BORROWS: Final = frozenset(
    {"trace", "with_empty_tape", "share", "retaped", "detach", "argmax", "argmin", "argsort"}
    | {"put_tape"}
    | {"all", "any", "isfinite", "isinf", "isnan", "to_html", "tree"}
    | {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "invert")}
)
# Functions that move whatever owns a tape, and do not say so in their types.
MOVERS: Final = frozenset(
    {"builtins.abs", "builtins.sum", "tapetensor.checkpointing.checkpoint.checkpoint"}
    | {
        f"_operator.{name}"
        for name in ("abs", "add", "matmul", "mul", "neg", "pow", "sub", "truediv")
    }
)
_ATTRIBUTES: Final = frozenset({"dtype", "id", "ndim", "owns_tape", "shape", "size", "tape_type"})
_PLAIN: Final = frozenset(
    {"typing.override", "typing_extensions.override", "builtins.staticmethod"}
    | {"builtins.classmethod"}
)
_READERS: Final = frozenset(
    f"builtins.{name}"
    for name in ("float", "id", "int", "isinstance", "len", "print", "repr", "str")
)


def leaves(name: str, *, given: bool) -> bool:
    """Tell whether a method of Tensor leaves the tape where it is.

    Args:
        name: the method.
        given: whether it is given arguments: `share(2)` hands on, where `share()` lends.
    """
    return name in BORROWS and not (name == "share" and given)


def function_in(tree: MypyFile, node: SymbolNode | None) -> FuncDef | None:
    """Return a function if its body stands in a file, and is more than a stand-in for others.

    Those of other files have none where mypy has taken them from its cache, or is through with
    them.
    """
    if isinstance(node, Decorator) and all(_is_plain(one) for one in node.original_decorators):
        node = node.func
    if not isinstance(node, FuncDef) or not node.body.body or node.is_trivial_body:
        return None
    module = node.info.module_name if node.info else node.fullname.rpartition(".")[0]
    return node if module in ("", tree.fullname) else None


def overriding(tree: MypyFile, body: FuncItem) -> Iterator[SymbolNode]:
    """Yield the methods of a file that may be meant where a method is called."""
    owner = body.info
    for symbol in tree.names.values() if owner else ():
        info = symbol.node
        if isinstance(info, TypeInfo) and info is not owner and owner in info.mro:
            own = info.names.get(body.name)
            if own is not None and own.node is not None:
                yield own.node


def _is_plain(decorator: Expression) -> bool:
    """Tell whether a decorator leaves a function as it is."""
    return isinstance(decorator, RefExpr) and decorator.fullname in _PLAIN


def is_borrowed(
    function: FuncItem,
    graph: Graph,
    number: int,
    lends: Callable[[CallExpr], Iterable[Expression]],
    *,
    dropped: bool,
) -> bool:
    """Tell whether a function only reads one of its arguments, or makes a second handle of it.

    Args:
        function: the function.
        graph: its graph.
        number: which argument.
        lends: what returns those arguments of a call which it only reads.
        dropped: whether what the call returns is not looked at: it may be the argument itself.
    """
    variable = function.arguments[number].variable
    nodes = [one.node for one in graph.points if one.node is not None]
    read = {name for node in nodes for name in _read_by(node, dropped=dropped)}
    read |= {name for node in nodes if isinstance(node, CallExpr) for name in lends(node)}
    return all(
        node in read for node in nodes if isinstance(node, NameExpr) and node.node is variable
    )


def _read_by(node: Node, *, dropped: bool) -> Iterator[Expression]:
    """Yield the parts of a node that it leaves as they are."""
    match node:
        case CallExpr(callee=MemberExpr(expr=receiver, name=name), args=args) if (
            name in READS or leaves(name, given=bool(args))
        ):
            yield receiver
        case CallExpr(callee=RefExpr(fullname=name), args=args) if name in _READERS:
            yield from args
        case CallExpr(callee=MemberExpr(expr=StrExpr()), args=args):
            yield from args
        case MemberExpr(expr=receiver, name=name) if name in _ATTRIBUTES:
            yield receiver
        case ComparisonExpr(operands=operands):
            yield from operands
        case ReturnStmt(expr=value) if dropped and value is not None:
            yield value
