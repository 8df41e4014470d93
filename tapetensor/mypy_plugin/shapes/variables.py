"""Names that are used again, ``h = strided(h)``, and tensors of several shapes.

mypy infers the type of a variable from its first value. An open dim of a later value meets a known
one there, and mypy takes the known one, which is a false claim. So what the variable is declared
to be is opened, and the known dims of each value are left to mypy's narrowing. In a loop this is
done for dims that differ, too: ``x = concat((x, row))`` grows. And of layers of two sizes in one
tuple, which a loop takes one by one, mypy makes `object`, where here it is one of open sizes.
"""

from __future__ import annotations

from typing import Final

from mypy import nodes
from mypy.checker import TypeChecker
from mypy.plugin import FunctionContext, MethodContext
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    ProperType,
    TupleType,
    Type,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.reading import ANYTHING, has_dims, is_endless, members, read_dim
from tapetensor.mypy_plugin.statements import statements
from tapetensor.rules.dims import differ

_SETTING: Final = (
    "tapetensor.mypy_plugin: a name keeps the shape of its first tensor; with "
    "`allow_redefinition = True` in mypy.ini it takes another one"
)


class _Values:
    """The values of names in the file that is being checked, by the expression."""

    def __init__(self) -> None:
        self.statements: list[nodes.Statement] | None = None
        self.names: dict[nodes.Context, nodes.NameExpr] = {}
        self.looped: set[nodes.Context] = set()
        self.added_to: set[nodes.Context] = set()


_found = _Values()


def open_name(context: FunctionContext | MethodContext, *, may_grow: bool = False) -> Type:
    """Open the dims of a variable that the result of a call, which is stored in it, has not.

    Args:
        may_grow: whether the dims of the variable may differ from one turn of a loop to the next:
            whether plain typing leaves those of the result open.
    """
    result = get_proper_type(context.default_return_type)
    if not isinstance(result, Instance) or result.type.fullname != TENSOR:
        return context.default_return_type
    api = context.api
    assert isinstance(api, TypeChecker)
    if _found.statements is not api.tree.defs:
        _read(api.tree)
    name = _name_of(context.context)
    node = None if name is None else name.node
    if name is None or not isinstance(node, nodes.Var) or node.is_final:
        return distributed(result)
    grows = may_grow and context.context in _found.looped
    # What is annotated stays what that says; a parameter says what it is given.
    is_parameter = reporting.is_parameter(api, node)
    declared = get_proper_type(node.type)
    may_change = node.is_inferred or is_parameter
    if node.is_inferred and _is_number(declared) and not api.options.allow_redefinition:
        # ``total = 0.0; total = total + loss``: it begins as a number, and is a tensor from here.
        # mypy has read the type that it had, of which the result must be one.
        reporting.redeclare(api, name, result)
        return ANYTHING
    if not may_change or not isinstance(declared, Instance) or declared.type is not result.type:
        return result
    if is_parameter and not grows:
        return _kept(api, name, declared, result)
    opened = _opened(declared.args[0], result.args[0], grows=grows)
    if opened is not None:
        declared = declared.copy_modified(args=[opened, *declared.args[1:]])
        reporting.redeclare(api, name, declared)
    shape = (grows and _opened(result.args[0], declared.args[0], grows=True)) or result.args[0]
    return _kept(api, name, declared, result.copy_modified(args=[shape, *result.args[1:]]))


def _name_of(made: nodes.Context) -> nodes.NameExpr | None:
    """Return the name that a value is given, be it by ``x += y``."""
    match made:
        case nodes.OpExpr(left=nodes.NameExpr() as name) if name in _found.added_to:
            return name
    return _found.names.get(made)


def _is_number(found: Type | None) -> bool:
    proper = get_proper_type(found)
    names = ("builtins.int", "builtins.float")
    return isinstance(proper, Instance) and proper.type.fullname in names


def _kept(api: TypeChecker, name: nodes.NameExpr, declared: Instance, result: Instance) -> Instance:
    """Return the result; note which setting lets the name take it, where mypy will refuse it."""
    if not api.options.allow_redefinition and not is_subtype(result, declared):
        reporting.note_once(api, _SETTING, name)
    return result


def _opened(declared: Type, found: Type, *, grows: bool) -> Type | None:
    """Return a shape with open dims where the other has some; None if it has them already."""
    known, new = get_proper_type(declared), get_proper_type(found)
    if not isinstance(known, TupleType):
        return None
    if not isinstance(new, TupleType) or len(new.items) != len(known.items):
        return ANYTHING if isinstance(new, AnyType) else None
    items = [
        ANYTHING if _is_open(one, two, grows=grows) else one
        for one, two in zip(known.items, new.items, strict=True)
    ]
    changed = any(one is not two for one, two in zip(items, known.items, strict=True))
    return known.copy_modified(items=items) if changed else None


