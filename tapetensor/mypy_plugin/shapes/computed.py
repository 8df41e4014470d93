"""``Mul[H, K]`` in annotations, and wherever mypy has put types into the place of `H` and `K`.

What plain typing takes for `Any` becomes a dim with a spelling of its own for equal dims. mypy
replaces type variables without asking, so the types of calls and attributes are spelled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from mypy import types
from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import TypeAlias, Var
from mypy.plugin import AnalyzeTypeContext, AttributeContext, FunctionContext, MethodContext

from tapetensor.mypy_plugin.names import COMPUTED, TENSOR, TYPING, class_named, node_of
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    OPERATIONS,
    is_computed,
    is_endless,
    read_dim,
    write_known,
)
from tapetensor.mypy_plugin.reporting import checker_of
from tapetensor.mypy_plugin.shapes.calls import fitted

# Most names of annotations come from here, and none is an alias of dims: the library writes none.
_WITHOUT_ALIASES: Final = (
    "builtins.",
    "typing",
    "collections.",
    "_typeshed.",
    "numpy.",
    "tapetensor.",
)


# The alias that is being expanded, which asks for the hook of the same name again.
_expanding: list[types.Type] = []


@cache
def is_plain(fullname: str) -> bool:
    """Tell whether a name in an annotation is neither ``Mul`` nor an alias of what speaks of it."""
    return fullname.startswith(_WITHOUT_ALIASES) and fullname not in _SPELLED


def annotation(fullname: str) -> Callable[[AnalyzeTypeContext], types.Type] | None:
    """Return the hook for ``Mul`` and its like, and for aliases that speak of them."""
    if fullname in _SPELLED:
        return _SPELLED[fullname]
    node = None if _expanding else node_of(fullname)
    if isinstance(node, TypeAlias) and COMPUTED in str(node.target):
        return _expanded
    return None


def _spelling(name: str) -> Callable[[AnalyzeTypeContext], types.Type]:
    def spelled(context: AnalyzeTypeContext) -> types.Type:
        found = context.type
        assert isinstance(found, types.UnboundType)
        if len(found.args) != 2:
            context.api.fail(f"{name} takes two dims: {name}[M, N]", context.context)
            return types.AnyType(types.TypeOfAny.from_error)
        info = class_named(f"{COMPUTED}.{name}")
        if info is None:
            return ANYTHING
        dims = [context.api.analyze_type(one) for one in found.args]
        return respelled(types.Instance(info, dims, found.line, found.column))

    return spelled


_SPELLED = {f"{TYPING}.{name}": _spelling(name) for name in OPERATIONS}


def _expanded(context: AnalyzeTypeContext) -> types.Type:
    _expanding.append(context.type)
    try:
        found = context.api.analyze_type(context.type)
    finally:
        _expanding.pop()
    return found if is_endless(found) else respelled(found)


def respell_result(context: FunctionContext | MethodContext) -> types.Type:
    """Return the result of a call with its dims spelled anew."""
    found = context.default_return_type
    if not mentions(found):
        return found
    result = types.get_proper_type(respelled(found))
    if isinstance(result, types.Instance) and result.type.fullname == TENSOR:
        return fitted(result, checker_of(context))
    return result


def respell_attribute(context: AttributeContext) -> types.Type:
    """Return the type of an attribute with its dims spelled anew."""
    return respelled(context.default_attr_type)


def type_in(module: types.Instance, field: Var) -> types.ProperType | None:
    """Return the type that a field has in a module; None if that is not known."""
    if field.type is None:
        return None
    holder = map_instance_to_supertype(module, field.info)
    return types.get_proper_type(respelled(expand_type_by_instance(field.type, holder)))


def respelled(found: types.Type) -> types.Type:
    """Return a type with every computed dim in the one spelling for its value."""
    return replaced(found, _respelled)


def _respelled(found: types.Instance) -> types.Type:
    dim = read_dim(found)
    return found if dim is None else write_known(dim, integer_of(found))


def integer_of(computed: types.Instance) -> types.Instance:
    """Return the type `int`, which every computed dim has for a base."""
    return types.Instance(
        next(one for one in computed.type.mro if one.fullname == "builtins.int"), []
    )


def mentions(found: types.Type) -> bool:
    """Tell whether a type has a computed dim in it."""
    if isinstance(found, types.TypeAliasType):
        if found.alias is None or found.is_recursive:
            return False
        # An alias of the library has one in its arguments, or none.
        if found.alias.fullname.startswith("tapetensor."):
            return any(mentions(one) for one in found.args)
    proper = types.get_proper_type(found)
    return is_computed(proper) or any(map(mentions, parts(proper)))


def replaced(found: types.Type, replace: Callable[[types.Instance], types.Type]) -> types.Type:
    """Return a type with its computed dims replaced."""

    def changed(one: types.ProperType) -> types.Type | None:
        return replace(one) if isinstance(one, types.Instance) and is_computed(one) else None

    return rebuilt(found, changed) if mentions(found) else found


def rebuilt(
    found: types.Type, changed: Callable[[types.ProperType], types.Type | None]
) -> types.Type:
    """Return a type with other ones in it; what is not changed as a whole may be in its parts."""
    proper = types.get_proper_type(found)
    if is_endless(found):
        return found
    other = changed(proper)
    if other is not None:
        return found if other is proper else other
    inner = [rebuilt(one, changed) for one in parts(proper)]
    if all(one is two for one, two in zip(inner, parts(proper), strict=True)):
        return found
    if isinstance(proper, types.Instance):
        return proper.copy_modified(args=inner)
    if isinstance(proper, types.TupleType):
        return proper.copy_modified(items=inner)
    if isinstance(proper, types.UnionType):
        return types.UnionType(inner, proper.line, proper.column)
    if isinstance(proper, types.TypeType):
        return types.TypeType.make_normalized(inner[0])
    if isinstance(proper, types.CallableType):
        return proper.copy_modified(arg_types=inner[:-1], ret_type=inner[-1])
    return types.Overloaded([one for one in inner if isinstance(one, types.CallableType)])


def parts(proper: types.ProperType) -> Sequence[types.Type]:
    """Return the types that a type is made of."""
    if isinstance(proper, types.Instance):
        return proper.args
    if isinstance(proper, types.TupleType | types.UnionType):
        return proper.items
    if isinstance(proper, types.TypeType):
        return [proper.item]
    if isinstance(proper, types.CallableType):
        return [*proper.arg_types, proper.ret_type]
    return proper.items if isinstance(proper, types.Overloaded) else ()
