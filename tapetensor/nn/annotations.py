"""Reading the annotations of a module class, and whether the values of its fields fit them.

The values of names and of type variables are found at run time, as a type checker finds types.
"""

from __future__ import annotations

import inspect
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import (
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    Union,
    Unpack,
    get_args,
    get_origin,
)

import numpy as np
import typing_extensions

from tapetensor.errors import BuildError, DTypeError, ShapeError, TapeTensorError
from tapetensor.tensor import Tensor
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
    at the top of a file the result is empty, and its names may be defined further down. `place` is
    the frame that made the class, or one that it called.
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
    """Return an annotation in a class, or its constructor, with all strings in it evaluated.

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


def _owner(cls: type, name: str) -> Any:
    """Return the class among the bases of `cls` that annotates a field."""
    return next(one for one in cls.__mro__ if name in vars(one).get("annotations_of_class", ()))


def hint_of_field(cls: type, name: str, substitutions: Substitutions) -> Any:
    """Return the annotation of a field with what its type variables stand for.

    Raises:
        NameError: if a name in it is not defined.
    """
    owner = _owner(cls, name)
    if name not in owner.hints_of_class:
        annotation = owner.annotations_of_class[name]
        owner.hints_of_class[name] = resolved(owner, owner.names_of_class, annotation)
    return substituted(owner.hints_of_class[name], substitutions[owner])


def length_of_field(cls: Any, name: str, substitutions: Substitutions) -> Any:
    """Return how many modules a list field of `cls` holds: a number, what is written for the type
    variable that says it, or None for a field that is no such list.
    """
    length = cls.fields_of_class[name].length
    if not isinstance(length, str):
        return length
    meaning = substitutions[_owner(cls, name)]
    named = {getattr(one, "__name__", ""): one for one in meaning}
    return meaning.get(named.get(length), length)


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
            of_base: list[Any] = []
            for one in get_args(base):
                several = own.get(*get_args(one)) if is_unpacked(one) else None
                of_base += [substituted(one, own)] if several is None else several
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


# What the type variables of the outermost module turn out to be: sizes, dtypes.
Found = dict[Any, Any]


def check_fields(module: object, values: Mapping[str, object]) -> None:
    """Check the values that the fields of a module are to have.

    Checked are modules (their class and all their sizes), tensors (shape and dtype), and lists,
    tuples and dicts of them. A type variable must have one size throughout. What an annotation
    leaves open (a nominal dim, `Any`) fits everything. The errors are those of `Module.__init__`.
    """
    cls = type(module)
    parameters = getattr(cls, "__parameters__", ())
    own = [Unpack[one] if is_variadic(one) else one for one in parameters]
    _check_each(cls, own, values, {}, f"{cls.__name__}: ")


def _check_each(
    cls: Any, arguments: list[Any], values: Mapping[str, object], found: Found, path: str
) -> None:
    substitutions = scopes(cls, arguments)
    for name in cls.fields_of_class:
        if name not in values:
            continue
        try:
            hint = hint_of_field(cls, name, substitutions)
        except NameError:
            # Imported for type checkers only, perhaps. They have checked it then.
            continue
        value: Any = values[name]
        _check(hint, value, found, f"{path}{name}")
        if isinstance(cls.fields_of_class[name].length, str):
            length = length_of_field(cls, name, substitutions)
            if not _agrees(length, len(value), found):
                words = _in_words(length, found)
                raise _differing(ShapeError, f"{path}{name}", f"has {len(value)} elements", words)


def _check(annotation: Any, value: Any, found: Found, path: str) -> None:
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (Union, types.UnionType):
        wanted = [one for one in arguments if one is not types.NoneType]
        if value is not None and len(wanted) == 1:
            _check(wanted[0], value, found, path)
        elif not callable(value) and (value is not None or len(wanted) == len(arguments)):
            _check_named(wanted, value, path)
    elif origin is bool:
        if not isinstance(value, bool | np.bool_):
            raise _unlike(path, "True or False", value)
    elif origin is Literal and all(isinstance(one, str) for one in arguments):
        if value not in arguments:
            raise _unlike(path, f"one of {', '.join(map(repr, arguments))}", value)
    elif origin is Literal or isinstance(origin, TypeVar):
        if type(value) in (int, tuple) and not _agrees(annotation, value, found):
            raise _differing(ShapeError, path, f"is {value}", _in_words(annotation, found))
    elif origin is Tensor:
        _check_sizes(arguments, value, found, path)
    elif isinstance(origin, type) and hasattr(origin, "fields_of_class"):
        value = uncompiled(value)
        if not isinstance(value, origin):
            raise _unlike(path, f"a {origin.__name__}", value)
        _check_each(origin, list(arguments), vars(value), found, f"{path}.")
    elif origin in (list, tuple) and arguments:
        _check_items(origin, arguments, value, found, path)
    elif origin is dict and arguments:
        if not isinstance(value, Mapping):
            raise _unlike(path, "a dict", value)
        for key, one in value.items():
            _check(arguments[1], one, found, f"{path}.{key}")


def uncompiled(value: Any) -> Any:
    """Return the module that a compiled one runs; anything else as it is."""
    inner = getattr(value, "__dict__", {}).get("__wrapped__")
    return inner if hasattr(type(inner), "fields_of_class") else value


def _check_named(wanted: list[Any], value: object, path: str) -> None:
    """Check what is to be a function, or the name of one; what else it may be is left open."""
    others = [one for one in wanted if get_origin(one) is not Callable]
    names = [name for one in others for name in get_args(one) if get_origin(one) is Literal]
    is_named = len(others) < len(wanted) and all(get_origin(one) is Literal for one in others)
    if is_named and value not in names:
        raise _unlike(path, f"one of {', '.join(map(repr, names))}, or a function", value)


def _check_items(
    origin: type, arguments: tuple[Any, ...], value: object, found: Found, path: str
) -> None:
    if not isinstance(value, list | tuple):
        raise _unlike(path, f"a {origin.__name__}", value)
    if origin is list or arguments[-1] is ...:
        arguments = (arguments[0],) * len(value)
    if any(is_unpacked(one) for one in arguments):
        return
    if len(arguments) != len(value):
        raise _differing(ShapeError, path, f"has {len(value)} elements", str(len(arguments)))
    for index, (annotation, one) in enumerate(zip(arguments, value, strict=True)):
        _check(annotation, one, found, f"{path}.{index}")


def _check_sizes(arguments: tuple[Any, ...], value: object, found: Found, path: str) -> None:
    if not isinstance(value, Tensor):
        cure = "; wrap numpy arrays with tt.from_numpy(...)"
        raise _unlike(path, "a tensor", value, cure)
    if not arguments:
        return
    shape, _, dtype = arguments
    dims, sizes = get_args(shape), tuple(value.shape)
    if get_origin(shape) is tuple and ... not in dims and not any(map(is_unpacked, dims)):
        agree = [_agrees(dim, size, found) for dim, size in zip(dims, sizes, strict=False)]
        if len(dims) != len(sizes) or not all(agree):
            said = ", ".join([_in_words(dim, found) for dim in dims])
            said = f"({said}{',' if len(dims) == 1 else ''})"
            raise _differing(ShapeError, path, f"has shape {sizes}", said)
    if not _agrees(dtype, value.dtype.type, found):
        words = _in_words(dtype, found)
        raise _differing(DTypeError, path, f"has dtype {value.dtype}", words)


def _agrees(annotation: Any, actual: object, found: Found) -> bool:
    """Tell whether a size or a dtype is what is annotated; a type variable takes the first."""
    if isinstance(annotation, TypeVar):
        return bool(found.setdefault(annotation, actual) == actual)
    if get_origin(annotation) is Literal:
        return actual in get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        # An abstract one, such as np.floating, leaves it open.
        return issubclass(actual, annotation) if isinstance(actual, type) else False
    return True


def _in_words(annotation: Any, found: Found) -> str:
    if isinstance(annotation, TypeVar) and annotation in found:
        value = found[annotation]
        return f"{annotation.__name__} = {getattr(value, '__name__', value)}"
    if get_origin(annotation) is Literal:
        return " or ".join([str(one) for one in get_args(annotation)])
    return str(getattr(annotation, "__name__", annotation))


def _differing(
    error: type[TapeTensorError], path: str, actual: str, annotated: str
) -> TapeTensorError:
    field = path.partition(": ")[2].partition(".")[0]
    return error(f"{path} {actual}, the annotation of {field} says {annotated}")


def _unlike(path: str, wanted: str, value: object, cure: str = "") -> BuildError:
    return BuildError(f"{path} must be {wanted}, as it is annotated, got {_short(value)}{cure}")


def _short(value: object) -> str:
    """Return a value for a message: modules, tensors and what holds them by their class."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    is_big = isinstance(value, Tensor | np.ndarray | list | tuple | dict)
    if is_big or hasattr(value, "fields_of_class"):
        return f"a {type(value).__name__}"
    return repr(value)
