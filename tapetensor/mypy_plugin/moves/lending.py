"""Parameters that a function only looks at: `Lent` is checked in the body, and found out from it.

What a function of another file does, a caller knows from its signature alone: mypy gives the bodies
of other files away, and takes what it has checked before from its cache. So a parameter that is
seen to be only read is declared as `Lent` in the signature that mypy remembers. Which attributes
a method leaves spent is written beside its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mypy.nodes import (
    ClassDef,
    DictExpr,
    Expression,
    FuncDef,
    ListExpr,
    MypyFile,
    Node,
    ReturnStmt,
    Statement,
    TupleExpr,
    TypeAlias,
    TypeInfo,
    Var,
    YieldExpr,
)
from mypy.types import CallableType, TypeAliasType

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import TAPE_MOVED
from tapetensor.mypy_plugin.moves.keys import EACH, Key, key_of, root, root_name, spelled
from tapetensor.mypy_plugin.moves.known import Known
from tapetensor.mypy_plugin.moves.owners import hands_on, is_marked, takes
from tapetensor.mypy_plugin.moves.points import Point
from tapetensor.mypy_plugin.moves.records import type_of_field
from tapetensor.mypy_plugin.moves.steps import Steps
from tapetensor.mypy_plugin.moves.summaries import Reader
from tapetensor.mypy_plugin.names import LENT, TAKEN
from tapetensor.mypy_plugin.symbols import node_of

_CURE = (
    "take a handle of it, {name}.share(), or declare the parameter without Lent, "
    "so that callers know"
)


# The statements of the file that was read last: the daemon puts new ones into an old file.
_declared: list[list[Statement] | None] = [None]


class _Untyped:
    """What stands for a checker before mypy checks a file: it knows of no expression."""

    def lookup_type_or_none(self, _: Expression) -> None:
        return None


def declare(tree: MypyFile) -> None:
    """Find out what the functions of a file borrow, as soon as mypy has read the file."""
    if tree.defs is _declared[-1]:
        return
    _declared[:] = [tree.defs]
    checker, known = _Untyped(), Known()
    for function in _functions(tree.defs):
        _declare(checker, tree, function, known)


def look_at_file(checker: Any, tree: MypyFile) -> None:
    """Check what the functions of a file say that they borrow."""
    for function in _functions(tree.defs):
        lent = {one.variable for one in function.arguments if is_marked(one.variable.type, LENT)}
        if lent:
            _check(checker, function, lent)
    # The daemon does not ask before it checks.
    declare(tree)


def _functions(body: list[Any]) -> Iterator[FuncDef]:
    """Yield the functions of a file and the methods of its classes, decorated ones aside."""
    for one in body:
        if isinstance(one, FuncDef) and one.body.body:
            yield one
        elif isinstance(one, ClassDef) and not one.info.is_protocol:
            yield from _functions(one.defs.body)


def _declare(checker: Any, tree: MypyFile, function: FuncDef, known: Known) -> None:
    """Declare what the signature of a function does not say of its parameters, and its body does.

    The body leaves the tape where it is though the result may own one, or takes it though no
    result does.
    """
    declared = function.type
    if not isinstance(declared, CallableType) or function.is_generator or function.is_coroutine:
        return
    if _keeps_owners(function.info):
        _declare_of_object(Reader(checker, tree, Steps(checker, function), known), function)
    if not any(map(takes, declared.arg_types)):
        return
    is_handed_on = hands_on(declared.ret_type)
    alias = node_of(LENT if is_handed_on else TAKEN)
    if not isinstance(alias, TypeAlias):
        return
    reader = Reader(checker, tree, Steps(checker, function), known)

    def is_other(number: int) -> bool:
        if is_handed_on:
            return reader.is_borrowed(function, number, dropped=False)
        variable = function.arguments[number].variable
        return ("name", variable) in reader.moved(function, variable)

    types = [
        TypeAliasType(alias, [one], one.line, one.column)
        if takes(one) and is_other(number)
        else one
        for number, one in enumerate(declared.arg_types)
    ]
    if types != declared.arg_types:
        function.type = declared.copy_modified(arg_types=types)


def _keeps_owners(info: TypeInfo) -> bool:
    """Tell whether an attribute of the objects of a class may own a tape, or hold what does."""
    variables = [one.node for one in info.names.values()] if info else []
    return any(
        hands_on(one.type or type_of_field(info, one.name))
        for one in variables
        if isinstance(one, Var)
    )


def _declare_of_object(reader: Reader, method: FuncDef) -> None:
    """Write down, where mypy remembers it, which attributes a method leaves spent."""
    taken = []
    for key in reader.moved(method, method.arguments[0].variable) if method.arguments else ():
        path: list[tuple[str, object]] = []
        while key[0] != "name":
            path.append((key[0], None if key[2] is EACH else key[2]))
            key = key[1]
        if path and all(index is None or isinstance(index, int | str) for _, index in path):
            taken.append(path[::-1])
    method.info.metadata.setdefault(TAKEN, {})[method.name] = taken


def _check(checker: Any, function: FuncDef, lent: set[Var]) -> None:
    """Report a function that returns or keeps what it is lent."""
    steps = Steps(checker, function)
    for node, points in steps.graph.of_node.items():
        if isinstance(node, ReturnStmt | YieldExpr):
            for key in _keys_in(node.expr):
                _report_one(checker, steps, node, points[0], key, lent, "returned")
    for link in steps.graph.links:
        target = root(link.target)
        is_kept = link.target[0] != "name" and (
            target not in link.point.fragment.bound or target in link.point.fragment.arguments
        )
        is_kept |= root_name(link.target) in steps.graph.shared
        if is_kept and link.node is not None:
            _report_one(checker, steps, link.node, link.point, link.source, lent, "kept")


def _keys_in(value: Expression | None) -> Iterator[Key]:
    """Yield the keys of what is in a value."""
    key = key_of(value)
    if key is not None:
        yield key
    match value:
        case TupleExpr(items=items) | ListExpr(items=items):
            for one in items:
                yield from _keys_in(one)
        case DictExpr(items=pairs):
            for _, one in pairs:
                yield from _keys_in(one)


def _report_one(
    checker: Any, steps: Steps, node: Node, at: Point, key: Key, lent: set[Var], what: str
) -> None:
    if key[0] == "member" and not takes(steps.effects.type_at(key)):
        return
    if is_lent_at(steps, key, at, lent):
        name = spelled(key)
        op = "return" if what == "returned" else "assignment"
        text = f'{op}: "{name}" is lent to this function, and must not be {what}; '
        flow.report(checker, text + _CURE.format(name=name), node, TAPE_MOVED)


def is_lent_at(steps: Steps, key: Key, at: Point, lent: set[Var] | None = None) -> bool:
    """Tell whether a key names at a point what was lent to the function."""
    for value in steps.aliases.values(key, at):
        variable = root(value.key)
        if not isinstance(variable, Var):
            continue
        known = is_marked(variable.type, LENT) if lent is None else variable in lent
        is_argument = variable in steps.graph.fragments[0].arguments
        if known and is_argument and value.by is None and not value.loop:
            return steps.is_as_given(("name", variable), at)
    return False


def taken_anyway(op: str, key: Key) -> str:
    """Return what is said of a call that takes the tape of what was lent."""
    name = spelled(key)
    text = f'{op}: "{name}" is lent to this function, and "{op}" takes its tape; '
    return text + _CURE.format(name=name)
