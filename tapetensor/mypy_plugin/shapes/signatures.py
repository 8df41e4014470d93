"""Calls whose signatures name dims: what each name stands for, and that it is one size at a call.

mypy's solver knows nothing of ``Mul[H, K]``. So the dims of the arguments are matched here with
those of the parameters, a computed dim with one unknown is solved for it, and mypy is left with a
signature whose computed dims are known. It sees by itself that `N` of both operands of
``f(x: Tensor1D[N], y: Tensor1D[N])`` is one size, but not always: of a type variable of the caller
and a literal it takes the join in some runs, which is `Any`, and says nothing where the call is an
argument of another generic one. Of an overloaded function in a `partial` it knows the first
overload only: the arguments are given to the function here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mypy import types
from mypy.checker import TypeChecker
from mypy.errorcodes import ARG_TYPE
from mypy.expandtype import expand_type, freshen_function_type_vars
from mypy.messages import callable_name, format_type_distinctly
from mypy.nodes import CallExpr, Expression, FuncDef, MemberExpr, OpExpr, RefExpr
from mypy.plugin import FunctionContext, MethodContext
from mypy.subtypes import is_same_type

from tapetensor.mypy_plugin.names import COMPUTED, class_named
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    all_known,
    class_of,
    has_dims,
    is_any,
    is_computed,
    is_endless,
    members,
    read_dim,
    shape_of,
    write_known,
)
from tapetensor.mypy_plugin.reporting import checker_of, wanted_by
from tapetensor.mypy_plugin.shapes.calls import Context, is_readable, refused_result, type_of
from tapetensor.mypy_plugin.shapes.computed import (
    are_other_dims,
    integer_of,
    leaves,
    mentions,
    opened,
    replaced,
)
from tapetensor.mypy_plugin.statements import assignments_of
from tapetensor.rules.dims import INT, Atom, Dim, Open, Size


def compute_dims(context: Context) -> types.FunctionLike:
    """Return the signature with the computed dims of its parameters worked out."""
    item = _taking_functions(context)
    if item.variables and mentions(item.ret_type):
        item = item.copy_modified(ret_type=replaced(item.ret_type, _result))
    if not any(mentions(one) for one in item.arg_types):
        return item
    if not is_readable(context):
        formals = [replaced(one, lambda _: ANYTHING) for one in item.arg_types]
        return item.copy_modified(arg_types=formals)
    # The caller may be the same function, whose names mean something else there.
    item = freshen_function_type_vars(item)
    matched = _Matched(item)
    for formal, argument in _given(context, item):
        matched.match(formal, type_of(argument, checker_of(context)))
    matched.solve()
    formals = [replaced(one, matched.worked_out) for one in item.arg_types]
    return settled(item, matched.only_computed()).copy_modified(arg_types=formals)


def _given(context: Context, item: types.CallableType) -> Iterator[tuple[types.Type, Expression]]:
    """Yield the arguments of a call, each behind the type of its parameter."""
    for formal, arguments in zip(item.arg_types, context.args, strict=True):
        for argument in arguments:
            yield formal, argument


def settled(
    item: types.CallableType, known: Mapping[types.TypeVarId, types.Type]
) -> types.CallableType:
    """Return a signature without the type variables of which is known what they stand for."""
    expanded = expand_type(item, known)
    assert isinstance(expanded, types.CallableType)
    # The default of one type variable may be another, which is known now.
    rest = [
        variable.copy_modified(default=expand_type(variable.default, known))
        if isinstance(variable, types.TypeVarType)
        else variable
        for variable in item.variables
        if variable.id not in known
    ]
    return expanded.copy_modified(variables=rest)


def _result(computed: types.Instance) -> types.Type:
    """Hide a dim from mypy, which takes the place of a call for a hint at its type variables.

    It would be `M` and `N` in this order where ``Mul[M, N]`` is wanted. Written out again when the
    call has been checked.
    """
    info = class_named(f"{COMPUTED}.Result")
    return computed if info is None else types.Instance(info, [computed])


def _taking_functions(context: Context) -> types.CallableType:
    """Return the signature that takes a function with computed dims where it wants a function.

    mypy would compare the two part by part, without working out what is computed.
    """
    item, api = context.default_signature, checker_of(context)
    formals = [
        ANYTHING
        if isinstance(types.get_proper_type(formal), types.CallableType)
        and any(isinstance(one, RefExpr) and mentions(type_of(one, api)) for one in given)
        else formal
        for formal, given in zip(item.arg_types, context.args, strict=True)
    ]
    if formals == item.arg_types:
        return item
    found = [leaf for formal in formals for leaf in leaves(formal)]
    # A name that no other parameter has may be anything.
    lost: dict[types.TypeVarId, types.Type] = {
        one.id: ANYTHING
        for one in item.variables
        if isinstance(one, types.TypeVarType) and one not in found
    }
    return settled(item.copy_modified(arg_types=formals), lost)


class _Matched:
    """The dims that the names of a signature stand for at a call."""

    def __init__(self, item: types.CallableType) -> None:
        self._item = item
        self._variables: dict[Atom, types.TypeVarType] = {}
        for variable in item.variables:
            size = read_dim(variable)
            if isinstance(variable, types.TypeVarType) and isinstance(size, Size) and size.atom:
                self._variables[size.atom] = variable
        self._values: dict[Atom, Dim] = {}
        self._equations: list[tuple[Size, Dim]] = []

    def match(self, formal: types.Type, actual: types.Type) -> None:
        """Take note of what the dims of a parameter are at an argument."""
        for declared, found in _paired(formal, actual):
            size, dim = read_dim(declared), read_dim(found)
            if not isinstance(size, Size) or dim is None:
                continue
            if size.atom is not None and size.atom in self._variables:
                self._values.setdefault(size.atom, dim)
            elif is_computed(declared):
                self._equations.append((size, dim))

    def solve(self) -> None:
        """Work out the names that stand in computed dims only."""
        for _ in self._equations:
            for size, dim in self._equations:
                unknown = [atom for atom in size.atoms if self._is_unknown(atom)]
                if len(unknown) != 1 or isinstance(dim, Open):
                    continue
                known = self._evaluated(size)
                value = known.solved(unknown[0], dim) if isinstance(known, Size) else None
                if value is not None and (value.atoms or value.literal is not None):
                    self._values[unknown[0]] = value

    def worked_out(self, computed: types.Instance) -> types.Type:
        """Return what a computed dim of a parameter is at this call; Any if it is not known."""
        size = read_dim(computed)
        dim = self._evaluated(size) if isinstance(size, Size) else None
        matching = [found for declared, found in self._equations if declared == size]
        if not isinstance(dim, Size) or any(isinstance(one, Open) for one in matching):
            return ANYTHING
        if any(self._is_unknown(atom) for atom in dim.atoms):
            # No size of the name makes this one fit: mypy shows both.
            unsolvable = [one for one in matching if isinstance(one, Size) and not one.atoms]
            return computed if unsolvable and len(dim.atoms) == 1 else ANYTHING
        return write_known(dim, integer_of(computed))

    def only_computed(self) -> dict[types.TypeVarId, types.Type]:
        """Return what stands for the names that mypy finds in no other place of the parameters."""
        formals = [leaf for one in self._item.arg_types for leaf in leaves(one)]
        sizes = [read_dim(leaf) for leaf in formals if is_computed(leaf)]
        found: dict[types.TypeVarId, types.Type] = {}
        for atom in {atom for size in sizes if isinstance(size, Size) for atom in size.atoms}:
            variable = self._variables.get(atom)
            if variable is None or variable in formals:
                continue
            value = self._values.get(atom)
            integer = types.get_proper_type(variable.upper_bound)
            assert isinstance(integer, types.Instance)
            found[variable.id] = ANYTHING if value is None else write_known(value, integer)
        return found

    def _evaluated(self, size: Size) -> Dim | None:
        values = {atom: self._values[atom] for atom in size.atoms if atom in self._values}
        known = {atom: one for atom, one in values.items() if isinstance(one, Size)}
        return None if len(known) < len(values) else size.substituted(known)

    def _is_unknown(self, atom: Atom) -> bool:
        return atom in self._variables and atom not in self._values


def agreeing(context: Context) -> types.CallableType:
    """Return the signature with one size for each name on which the arguments do not agree."""
    item, api = context.default_signature, checker_of(context)
    if not _has_dims(item) or not is_readable(context):
        return item
    known: dict[types.TypeVarId, types.Type] = {}
    settling: dict[types.TypeVarId, types.Type] = {}
    several: set[types.TypeVarId] = set()
    disputed = False
    for formal, argument in _given(context, item) if item.variables else ():
        for declared, found in _paired(formal, type_of(argument, api)):
            is_alone = declared is types.get_proper_type(formal)
            if is_alone or not isinstance(declared, types.TypeVarType | types.TypeVarTupleType):
                continue
            name, first = declared.id, known.setdefault(declared.id, found)
            if _disagree(first, found):
                disputed, settling[name] = True, first
            elif name not in settling:
                known[name] = opened(first, found, _are_int_and_number)
                if known[name] != first:
                    settling[name] = known[name]
            if not is_same_type(first, found):
                several.add(name)
    if _drops_a_result(context):
        alone = {name: one for name, one in known.items() if name not in several}
        settling |= {n: one for n, one in alone.items() if not is_any(one)}
    if settling:
        item = settled(item, settling)
    # Overloads are asked one by one, and where this one does not fit the next may.
    is_alone = isinstance(item.definition, FuncDef)
    return _reported(context, item, known, disputed) if is_alone else item


def _drops_a_result(context: Context) -> bool:
    """Tell whether one of several results of a call is dropped.

    Of ``_, (h, c) = lstm.forward(x)`` mypy takes the `_`, which may be anything, for a hint at the
    names that it would find in `x`, and so gives `h` and `c` open dims and an open tape.
    """
    wanted = types.get_proper_type(wanted_by(checker_of(context)))
    items = wanted.items if isinstance(wanted, types.TupleType) else []
    return any(map(is_any, items))


def _reported(
    context: Context,
    item: types.CallableType,
    known: Mapping[types.TypeVarId, types.Type],
    disputed: bool,
) -> types.CallableType:
    """Report arguments with other dims than their parameters, if mypy would blame another call.

    It checks a call within a call with what the outer one wants of it for a hint, and complains
    of the innermost argument. Of an argument of another rank it finds no names, and complains that
    the result needs an annotation.

    Args:
        known: what the names of the signature stand for.
        disputed: whether the arguments do not agree on one of them.
    """
    api, called, formals = checker_of(context), context.context, [*item.arg_types]
    for index, arguments in enumerate(context.args):
        for argument in arguments:
            found = type_of(argument, api)
            shapes = all_known(map(shape_of, (formals[index], found)))
            is_other = shapes is not None and len({*map(len, shapes)}) == 2
            if disputed or isinstance(argument, CallExpr | OpExpr):
                is_other = is_other or _clashes(item, formals[index], found)
            if not isinstance(called, CallExpr) or not is_other:
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
    result = types.get_proper_type(item.ret_type)
    is_tensor = has_dims(result) or isinstance(result, types.TupleType)
    refused = refused_result(item) if is_tensor else item.ret_type
    return item.copy_modified(arg_types=formals, ret_type=refused)


def _clashes(item: types.CallableType, formal: types.Type, actual: types.Type) -> bool:
    """Tell whether an argument has a dim that is not the one which a parameter has there."""
    open_names = {variable.id for variable in item.variables}
    for declared, found in _paired(formal, actual):
        left = types.get_proper_type(declared)
        is_open = isinstance(left, types.TypeVarType) and left.id in open_names
        if not is_open and not is_computed(left) and _disagree(left, found):
            return True
    return False


def _has_dims(item: types.CallableType) -> bool:
    """Tell whether a parameter has a shape, or dims."""
    proper = map(types.get_proper_type, item.arg_types)
    formals = [
        one.items if isinstance(one, types.TupleType | types.UnionType) else [one] for one in proper
    ]
    return any(any(map(has_dims, one)) for one in formals)


def _paired(formal: types.Type, actual: types.Type) -> Iterator[tuple[types.Type, types.Type]]:
    """Yield the places of a parameter where a dim may stand, and what an argument has there."""
    declared, found = types.get_proper_type(formal), types.get_proper_type(actual)
    if is_endless(formal):
        return
    if isinstance(declared, types.UnionType):
        # The items of the union may differ in the tape only.
        items = [one for one in members(declared) if not isinstance(one, types.NoneType)]
        shapes = [one.args[0] for one in items if isinstance(one, types.Instance) and has_dims(one)]
        if shapes and len(shapes) == len(items) and all(one == shapes[0] for one in shapes):
            yield from _paired(items[0], actual)
    elif isinstance(declared, types.TupleType):
        if isinstance(found, types.TupleType):
            yield from _paired_items(declared, found)
    elif isinstance(declared, types.Instance) and declared.args and not is_computed(declared):
        if isinstance(found, types.Instance) and declared.type == found.type:
            for one, two in zip(declared.args, found.args, strict=False):
                yield from _paired(one, two)
    else:
        yield declared, found


def _paired_items(
    declared: types.TupleType, found: types.TupleType
) -> Iterator[tuple[types.Type, types.Type]]:
    before, middle, after = _parted(declared)
    many = len(found.items) - len(before) - len(after)
    if many < 0 or (middle is None and many) or _parted(found)[1] is not None:
        return
    ends = [*found.items[: len(before)], *found.items[len(before) + many :]]
    for one, two in zip([*before, *after], ends, strict=True):
        yield from _paired(one, two)
    if middle is not None:
        rest = found.items[len(before) : len(before) + many]
        yield middle, types.TupleType(list(rest), found.partial_fallback)


def _parted(
    shape: types.TupleType,
) -> tuple[list[types.Type], types.TypeVarTupleType | None, list[types.Type]]:
    """Return the dims before an unpacked part, that part, and the dims after it."""
    for place, item in enumerate(shape.items):
        if isinstance(item, types.UnpackType):
            middle = types.get_proper_type(item.type)
            if isinstance(middle, types.TypeVarTupleType):
                return shape.items[:place], middle, shape.items[place + 1 :]
    return shape.items, None, []


def _disagree(first: types.Type, second: types.Type) -> bool:
    """Tell whether two types are, or have at one place, dims that are not the same."""
    return opened(first, second, are_other_dims) != first


def _are_int_and_number(first: types.Type, second: types.Type) -> bool:
    """Tell whether one dim is an `int` and the other a number.

    They fit each other, but mypy, whose type parameters are invariant, finds no type for both.
    """
    dims = read_dim(first), read_dim(second)
    return INT in dims and any(one is not None and one.literal is not None for one in dims)


def called_partial(context: FunctionContext | MethodContext) -> types.Type:
    """Return what the call of a partial gives, checked as that of its overloaded function."""
    api, call = checker_of(context), context.context
    made = _made(call.callee, api) if isinstance(call, CallExpr) else None
    match made:
        case CallExpr(callee=RefExpr(fullname="functools.partial"), args=[function, *given]):
            found = types.get_proper_type(type_of(function, api))
            items = found.items if isinstance(found, types.Overloaded) else []
            if any(has_dims(formal) for item in items for formal in item.arg_types):
                assert isinstance(call, CallExpr)
                whole = CallExpr(
                    function,
                    [*given, *call.args],
                    [*made.arg_kinds[1:], *call.arg_kinds],
                    [*made.arg_names[1:], *call.arg_names],
                )
                whole.set_line(call)
                return api.expr_checker.accept(whole, wanted_by(api))
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
