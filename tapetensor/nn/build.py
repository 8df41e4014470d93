"""`build`: a module made from the dims in its annotations."""

from __future__ import annotations

import copy
import inspect
import re
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import check_rng
from tapetensor.arrays.array import FLOATING, as_dtype
from tapetensor.errors import ArgumentValueError, BuildError, TapeTensorError, at_the_call
from tapetensor.nn import init
from tapetensor.nn.annotations import (
    Substitution,
    Substitutions,
    default_of,
    hint_of_field,
    is_unpacked,
    is_variadic,
    length_of_field,
    resolved,
    scopes,
    substituted,
)
from tapetensor.nn.fields import MISSING, Field
from tapetensor.nn.module import Module
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor import Tensor

ModuleT = TypeVar("ModuleT", bound=Module)


class _Place(NamedTuple):
    """Where in a model something is built.

    Attributes:
        path: the dotted name.
        rng: draws the initial values.
        within: the annotations of the modules around it.
    """

    path: str
    rng: np.random.Generator
    within: tuple[Any, ...] = ()

    def inner(self, name: object) -> _Place:
        return self._replace(path=f"{self.path}.{name}")


def build(module: type[ModuleT], *, rng: np.random.Generator) -> ModuleT:
    """Return a module whose sizes are read from its annotations.

    Every field is built in the order of the class body: modules from their type arguments, tensors
    from their dims and the initializer behind the ``=``, other fields from their default. Two
    builds with generators in the same state are equal bit for bit.

    Args:
        module: a module class, with type arguments if it is generic: ``Block[Literal[64]]``.
        rng: draws the initial values.

    Raises:
        BuildError: if a dim or a field cannot be worked out; the message names the field.
        ArgumentTypeError: if `rng` is not a numpy generator.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> tt.build(nn.Linear[L[3], L[2]], rng=np.random.default_rng(0))
    Linear(in_features=3, out_features=2)
    """
    check_rng("build", rng)
    cls = get_origin(module) or module
    if not (isinstance(cls, type) and issubclass(cls, Module)):
        got = f"a {type(cls).__name__} object" if isinstance(cls, Module) else repr(cls)
        raise BuildError(f"build: expected a module class, build(Mlp, rng=rng), say; got {got}")
    with at_the_call:
        built: ModuleT = _build_module(module, {}, _Place(cls.__name__, rng))
    return built


def _build_module(annotation: Any, options: Mapping[str, Any], place: _Place) -> Any:
    """Build a module from ``Class`` or ``Class[arguments]``, within others that are being built."""
    path = place.path
    cls = get_origin(annotation) or annotation
    if not (isinstance(cls, type) and issubclass(cls, Module)):
        raise BuildError(f"build: {path} is annotated {_name(annotation)}, which is not a Module")
    arguments = [substituted(one, {}) for one in get_args(annotation)]
    _check_complete(cls, arguments, path)
    if annotation in place.within:
        raise BuildError(
            f"build: {path} is annotated {_name(annotation)}, within which it stands, and so on "
            f"without end; give it a default that ends it: {_name(annotation)} | None = None, say"
        )
    place = place._replace(within=(*place.within, annotation))
    substitutions = scopes(cls, arguments)
    # A copy: a module among the options belongs to one module only. A generator stays one stream.
    values = {
        name: value if isinstance(value, np.random.Generator) else copy.deepcopy(value)
        for name, value in options.items()
    }
    try:
        if cls.__init__ is not Module.__init__:
            return _construct(cls, substitutions, values, place)
        for name, field in cls.fields_of_class.items():
            if name not in values and field.default is MISSING:
                inner = place.inner(name)
                hint = _hint(cls, name, substitutions, inner.path)
                length = length_of_field(cls, name, substitutions)
                if not (length is None or isinstance(length, int)):
                    length = _size(length, inner.path)
                values[name] = _build_field(name, field._replace(length=length), hint, inner)
        return cls(**values)
    except TapeTensorError as error:
        if path not in f"{error} {getattr(error, '__notes__', '')}":
            error.add_note(f"while building {path}")
        raise


