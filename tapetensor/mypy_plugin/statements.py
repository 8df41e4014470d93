"""The statements of a file, what they store into names, and which names are read.

What is said here needs no following of the program: a variable that is assigned once has one value,
wherever it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final, TypeVar

from mypy import nodes
from mypy.server.subexpr import get_subexpressions

FactsT = TypeVar("FactsT")


def once_a_file(read: Callable[[nodes.MypyFile], FactsT]) -> Callable[[nodes.MypyFile], FactsT]:
    """Return what reads a file, and reads it once; files are checked one after another."""
    last: list[tuple[list[nodes.Statement], FactsT]] = []

    def known(tree: nodes.MypyFile) -> FactsT:
        # The file may be an old one: the daemon puts new statements into it.
        if not last or last[0][0] is not tree.defs:
            last[:] = [(tree.defs, read(tree))]
        return last[0][1]

    return known


def statements(body: Sequence[nodes.Statement]) -> Iterator[nodes.Statement]:
    """Yield the statements of a function, those of blocks and of functions in it included."""
    for statement in body:
        yield statement
        for inner in _blocks(statement):
            if inner is not None:
                yield from statements(inner.body)


def _blocks(statement: nodes.Statement) -> list[nodes.Block | None]:
    match statement:
        case nodes.IfStmt(body=bodies, else_body=rest):
            return [*bodies, rest]
        case nodes.ForStmt(body=body, else_body=rest) | nodes.WhileStmt(body=body, else_body=rest):
            return [body, rest]
        case nodes.TryStmt(body=body, handlers=handlers, else_body=rest, finally_body=last):
            return [body, *handlers, rest, last]
        case nodes.MatchStmt(bodies=bodies):
            return [*bodies]
        case nodes.WithStmt(body=body) | nodes.ClassDef(defs=body):
            return [body]
        case nodes.Block():
            return [statement]
        case nodes.OverloadedFuncDef(items=parts, impl=last):
            parts = parts if last is None else [*parts, last]
            return [block for part in parts for block in _blocks(part)]
    function = function_of(statement)
    return [] if function is None else [function.body]


def function_of(definition: nodes.Node | None) -> nodes.FuncDef | None:
    """Return the function that a definition, decorated or overloaded, has a body for."""
    match definition:
        case nodes.FuncDef():
            return definition
        case nodes.Decorator(func=function):
            return function
        case nodes.OverloadedFuncDef(impl=inner):
            return function_of(inner)
    return None


class Assignments:
    """The assignments to the names of a file, and the places that read them."""

    def __init__(self, tree: nodes.MypyFile) -> None:
        self._loops = [one for one in statements(tree.defs) if isinstance(one, nodes.ForStmt)]
        values: dict[nodes.SymbolNode | None, nodes.Expression] = {}
        # What attributes are set to, by their names.
        self.set_on: dict[str, list[nodes.Expression]] = {}
        self._dropped: set[nodes.Context] = set()
        self._targets: list[nodes.Node] = []
        for statement in statements(tree.defs):
            match statement:
                case nodes.AssignmentStmt(lvalues=lvalues, rvalue=value):
                    self._targets += lvalues
                    for target in lvalues:
                        values.update((name.node, one) for name, one in pairs_of(target, value))
                        if isinstance(target, nodes.MemberExpr):
                            self.set_on.setdefault(target.name, []).append(value)
                case nodes.OperatorAssignmentStmt(lvalue=place) | nodes.ForStmt(index=place):
                    self._targets.append(place)
                case nodes.WithStmt(target=several) | nodes.TryStmt(vars=several):
                    self._targets += filter(None, several)
                case nodes.MatchStmt(patterns=patterns):
                    self._targets += patterns
                case nodes.ExpressionStmt(expr=value):
                    self._dropped.add(value)
        used = get_subexpressions(tree)
        stored = [name for one in self._targets for name in _names(one)]
        stored += [one.target for one in used if isinstance(one, nodes.AssignmentExpr)]
        self._stored = Counter(name.node for name in stored)
        self.values = {node: value for node, value in values.items() if self._stored[node] == 1}
        is_stored = set(stored)
        # What is asked of a variable, by its name: `x.resize`.
        self.asked = {
            (one.expr.node, one.name)
            for one in used
            if isinstance(one, nodes.MemberExpr) and isinstance(one.expr, nodes.NameExpr)
        }
        self.reads = [
            one for one in used if isinstance(one, nodes.NameExpr) and one not in is_stored
        ]

    def value(self, found: nodes.Expression) -> nodes.Expression:
        """Return what a name is assigned, if it is assigned once; else the expression itself."""
        return self.values.get(found.node, found) if isinstance(found, nodes.NameExpr) else found

    def is_dropped(self, value: nodes.Context) -> bool:
        """Tell whether nobody reads a value: it has no name, or one that the file never reads."""
        names = [node for node, one in self.values.items() if one is value]
        read = {one.node for one in self.reads}
        return value in self._dropped or any(one not in read for one in names)

    def is_stored(self, node: nodes.Node | None) -> bool:
        """Tell whether a variable is assigned anything, as a parameter may be."""
        return node in self._stored

    def is_changed(self, node: nodes.Node | None) -> bool:
        """Tell whether an attribute of what a variable holds is assigned."""
        return any(
            isinstance(target, nodes.MemberExpr) and any(one.node is node for one in _names(target))
            for target in self._targets
        )

    @cached_property
    def in_vain(self) -> dict[nodes.Expression, nodes.OperatorAssignmentStmt]:
        """The ``p -= ...`` of names of a ``for`` loop that nobody reads after it, by the `p`."""
        return {
            statement.lvalue: statement
            for loop in self._loops
            for statement in _of_one_turn(loop.body)
            if isinstance(statement, nodes.OperatorAssignmentStmt)
            and isinstance(statement.lvalue, nodes.NameExpr)
            and statement.lvalue.node in {name.node for name in _names(loop.index)}
            and not self._is_read_later(statement.lvalue.node, loop, statement)
        }

    def _is_read_later(
        self, variable: nodes.Node | None, loop: nodes.ForStmt, statement: nodes.Statement
    ) -> bool:
        """Tell whether a variable of a loop may be read after a statement of its body."""
        known = {one for one in get_subexpressions(loop.body) if _end(one) <= _end(statement)}
        for other in self._loops:
            # Another loop gives its name a value of its own.
            if other is not loop and variable in {one.node for one in _names(other.index)}:
                known.update(get_subexpressions(other.body))
        return any(one.node is variable and one not in known for one in self.reads)


assignments_of = once_a_file(Assignments)


def _end(node: nodes.Context) -> tuple[int, int]:
    return node.end_line or node.line, node.end_column or node.column


def _of_one_turn(body: nodes.Block | None) -> Iterator[nodes.Statement]:
    """Yield the statements that a turn of a loop runs at most once."""
    for statement in body.body if body is not None else ():
        yield statement
        if isinstance(statement, nodes.IfStmt | nodes.TryStmt | nodes.WithStmt | nodes.MatchStmt):
            for inner in _blocks(statement):
                yield from _of_one_turn(inner)


def pairs_of(
    target: nodes.Expression, value: nodes.Expression
) -> Iterator[tuple[nodes.NameExpr, nodes.Expression]]:
    """Yield the names that an assignment gives values, each with its own."""
    if isinstance(target, nodes.NameExpr):
        yield target, value
    elif isinstance(target, nodes.TupleExpr) and isinstance(value, nodes.TupleExpr):
        # mypy reports what is too many or too few.
        for one, two in zip(target.items, value.items, strict=False):
            yield from pairs_of(one, two)


def _names(node: nodes.Node) -> list[nodes.NameExpr]:
    return [one for one in get_subexpressions(node) if isinstance(one, nodes.NameExpr)]


# Functions of which a loop goes over what they are given.
WALKING: Final = ("builtins.enumerate", "builtins.zip", "builtins.reversed")
# Functions that may read any attribute.
READ_ALL: Final = frozenset({"getattr", "vars"})


@once_a_file
def attributes_of(tree: nodes.MypyFile) -> set[str]:
    """Return the attributes that a file speaks of, and what it calls to read any."""
    used = get_subexpressions(tree)
    names = {one.name for one in used if isinstance(one, nodes.NameExpr)}
    return {one.name for one in used if isinstance(one, nodes.MemberExpr)} | (names & READ_ALL)


def bases_in(tree: nodes.MypyFile) -> set[str]:
    """Return the names in the bases of the classes in a file."""
    classes = [one for one in statements(tree.defs) if isinstance(one, nodes.ClassDef)]
    return {one.name for cls in classes for base in cls.base_type_exprs for one in _names(base)}


@once_a_file
def joined_in(tree: nodes.MypyFile) -> dict[nodes.Context, list[nodes.Expression]]:
    """Return, by each, the items of which mypy takes one type for all.

    These are those of a display that gets a name, and of one, be it a tuple, that a loop goes over.
    """
    used, named = get_subexpressions(tree), list[nodes.Expression]()
    walked = [
        one for each in used if isinstance(each, nodes.GeneratorExpr) for one in each.sequences
    ]
    for one in used:
        match one:
            case nodes.CallExpr(callee=nodes.RefExpr(fullname=name), args=given):
                named += given if name in WALKING else []
    for statement in statements(tree.defs):
        if isinstance(statement, nodes.AssignmentStmt):
            named.append(statement.rvalue)
        elif isinstance(statement, nodes.ForStmt):
            walked.append(statement.expr)
    found: dict[nodes.Context, list[nodes.Expression]] = {}
    for display in (*named, *walked):
        match display:
            case nodes.ListExpr(items=items) | nodes.SetExpr(items=items):
                found.update(dict.fromkeys(items, items))
            case nodes.TupleExpr(items=items) if display in walked:
                found.update(dict.fromkeys(items, items))
            case nodes.DictExpr(items=pairs):
                values = [value for _, value in pairs]
                found.update(dict.fromkeys(values, values))
    return found


@once_a_file
def displayed_in(tree: nodes.MypyFile) -> set[nodes.Context]:
    """Return what is an item of a list, set or dict display, or within one."""
    found: set[nodes.Context] = set()
    used = get_subexpressions(tree)
    calls = [one for one in used if isinstance(one, nodes.CallExpr)]
    # What is unpacked where it is written, ``Sequential(*[...])``, is given one by one.
    unpacked = {
        given
        for call in calls
        for given, kind in zip(call.args, call.arg_kinds, strict=True)
        if kind is nodes.ARG_STAR
    }
    for one in used:
        if isinstance(one, nodes.ListExpr | nodes.SetExpr) and one not in unpacked:
            _add(found, one.items)
        elif isinstance(one, nodes.DictExpr):
            _add(found, [part for pair in one.items for part in pair if part is not None])
    return found


def _add(found: set[nodes.Context], items: list[nodes.Expression]) -> None:
    for item in items:
        found.add(item)
        if isinstance(item, nodes.TupleExpr):
            _add(found, item.items)
        elif isinstance(item, nodes.ConditionalExpr):
            _add(found, [item.if_expr, item.else_expr])
