"""Functions that are handed on: ``map(f, items)`` and ``partial(f, delta=2.0)``.

mypy compares a function that says ``Mul[H, K]`` in its signature part by part with what is wanted
of the result of `map`, without working out what is computed: it is taken for a fitting one. Of an
overloaded function in a `partial` it knows the first overload only: the arguments are given to the
function here.
"""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.nodes import CallExpr, Expression, MemberExpr, RefExpr
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import FunctionLike, Instance, Overloaded, Type, get_proper_type

from tapetensor.mypy_plugin.reading import ANYTHING, class_of, has_dims
from tapetensor.mypy_plugin.shapes.calls import Context, type_of
from tapetensor.mypy_plugin.shapes.computed import mentions
from tapetensor.mypy_plugin.statements import assignments_of


def mapped(context: Context) -> FunctionLike:
    """Return the signature of `map` that takes a function with computed dims as it is."""
    item, api = context.default_signature, context.api
    made = get_proper_type(item.ret_type)
    function = context.args[0][0] if context.args and context.args[0] else None
    assert isinstance(api, TypeChecker)
    if not isinstance(function, RefExpr) or not mentions(type_of(function, api)):
        return item
    assert isinstance(made, Instance)
    formals: list[Type] = [ANYTHING, *item.arg_types[1:]]
    return item.copy_modified(arg_types=formals, ret_type=made.copy_modified(args=[ANYTHING]))


def called_partial(context: FunctionContext | MethodContext) -> Type:
    """Return what the call of a partial gives, checked as that of its overloaded function."""
    api, call = context.api, context.context
    assert isinstance(api, TypeChecker)
    made = _made(call.callee, api) if isinstance(call, CallExpr) else None
    match made:
        case CallExpr(callee=RefExpr(fullname="functools.partial"), args=[function, *given]):
            found = get_proper_type(type_of(function, api))
            items = found.items if isinstance(found, Overloaded) else []
            if any(has_dims(formal) for item in items for formal in item.arg_types):
                assert isinstance(call, CallExpr)
                whole = CallExpr(
                    function,
                    [*given, *call.args],
                    [*made.arg_kinds[1:], *call.arg_kinds],
                    [*made.arg_names[1:], *call.arg_names],
                )
                whole.set_line(call)
                return api.expr_checker.accept(whole, api.expr_checker.type_context[-1])
    return context.default_return_type


def _made(callee: Expression, api: TypeChecker) -> Expression:
    """Return what a name, or an attribute that is set once and in this file, was assigned."""
    known = assignments_of(api.tree)
    if not isinstance(callee, MemberExpr):
        return known.value(callee)
    owner = class_of(type_of(callee.expr, api))
    is_near = owner is not None and owner.module_name == api.tree.fullname
    values = known.set_on.get(callee.name, []) if is_near else []
    return values[0] if len(values) == 1 else callee
