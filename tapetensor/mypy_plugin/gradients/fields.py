"""What a declared type says of a value, and what a field of an object is: a parameter, a part."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Final

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import TypeInfo, Var
from mypy.types import Instance, NoneType, ProperType, TupleType, Type, UnionType, get_proper_type

from tapetensor.mypy_plugin.gradients.places import ANY_ITEM, SOME_ITEM, Place
from tapetensor.mypy_plugin.gradients.values import NOTHING, Ownership, Value
from tapetensor.mypy_plugin.kinds import bounded, is_endless, is_module
from tapetensor.mypy_plugin.modules.branches import BRANCHES
from tapetensor.mypy_plugin.modules.fields import kinds_of_fields
from tapetensor.mypy_plugin.moves.owners import is_open, is_tensor, owns, signatures
from tapetensor.mypy_plugin.names import MODULE, SEQUENTIAL
from tapetensor.mypy_plugin.shapes.reading import is_floating, read_tensor
from tapetensor.mypy_plugin.symbols import member_of

_LIBRARY: Final = "tapetensor."
_GRADIENTS: Final = "tapetensor.tape.gradients.Gradients"
_OPTIMIZER: Final = "tapetensor.optim.optimizer.Optimizer"
_SEQUENCES: Final = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.set"}
    | {f"typing.{name}" for name in ("Sequence", "Iterable", "Iterator", "Collection")}
)
_MAPPINGS: Final = frozenset({"builtins.dict", "typing.Mapping"})
# These hold modules that their types do not tell.
_HOLDERS: Final = frozenset({SEQUENTIAL, "tapetensor.nn.repeated.Repeated", *BRANCHES})
# Modules within modules are looked into so deep.
_DEEPEST: Final = 6


def declared(found: Type | None, place: Place | None = None, name: str = "") -> Value:
    """Return what a declared type says of a value.

    Args:
        found: the type.
        place: where the value is found.
        name: how it is spelled.
    """
    if is_endless(found):
        return NOTHING
    proper = _without_none(bounded(found))
    if is_tensor(proper):
        return Value(is_tensor=True, ownership=_ownership(proper), name=name, place=place)
    if isinstance(proper, TupleType):
        return Value(
            items=tuple(
                declared(one, place and place.within(number), name and f"{name}[{number}]")
                for number, one in enumerate(proper.items)
            )
        )
    if not isinstance(proper, Instance):
        # A tape alone may be a type variable.
        return Value(is_tensor=True, ownership="open") if owns(get_proper_type(found)) else NOTHING
    if owns(proper):
        return Value(is_tensor=True, ownership="owned")
    container = proper.type.fullname
    if (container in _SEQUENCES or container in _MAPPINGS) and proper.args:
        step = SOME_ITEM if place is None or place.model is None else ANY_ITEM
        return Value(item=declared(proper.args[-1], place and place.within(step)))
    if place is not None and is_model(proper):
        place = place.of_module()
    return Value(type=proper, place=place, name=name)


def _ownership(tensor: ProperType | None) -> Ownership:
    if not owns(tensor):
        return "plain"
    return "open" if is_open(tensor) else "owned"


def _without_none(found: ProperType | None) -> ProperType | None:
    """Return the one type of a union that is not None."""
    if isinstance(found, UnionType):
        others = [one for one in found.items if not isinstance(get_proper_type(one), NoneType)]
        return bounded(others[0]) if len(others) == 1 and not is_endless(others[0]) else None
    return found


def field(owner: Value, name: str, node: Var) -> Value:
    """Return what a variable of an object is."""
    if not isinstance(owner.type, Instance) or node.type is None:
        return NOTHING
    spelled = f"{owner.name}.{name}"
    holder = map_instance_to_supertype(owner.type, node.info)
    found = expand_type_by_instance(node.type, holder)
    place = None if owner.place is None else _part(owner.place, owner.type.type, name)
    value = declared(found, place, spelled)
    if not value.is_tensor:
        return value
    trained = place is not None and is_trained(owner.type.type, name, found)
    return replace(value, is_parameter=trained, place=place if trained else None)


def _part(owner: Place, info: TypeInfo, name: Hashable) -> Place:
    part = owner.within(name)
    if info.has_base(MODULE) and not is_of_library(info):
        return part._replace(home=len(owner.path))
    return part


def is_model(found: ProperType | None) -> bool:
    """Tell whether a type is that of a module, or of whatever has a `forward`."""
    is_like = (
        isinstance(found, Instance) and found.type.is_protocol and "forward" in found.type.names
    )
    return is_like or is_module(found)


def is_of_library(info: TypeInfo) -> bool:
    """Tell whether a class is one of the library's."""
    return info.fullname.startswith(_LIBRARY)


def is_gradients(value: Value) -> bool:
    """Tell whether a value is a store of gradients."""
    return isinstance(value.type, Instance) and value.type.type.fullname == _GRADIENTS


def is_optimizer(found: ProperType | None) -> bool:
    """Tell whether a type is that of an optimizer."""
    return isinstance(found, Instance) and found.type.has_base(_OPTIMIZER)


def is_trained(info: TypeInfo, name: str, found: Type | None) -> bool:
    """Tell whether a field that holds a tensor is a parameter: of floats, and no buffer."""
    tensor = read_tensor(bounded(found))
    if tensor is None or not info.has_base(MODULE) or not is_floating(tensor.dtype):
        return False
    kinds = kinds_of_fields(info)
    if kinds is None:
        return True
    kind, _ = kinds.get(name, ("buffer", None))
    return kind != "buffer"


def has_parameters(info: TypeInfo, depth: int = _DEEPEST) -> bool:
    """Tell whether a module has anything to train."""
    if info.is_protocol or any(base.fullname in _HOLDERS for base in info.mro):
        return True
    for base in info.mro:
        if base.fullname == MODULE or not base.has_base(MODULE):
            continue
        for name, symbol in base.names.items():
            if isinstance(symbol.node, Var) and _holds(info, name, symbol.node.type, depth):
                return True
    return False


def _holds(info: TypeInfo, name: str, found: Type | None, depth: int) -> bool:
    if is_endless(found):
        return False
    proper = _without_none(bounded(found))
    if is_tensor(proper):
        return is_trained(info, name, proper)
    if not isinstance(proper, Instance) or not depth:
        return False
    if is_model(proper):
        return has_parameters(proper.type, depth - 1)
    return any(_holds(info, name, one, depth - 1) for one in proper.args)


def field_names(info: TypeInfo) -> list[str]:
    """Return the names of what a data class or named tuple holds, in order."""
    for name in ("__init__", "__new__"):
        symbol = info.names.get(name)
        if symbol is None or not (symbol.plugin_generated or info.is_named_tuple):
            continue
        known = signatures(getattr(symbol.node, "type", None))
        if known:
            return [one for one in known[-1].arg_names[1:] if one is not None]
    return []


def method_of(owner: Value, name: str) -> object:
    """Return what the class of an object has under a name."""
    return member_of(owner.type.type, name) if isinstance(owner.type, Instance) else None
