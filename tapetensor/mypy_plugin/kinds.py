"""The kind of a value, and whether a parameter takes such: an int, a tuple, a tensor, ...

Its parts are left open: a tensor is one whatever its dims, a tuple one whatever its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mypy.nodes import TypeInfo
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    FunctionLike,
    Instance,
    LiteralType,
    NoneType,
    ProperType,
    TupleType,
    Type,
    TypeAliasType,
    TypeOfAny,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin.names import MODULE, TENSOR, TENSOR_BASE

_WORDS: Final = {
    "builtins.int": "an int",
    "builtins.bool": "a bool",
    "builtins.float": "a number",
    "builtins.complex": "a complex number",
    "builtins.tuple": "a tuple",
    "builtins.list": "a list",
    "typing.Sequence": "a list",
    "numpy.random._generator.Generator": "a numpy generator",
}


# A type of which nothing is known.
ANYTHING: Final = AnyType(TypeOfAny.special_form)


def is_int(found: Type | None) -> bool:
    """Tell whether a type is `int`, be it that of a number which mypy remembers."""
    proper = get_proper_type(found)
    return isinstance(proper, Instance) and proper.type.fullname == "builtins.int"


def is_module(found: Type | None) -> bool:
    """Tell whether a type is that of a module."""
    proper = get_proper_type(found)
    return isinstance(proper, Instance) and proper.type.has_base(MODULE)


def has_dims(found: Type | None) -> bool:
    """Tell whether a type is that of a tensor, or a module, with type arguments."""
    proper = get_proper_type(found)
    if not isinstance(proper, Instance) or not proper.args:
        return False
    return proper.type.has_base(TENSOR_BASE) or is_module(proper)


def is_endless(found: Type | None) -> bool:
    """Tell whether a type is an alias that contains itself, of which the plugin says nothing."""
    return isinstance(found, TypeAliasType) and (found.alias is None or found.is_recursive)


def is_tensor(found: Type | None) -> bool:
    """Tell whether a type is that of a tensor, be it by the bound of a type variable."""
    proper = bounded(found)
    return isinstance(proper, Instance) and proper.type.has_base(TENSOR_BASE)


def bounded(found: Type | None) -> ProperType | None:
    """Return a type, or the bound of a type variable."""
    proper = get_proper_type(found)
    return get_proper_type(proper.upper_bound) if isinstance(proper, TypeVarType) else proper


def class_of(found: Type | None) -> TypeInfo | None:
    """Return the class of a value, or the class that the value itself is."""
    proper = bounded(found)
    if isinstance(proper, TypeType):
        return class_of(proper.item)
    if isinstance(proper, FunctionLike):
        return proper.type_object() if proper.is_type_obj() else None
    if isinstance(proper, TupleType):
        proper = proper.partial_fallback
    return proper.type if isinstance(proper, Instance) else None


def members(found: Type | None) -> list[ProperType]:
    """Return the items of a union, or the type alone; nothing of None."""
    proper = get_proper_type(found)
    if isinstance(proper, UnionType):
        return [get_proper_type(one) for one in proper.items]
    return [] if proper is None else [proper]


def accepts(formal: Type, actual: Type) -> bool:
    """Tell whether a parameter may take a value of a type; True where nobody knows."""
    wanted, found = _open(formal), _open(actual)
    names = get_proper_type(formal), _literal_of(actual)
    if all(isinstance(one, LiteralType) and isinstance(one.value, str) for one in names):
        return names[0] == names[1]
    if isinstance(wanted, UnionType):
        return any(accepts(one, actual) for one in wanted.items)
    if isinstance(found, UnionType):
        return any(accepts(formal, one) for one in found.items)
    if isinstance(wanted, TypeType):
        return _is_class_of(found, _open(wanted.item))
    if isinstance(wanted, NoneType) or (
        isinstance(wanted, Instance) and not wanted.type.is_protocol
    ):
        return is_subtype(found, wanted)
    return True


def _literal_of(actual: Type) -> ProperType:
    found = get_proper_type(actual)
    known = found.last_known_value if isinstance(found, Instance) else None
    return found if known is None else known


def _is_class_of(found: ProperType, wanted: ProperType) -> bool:
    """Tell whether a value may be a class whose objects are of a kind."""
    if isinstance(found, FunctionLike):
        return found.is_type_obj() and is_subtype(_open(fill_typevars(found.type_object())), wanted)
    return not isinstance(found, Instance | NoneType) or (
        isinstance(found, Instance) and found.type.has_base("builtins.type")
    )


def kinds_in_words(formals: Sequence[Type]) -> str:
    """Return what the parameters of several overloads take: ``an int or a tuple``."""
    words: list[str] = []
    for one in formals:
        for item in members(_open(one)):
            is_word = isinstance(item, LiteralType) and isinstance(item.value, str)
            found = described(item) if is_word else _in_words(_open(item))
            if found not in (*words, "None"):
                words.append(found)
    if words[1:] and "something else" in words:
        words.remove("something else")
    if "a number" in words and "an int" in words:
        words.remove("an int")
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def described(actual: Type) -> str:
    """Return what a value is: ``a str``, ``3``, ``the class ReLU``."""
    found = _literal_of(actual)
    if isinstance(found, LiteralType) and not found.is_enum_literal():
        return repr(found.value)
    if isinstance(found, FunctionLike):
        return f"the class {found.type_object().name}" if found.is_type_obj() else "a function"
    if isinstance(found, Instance) and found.type.fullname == "builtins.float":
        return "a float"
    return _in_words(_open(actual))


def _in_words(found: ProperType) -> str:
    if isinstance(found, NoneType):
        return "None"
    if isinstance(found, TypeType):
        item = _open(found.item)
        of_numpy = isinstance(item, Instance) and item.type.fullname.startswith("numpy.")
        return "a dtype such as np.float32" if of_numpy else "a class"
    if not isinstance(found, Instance):
        return "something else"
    if found.type.fullname in (TENSOR, TENSOR_BASE):
        return "a tensor"
    article = "an" if found.type.name[0].lower() in "aeiou" else "a"
    return _WORDS.get(found.type.fullname, f"{article} {found.type.name}")


def _open(found: Type) -> ProperType:
    """Return a type with everything within it open."""
    proper = get_proper_type(found)
    if isinstance(proper, TypeVarType):
        return ANYTHING if proper.values else _open(proper.upper_bound)
    if isinstance(proper, LiteralType):
        return proper.fallback
    if isinstance(proper, TupleType):
        proper = proper.partial_fallback
    if isinstance(proper, Instance):
        return proper.copy_modified(args=[ANYTHING] * len(proper.args), last_known_value=None)
    return proper
