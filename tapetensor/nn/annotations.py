"""Reading the annotations of a module class: the values of its names and type variables."""

from __future__ import annotations

import inspect
import operator
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Generic, Literal, TypeAlias, TypeVarTuple, Unpack, get_args, get_origin

import typing_extensions

from tapetensor.typing import Add, Div, Mul, Sub

# What each type variable stands for: a type, or a tuple of types for a type variable tuple.
Substitution: TypeAlias = Mapping[Any, Any]
# The same by class, for a class and its bases.
Substitutions: TypeAlias = Mapping[type, Substitution]

_ALIASES = (
    typing_extensions.TypeAliasType,
    # From Python 3.12 on, `type X = ...` makes another one.
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),
)
_ARITHMETIC: Mapping[Any, Callable[[int, int], int]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Div: operator.floordiv,
}
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def is_class_variable(annotation: object) -> bool:
    """Tell whether an annotation, perhaps still a string, is a ``ClassVar``."""
    return str(annotation).partition("[")[0].rpartition(".")[2] == "ClassVar"


def names_around(cls: type, place: FrameType | None) -> dict[str, Any]:
    """Return what the names in the annotations of a class mean where its statement stands.

    For a class inside a function: they are local there, and cannot be looked up later. For a class
    at the top of a file the result is empty, and its names may be defined further down.

    Args:
        cls: the class.
        place: the frame that made it, or one that it called.
    """
    while place is not None and not _holds_statement(place, cls):
        place = place.f_back
    module = sys.modules.get(cls.__module__)
    if place is None or (module is not None and place.f_locals is vars(module)):
        return {}
    around = {**place.f_globals, **place.f_locals} if module is None else place.f_locals
    annotations = [*inspect.get_annotations(cls).values()]
    constructor = vars(cls).get("__init__")
    if constructor is not None:
        annotations.extend(inspect.get_annotations(constructor).values())
    used = {name for annotation in annotations for name in _IDENTIFIER.findall(str(annotation))}
    # Only these names: the whole frame would keep alive whatever else is in it.
    return {name: value for name, value in around.items() if name in used}


def _holds_statement(place: FrameType, cls: type) -> bool:
    """Tell whether a frame is that of the class statement.

    Between it and us may be `typing`, an ``__init_subclass__`` of the user, and the scope that
    Python makes for the brackets of ``class Block[N]``.
    """
    name = place.f_code.co_name
    return (
        place.f_globals.get("__name__") == cls.__module__
        and name != "__init_subclass__"
        and not name.startswith("<generic parameters")
    )


def resolved(owner: type, names: Mapping[str, Any], annotation: object) -> Any:
    """Return an annotation of `owner` with all strings in it evaluated.

    Args:
        owner: the class whose body or constructor holds the annotation.
        names: local names, from `names_around`.
        annotation: the annotation.

    Raises:
        NameError: if a name is not defined.
    """
    module = sys.modules.get(owner.__module__)
    type_parameters = getattr(owner, "__type_params__", ())
    scope = {
        owner.__name__: owner,
        **names,
        **{variable.__name__: variable for variable in type_parameters},
        **vars(owner),
    }
    # `get_type_hints` of the owner itself would look up the names of all its bases in one scope.
    holder = type("Holder", (), {"__annotations__": {"it": annotation}})
    return typing.get_type_hints(holder, {} if module is None else vars(module), scope)["it"]


def hint_of_field(cls: type, name: str) -> tuple[type, Any]:
    """Return the class among the bases of `cls` that annotates a field, and the annotation.

    Raises:
        NameError: if a name in it is not defined.
    """
    owner: Any = next(
        one for one in cls.__mro__ if name in vars(one).get("annotations_of_class", ())
    )
    if name not in owner.hints_of_class:
        annotation = owner.annotations_of_class[name]
        owner.hints_of_class[name] = resolved(owner, owner.names_of_class, annotation)
    return owner, owner.hints_of_class[name]


