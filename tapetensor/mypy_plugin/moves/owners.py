"""Which types own a tape, may own one, or hand one on."""

from __future__ import annotations

from mypy.maptype import map_instance_to_supertype
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    TupleType,
    Type,
    TypeAliasType,
    TypedDictType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin.kinds import bounded, is_endless, members
from tapetensor.mypy_plugin.names import LENT, OWNED_TAPE, TENSOR, TENSOR_BASE

_GRADIENTS = "tapetensor.tape.gradients.Gradients"
_CONTAINERS = frozenset(
    {"builtins.tuple", "builtins.list"}
    | {f"typing.{name}" for name in ("Sequence", "Iterable", "Collection")}
)
_ITERATORS = frozenset(
    f"typing.{name}" for name in ("AsyncGenerator", "AsyncIterator", "Generator", "Iterator")
)
# Containers of which it is certain what they are at run time.
_BUILT_IN = frozenset(
    {"builtins.dict", "builtins.list", "builtins.tuple"}
    | {"collections.deque", "collections.OrderedDict", "collections.defaultdict"}
    | {"queue.Queue", "_queue.SimpleQueue", "asyncio.queues.Queue"}
)


def is_marked(declared: Type | None, mark: str) -> bool:
    """Tell whether a parameter is declared as `Lent`, or found to be taken."""
    alias = declared.alias if isinstance(declared, TypeAliasType) else None
    return alias is not None and alias.fullname == mark


def is_tensor(type_: Type | None) -> bool:
    """Tell whether this is a tensor, with or without a tape."""
    return _tape_of(type_) is not None


def owns(type_: Type | None) -> bool:
    """Tell whether a value of this type owns a tape, or does for some choice of type variables.

    What may be one or the other at run time, as a union or `Any` says, is not meant.
    """
    tape = _tape_of(type_)
    return _is_tape(type_ if tape is None else tape)


def is_open(type_: Type | None) -> bool:
    """Tell whether only the choice of a type variable says if a value owns a tape."""
    tape = _tape_of(type_)
    return isinstance(get_proper_type(type_ if tape is None else tape), TypeVarType)


def may_be_plain(found: Type | None) -> bool:
    """Tell whether a value of this type may be a tensor without a tape, or hold one."""
    if is_endless(found):
        return True
    proper = bounded(found)
    if is_tensor(proper):
        return not owns(proper)
    if isinstance(proper, UnionType | TupleType):
        return any(map(may_be_plain, proper.items))
    holds = isinstance(proper, Instance) and any(map(may_be_plain, proper.args))
    return holds or accepts_anything(proper)


def takes(declared: Type | None) -> bool:
    """Tell whether a parameter of this type may be given a tensor or tape with ownership."""
    if is_endless(declared) or is_marked(declared, LENT):
        return False
    declared = get_proper_type(declared)
    if isinstance(declared, UnionType | TupleType):
        return any(map(takes, declared.items))
    if isinstance(declared, Instance) and declared.type.fullname in _CONTAINERS:
        return any(map(takes, declared.args))
    if isinstance(declared, TypeVarType) and not _is_tape(declared):
        return takes(declared.upper_bound)
    return owns(declared)


def accepts_several(declared: Type | None) -> bool:
    """Tell whether a parameter of this type takes a container of tensors."""
    declared = bounded(declared)
    if isinstance(declared, UnionType):
        return any(map(accepts_several, declared.items))
    is_named = isinstance(declared, Instance) and declared.type.fullname in _CONTAINERS
    return is_named or isinstance(declared, TupleType)


def accepts_anything(declared: Type | None) -> bool:
    """Tell whether a parameter of this type accepts tensors among other things."""
    if is_endless(declared):
        return False
    declared = bounded(declared)
    if isinstance(declared, UnionType):
        return any(map(accepts_anything, declared.items))
    if isinstance(declared, Instance):
        is_container = declared.type.fullname in _CONTAINERS
        is_object = declared.type.fullname == "builtins.object" or declared.type.is_protocol
        return is_object or (is_container and any(map(accepts_anything, declared.args)))
    return isinstance(declared, AnyType)


def may_accept(signature: CallableType, number: int) -> bool:
    """Tell whether an overload may be the one for an argument that owns a tape."""
    if number >= len(signature.arg_types):
        return False
    declared = signature.arg_types[number]
    return takes(declared) or accepts_anything(declared)


def hands_on(result: Type | None) -> bool:
    """Tell whether a result of this type may own what a parameter gave."""
    if is_endless(result):
        return False
    result = get_proper_type(result)
    if takes(result):
        return True
    if isinstance(result, TupleType | UnionType):
        return any(map(hands_on, result.items))
    return isinstance(result, Instance) and (
        result.type.fullname == _GRADIENTS or any(map(hands_on, result.args))
    )


def is_container(type_: Type | None) -> bool:
    """Tell whether a value is a container of Python's own, which gives back what is put into it."""
    found = bounded(type_)
    if isinstance(found, TupleType | TypedDictType):
        return True
    return isinstance(found, Instance) and found.type.fullname in _BUILT_IN


def is_iterator(type_: Type | None) -> bool:
    """Tell whether a value hands out its items once."""
    found = bounded(type_)
    return isinstance(found, Instance) and found.type.fullname in _ITERATORS


def holds_owners(container: Type | None) -> bool:
    """Tell whether every item of a container owns a tape."""
    match bounded(container):
        case TupleType(items=items) if items:
            return all(map(owns, items))
        case Instance(args=[*_, held]):
            return owns(held)
    return False


def signatures(declared: Type | None) -> list[CallableType]:
    """Return the signatures of a declared function type."""
    declared = get_proper_type(declared)
    return declared.items if isinstance(declared, FunctionLike) else []


def tensor_type(type_: Type | None) -> Instance | None:
    """Return the type of a tensor, also where a type variable stands for it; None for others."""
    found = bounded(type_)
    return found if isinstance(found, Instance) and found.type.has_base(TENSOR_BASE) else None


def _tape_of(type_: Type | None) -> Type | None:
    tensor = tensor_type(type_)
    if tensor is None:
        return None
    # What is a `Tensor` already need not be looked up in its many bases, which takes long.
    base = next(one for one in tensor.type.mro if one.fullname in (TENSOR, TENSOR_BASE))
    arguments = map_instance_to_supertype(tensor, base).args
    return arguments[1] if len(arguments) > 1 else None


def _is_tape(type_: Type | None) -> bool:
    """Tell whether this is `OwnedTape` or a type variable that may stand for it."""
    type_ = get_proper_type(type_)
    if isinstance(type_, TypeVarType):
        return any(map(_is_tape, [*members(type_.upper_bound), *type_.values]))
    return isinstance(type_, Instance) and type_.type.fullname == OWNED_TAPE
