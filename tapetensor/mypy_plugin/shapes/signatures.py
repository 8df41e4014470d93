"""Calls of functions that say ``Mul[H, K]`` in their signature.

mypy's solver knows nothing of products. So the dims of the arguments are matched here with those
of the parameters: what a name stands for is read where it stands alone, a computed dim with one
unknown is solved for it, and mypy is left with a signature whose computed dims are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mypy.checker import TypeChecker
from mypy.expandtype import expand_type, freshen_function_type_vars
from mypy.nodes import RefExpr
from mypy.subtypes import is_same_type
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    TupleType,
    Type,
    TypeVarId,
    TypeVarLikeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin.kinds import ANYTHING, has_dims, is_endless
from tapetensor.mypy_plugin.names import COMPUTED
from tapetensor.mypy_plugin.shapes.calls import Context, is_readable, type_of
from tapetensor.mypy_plugin.shapes.computed import integer_of, mentions, parts, replaced
from tapetensor.mypy_plugin.shapes.reading import is_computed, read_dim
from tapetensor.mypy_plugin.shapes.spelling import write_known
from tapetensor.mypy_plugin.symbols import class_of
from tapetensor.rules.dims import Atom, Dim, Open, Size


def compute_dims(context: Context) -> FunctionLike:
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
    assert isinstance(context.api, TypeChecker)
    matched = _Matched(item)
    for formal, arguments in zip(item.arg_types, context.args, strict=True):
        for argument in arguments:
            matched.match(formal, type_of(argument, context.api))
    matched.solve()
    formals = [replaced(one, matched.worked_out) for one in item.arg_types]
    return settled(item, matched.only_computed()).copy_modified(arg_types=formals)


def settle_dropped(context: Context) -> CallableType:
    """Return the signature without the names that its arguments say, where some result is dropped.

    Of ``_, (h, c) = lstm.forward(x)`` mypy takes the `_`, which may be anything, for a hint at the
    names that it would find in `x`, and so gives `h` and `c` open dims and an open tape.
    """
    item, api = context.default_signature, context.api
    assert isinstance(api, TypeChecker)
    wanted = get_proper_type(api.expr_checker.type_context[-1])
    result = get_proper_type(item.ret_type)
    if not isinstance(wanted, TupleType) or not isinstance(result, TupleType):
        return item
    is_dropped = any(isinstance(get_proper_type(one), AnyType) for one in wanted.items)
    if not is_dropped or not any(map(has_dims, result.items)) or not is_readable(context):
        return item
    known: dict[TypeVarId, list[Type]] = {}
    for formal, arguments in zip(item.arg_types, context.args, strict=True):
        for argument in arguments:
            for declared, found in _pairs(formal, type_of(argument, api)):
                if isinstance(declared, TypeVarType) and not isinstance(found, AnyType):
                    known.setdefault(declared.id, []).append(found)
    agreed = {
        name: first
        for name, (first, *others) in known.items()
        if all(is_same_type(first, one) for one in others)
    }
    return settled(item, {one.id: agreed[one.id] for one in item.variables if one.id in agreed})


def settled(item: CallableType, known: Mapping[TypeVarId, Type]) -> CallableType:
    """Return a signature without the type variables of which is known what they stand for."""
    expanded = expand_type(item, known)
    assert isinstance(expanded, CallableType)
    # The default of one type variable may be another, which is known now.
    rest = [
        variable.copy_modified(default=expand_type(variable.default, known))
        if isinstance(variable, TypeVarType)
        else variable
        for variable in item.variables
        if variable.id not in known
    ]
    return expanded.copy_modified(variables=rest)


def _result(computed: Instance) -> Type:
    """Hide a dim from mypy, which takes the place of a call for a hint at its type variables.

    It would be `M` and `N` in this order where ``Mul[M, N]`` is wanted. Written out again when the
    call has been checked.
    """
    info = class_of(f"{COMPUTED}.Result")
    return computed if info is None else Instance(info, [computed])


def _taking_functions(context: Context) -> CallableType:
    """Return the signature that takes a function with computed dims where it wants a function.

    mypy would compare the two part by part, without working out what is computed.
    """
    item = context.default_signature
    assert isinstance(context.api, TypeChecker)
    opened = [
        isinstance(get_proper_type(formal), CallableType)
        and any(isinstance(one, RefExpr) and mentions(type_of(one, context.api)) for one in given)
        for formal, given in zip(item.arg_types, context.args, strict=True)
    ]
    if not any(opened):
        return item
    both = [*zip(item.arg_types, opened, strict=True)]
    found = {name for formal, is_open in both if not is_open for name in _named(formal)}
    # A name that no other parameter has may be anything.
    lost: dict[TypeVarId, Type] = {
        one.id: ANYTHING
        for one in item.variables
        if isinstance(one, TypeVarType) and one.id not in found
    }
    formals = [ANYTHING if is_open else formal for formal, is_open in both]
    return settled(item.copy_modified(arg_types=formals), lost)


class _Matched:
    """The dims that the names of a signature stand for at a call."""

    def __init__(self, item: CallableType) -> None:
        self._item = item
        self._variables: dict[Atom, TypeVarType] = {}
        for variable in item.variables:
            size = read_dim(variable)
            if isinstance(variable, TypeVarType) and isinstance(size, Size) and size.atom:
                self._variables[size.atom] = variable
        self._values: dict[Atom, Dim] = {}
        self._equations: list[tuple[Size, Dim]] = []

    def match(self, formal: Type, actual: Type) -> None:
        """Take note of what the dims of a parameter are at an argument."""
        for declared, found in _pairs(formal, actual):
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

    def worked_out(self, computed: Instance) -> Type:
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

    def only_computed(self) -> dict[TypeVarId, Type]:
        """Return what stands for the names that mypy finds in no other place of the parameters."""
        alone = {name for one in self._item.arg_types for name in _named(one)}
        computed = [size for one in self._item.arg_types for size in _sizes(one)]
        found: dict[TypeVarId, Type] = {}
        for atom in {atom for size in computed for atom in size.atoms if atom in self._variables}:
            variable = self._variables[atom]
            if variable.id in alone:
                continue
            value = self._values.get(atom)
            integer = get_proper_type(variable.upper_bound)
            assert isinstance(integer, Instance)
            found[variable.id] = ANYTHING if value is None else write_known(value, integer)
        return found

    def _evaluated(self, size: Size) -> Dim | None:
        values = {atom: self._values[atom] for atom in size.atoms if atom in self._values}
        known = {atom: one for atom, one in values.items() if isinstance(one, Size)}
        return None if len(known) < len(values) else size.substituted(known)

    def _is_unknown(self, atom: Atom) -> bool:
        return atom in self._variables and atom not in self._values


def _pairs(formal: Type, actual: Type) -> Iterator[tuple[Type, Type]]:
    """Yield the places of a parameter where a dim may stand, and what an argument has there."""
    declared, found = get_proper_type(formal), get_proper_type(actual)
    if is_endless(formal):
        return
    if isinstance(declared, TypeVarType) or is_computed(declared):
        yield declared, found
    elif isinstance(declared, Instance) and isinstance(found, Instance):
        if declared.type == found.type:
            for one, two in zip(declared.args, found.args, strict=False):
                yield from _pairs(one, two)
    elif isinstance(declared, TupleType) and isinstance(found, TupleType):
        if len(declared.items) == len(found.items):
            for one, two in zip(declared.items, found.items, strict=True):
                yield from _pairs(one, two)
    elif isinstance(declared, UnionType):
        for one in declared.items:
            yield from _pairs(one, actual)


def _named(formal: Type) -> Iterator[TypeVarId]:
    """Yield the type variables that stand outside of computed dims."""
    proper = get_proper_type(formal)
    if isinstance(proper, TypeVarLikeType):
        yield proper.id
    elif not is_computed(proper) and not is_endless(formal):
        for one in parts(proper):
            yield from _named(one)


def _sizes(formal: Type) -> Iterator[Size]:
    """Yield the computed dims of a parameter."""
    size = read_dim(formal) if is_computed(formal) else None
    if isinstance(size, Size):
        yield size
    for one in parts(get_proper_type(formal)) if mentions(formal) and size is None else ():
        yield from _sizes(one)
