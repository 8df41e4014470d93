"""`Module`: typed fields, a keyword constructor, parameters by name, a readable repr."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, ParamSpec, Protocol, Self

from typing_extensions import TypeVar, dataclass_transform, override

from tapetensor.arguments.spellings import (
    OF_MODULES,
    CalledOtherwise,
    given_by_name,
    without_spellings,
)
from tapetensor.arrays.libraries import Library, check_matching, moved
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BuildError,
    TapeTensorError,
    at_the_call,
    cut_traceback,
)
from tapetensor.nn.annotations import check_fields, is_class_variable, names_around, uncompiled
from tapetensor.nn.fields import MISSING, Field, buffer, options, parameter, repeat
from tapetensor.pictures import table
from tapetensor.tape import NoneTape
from tapetensor.tape.history import comes_of_parameters, op_name, own
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import tape_state

# The attribute of a module that infers whatever owns a tape: a part of what `inference` returned.
INFERS = "_infers"

# Of values that hold no tensor, those that most fields beside the tensors have.
_SETTINGS = frozenset({int, float, bool, str, type(None)})

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
    >>> import numpy as np
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

    # By field name, how each field is built; those of the bases first.
    fields_of_class: ClassVar[dict[str, Field]] = {}
    # What the class body itself annotates: as it is written, what its local names mean, and what
    # came of it, once it was needed. Names may be defined after the class, so not before.
    annotations_of_class: ClassVar[dict[str, Any]] = {}
    names_of_class: ClassVar[dict[str, Any]] = {}
    hints_of_class: ClassVar[dict[str, Any]] = {}
    # Of a class whose constructor takes its fields; None where it has another.
    __signature__: ClassVar[inspect.Signature | None] = None

    @override
    def __init_subclass__(cls, *, init: bool = True) -> None:
        """Collect the fields that the class body declares.

        Args:
            init: False tells type checkers that a class has the constructor of its base, as it has
                at run time anyway, and none that takes its fields.

        Raises:
            BuildError: if one has the name of a method of `Module`.
        """
        super().__init_subclass__()
        fields: dict[str, Field] = {}
        for base in reversed(cls.__mro__[1:]):
            fields |= vars(base).get("fields_of_class", {})
        annotations = {
            name: annotation
            for name, annotation in inspect.get_annotations(cls).items()
            if not is_class_variable(annotation)
        }
        for name in annotations:
            if hasattr(Module, name):
                raise BuildError(
                    f"{cls.__name__}.{name}: every module has a {name} of its own, "
                    "call the field something else"
                )
            fields.setdefault(name, Field())
        for name, declared in list(vars(cls).items()):
            if isinstance(declared, Field):
                if name not in annotations:
                    raise BuildError(
                        f"{cls.__name__}.{name}: annotate it ({name}: ... = "
                        f"nn.{declared.kind}(...)), so that it becomes a field"
                    )
                fields[name] = declared
                delattr(cls, name)
            elif name in fields:
                fields[name] = Field(default=declared)
        cls.fields_of_class = fields
        # What help() and editors without a type checker show of a constructor that takes fields.
        cls.__signature__ = None if cls.__init__ is not Module.__init__ else _signature_of(cls)
        cls.annotations_of_class = annotations
        cls.names_of_class = names_around(cls, sys._getframe(1))
        cls.hints_of_class = {}

    def __init__(self, *sizes: Any, **values: Any) -> None:
        """Set every field by keyword.

        Raises:
            ArgumentTypeError: if a field is missing, one is given that is not declared, or
                something without a name.
            BuildError: if a value is not the module or the tensor that the annotation asks for.
            ShapeError: if it has other sizes than the annotation says.
            DTypeError: if it has another dtype.
        """
        name, fields = type(self).__name__, self.fields_of_class
        if sizes:
            has_dims = bool(getattr(type(self), "__parameters__", ()))
            raise ArgumentTypeError(given_by_name(name, sizes, has_dims))
        unknown = [name for name in values if name not in fields]
        missing = [
            name for name in fields if name not in values and fields[name].default is MISSING
        ]
        if unknown or missing:
            problems = [f"missing fields {', '.join(missing)}"] * bool(missing)
            problems += [f"no such fields {', '.join(unknown)}"] * bool(unknown)
            raise ArgumentTypeError(
                f"{name}: {'; '.join(problems)}; the fields are {', '.join(fields) or 'none'}"
            )
        for one, field in fields.items():
            if one not in values:
                # A copy: two modules must not train one default.
                values[one] = copy.deepcopy(field.default)
        check_fields(self, values)
        for one, value in values.items():
            self._check_value(one, value)
            self._own(one, value)
        vars(self).update(values)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute.

        Raises:
            BuildError: if it is a tensor or a module that is not declared, a tensor that owns a
                tape, or not what the annotation asks for; or a tensor of a module that infers.
            ShapeError: if its sizes are not those of the annotation, or of the tensor before.
            DTypeError: if its dtype is not.
        """
        if isinstance(value, Tensor) and INFERS in vars(self):
            raise BuildError(
                f"{type(self).__name__}.{name}: a module that inference() returned keeps its "
                "tensors; ask nn.is_training(self, x) before a tensor is replaced"
            )
        with at_the_call:
            self._check_value(name, value)
            before = vars(self).get(name)
            # A tensor has been compared with the one before, and running statistics come often.
            is_compared = isinstance(value, Tensor) and isinstance(before, Tensor | None)
            is_setting = value.__class__ in _SETTINGS and before.__class__ in _SETTINGS
            if name in self.fields_of_class and not (is_compared or is_setting):
                check_fields(self, vars(self) | {name: value})
            self._own(name, value)
        object.__setattr__(self, name, value)

    def _own(self, name: str, value: object) -> None:
        """Make the tensors of a field the module's own."""
        field = self.fields_of_class.get(name)
        for _, one in _leafs(name, value):
            if isinstance(one, Tensor):
                own(one, is_trained=field is None or field.kind != "buffer")

    @override
    def __dir__(self) -> list[str]:
        """Return the names of what a module has, without those that only say what it is called."""
        return without_spellings(self, super().__dir__())

    def _check_value(self, name: str, value: object) -> None:
        cls, before = type(self).__name__, vars(self).get(name)
        for path, one in _leafs(name, value):
            if isinstance(one, Tensor):
                _check_leaf(self, path, one)
            if name not in self.fields_of_class and isinstance(one, Tensor | Module):
                raise BuildError(
                    f"{cls}.{path}: annotate {name} in the class body "
                    f"({name}: {type(value).__name__}[...]), "
                    "so that parameters() and build() find it"
                )
        if isinstance(value, Tensor) and isinstance(before, Tensor):
            check_matching(f"{cls}.{name}", "the tensor", before, "the one to replace it", value)

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
            # Many layers are called in a step, and a `with` takes longer than a `try`.
            try:
                result: Result_co = forward(*args, **kwargs)
            except TapeTensorError as error:
                cut_traceback(error)
                raise
            return result

    def parameters(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the tensors to train by dotted name, in the order of the fields.

        Buffers and tensors of integers are left out. A tensor that goes by two names, as tied
        weights do, is there twice.
        """
        return {
            name: tensor
            for name, tensor, is_buffer in self._named()
            if not is_buffer and tensor._array.dtype.kind == "f"
        }

    def buffers(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the tensors that are state but not trained, by dotted name."""
        return {
            name: tensor
            for name, tensor, is_buffer in self._named()
            if is_buffer or tensor.dtype.kind != "f"
        }

    def modules(self) -> dict[str, Module]:
        """Return all modules within this one by dotted name, each before those within it."""
        found: dict[str, Module] = {}
        for path, module in self._children():
            found[path] = module
            found.update({f"{path}.{inner}": one for inner, one in module.modules().items()})
        return found

    def to(self, library: Library) -> Self:
        """Move parameters and buffers, in place, to the arrays of a library, and return the module.

        ``model.to(cupy)`` for a GPU, ``model.to(numpy)`` for back. The tensors keep their ids, so
        optimizers go on: their state follows at the next step.

        Args:
            library: the module, such as numpy or cupy.

        Raises:
            ArgumentTypeError: if it is no such module; then nothing has been moved.

        >>> import numpy
        >>> from tapetensor import nn
        >>> nn.Linear(3, 2, rng=numpy.random.default_rng(0)).to(numpy)
        Linear(in_features=3, out_features=2)
        """
        tensors = {id(tensor): tensor for _, tensor, _ in self._tensors()}
        arrays = [moved("Module.to", tensor._array, library) for tensor in tensors.values()]
        for tensor, array in zip(tensors.values(), arrays, strict=True):
            tensor._array = array
        return self

    def parameter_count(self) -> int:
        """Return how many numbers are trained; a tensor that goes by two names counts once."""
        return sum({tensor.id: tensor.size for tensor in self.parameters().values()}.values())

    def summary(self) -> str:
        """Return a table of the parameters: name, shape, how many numbers.

        >>> import numpy as np
        >>> from tapetensor import nn
        >>> print(nn.Linear(3, 2, rng=np.random.default_rng(0)).summary())
        name    shape   parameters
        weight  (2, 3)           6
        bias    (2,)             2
        total                    8
        """
        cells = self._summarized()
        names, shapes, counts = (max(len(row[column]) for row in cells) for column in range(3))
        return "\n".join(
            f"{name:<{names}}  {shape:<{shapes}}  {count:>{counts}}" for name, shape, count in cells
        )

    def _summarized(self) -> list[tuple[str, str, str]]:
        return [
            ("name", "shape", "parameters"),
            *[
                (name, str(tensor.shape), f"{tensor.size:,}")
                for name, tensor in self.parameters().items()
            ],
            ("total", "", f"{self.parameter_count():,}"),
        ]

    def _repr_html_(self) -> str:
        """Return the table of the parameters, for a notebook's cell."""
        return table(type(self).__name__, self._summarized())

    def _contents(self) -> list[tuple[str, object, bool]]:
        """Return what the fields hold by name, and whether the field is a buffer; no settings."""
        contents: list[tuple[str, object, bool]] = []
        for name, field in self.fields_of_class.items():
            value = getattr(self, name, None)
            if isinstance(value, _CONTENTS):
                # The common case, and every training step asks for all parameters.
                contents.append((name, value, field.kind == "buffer"))
            elif value.__class__ not in _SETTINGS:
                is_buffer = field.kind == "buffer"
                contents += [(path, one, is_buffer) for path, one in _leafs(name, value)]
        return contents

    def _tensors(self, prefix: str = "") -> list[tuple[str, Tensor[Any, NoneTape, Any], bool]]:
        """Return all tensors by dotted name, and whether each is a buffer."""
        found: list[tuple[str, Tensor[Any, NoneTape, Any], bool]] = []
        for path, value, is_buffer in self._contents():
            if isinstance(value, Tensor):
                if value.tape is not None:
                    # It was put into a list or a dict that the module had already.
                    _check_leaf(self, path, value)
                found.append((prefix + path, value, is_buffer))
            elif isinstance(value, Module):
                found += Module._tensors(value, f"{prefix}{path}.")
        return found

    def _named(self) -> list[tuple[str, Tensor[Any, NoneTape, Any], bool]]:
        """Return all tensors, no two of which have one name."""
        found = self._tensors()
        if len({one[0] for one in found}) != len(found):
            names = [name for name, _, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentValueError(
                f"{type(self).__name__}: two tensors go by the name {twice!r}, and one of them "
                "would be lost; give dicts of modules keys that are texts without dots"
            )
        return found

    def _children(self) -> Iterator[tuple[str, Module]]:
        for path, value, _ in self._contents():
            if isinstance(value, Module):
                yield path, value

    @override
    def __repr__(self) -> str:
        """Show settings and own tensors, and the modules within, one per line."""
        name, settings = type(self).__name__, list(self._settings())
        inner = [f"{path}: {module!r}" for path, module in self._children()]
        if not inner:
            return f"{name}({', '.join(settings)})"
        lines = [f"  {line}".replace("\n", "\n  ") for line in [*settings, *inner]]
        return "\n".join([f"{name}(", *lines, ")"])

    def _settings(self) -> Iterator[str]:
        """Yield what distinguishes the module: the constructor's arguments, or the fields."""
        is_constructed = type(self).__init__ is not Module.__init__
        names = (
            inspect.signature(type(self).__init__).parameters
            if is_constructed
            else self.fields_of_class
        )
        for name in names:
            value = getattr(self, name, None)
            is_pair = isinstance(value, tuple) and [*map(type, value)] == [int, int]
            if isinstance(value, Tensor):
                yield f"{name}={value.dtype}{list(value.shape)}"
            elif (isinstance(value, int | float | str) and value is not False) or is_pair:
                yield f"{name}={value!r}"
            elif name == "dtype" and is_constructed:
                dtypes = {str(tensor.dtype) for tensor in self.parameters().values()}
                yield from [f"dtype={dtype}" for dtype in dtypes - {"float32"}]


_CONTENTS = (Tensor, Module)

for _name, _cure in OF_MODULES.items():
    setattr(Module, _name, CalledOtherwise(_name, _cure))


def _signature_of(cls: type[Module]) -> inspect.Signature:
    """Return how a module is made that takes its fields by keyword."""
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotations.get(name, inspect.Parameter.empty),
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
            )
            for name, field in cls.fields_of_class.items()
        ]
    )


def _check_leaf(module: Module, path: str, tensor: Tensor[Any, Any, Any]) -> None:
    """Raise BuildError if a tensor cannot be a module's own, for it is no leaf."""
    came_of = ""
    if tensor.tape is not None:
        came_of = f"has {tape_state(tensor)}"
    elif comes_of_parameters(history := tensor.history) and history is not None:
        came_of = f"was computed by {op_name(history[1])} from parameters"
    if came_of:
        raise BuildError(
            f"{type(module).__name__}.{path}: a field holds a leaf, and this tensor {came_of}; "
            "compute it in forward, where it is used, or write detach() for a new leaf of its "
            "value; keep what is only looked at as an array (detach().numpy())"
        )


def _leafs(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Walk through lists, tuples and dicts; the position becomes part of the dotted name."""
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leafs(f"{path}.{index}", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leafs(f"{path}.{key}", item)
    else:
        yield path, uncompiled(value)
