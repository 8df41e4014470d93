"""`Module`: typed fields, a keyword constructor, parameters by name, a readable repr."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, ClassVar, ParamSpec, Protocol, get_type_hints

import numpy as np
from typing_extensions import TypeVar, dataclass_transform, override

from tapetensor.errors import ArgumentTypeError, BuildError
from tapetensor.nn.fields import Field, buffer, options, parameter, repeat
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor

# A type checker knows `MYPY` to be true in mypy alone.
MYPY = False

Arguments = ParamSpec("Arguments")
Result_co = TypeVar("Result_co", covariant=True)


class HasForward(Protocol[Arguments, Result_co]):
    """A module that can be called."""

    def forward(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result_co:
        """Compute the output."""


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, buffer, options, repeat))
class Module:
    """A part of a model: typed fields and a `forward`.

    Fields are annotated in the class body. Tensors and modules among them (and modules in lists,
    tuples and dicts) are found by name; a subclass without a constructor of its own gets one that
    takes every field by keyword, and `tapetensor.build` makes one from the annotations.

    One `forward` serves training and inference: the tape of the input says which, so a module has
    no mode to switch.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> class Mlp(nn.Module):
    ...     hidden: nn.Linear[L[4], L[8]]
    ...     out: nn.Linear[L[8], L[2]]
    ...     def forward(self, x):
    ...         return self.out.forward(self.hidden.forward(x).relu())
    >>> model = tt.build(Mlp, rng=np.random.default_rng(0))
    >>> model
    Mlp(
      hidden: Linear(in_features=4, out_features=8)
      out: Linear(in_features=8, out_features=2)
    )
    >>> list(model.parameters())
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    # By field name, how each field is built.
    fields_of_class: ClassVar[dict[str, Field]] = {}
    # The annotations, where only the place of the class statement can tell what their names mean.
    hints_of_class: ClassVar[dict[str, Any] | None] = None

    @override
    def __init_subclass__(cls) -> None:
        """Collect the fields that the class body declares."""
        super().__init_subclass__()
        fields = dict(cls.fields_of_class)
        for name, annotation in inspect.get_annotations(cls).items():
            if "ClassVar" in str(annotation):
                continue
            declared = cls.__dict__.get(name)
            fields[name] = declared if isinstance(declared, Field) else Field()
            if isinstance(declared, Field):
                delattr(cls, name)
        cls.fields_of_class = fields
        cls.hints_of_class = _local_hints(cls, sys._getframe(1))

    def __init__(self, **values: Any) -> None:
        """Set every field by keyword.

        Raises:
            ArgumentTypeError: if a field is missing or one is given that is not declared.
        """
        name = type(self).__name__
        unknown = [key for key in values if key not in self.fields_of_class]
        missing = [
            key for key in self.fields_of_class if key not in values and not hasattr(self, key)
        ]
        if unknown or missing:
            raise ArgumentTypeError(
                f"{name}: "
                + "; ".join(
                    text
                    for keys, text in (
                        (missing, f"missing fields {', '.join(missing)}"),
                        (unknown, f"no such fields {', '.join(unknown)}"),
                    )
                    if keys
                )
                + f"; the fields are {', '.join(self.fields_of_class) or 'none'}"
            )
        for key, value in values.items():
            setattr(self, key, value)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; a tensor or a module must be declared, or it would not be trained."""
        if name not in self.fields_of_class and isinstance(value, Tensor | Module):
            raise BuildError(
                f"{type(self).__name__}.{name}: annotate it in the class body "
                f"({name}: {type(value).__name__}[...]), so that it is found by parameters()"
            )
        object.__setattr__(self, name, value)

    if not MYPY:

        def __call__(
            self: HasForward[Arguments, Result_co],
            *args: Arguments.args,
            **kwargs: Arguments.kwargs,
        ) -> Result_co:
            """Run `forward`.

            Raises:
                BuildError: if the module defines no `forward`.
            """
            forward = getattr(self, "forward", None)
            if forward is None:
                raise BuildError(f"{type(self).__name__}: define forward() to call the module")
            result: Result_co = forward(*args, **kwargs)
            return result

    def parameters(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the tensors to train by dotted name, in the order of the fields.

        Buffers and tensors of integers are left out.
        """
        return {
            name: tensor
            for name, tensor, is_buffer in self._tensors()
            if not is_buffer and tensor.dtype.kind == "f"
        }

    def buffers(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the tensors that are state but not trained, by dotted name."""
        return {
            name: tensor
            for name, tensor, is_buffer in self._tensors()
            if is_buffer or tensor.dtype.kind != "f"
        }

    def modules(self) -> dict[str, Module]:
        """Return the modules of the fields by dotted name, those within lists included."""
        return {
            path: value
            for name in self.fields_of_class
            for path, value in _leafs(name, getattr(self, name, None))
            if isinstance(value, Module)
        }

    def summary(self) -> str:
        """Return a table of the parameters: name, shape, how many numbers.

        >>> from tapetensor import nn
        >>> print(nn.Linear(3, 2, rng=np.random.default_rng(0)).summary())
        name    shape   parameters
        weight  (2, 3)           6
        bias    (2,)             2
        total                    8
        """
        rows = [
            (name, str(tuple(tensor.shape)), tensor.size)
            for name, tensor in self.parameters().items()
        ]
        total = sum(count for _, _, count in rows)
        cells = [
            ("name", "shape", "parameters"),
            *[(name, shape, f"{count:,}") for name, shape, count in rows],
            ("total", "", f"{total:,}"),
        ]
        names, shapes, counts = (max(len(row[column]) for row in cells) for column in range(3))
        return "\n".join(
            f"{name:<{names}}  {shape:<{shapes}}  {count:>{counts}}" for name, shape, count in cells
        )

    def _tensors(self) -> Iterator[tuple[str, Tensor[Any, NoneTape, Any], bool]]:
        for name, field in self.fields_of_class.items():
            for path, value in _leafs(name, getattr(self, name, None)):
                if isinstance(value, Tensor):
                    yield path, value, field.is_buffer
                elif isinstance(value, Module):
                    for inner, tensor, is_buffer in value._tensors():
                        yield f"{path}.{inner}", tensor, is_buffer

    @override
    def __repr__(self) -> str:
        """Show the constructor's arguments, or the modules within, one per line."""
        inner = self.modules()
        name = type(self).__name__
        if not inner:
            return f"{name}({', '.join(self._settings())})"
        lines = [f"  {path}: {module!r}".replace("\n", "\n  ") for path, module in inner.items()]
        return "\n".join([f"{name}(", *lines, ")"])

    def _settings(self) -> Iterator[str]:
        for name in inspect.signature(type(self).__init__).parameters:
            value = getattr(self, name, None)
            if isinstance(value, int | float | str) and name != "self":
                yield f"{name}={value!r}"
            elif isinstance(value, type) and value is not np.float32:
                yield f"{name}={value.__name__}"


def _local_hints(cls: type[Module], place: FrameType) -> dict[str, Any] | None:
    """Return the resolved annotations of a class whose statement is not at the top of its module.

    Resolved at once, so that the names around the class statement need not be kept.
    """
    module = sys.modules.get(cls.__module__)
    if module is not None and place.f_locals is module.__dict__:
        return None
    try:
        return get_type_hints(cls, place.f_globals, dict(place.f_locals), include_extras=True)
    except NameError:
        return None


def _leafs(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Walk through lists, tuples and dicts; the position becomes part of the dotted name."""
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leafs(f"{path}.{index}", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leafs(f"{path}.{key}", item)
    else:
        yield path, value
