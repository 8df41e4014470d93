"""Bare ints keep their size: ``zeros((5, 3))`` and ``Linear(784, 512)``, without an annotation.

mypy remembers that an argument was the literal 5 only until the result is stored in a variable.
Here the memory becomes a type. What a context asks for goes first: with an annotation
``Tensor1D[int]``, ``zeros((5,))`` is what that says.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy import types
from mypy.expandtype import expand_type
from mypy.nodes import Expression, IntExpr, RefExpr
from mypy.plugin import FunctionContext, FunctionSigContext, MethodSigContext

from tapetensor.mypy_plugin.names import but_elsewhere
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    has_dims,
    is_endless,
    is_int,
    members,
    read_int,
    write_known,
)
from tapetensor.mypy_plugin.reporting import checker_of, wanted_by
from tapetensor.mypy_plugin.shapes.computed import integer_of, parts, rebuilt, size_of
from tapetensor.mypy_plugin.shapes.signatures import settled
from tapetensor.mypy_plugin.statements import displayed_in
from tapetensor.rules.dims import INT, Size


def open_method(context: MethodSigContext) -> types.FunctionLike:
    """Return the signature that takes known sizes where it says `int`."""
    return _opened(context.default_signature)


def narrow_sizes(context: FunctionSigContext) -> types.FunctionLike:
    """Return the signature with literals for the type variables that stand for a size alone."""
    item = _opened(context.default_signature)
    result = types.get_proper_type(item.ret_type)
    if not item.variables or not _holds_dims(result):
        return item
    sizes: dict[types.TypeVarId, types.Type] = {}
    given: dict[int, types.Type] = {}
    for index, (formal, arguments) in enumerate(zip(item.arg_types, context.args, strict=True)):
        variable = types.get_proper_type(formal)
        if len(arguments) != 1 or not isinstance(variable, types.TypeVarType):
            continue
        # It stands for a size, or for one or several.
        may_be_int = any(map(is_int, members(variable.upper_bound)))
        size = _size(arguments[0], context) if may_be_int else None
        if size is not None:
            sizes[variable.id] = size
            # It may be an int for mypy: a member of an `IntEnum`, or computed from names.
            given[index] = context.api.get_expression_type(arguments[0])
    api = checker_of(context)
    if not sizes or _says_int(wanted_by(api)) or context.context in displayed_in(api.tree):
        return item
    # A size that other arguments speak of too is found by mypy, from all of them.
    for variable_id in list(sizes):
        only = {variable_id: sizes[variable_id]}
        if sum(expand_type(formal, only) != formal for formal in item.arg_types) > 1:
            del sizes[variable_id]
    narrowed = settled(item, sizes)
    formals = [given.get(index, one) for index, one in enumerate(narrowed.arg_types)]
    return narrowed.copy_modified(arg_types=formals)


def keep_sizes(context: FunctionContext) -> types.Type:
    """Return the result with the literals that its shape was inferred from."""
    result = types.get_proper_type(context.default_return_type)
    if not isinstance(result, types.Instance) or not has_dims(result):
        return context.default_return_type
    if context.context in displayed_in(checker_of(context).tree):
        return context.default_return_type
    return _with_ints(result, _remembered)


function_signature, function_result = but_elsewhere(narrow_sizes), but_elsewhere(keep_sizes)
method_signature = but_elsewhere(open_method)


def _holds_dims(found: types.Type) -> bool:
    """Tell whether a type is that of a tensor or a module, or of a tuple or an iterable of such."""
    proper = types.get_proper_type(found)
    is_ours = isinstance(proper, types.Instance) and proper.type.module_name.startswith(
        "tapetensor."
    )
    inner = parts(proper) if is_ours or isinstance(proper, types.TupleType) else ()
    return has_dims(proper) or any(map(_holds_dims, inner))


def _opened(item: types.CallableType) -> types.CallableType:
    """Return a signature whose parameters have open dims where they say `int`.

    Without the plugin ``zeros((5,))`` is a ``Tensor1D[int]``, and may be passed as one. That it is
    known to have 5 elements must not forbid it.
    """
    formals = [_open_dims(one) for one in item.arg_types]
    if all(one is two for one, two in zip(formals, item.arg_types, strict=True)):
        return item
    return item.copy_modified(arg_types=formals)


def _open_dims(formal: types.Type) -> types.Type:
    def opened(one: types.ProperType) -> types.Type | None:
        if has_dims(one):
            return _with_ints(one, lambda _: ANYTHING)
        return None if isinstance(one, types.UnionType) else one

    return rebuilt(formal, opened)


def _size(expression: Expression, context: FunctionSigContext) -> types.Type | None:
    """Return the type of a size: of a number, a name for one, or what is computed from names."""
    integer = context.api.named_generic_type("builtins.int", [])
    found = context.api.get_expression_type(expression)
    number = read_int(found)
    if number is not None:
        return (
            types.LiteralType(number, integer)
            if isinstance(expression, IntExpr | RefExpr)
            else None
        )
    size = size_of(expression, checker_of(context)) if is_int(found) else INT
    return write_known(size, integer) if isinstance(size, Size) else None


def _says_int(wanted: types.Type | None) -> bool:
    """Tell whether a context asks for plain ints."""
    proper = types.get_proper_type(wanted)
    if isinstance(proper, types.Instance) and is_int(proper):
        return proper.last_known_value is None
    return proper is not None and not is_endless(wanted) and any(map(_says_int, parts(proper)))


def _with_ints(found: types.Type, replace: Callable[[types.Instance], types.Type]) -> types.Type:
    """Return the type of a tensor or a module with its ints replaced."""

    def changed(one: types.ProperType) -> types.Type | None:
        if isinstance(one, types.Instance) and (is_int(one) or one.type.has_base("enum.IntEnum")):
            return replace(one)
        return None if has_dims(one) or isinstance(one, types.TupleType) else one

    return rebuilt(found, changed)


def _remembered(number: types.Instance) -> types.Type:
    """Return the literal that mypy remembers of an int, or the int."""
    value = read_int(number)
    if value is None or number.last_known_value is None:
        return number
    return types.LiteralType(value, integer_of(number))
