"""Functions that have a name of their own for the size of what they return.

``def halved(x: Tensor1D[M]) -> Tensor1D[N]`` says that the result has some other size, which plain
typing cannot compute. What is computed there from `M` would not fit `N`, so it stays open. A name
of a class may be one, too, unless it is a size that a layer of the class makes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy.checker import TypeChecker
from mypy.nodes import ARG_POS, TypeInfo, Var
from mypy.types import CallableType, Instance, Type, TypeVarType, get_proper_type
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.modules.classes import type_in
from tapetensor.mypy_plugin.reading import is_endless, is_int, read_dim
from tapetensor.mypy_plugin.shapes.computed import parts
from tapetensor.rules.dims import ANY, Atom, Dims, Size


def settled_dims(found: Dims, given: Dims, api: TypeChecker) -> Dims:
    """Return the dims of a result, open where they are computed and nobody could say them."""
    computed = [dim for dim in found if isinstance(dim, Size) and dim.atoms and dim not in given]
    if not computed or not _has_own_names(api):
        return found
    return tuple(ANY if dim in computed else dim for dim in found)


def _has_own_names(api: TypeChecker) -> bool:
    function = reporting.function(api)
    signature = None if function is None else get_proper_type(function.type)
    if not isinstance(signature, CallableType) or function is None:
        return False
    # The names of a class are no names of what a method is given: see below.
    first = 1 if function.info and signature.arg_kinds[:1] == [ARG_POS] else 0
    given = {name for one in signature.arg_types[first:] for name in _names(one)}
    own = {name for name in _names(signature.ret_type) if name not in given}
    return bool(own) and not own <= {*_made_in(function.info)}


def _made_in(info: TypeInfo) -> Iterator[Atom]:
    """Yield the names of sizes that the library's layers make in a class."""
    whole = fill_typevars(info) if info else None
    if not isinstance(whole, Instance):
        return
    for base in info.mro:
        for symbol in base.names.values():
            if isinstance(symbol.node, Var):
                yield from _made_by(type_in(whole, symbol.node))


def _made_by(layer: Type | None) -> Iterator[Atom]:
    """Yield the names of sizes of a layer of the library but the first: that is what it takes."""
    proper = get_proper_type(layer)
    if not isinstance(proper, Instance) or not proper.type.fullname.startswith("tapetensor.nn."):
        return
    for number, one in enumerate(proper.args):
        if not isinstance(get_proper_type(one), TypeVarType):
            yield from _made_by(one)
        elif number:
            yield from _names(one)


def _names(found: Type) -> Iterator[Atom]:
    """Yield the names of sizes in a type."""
    proper = get_proper_type(found)
    if is_endless(found):
        return
    if isinstance(proper, TypeVarType) and not is_int(proper.upper_bound):
        return
    dim = read_dim(proper) if isinstance(proper, TypeVarType | Instance) else None
    if isinstance(dim, Size):
        yield from dim.atoms
        return
    for one in parts(proper):
        yield from _names(one)
