"""`build`: a module made from the dims in its annotations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVarTuple,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import typing_extensions
from typing_extensions import TypeVar

from tapetensor.errors import BuildError
from tapetensor.nn import init
from tapetensor.nn.fields import Field
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.creation import check_rng

ModuleT = TypeVar("ModuleT", bound=Module)
# What each type variable of a class stands for: a type, or several for a type variable tuple.
Substitution: TypeAlias = Mapping[Any, Any]


def build(module: type[ModuleT], *, rng: np.random.Generator) -> ModuleT:
    """Return a module whose sizes are read from its annotations.

    Every field is built in the order of the class body: modules from their type arguments, tensors
    from their dims and the initializer behind the ``=``, other fields from their default. Two
    builds with generators in the same state are equal bit for bit.

    Args:
        module: a module class, with type arguments if it is generic: ``Block[Literal[64]]``.
        rng: where the first values come from.

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
    built: ModuleT = _build_module(module, {}, (), rng, _name(module))
    return built


def _build_module(
    annotation: Any,
    substitution: Substitution,
    options: tuple[tuple[str, Any], ...],
    rng: np.random.Generator,
    path: str,
) -> Any:
    """Build a module from ``Class`` or ``Class[arguments]``."""
    cls = get_origin(annotation) or annotation
    if not (isinstance(cls, type) and issubclass(cls, Module)):
        raise BuildError(f"build: {path} is annotated {annotation!r}, which is not a Module")
    arguments = [_substituted(one, substitution) for one in get_args(annotation)]
    own = _type_parameters(cls, arguments, path)
    if cls.__init__ is not Module.__init__:
        return _construct(cls, own, dict(options), rng, path)
    values = {}
    hints = cls.hints_of_class or _resolved_hints(cls, path)
    for name, field in cls.fields_of_class.items():
        values[name] = _build_field(cls, name, field, hints[name], own, rng, f"{path}.{name}")
    return cls(**values | dict(options))


def _build_field(
    cls: type[Module],
    name: str,
    field: Field,
    annotation: Any,
    substitution: Substitution,
    rng: np.random.Generator,
    path: str,
) -> Any:
    """Build the value of one field of a module without a constructor of its own."""
    if hasattr(cls, name):
        return getattr(cls, name)
    annotation = _expanded(annotation, substitution)
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is list and arguments:
        if field.count is None:
            raise BuildError(
                f"build: {path} is a list of unknown length; "
                f"write {name}: list[...] = nn.repeat(3), say"
            )
        return [
            _build_module(arguments[0], substitution, field.options, rng, f"{path}.{index}")
            for index in range(field.count)
        ]
    if origin is tuple and ... not in arguments:
        return tuple(
            [
                _build_module(one, substitution, field.options, rng, f"{path}.{index}")
                for index, one in enumerate(arguments)
            ]
        )
    if origin is Tensor:
        return _build_tensor(name, field, arguments, substitution, rng, path)
    if isinstance(origin, type) and issubclass(origin, Module):
        return _build_module(annotation, substitution, field.options, rng, path)
    raise BuildError(
        f"build: {path} is annotated {annotation!r}; give it a default, or make it a module, "
        "a list or tuple of modules, or a tensor with nn.parameter(...)"
    )


def _build_tensor(
    name: str,
    field: Field,
    arguments: tuple[Any, ...],
    substitution: Substitution,
    rng: np.random.Generator,
    path: str,
) -> Tensor[Any, Any, Any]:
    if field.initializer is None:
        raise BuildError(
            f"build: {path} is a tensor without first values; "
            f"write {name}: Tensor... = nn.parameter(nn.init.zeros), say"
        )
    dims, _, dtype = arguments
    shape = tuple(
        [_size(_substituted(dim, substitution), path) for dim in get_args(dims) if dim != ()]
    )
    scalar_type = _substituted(dtype, substitution)
    return init.make(field.initializer, shape, np.dtype(scalar_type), rng)