def length_of_field(cls: type, name: str, substitutions: Substitutions) -> Any:
    """Return how many modules a list field of `cls` holds: a number, what is written for the type
    variable that says it, or None for a field that is no such list.
    """
    owner, _ = hint_of_field(cls, name)
    fields: Mapping[str, Any] = getattr(cls, "fields_of_class", {})
    length = fields[name].length
    if not isinstance(length, str):
        return length
    named = {getattr(one, "__name__", ""): one for one in substitutions[owner]}
    return substitutions[owner].get(named.get(length), length)


def scopes(cls: type, arguments: Sequence[Any]) -> dict[type, Substitution]:
    """Return, for `cls` and each of its bases, what its type variables stand for.

    In ``class Child(Block[L[6]])`` the ``N`` of ``Block`` is 6, and another class may use the same
    ``N`` for something else: hence one substitution per class.
    """
    own = bound(getattr(cls, "__parameters__", ()), arguments)
    found: dict[type, Substitution] = {cls: own}
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin = get_origin(base) or base
        if isinstance(origin, type) and origin not in (Generic, object):
            of_base = [substituted(one, own) for one in get_args(base)]
            found = scopes(origin, of_base) | found
    return found


def bound(variables: Sequence[Any], arguments: Sequence[Any]) -> dict[Any, Any]:
    """Return what each of `variables` stands for; `Any` where no argument and no default is."""
    values: dict[Any, Any] = {}
    rest = list(arguments)
    for position, variable in enumerate(variables):
        if is_variadic(variable):
            after = len(variables) - position - 1
            values[variable] = (
                tuple(rest[: len(rest) - after]) if arguments else (Unpack[tuple[Any, ...]],)
            )
            rest = rest[len(rest) - after :]
        else:
            default = default_of(variable, Any)
            argument = rest.pop(0) if rest else default
            # Some versions of Python write a default out that names another of the variables.
            values[variable] = substituted(default, values) if argument is default else argument
    return values


def default_of(variable: Any, otherwise: Any) -> Any:
    """Return the default of a type variable."""
    default = getattr(variable, "__default__", typing_extensions.NoDefault)
    return otherwise if default is typing_extensions.NoDefault else default


def is_variadic(variable: object) -> bool:
    """Tell whether a type variable stands for several types."""
    return isinstance(variable, TypeVarTuple | typing_extensions.TypeVarTuple)


def is_unpacked(annotation: object) -> bool:
    """Tell whether an annotation is ``*Ds`` or ``*tuple[...]``."""
    return get_origin(annotation) in (Unpack, typing_extensions.Unpack)


def substituted(annotation: Any, substitution: Substitution) -> Any:
    """Return `annotation` with aliases written out and type variables replaced."""
    if isinstance(get_origin(annotation) or annotation, _ALIASES):
        # What it stands for is in terms of `substitution` already, which is not applied twice.
        return _expanded(annotation, substitution)
    if isinstance(annotation, type):
        return annotation
    if isinstance(annotation, typing.TypeVar):
        return substitution.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    arguments: list[Any] = []
    for variable in parameters:
        if not is_variadic(variable):
            arguments.append(substitution.get(variable, variable))
        else:
            arguments.extend(substitution.get(variable, (Unpack[variable],)))
    return annotation[tuple(arguments)] if parameters else annotation


def _expanded(annotation: Any, substitution: Substitution) -> Any:
    """Return what an alias such as ``Tensor2D[M, N]`` stands for."""
    alias: Any = get_origin(annotation) or annotation
    given = [substituted(one, substitution) for one in get_args(annotation)]
    if alias in _ARITHMETIC:
        return _computed(alias, given)
    # By name and not by position: an alias may use its parameters in another order.
    return substituted(alias.__value__, bound(alias.__type_params__, given))


def _computed(alias: object, given: Sequence[Any]) -> Any:
    """Return the literal that ``Mul[Literal[4], Literal[16]]`` stands for; `Any` if it has none."""
    sizes = [get_args(one) for one in given if get_origin(one) is Literal]
    try:
        ((lhs,), (rhs,)) = sizes
        return Literal[_ARITHMETIC[alias](lhs, rhs)]
    except (ValueError, ZeroDivisionError):
        return Any
