"""`map` with a function that says ``Mul[H, K]`` in its signature.

mypy compares such a function part by part with what is wanted of its result, without working out
what is computed. So the items are given to the function here, and the result is exact.
"""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.nodes import ARG_POS, Expression, RefExpr, TempNode
from mypy.plugin import FunctionSigContext
from mypy.types import CallableType, FunctionLike, Instance, Type, get_proper_type

from tapetensor.mypy_plugin.kinds import ANYTHING
from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.shapes.calls import Context, fitted, is_readable, type_of
from tapetensor.mypy_plugin.shapes.computed import mentions, respelled
from tapetensor.mypy_plugin.shapes.signatures import compute_dims


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
