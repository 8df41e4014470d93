"""Names that are used again, ``h = strided(h)``, and tensors of several shapes.

mypy infers the type of a variable from its first value. An open dim of a later value meets a known
one there, and mypy takes the known one, which is a false claim. So what the variable is declared
to be is opened, and the known dims of each value are left to mypy's narrowing. In a loop this is
done for dims that differ, too: ``x = concat((x, row))`` grows. And of layers of two sizes in one
tuple, which a loop takes one by one, mypy makes `object`, where here it is one of open sizes.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Final

from mypy import nodes, types
from mypy.checker import TypeChecker
from mypy.plugin import AttributeContext, FunctionContext, MethodContext
from mypy.server.subexpr import get_subexpressions
from mypy.subtypes import is_same_type, is_subtype
from mypy.typeops import make_simplified_union

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    has_dims,
    instance_of,
    is_any,
    is_endless,
    members,
    read_int,
    read_tensor,
)
from tapetensor.mypy_plugin.reporting import checker_of
from tapetensor.mypy_plugin.shapes.broadcasting import is_number
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.shapes.computed import are_other_dims, opened
from tapetensor.mypy_plugin.statements import (
    WALKING,
    assignments_of,
    joined_in,
    once_a_file,
    pairs_of,
    statements,
)
from tapetensor.rules.dims import differ

_SETTING: Final = (
    "tapetensor.mypy_plugin: a name keeps the shape of its first tensor; with "
    "`allow_redefinition = True` in mypy.ini it takes another one"
)


class _Values:
    """The values of the names in a file.

    Attributes:
        names: the name that is given a value.
        looped: the values that names are given in loops.
        unrolled: those of loops over what is listed.
    """

    def __init__(self, tree: nodes.MypyFile) -> None:
        self.names: dict[nodes.Context, nodes.NameExpr] = {}
        self.looped: set[nodes.Context] = set()
        self.unrolled: set[nodes.Context] = set()
        self._added_to: set[nodes.Context] = set()
        for statement in statements(tree.defs):
            match statement:
                case nodes.AssignmentStmt(lvalues=lvalues, rvalue=rvalue):
                    for lvalue in lvalues:
                        self._add(lvalue, rvalue)
                case nodes.OperatorAssignmentStmt(lvalue=lvalue):
                    self._added_to.add(lvalue)
                case nodes.ForStmt(body=body) | nodes.WhileStmt(body=body):
                    values = [
                        value
                        for inner in statements(body.body)
                        if isinstance(inner, nodes.AssignmentStmt)
                        for value in _values(inner.rvalue)
                    ]
                    self.looped.update(values)
                    if isinstance(statement, nodes.ForStmt) and _is_display(statement.expr, tree):
                        self.unrolled.update(values)

    def _add(self, lvalue: nodes.Expression, rvalue: nodes.Expression) -> None:
        for target, value in pairs_of(lvalue, rvalue):
            self.names.update(dict.fromkeys(_values(value), target))

    def name_of(self, made: nodes.Context) -> nodes.NameExpr | None:
        """Return the name that a value is given, be it by ``x += y``."""
        match made:
            case nodes.OpExpr(left=nodes.NameExpr() as name) if name in self._added_to:
                return name
        return self.names.get(made)


_values_of = once_a_file(_Values)


def open_name(context: FunctionContext | MethodContext, *, may_grow: bool = False) -> types.Type:
    """Open the dims of a variable that the result of a call, which is stored in it, has not.

    Args:
        may_grow: whether the dims of the variable may differ from one turn of a loop to the next:
            whether plain typing leaves those of the result open.
    """
    result = types.get_proper_type(context.default_return_type)
    if not isinstance(result, types.Instance) or result.type.fullname != TENSOR:
        return context.default_return_type
    api = checker_of(context)
    values = _values_of(api.tree)
    name = values.name_of(context.context)
    node = None if name is None else name.node
    if name is None or not isinstance(node, nodes.Var) or node.is_final:
        return distributed(result)
    grows = context.context in (values.looped if may_grow else values.unrolled)
    # What is annotated stays what that says; a parameter says what it is given.
    inside = reporting.function(api)
    is_parameter = inside is not None and node in [one.variable for one in inside.arguments]
    redefines = api.options.allow_redefinition
    # ``total = 0.0; total = total + loss``: it begins as a number, and is a tensor from here.
    if node.is_inferred and is_number(node.type) and not redefines:
        # mypy has read the type that it had, of which the result must be one.
        reporting.redeclare(api, name, result, lambda _: result)
        return ANYTHING
    if node.is_inferred and redefines and is_number(reporting.type_now(api, name)):
        if _adds_to(context.context, name):
            # mypy makes it a number or a tensor, which lacks what numbers have not.
            others = [one for one in members(node.type) if not is_number(one)]
            reporting.redeclare(
                api,
                name,
                types.UnionType.make_union(others),
                lambda found: result if is_number(found) else found,
            )
        return result
    tensors = [one for one in members(node.type) if isinstance(one, types.Instance)]
    tensors = [one for one in tensors if one.type is result.type]
    if not tensors or not (node.is_inferred or is_parameter):
        return result
    if is_parameter and not grows and not redefines:
        return _kept(api, name, tensors[0], result)
    new: types.Type = result
    if grows:
        for one in members(reporting.type_now(api, name)):
            if isinstance(one, types.Instance) and one.type is result.type:
                new = opened(new, one, _is_open_or_other)
    declared = _all_opened(node.type, new)
    if declared is not node.type:
        reporting.redeclare(api, name, declared, lambda found: _all_opened(found, new))
    return _kept(api, name, declared, new)


def _adds_to(made: nodes.Context, name: nodes.NameExpr) -> bool:
    """Tell whether a value is computed with what the name has."""
    inner = get_subexpressions(made) if isinstance(made, nodes.Expression) else []
    return any(isinstance(one, nodes.NameExpr) and one.node is name.node for one in inner)


def _kept(
    api: TypeChecker, name: nodes.NameExpr, declared: types.Type, result: types.Type
) -> types.Type:
    """Return the result; note which setting lets the name take it, where mypy will refuse it."""
    if not api.options.allow_redefinition and not is_subtype(result, declared):
        reporting.note_once(api, _SETTING, name)
    return result


def _all_opened(declared: types.Type | None, result: types.Type) -> types.Type:
    """Return a type with open parts in the tensors of which the result may be one, as it has them.

    Of a tensor with an open part and of the tensors that it may be mypy takes the latter.
    """
    items = members(declared)
    found = [one if _is_other(one, result) else opened(one, result, _is_open) for one in items]
    is_same = declared is not None and all(map(is_same_type, found, items))
    return declared if is_same and declared is not None else make_simplified_union(found)


def _is_other(one: types.ProperType, result: types.Type) -> bool:
    """Tell whether two are not tensors of one rank, or have other dims at one place."""
    lhs, rhs = read_tensor(one), read_tensor(result)
    if lhs is None or rhs is None or lhs.shape is None or rhs.shape is None:
        return lhs is None or rhs is None
    return len(lhs.shape) != len(rhs.shape) or any(map(differ, lhs.shape, rhs.shape))


def _is_open(_: types.Type, new: types.Type) -> bool:
    return is_any(new)


def _is_open_or_other(one: types.Type, two: types.Type) -> bool:
    return _is_open(one, two) or are_other_dims(one, two)


def _is_display(walked: nodes.Expression, tree: nodes.MypyFile) -> bool:
    """Tell whether a loop goes over what is listed: layers, say, each of a size of its own.

    mypy takes it for one that may have no turn, and a name for what it was before, too.
    """
    match assignments_of(tree).value(walked):
        case nodes.CallExpr(callee=nodes.RefExpr(fullname=name), args=given) if name in WALKING:
            return any(_is_display(one, tree) for one in given)
        case nodes.ListExpr(items=[_, *_]) | nodes.TupleExpr(items=[_, *_]):
            return True
    return False


def _values(rvalue: nodes.Expression) -> list[nodes.Expression]:
    """Return what an expression may be the value of."""
    if isinstance(rvalue, nodes.ConditionalExpr):
        return [*_values(rvalue.if_expr), *_values(rvalue.else_expr)]
    if isinstance(rvalue, nodes.TupleExpr):
        return [value for one in rvalue.items for value in _values(one)]
    return [rvalue]


def walked(context: FunctionContext | MethodContext) -> types.Type:
    """Return the result of `zip` or the like with open sizes for what mypy takes for objects."""
    result = types.get_proper_type(context.default_return_type)
    items = [_items(one) for given in context.arg_types for one in given]
    if not isinstance(result, types.Instance) or len(result.args) != 1 or not any(items):
        return context.default_return_type
    inner = types.get_proper_type(result.args[0])
    if not isinstance(inner, types.TupleType):
        return result.copy_modified(args=[_known(inner, items[0])])
    # What follows is `strict`.
    each = map(_known, map(types.get_proper_type, inner.items), items)
    return result.copy_modified(args=[inner.copy_modified(items=list(each))])


def summed(context: FunctionContext | MethodContext) -> types.Type:
    """Return the result of `sum` of tensors: a tensor, where mypy adds the 0 of an empty list."""
    items = [one for one in members(context.default_return_type) if read_int(one) != 0]
    is_tensor = bool(items) and all(map(has_dims, items))
    return types.UnionType.make_union(items) if is_tensor else context.default_return_type


def distributed(found: types.Instance) -> types.Type:
    """Return a tensor of one shape or another as one tensor or another."""
    shape = types.get_proper_type(found.args[0])
    if not isinstance(shape, types.UnionType):
        return found
    tensors = [found.copy_modified(args=[one, *found.args[1:]]) for one in shape.items]
    return types.UnionType(tensors, found.line, found.column)


def _items(found: types.Type) -> list[types.Instance]:
    """Return the layers or tensors in a tuple; nothing where something else is in it."""
    proper = types.get_proper_type(found)
    if is_endless(found) or not isinstance(proper, types.TupleType):
        return []
    items = map(types.get_proper_type, proper.items)
    found_items = [one for one in items if isinstance(one, types.Instance) and has_dims(one)]
    return found_items if len(found_items) == len(proper.items) else []


def _known(joined: types.ProperType, items: list[types.Instance]) -> types.Type:
    if instance_of(joined, "builtins.object") is None or not items:
        return joined
    by_class: dict[str, list[types.Instance]] = {}
    for one in items:
        by_class.setdefault(one.type.fullname, []).append(one)
    return types.UnionType.make_union([_with_open_dims(several) for several in by_class.values()])


def _with_open_dims(several: list[types.Instance]) -> types.Type:
    """Return a type with open dims, and shapes, where those of one class differ."""
    first: types.Type = several[0]
    return reduce(lambda one, two: opened(one, two, operator.ne), several[1:], first)


_asking: set[nodes.Context] = set()


def displayed(context: AttributeContext) -> types.Type:
    """Return the type of an attribute, with open dims beside others of its class in a display.

    Of ``[self.hidden.weight, self.out.weight]`` mypy makes a list of objects.
    """
    found, api = types.get_proper_type(context.default_attr_type), checker_of(context)
    node = context.context
    if _asking or not isinstance(found, types.Instance) or not has_dims(found):
        return context.default_attr_type
    others: list[types.Instance] = []
    _asking.add(node)
    try:
        for one in joined_in(api.tree).get(node, []):
            beside = None if one is node else types.get_proper_type(type_of(one, api))
            if isinstance(beside, types.Instance) and beside.type is found.type:
                others.append(beside)
    finally:
        _asking.discard(node)
    return _with_open_dims([found, *others]) if others else context.default_attr_type
