"""Bare ints keep their size: ``zeros((5, 3))`` and ``Linear(784, 512)``, without an annotation.

mypy remembers that an argument was the literal 5 only until the result is stored in a variable.
Here the memory becomes a type. What a context asks for goes first: with an annotation
``Tensor1D[int]``, ``zeros((5,))`` is what that says.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.checker import TypeChecker
from mypy.expandtype import expand_type
from mypy.nodes import Expression, IntExpr, RefExpr
from mypy.plugin import FunctionContext, FunctionSigContext, MethodSigContext
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    LiteralType,
    TupleType,
    Type,
    TypeVarId,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin.displays import is_displayed
from tapetensor.mypy_plugin.kinds import ANYTHING, has_dims, is_endless, is_int, members
from tapetensor.mypy_plugin.names import ELSEWHERE
from tapetensor.mypy_plugin.shapes.signatures import settle_dropped, settled


def function_signature(fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
    """Return the hook for the signature of a function or a class."""
    return None if fullname.startswith(ELSEWHERE) else narrow_sizes


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Return the hook for the result of a call of a function or a class."""
    return None if fullname.startswith(ELSEWHERE) else keep_sizes


def method_signature(fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
    """Return the hook for the signature of a method."""
    return None if fullname.startswith(ELSEWHERE) else open_method


def open_method(context: MethodSigContext) -> FunctionLike:
    """Return the signature that takes known sizes where it says `int`."""
    return _opened(settle_dropped(context))


def narrow_sizes(context: FunctionSigContext) -> FunctionLike:
    """Return the signature with literals for the type variables that stand for a size alone."""
    item = _opened(settle_dropped(context))
    result = get_proper_type(item.ret_type)
    if not item.variables or not isinstance(result, Instance) or not has_dims(result):
        return item
    sizes: dict[TypeVarId, Type] = {}
    for formal, arguments in zip(item.arg_types, context.args, strict=True):
        variable = get_proper_type(formal)
        if len(arguments) == 1 and isinstance(variable, TypeVarType):
            literal = _literal(arguments[0], context)
            if literal is not None and _may_be_int(variable.upper_bound):
                sizes[variable.id] = literal
    assert isinstance(context.api, TypeChecker)
    wanted = context.api.expr_checker.type_context[-1]
    wants_ints = wanted is not None and _says_int(wanted)
    if not sizes or wants_ints or is_displayed(context.context, context.api):
        return item
    # A size that other arguments speak of too is found by mypy, from all of them.
    for variable_id in list(sizes):
        only = {variable_id: sizes[variable_id]}
        if sum(expand_type(formal, only) != formal for formal in item.arg_types) > 1:
            del sizes[variable_id]
    return settled(item, sizes)


def keep_sizes(context: FunctionContext) -> Type:
    """Return the result with the literals that its shape was inferred from."""
    result = get_proper_type(context.default_return_type)
    if not isinstance(result, Instance) or not has_dims(result):
        return context.default_return_type
    assert isinstance(context.api, TypeChecker)
    if is_displayed(context.context, context.api):
        return context.default_return_type
    return result.copy_modified(args=[_with_ints(one, _remembered) for one in result.args])


def _opened(item: CallableType) -> CallableType:
    """Return a signature whose parameters have open dims where they say `int`.

    Without the plugin ``zeros((5,))`` is a ``Tensor1D[int]``, and may be passed as one. That it is
    known to have 5 elements must not forbid it.
    """
    formals = [_open_dims(one) for one in item.arg_types]
    if all(one is two for one, two in zip(formals, item.arg_types, strict=True)):
        return item
    return item.copy_modified(arg_types=formals)


def _open_dims(formal: Type) -> Type:
    if is_endless(formal):
        return formal
    proper = get_proper_type(formal)
    if isinstance(proper, UnionType):
        items = [_open_dims(item) for item in proper.items]
        same = all(one is two for one, two in zip(items, proper.items, strict=True))
        return formal if same else UnionType(items, proper.line, proper.column)
    if not isinstance(proper, Instance) or not has_dims(proper) or not _says_int(proper):
        return formal
    return proper.copy_modified(args=[_with_ints(one, lambda _: ANYTHING) for one in proper.args])


def _literal(expression: Expression, context: FunctionSigContext) -> LiteralType | None:
    """Return the literal type of a number, or of a name for one."""
    if not isinstance(expression, IntExpr | RefExpr):
        return None
    found = get_proper_type(context.api.get_expression_type(expression))
    if isinstance(found, Instance) and found.last_known_value is not None:
        found = found.last_known_value
    return found if isinstance(found, LiteralType) and type(found.value) is int else None


def _may_be_int(bound: Type) -> bool:
    """Tell whether a type variable with a bound stands for a size, or for one or several."""
    return any(map(is_int, members(bound)))


def _says_int(wanted: Type) -> bool:
    """Tell whether a context asks for plain ints."""
    if is_endless(wanted):
        return False
    proper = get_proper_type(wanted)
    if isinstance(proper, UnionType | TupleType):
        return any(_says_int(item) for item in proper.items)
    if isinstance(proper, Instance):
        if is_int(proper):
            return proper.last_known_value is None
        return any(_says_int(item) for item in proper.args)
    return False


def _with_ints(argument: Type, replace: Callable[[Instance], Type]) -> Type:
    """Return an argument of a tensor's, or a module's, type with its ints replaced."""
    if is_endless(argument):
        return argument
    proper = get_proper_type(argument)
    if isinstance(proper, TupleType):
        return proper.copy_modified(items=[_with_ints(item, replace) for item in proper.items])
    return replace(proper) if isinstance(proper, Instance) and is_int(proper) else argument


def _remembered(number: Instance) -> Type:
    """Return the literal that mypy remembers of an int, or the int."""
    value = number.last_known_value
    return number if value is None else LiteralType(value.value, value.fallback)