def _is_open(known: Type, new: Type, *, grows: bool) -> bool:
    if isinstance(get_proper_type(known), AnyType):
        return False
    lhs, rhs = read_dim(known), read_dim(new)
    if isinstance(get_proper_type(new), AnyType):
        return lhs is not None
    return grows and lhs is not None and rhs is not None and differ(lhs, rhs)


def _read(tree: nodes.MypyFile) -> None:
    _found.statements = tree.defs
    _found.names, _found.looped, _found.added_to = {}, set(), set()
    for statement in statements(tree.defs):
        if isinstance(statement, nodes.AssignmentStmt):
            for lvalue in statement.lvalues:
                _add(lvalue, statement.rvalue)
        elif isinstance(statement, nodes.OperatorAssignmentStmt):
            _found.added_to.add(statement.lvalue)
        elif isinstance(statement, nodes.ForStmt | nodes.WhileStmt):
            for inner in statements(statement.body.body):
                if isinstance(inner, nodes.AssignmentStmt):
                    _found.looped.update(_values(inner.rvalue))


def _add(lvalue: nodes.Expression, rvalue: nodes.Expression) -> None:
    if isinstance(lvalue, nodes.NameExpr):
        for one in _values(rvalue):
            _found.names[one] = lvalue
    elif isinstance(lvalue, nodes.TupleExpr) and isinstance(rvalue, nodes.TupleExpr):
        for one, two in zip(lvalue.items, rvalue.items, strict=False):
            _add(one, two)


def _values(rvalue: nodes.Expression) -> list[nodes.Expression]:
    """Return what an expression may be the value of."""
    if isinstance(rvalue, nodes.ConditionalExpr):
        return [*_values(rvalue.if_expr), *_values(rvalue.else_expr)]
    if isinstance(rvalue, nodes.TupleExpr):
        return [value for one in rvalue.items for value in _values(one)]
    return [rvalue]


WALKING: Final = ("builtins.enumerate", "builtins.zip", "builtins.reversed")


def walked(context: FunctionContext | MethodContext) -> Type:
    """Return the result of `zip` or the like with open sizes for what mypy takes for objects."""
    result = get_proper_type(context.default_return_type)
    items = [_items(one) for given in context.arg_types for one in given]
    if not isinstance(result, Instance) or len(result.args) != 1 or not any(items):
        return context.default_return_type
    inner = get_proper_type(result.args[0])
    if not isinstance(inner, TupleType):
        return result.copy_modified(args=[_known(inner, items[0])])
    # What follows is `strict`.
    each = map(_known, map(get_proper_type, inner.items), items)
    return result.copy_modified(args=[inner.copy_modified(items=list(each))])


def summed(context: FunctionContext | MethodContext) -> Type:
    """Return the result of `sum` of tensors: a tensor, where mypy adds the 0 of an empty list."""
    items = [one for one in members(context.default_return_type) if not _is_zero(one)]
    tensors = [one for one in items if has_dims(one)]
    return (
        UnionType.make_union(tensors)
        if items and len(tensors) == len(items)
        else (context.default_return_type)
    )


def _is_zero(found: ProperType) -> bool:
    return isinstance(found, LiteralType) and found.value == 0


def distributed(found: Instance) -> Type:
    """Return a tensor of one shape or another as one tensor or another."""
    shape = get_proper_type(found.args[0])
    if not isinstance(shape, UnionType):
        return found
    tensors = [found.copy_modified(args=[one, *found.args[1:]]) for one in shape.items]
    return UnionType(tensors, found.line, found.column)


def _items(found: Type) -> list[Instance]:
    """Return the layers or tensors in a tuple; nothing where something else is in it."""
    proper = get_proper_type(found)
    if is_endless(found) or not isinstance(proper, TupleType):
        return []
    items = map(get_proper_type, proper.items)
    found_items = [one for one in items if isinstance(one, Instance) and has_dims(one)]
    return found_items if len(found_items) == len(proper.items) else []


def _known(joined: ProperType, items: list[Instance]) -> Type:
    if not isinstance(joined, Instance) or joined.type.fullname != "builtins.object" or not items:
        return joined
    by_class: dict[str, list[Instance]] = {}
    for one in items:
        by_class.setdefault(one.type.fullname, []).append(one)
    return UnionType.make_union([_with_open_dims(*several) for several in by_class.values()])


def _with_open_dims(first: Instance, *others: Instance) -> Instance:
    """Return a type with open dims, and shapes, where those of one class differ."""
    args = [
        one if all(one == other.args[place] for other in others) else ANYTHING
        for place, one in enumerate(first.args)
    ]
    return first.copy_modified(args=args)
