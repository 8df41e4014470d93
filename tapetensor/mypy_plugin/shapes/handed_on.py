"""Functions that are handed on: ``map(f, items)`` and ``partial(f, delta=2.0)``.

mypy compares a function that says ``Mul[H, K]`` in its signature part by part with what is wanted
of the result of `map`, without working out what is computed; and of an overloaded function in a
`partial` it knows the first overload only. So the arguments are given to the function here.
"""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.nodes import ARG_POS, CallExpr, Expression, RefExpr, TempNode
from mypy.plugin import FunctionContext, FunctionSigContext, MethodContext
from mypy.types import CallableType, FunctionLike, Instance, Overloaded, Type, get_proper_type

from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.reading import ANYTHING, has_dims
from tapetensor.mypy_plugin.shapes.calls import Context, fitted, is_readable, type_of
from tapetensor.mypy_plugin.shapes.computed import mentions, respelled
from tapetensor.mypy_plugin.shapes.signatures import compute_dims
from tapetensor.mypy_plugin.statements import assignments_of


def mapped(context: Context) -> FunctionLike:
    """Return the signature of `map` with what its function makes of these items."""
    item = context.default_signature
    made = get_proper_type(item.ret_type)
    given = [one for one, kind in zip(context.args, item.arg_kinds, strict=True) if kind is ARG_POS]
    if not is_readable(context) or not isinstance(made, Instance):
        return item
    if len(given) < 2 or any(len(one) != 1 for one in given):
        return item
    function, *iterables = [one for (one,) in given]
    assert isinstance(context.api, TypeChecker)
    if not isinstance(function, RefExpr) or not mentions(type_of(function, context.api)):
        return item
    called = get_proper_type(type_of(function, context.api))
    result = _result(context, context.api, called, iterables)
    if result is None:
        return item
    formals: list[Type] = [ANYTHING, *item.arg_types[1:]]
    return item.copy_modified(arg_types=formals, ret_type=made.copy_modified(args=[result]))


def called_partial(context: FunctionContext | MethodContext) -> Type:
    """Return what the call of a partial gives, checked as that of its overloaded function."""
    api, call = context.api, context.context
    assert isinstance(api, TypeChecker)
    made = assignments_of(api.tree).value(call.callee) if isinstance(call, CallExpr) else None
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


def _result(
    context: Context, api: TypeChecker, function: Type, iterables: list[Expression]
) -> Type | None:
    """Return what a function makes of an item of each iterable; None if it takes no such item."""
    if not isinstance(function, CallableType):
        return None
    arguments: list[Expression] = []
    with api.msg.filter_errors() as messages:
        for one in iterables:
            found = type_of(one, api)
            _, item = api.analyze_iterable_item_type_without_expression(found, one)
            arguments.append(TempNode(item, context=context.context))
        if not function.is_type_obj() and len(function.arg_types) == len(arguments):
            each = [[one] for one in arguments]
            function = compute_dims(FunctionSigContext(each, function, context.context, api))
        kinds = [ARG_POS] * len(arguments)
        found, _ = api.expr_checker.check_call(function, arguments, kinds, context.context)
    if messages.has_new_errors():
        return None
    found = get_proper_type(respelled(found))
    wanted = get_proper_type(api.expr_checker.type_context[-1])
    if isinstance(found, Instance) and found.type.fullname == TENSOR:
        # The place of the call wants an iterator, or a list, of these.
        items = wanted.args[:1] if isinstance(wanted, Instance) else ()
        return fitted(found, api, *items)
    return found