def _build_field(name: str, field: Field, annotation: Any, place: _Place) -> Any:
    """Build the value of one field of a module without a constructor of its own."""
    path = place.path
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    options = dict(field.options)
    if origin in (list, tuple):
        is_repeated = origin is list or arguments[-1:] == (...,)
        _check_marked(field, ("", "repeat" if is_repeated else "options"), annotation, path)
        if is_repeated:
            if not isinstance(field.length, int):
                raise BuildError(
                    f"build: {path} is a {origin.__name__} of unknown length; "
                    f"write {name}: {origin.__name__}[...] = nn.repeat(3), say"
                )
            if field.length < 1:
                raise ArgumentValueError(
                    f"build: {path} has no module: its length is {field.length}"
                )
            arguments = (arguments[0] if arguments else None,) * field.length
        return origin(
            [_build_module(one, options, place.inner(at)) for at, one in enumerate(arguments)]
        )
    if origin is Tensor:
        _check_marked(field, ("", "parameter", "buffer"), annotation, path)
        return _build_tensor(name, field, arguments, place)
    if isinstance(origin, type) and issubclass(origin, Module):
        _check_marked(field, ("", "options"), annotation, path)
        return _build_module(annotation, options, place)
    if origin is np.random.Generator:
        return place.rng
    raise BuildError(
        f"build: {path} is annotated {_name(annotation)}; give it a default, or make it a module, "
        "a list or tuple of modules, or a tensor with nn.parameter(...)"
    )


def _check_marked(field: Field, allowed: tuple[str, ...], annotation: Any, path: str) -> None:
    if field.kind not in allowed:
        cures = " or ".join([f"nn.{kind}(...)" for kind in allowed if kind])
        raise BuildError(
            f"build: {path} is annotated {_name(annotation)}, for which nn.{field.kind}(...) "
            f"has no meaning; write {cures}, or nothing"
        )


