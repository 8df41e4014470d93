"""Whether the values of a module's fields fit their annotations: the run-time twin of the types."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from typing_extensions import Unpack

from tapetensor.errors import BuildError, DTypeError, ShapeError, TapeTensorError
from tapetensor.nn.annotations import (
    hint_of_field,
    is_unpacked,
    is_variadic,
    length_of_field,
    scopes,
    substituted,
)
from tapetensor.tensor import Tensor

# What the type variables of the outermost module turn out to be: sizes, dtypes.
Found = dict[Any, Any]


def check_fields(module: object, values: Mapping[str, object]) -> None:
    """Check the values that the fields of a module are to have.

    Checked are modules (their class and all their sizes), tensors (shape and dtype), and lists,
    tuples and dicts of them. A type variable must have one size throughout. What an annotation
    leaves open (a nominal dim, `Any`) fits everything.

    Raises:
        BuildError: if a value is not a module or a tensor, where one is wanted.
        ShapeError: if a size differs.
        DTypeError: if a dtype differs.
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
            owner, hint = hint_of_field(cls, name)
        except NameError:
            # Imported for type checkers only, perhaps. They have checked it then.
            continue
        value: Any = values[name]
        _check(substituted(hint, substitutions[owner]), value, found, f"{path}{name}")
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
