"""One name of a signature, one size: `N` of both operands of ``f(x: Tensor1D[N], y: Tensor1D[N])``.

mypy sees to that itself, but not always: of a type variable of the caller and a literal it takes
the join in some runs, which is `Any`, and accepts both; and it says nothing where the call is an
argument of another generic one. Where it does see it, it cannot infer a type parameter, and shows
no shape. So the name is put into the signature as the first argument has it, and mypy says which
one does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mypy.checker import TypeChecker
from mypy.errorcodes import ARG_TYPE
from mypy.expandtype import expand_type
from mypy.messages import callable_name, format_type_distinctly
from mypy.nodes import CallExpr, FuncDef, OpExpr
from mypy.types import (
    CallableType,
    Instance,
    TupleType,
    Type,
    TypeVarId,
    TypeVarTupleType,
    TypeVarType,
    UnionType,
    UnpackType,
    get_proper_type,
)

from tapetensor.mypy_plugin.kinds import ANYTHING, has_dims, is_endless
from tapetensor.mypy_plugin.shapes.calls import Context, is_readable, refused_result, type_of
from tapetensor.mypy_plugin.shapes.reading import is_computed, read_dim
from tapetensor.mypy_plugin.shapes.signatures import settled
from tapetensor.rules.dims import INT, differ


def agreeing(context: Context) -> CallableType:
    """Return the signature with one size for each name on which the arguments do not agree."""
    item, api = context.default_signature, context.api
    assert isinstance(api, TypeChecker)
    if not _has_dims(item) or not is_readable(context):
        return item
    given = [
        (formal, argument)
        for formal, arguments in zip(item.arg_types, context.args, strict=True)
        for argument in arguments
    ]
    known: dict[TypeVarId, Type] = {}
    settling: dict[TypeVarId, Type] = {}
    disputed = False
    for formal, argument in given if item.variables else ():
        for name, found in _matched(formal, type_of(argument, api)):
            first = known.setdefault(name, found)
            if _disagree(first, found):
                disputed, settling[name] = True, first
            elif name not in settling and (opened := _opened(first, found)) != first:
                known[name] = settling[name] = opened
    if settling:
        item = settled(item, settling)
    # Overloads are asked one by one, and where this one does not fit the next may.
    is_alone = isinstance(item.definition, FuncDef)
    return _reported(context, item, known, disputed) if is_alone else item


def _reported(
    context: Context, item: CallableType, known: Mapping[TypeVarId, Type], disputed: bool
) -> CallableType:
    """Report arguments with other dims than their parameters, if mypy would blame another call.

    It checks a call within a call with what the outer one wants of it for a hint, and complains
    of the innermost argument.

    Args:
        known: what the names of the signature stand for.
        disputed: whether the arguments do not agree on one of them.
    """
    api, called, formals = context.api, context.context, [*item.arg_types]
    assert isinstance(api, TypeChecker)
    for index, arguments in enumerate(context.args):
        for argument in arguments:
            if not disputed and not isinstance(argument, CallExpr | OpExpr):
                continue
            found = type_of(argument, api)
            if not isinstance(called, CallExpr) or not _clashes(item, formals[index], found):
                continue
            place = called.args.index(argument)
            name = called.arg_names[place]
            label = f"{place + 1}" if name is None else f'"{name}"'
            got, wanted = format_type_distinctly(
                found, expand_type(formals[index], known), options=api.options
            )
            api.fail(
                f"Argument {label} to {callable_name(item)} has incompatible type {got}; "
                f"expected {wanted}",
                argument,
                code=ARG_TYPE,
            )
            formals[index] = found
    if formals == item.arg_types:
        return item
    result = get_proper_type(item.ret_type)
    refused = refused_result(item) if has_dims(result) else item.ret_type
    return item.copy_modified(arg_types=formals, ret_type=refused)


def _clashes(item: CallableType, formal: Type, actual: Type) -> bool:
    """Tell whether an argument has a dim that is not the one which a parameter has there."""
    open_names = {variable.id for variable in item.variables}
    for declared, found in _paired(formal, actual):
        left = get_proper_type(declared)
        is_open = isinstance(left, TypeVarType) and left.id in open_names
        if not is_open and not is_computed(left) and _disagree(left, found):
            return True
    return False


def _has_dims(item: CallableType) -> bool:
    """Tell whether a parameter has a shape, or dims."""
    proper = map(get_proper_type, item.arg_types)
    formals = [one.items if isinstance(one, TupleType | UnionType) else [one] for one in proper]
    return any(any(map(has_dims, one)) for one in formals)


def _matched(formal: Type, actual: Type) -> Iterator[tuple[TypeVarId, Type]]:
    """Yield the names in the shapes of a parameter, and what an argument has there."""
    for declared, found in _paired(formal, actual):
        if isinstance(declared, TypeVarType | TypeVarTupleType):
            yield declared.id, found


def _paired(formal: Type, actual: Type) -> Iterator[tuple[Type, Type]]:
    """Yield the parts of the shapes of a parameter, and what an argument has there."""
    declared, found = get_proper_type(formal), get_proper_type(actual)
    if is_endless(formal):
        return
    if isinstance(declared, UnionType):
        # The items of the union may differ in the tape only.
        items = [get_proper_type(one) for one in declared.items]
        shapes = [one.args[0] for one in items if isinstance(one, Instance) and has_dims(one)]
        if len(shapes) == len(items) and all(one == shapes[0] for one in shapes):
            yield from _paired(declared.items[0], actual)
    elif isinstance(declared, TupleType) and isinstance(found, TupleType):
        if len(declared.items) == len(found.items):
            for one, two in zip(declared.items, found.items, strict=True):
                yield from _paired(one, two)
    elif isinstance(declared, Instance) and isinstance(found, Instance):
        if not has_dims(declared) or declared.type != found.type:
            return
        for one, two in zip(declared.args, found.args, strict=False):
            yield from _parts(one, two)


def _parts(declared: Type, found: Type) -> Iterator[tuple[Type, Type]]:
    """Yield the parts of an argument of a tensor's, or a module's, type."""
    left, right = get_proper_type(declared), get_proper_type(found)
    if not isinstance(left, TupleType):
        yield left, right
    elif isinstance(right, TupleType):
        before, middle, after = _parted(left)
        many = len(right.items) - len(before) - len(after)
        if many < 0 or (middle is None and many) or _parted(right)[1] is not None:
            return
        ends = [*right.items[: len(before)], *right.items[len(before) + many :]]
        for one, two in zip([*before, *after], ends, strict=True):
            yield from _parts(one, two)
        if middle is not None:
            rest = right.items[len(before) : len(before) + many]
            yield middle, TupleType(list(rest), right.partial_fallback)


def _parted(shape: TupleType) -> tuple[list[Type], TypeVarTupleType | None, list[Type]]:
    """Return the dims before an unpacked part, that part, and the dims after it."""
    for place, item in enumerate(shape.items):
        if isinstance(item, UnpackType):
            middle = get_proper_type(item.type)
            if isinstance(middle, TypeVarTupleType):
                return shape.items[:place], middle, shape.items[place + 1 :]
    return shape.items, None, []


def _opened(first: Type, second: Type) -> Type:
    """Return a dim, or a shape, with open dims where one is an `int` and the other a number.

    They fit each other, but mypy, whose type parameters are invariant, finds no type for both.
    """
    left, right = get_proper_type(first), get_proper_type(second)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        if len(left.items) != len(right.items):
            return first
        return left.copy_modified(items=[*map(_opened, left.items, right.items)])
    dims = read_dim(left), read_dim(right)
    numbers = [one for one in dims if one is not None and one.literal is not None]
    return ANYTHING if INT in dims and numbers else first


def _disagree(first: Type, second: Type) -> bool:
    """Tell whether two types are, or have at one place, dims that are not the same."""
    left, right = get_proper_type(first), get_proper_type(second)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        return len(left.items) == len(right.items) and any(map(_disagree, left.items, right.items))
    lhs, rhs = read_dim(left), read_dim(right)
    return lhs is not None and rhs is not None and differ(lhs, rhs)