def _construct(
    cls: type[Module],
    substitution: Substitution,
    options: dict[str, Any],
    rng: np.random.Generator,
    path: str,
) -> Module:
    """Call a constructor with what the type arguments say.

    An argument that is annotated by a type variable gets its size; `rng` and `dtype` go by name.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = dict(options)
    hints = _resolved_hints(cls.__init__, path)
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        annotation = hints.get(name)
        if name in keywords:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL and _is_unpacked(annotation):
            layers = substitution[get_args(annotation)[0]]
            positional.extend(
                _build_module(layer, substitution, (), rng, f"{path}.{index}")
                for index, layer in enumerate(layers)
            )
        elif name == "rng":
            keywords[name] = rng
        elif annotation in substitution:
            keywords[name] = _size(substitution[annotation], path)
        elif name == "dtype":
            keywords[name] = _scalar_type(substitution)
        elif parameter.default is parameter.empty:
            raise BuildError(
                f"build: {path}: the argument {name} of {cls.__name__} cannot be read from the "
                f"annotation; give it with nn.options({name}=...)"
            )
    return cls(*positional, **keywords)


def _type_parameters(cls: type[Module], arguments: list[Any], path: str) -> dict[Any, Any]:
    """Return what each type variable of `cls` stands for."""
    parameters: tuple[Any, ...] = getattr(cls, "__parameters__", ())
    own: dict[Any, Any] = {}
    rest = list(arguments)
    for position, variable in enumerate(parameters):
        if isinstance(variable, TypeVarTuple | typing_extensions.TypeVarTuple):
            after = len(parameters) - position - 1
            own[variable] = tuple(rest[: len(rest) - after])
            rest = rest[len(rest) - after :]
        elif rest:
            own[variable] = rest.pop(0)
        elif typing_extensions.NoDefault is not getattr(
            variable, "__default__", typing_extensions.NoDefault
        ):
            own[variable] = variable.__default__
        else:
            wanted = ", ".join(f"{one.__name__}" for one in parameters)
            raise BuildError(
                f"build: {path}: {cls.__name__}[{wanted}] needs a value for {variable.__name__}; "
                f"write {cls.__name__}[Literal[64], ...], say"
            )
    return own


def _substituted(annotation: Any, substitution: Substitution) -> Any:
    """Return `annotation` with the type variables replaced."""
    if annotation in substitution:
        return substitution[annotation]
    annotation = _expanded(annotation, substitution)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or isinstance(annotation, type):
        return annotation
    return annotation[tuple([substitution.get(one, one) for one in parameters])]


def _expanded(annotation: Any, substitution: Substitution) -> Any:
    """Return what an alias such as ``Tensor2D[M, N]`` stands for."""
    alias = get_origin(annotation) or annotation
    if not isinstance(alias, typing_extensions.TypeAliasType):
        return annotation
    given = list(get_args(annotation))
    rest = alias.__type_params__[len(given) :]
    given.extend([getattr(variable, "__default__", variable) for variable in rest])
    return alias.__value__[tuple(given)] if given else alias.__value__


def _size(dim: Any, path: str) -> int:
    """Return the size that a dim says."""
    if get_origin(dim) is Literal:
        (size,) = get_args(dim)
        if isinstance(size, int):
            return size
    raise BuildError(
        f"build: {path}: the dim {_name(dim)} has no size; write Literal[64], say, "
        "or construct the module with ints"
    )


def _resolved_hints(owner: Any, path: str) -> dict[str, Any]:
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise BuildError(
            f"build: {path}: {error}; the annotations of a class that is defined inside a function "
            "cannot be looked up when they are strings: define it at the top of the file"
        ) from error


def _scalar_type(substitution: Substitution) -> Any:
    """Return the dtype among the type arguments, float32 if there is none."""
    scalar_types = [
        one
        for one in substitution.values()
        if isinstance(one, type) and issubclass(one, np.generic)
    ]
    return scalar_types[0] if scalar_types else np.float32


def _is_unpacked(annotation: Any) -> bool:
    return get_origin(annotation) in (Unpack, typing_extensions.Unpack)


def _name(thing: Any) -> str:
    return getattr(thing, "__name__", repr(thing))