def _build_tensor(
    name: str, field: Field, arguments: tuple[Any, ...], place: _Place
) -> Tensor[Any, Any, Any]:
    path = place.path
    if field.initializer is None:
        raise BuildError(
            f"build: {path} is a tensor without first values; "
            f"write {name}: Tensor... = nn.parameter(nn.init.zeros), say"
        )
    shape, tape, dtype = arguments or (Any, NoneTape, np.float32)
    dims = get_args(shape)
    if get_origin(shape) is not tuple or ... in dims:
        raise BuildError(
            f"build: {path} has the shape {_name(shape)}, which is open; "
            f"write {name}: Tensor2D[Literal[3], Literal[4]], say"
        )
    if tape is OwnedTape:
        raise BuildError(
            f"build: {path} is annotated with OwnedTape; a field holds a plain value (NoneTape), "
            "it is the input of a model that is traced"
        )
    sizes = tuple([_size(dim, path) for dim in dims])
    if not (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        raise BuildError(f"build: {path} has the dtype {_name(dtype)}; write np.float32, say")
    scalar_type = as_dtype(f"build: {path}", dtype)
    if field.kind == "parameter" and scalar_type not in FLOATING:
        raise BuildError(
            f"build: {path} has dtype {scalar_type}, and only floats are trained; "
            "declare it with nn.buffer(...)"
        )
    return init.make(field.initializer, sizes, scalar_type, place.rng, f"build: {path}")


def _construct(
    cls: type[Module], substitutions: Substitutions, options: Mapping[str, Any], place: _Place
) -> Module:
    """Call a constructor with what the type arguments say.

    An argument that is annotated by a type variable gets its size; `rng` and `dtype` go by name.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = dict(options)
    owner = next(one for one in cls.__mro__ if "__init__" in vars(one))
    signature = inspect.signature(vars(owner)["__init__"]).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in signature.values())
    unknown = [name for name in options if name not in signature]
    if unknown and not takes_any:
        arguments = ", ".join([*signature][1:]) or "none"
        raise BuildError(
            f"build: {place.path}: {cls.__name__} has no arguments {', '.join(unknown)}; "
            f"they are {arguments}"
        )
    for name, parameter in [*signature.items()][1:]:
        if name in keywords or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name == "rng":
            keywords[name] = place.rng
            continue
        value = _argument(parameter, owner, substitutions[owner], place)
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif value is not MISSING:
            keywords[name] = value
        elif parameter.default is parameter.empty:
            raise BuildError(
                f"build: {place.path}: the argument {name} of {cls.__name__} cannot be read from "
                f"the annotation; give it with nn.options({name}=...)"
            )
    return cls(*positional, **keywords)


def _argument(
    parameter: inspect.Parameter, owner: type[Module], substitution: Substitution, place: _Place
) -> Any:
    """Return what the type arguments say of one argument, `MISSING` if that is nothing."""
    try:
        hint = resolved(owner, owner.names_of_class, parameter.annotation)
    except NameError:
        hint = None
    if parameter.kind is parameter.VAR_POSITIONAL:
        given = substitution[get_args(hint)[0]] if is_unpacked(hint) else ()
        return [
            _size(one, place.path)
            if get_origin(one) is Literal
            else _build_module(one, {}, place.inner(index))
            for index, one in enumerate(given)
        ]
    if parameter.name == "dtype":
        classes = [one for one in substitution.values() if isinstance(one, type)]
        return next((one for one in classes if issubclass(one, np.generic)), MISSING)
    if get_origin(hint) in (Union, types.UnionType):
        # An argument that may be left out.
        (hint, *_) = [one for one in get_args(hint) if one is not types.NoneType]
    if hint not in substitution:
        return MISSING
    argument: Any = substitution[hint]
    cls: Any = get_origin(argument) or argument
    if isinstance(cls, type) and issubclass(cls, Module):
        return _build_module(argument, {}, place.inner(parameter.name))
    # Where more than a size will do, as for windows, the bound of the type variable says what.
    others = get_args(hint.__bound__)
    if argument in others:
        return get_args(argument)[0]
    if cls is tuple and any(get_origin(one) is tuple for one in others):
        return tuple([_size(one, place.path) for one in get_args(argument)])
    return _size(argument, place.path)


def _check_complete(cls: type[Module], arguments: Sequence[Any], path: str) -> None:
    """Raise BuildError if type arguments are missing; if there are some, typing has counted."""
    variables: tuple[Any, ...] = getattr(cls, "__parameters__", ())
    required = [one for one in variables if default_of(one, MISSING) is MISSING]
    if required and not arguments:
        names = ", ".join([one.__name__ for one in variables])
        example = ", ".join(["..." if is_variadic(one) else "Literal[64]" for one in required])
        raise BuildError(
            f"build: {path}: {cls.__name__}[{names}] needs a value for {required[0].__name__}; "
            f"write {cls.__name__}[{example}], say"
        )


def _hint(cls: type[Module], name: str, substitutions: Substitutions, path: str) -> Any:
    try:
        return hint_of_field(cls, name, substitutions)
    except NameError as error:
        raise BuildError(
            f"build: {path}: {error}; what an annotation names must be defined when build is "
            "called, and for a class inside a function before the class, in that function or at "
            "the top of the file"
        ) from error


def _size(dim: Any, path: str) -> int:
    """Return the size that a dim says."""
    if get_origin(dim) is Literal:
        sizes = get_args(dim)
        if len(sizes) == 1 and type(sizes[0]) is int and sizes[0] >= 0:
            return sizes[0]
    raise BuildError(
        f"build: {path}: the dim {_name(dim)} has no size; write Literal[64], say, "
        "or construct the module with ints"
    )


def _name(annotation: Any) -> str:
    """Return an annotation as it is written, without the modules that its names come from."""
    named = None if get_args(annotation) else getattr(annotation, "__name__", None)
    return re.sub(r"[\w<>]+\.(?=\w)", "", named or repr(annotation))
