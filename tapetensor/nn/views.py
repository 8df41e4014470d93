"""A model that is run in another way, with other tensors, or trained in part.

One that infers drops nothing and moves no statistics.
"""

from __future__ import annotations

import copy
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from operator import setitem
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arguments import check_kind
from tapetensor.arrays.libraries import check_matching
from tapetensor.arrays.stand_ins import CapturedGenerator
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, UntracedTensorError
from tapetensor.nn.module import INFERS, Module
from tapetensor.surroundings.places import NOTHING, Slots, attributes_of, cell_place
from tapetensor.tape import NoneTape
from tapetensor.tape.history import OWN
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import TensorBase, check_tensor, rewrap
from tapetensor.tensor.elementwise import Undropping
from tapetensor.tensor.ownership import HasParameters

M = TypeVar("M", bound=Module)


def inference(model: M) -> M:
    """Return the model as one that infers under any tape: for gradients that do not train.

    Its `forward` drops nothing and moves no statistics, also if the input has a tape. Use it for
    the gradient by the input (saliency, adversarial examples), and to train with frozen batch
    norms. It shares the parameters and buffers of `model`: an optimizer of `model` finds their
    gradients, and both see the new values of a step, a batch norm or `load`. `model` stays as it
    is, and can go on training.

    With a plain input it is like ``torch.no_grad()``: the result is a constant. Use it for
    teachers, target networks, rollouts and validation. (The result of a plain pass through `model`
    itself is no constant: asking for a gradient behind it raises an error.)

    The modules are copied, with the lists, dicts, dataclasses, methods and closures that hold them.
    If you assign to a field of `model` later (``model.out = ...``), call `inference` again. In a
    module of your own ask `is_training` before steps that belong to training alone. Functions
    outside of the model, such as a global dropout, still drop.

    Raises:
        ArgumentTypeError: if `model` is not a module.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> rng = np.random.default_rng(0)
    >>> model = nn.Sequential(nn.Dropout(0.5, rng=rng), nn.Linear(2, 1, rng=rng))
    >>> frozen = nn.inference(model)
    >>> saliency = tt.grad(lambda x: frozen.forward(x).sum(), tt.ones((1, 2)))
    >>> bool(np.all(saliency.numpy() == model.parameters()["1.weight"].numpy()))
    True
    """
    check_kind("inference", "the argument", model, Module, "a module")
    view: M = Copying({}, infers=True).copy_of(model)
    return view


def is_training(module: Module, x: TensorBase[Any, Any, Any]) -> bool:
    """Tell whether a module trains on an input: it owns a tape, and the module may train.

    Ask it in a `forward` before dropping elements or moving a buffer. A module that `inference`
    returned, and each of its parts, never trains.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> norm, x = nn.BatchNorm1d(2), tt.ones((3, 2))
    >>> nn.is_training(norm, x), nn.is_training(norm, x.trace())
    (False, True)
    >>> nn.is_training(nn.inference(norm), x.trace())
    False
    """
    if INFERS in vars(module):
        return False
    return x.owns_tape


def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of the module's own `forward`; a plain result is a constant."""
    result = type(self).forward(self, *args, **kwargs)
    return _constants(result, (*args, *kwargs.values()))


def _constants(result: Any, given: tuple[Any, ...]) -> Any:
    """Return results with plain tensors that have no history in the place of those that have."""
    if isinstance(result, Tensor):
        is_computed = result.tape is None and result.history is not None
        if not is_computed or result.history is OWN or any(result is one for one in given):
            return result
        return rewrap(result, result._array, result.id, None)
    if isinstance(result, tuple | list):
        constants = [_constants(one, given) for one in result]
        make: Any = getattr(result, "_make", type(result))
        return make(constants)
    if type(result) is dict:
        return {key: _constants(one, given) for key, one in result.items()}
    return result


class Copying:
    """Copies modules and their containers, each once; everything else is shared.

    Args:
        replaced: by the ids of tensors, which are not copied, others to have in their places.
        infers: whether the copies of modules are to infer.
    """

    def __init__(
        self, replaced: Mapping[int, Tensor[Any, Any, Any]], *, infers: bool = False
    ) -> None:
        self._replaced, self._infers = replaced, infers
        # By id, what was copied, which is kept alive for the sake of its id, and the copy.
        self._copies: dict[int, tuple[object, Any]] = {}

    def modules(self) -> list[tuple[Module, Module]]:
        """Return the modules that were copied, with the copy of each."""
        return [(one, twin) for one, twin in self._copies.values() if isinstance(one, Module)]

    def copy_of(self, value: Any) -> Any:
        """Return the copy of a value, or the value itself if no module is within."""
        if isinstance(value, Tensor):
            return self._replaced.get(value.id, value)
        if isinstance(value, np.ndarray | type | types.ModuleType | str | int | float):
            return value
        known = self._copies.get(id(value))
        if known is None:
            self._copies[id(value)] = value, _BEGUN
            known = self._copies[id(value)] = value, self._copied(value)
        elif known[1] is _BEGUN:
            # It holds itself, so there must be a copy to hold.
            known = self._copies[id(value)] = value, _empty_copy(value)
        return known[1]

    def _twin(self, value: Any) -> Any:
        """Return the copy that is to be filled."""
        twin = self._copies[id(value)][1]
        return _empty_copy(value) if twin is _BEGUN else twin

    def _copied(self, value: Any) -> Any:
        if isinstance(value, Module):
            return self._of_module(value)
        if isinstance(value, CapturedGenerator | np.random.Generator):
            return self._of_generator(value) if self._infers else value
        if isinstance(value, Mapping):
            return self._of_parts(value, dict(value), setitem)
        if isinstance(value, list | tuple | deque | set | frozenset):
            return self._of_items(value)
        if isinstance(value, partial):
            parts = self.copy_of((value.func, value.args, value.keywords))
            return partial(parts[0], *parts[1], **parts[2])
        if isinstance(value, types.MethodType):
            return types.MethodType(value.__func__, self.copy_of(value.__self__))
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if "__wrapped__" in getattr(value, "__dict__", ()):
            # A compiled function: its copy makes plans of its own.
            inner = value.__wrapped__
            copied = self.copy_of(inner)
            return value if copied is inner else copy.deepcopy(value, {id(inner): copied})
        attributes = (attributes_of(value) or {}) | Slots(value).read()
        # A frozen dataclass refuses an ordinary assignment.
        return self._of_parts(value, attributes, object.__setattr__)

    def _of_module(self, module: Module) -> Module:
        view: Module = object.__new__(type(module))
        self._copies[id(module)] = module, view
        # Not by assignment, which would have the fields checked that were checked before.
        vars(view).update({name: self.copy_of(one) for name, one in vars(module).items()})
        if self._infers:
            vars(view).update({INFERS: True, "forward": types.MethodType(forward, view)})
        return view

    def _of_generator(self, generator: CapturedGenerator | np.random.Generator) -> Any:
        if isinstance(generator, CapturedGenerator):
            return generator.undropping()
        return Undropping(copy.deepcopy(generator.bit_generator))

    def _of_items(self, value: Any) -> Any:
        items = [self.copy_of(one) for one in value]
        if all(one is was for one, was in zip(items, value, strict=True)):
            return value
        if isinstance(value, list):
            twin: Any = self._twin(value)
            twin[:] = items
            return twin
        make: Any = getattr(value, "_make", type(value))
        return make(items)

    def _of_parts(
        self, value: Any, parts: dict[Any, Any], put: Callable[[Any, Any, Any], None]
    ) -> Any:
        copies = {key: self.copy_of(one) for key, one in parts.items()}
        changed = {key: one for key, one in copies.items() if one is not parts[key]}
        if not changed:
            return value
        twin = self._twin(value)
        for key, one in changed.items():
            put(twin, key, one)
        return twin

    def _of_function(self, function: types.FunctionType) -> types.FunctionType:
        cells = function.__closure__ or ()
        given = function.__defaults__, function.__kwdefaults__
        contents = [cell_place(cell).read() for cell in cells]
        held = [self.copy_of(one) for one in (*given, *contents)]
        if all(one is was for one, was in zip(held, (*given, *contents), strict=True)):
            return function
        twin: types.FunctionType = self._twin(function)
        twin.__defaults__, twin.__kwdefaults__ = held[:2]
        for cell, one in zip(twin.__closure__ or (), held[2:], strict=True):
            if one is not NOTHING:
                cell.cell_contents = one
        return twin


# Stands for the copy of what is being looked through.
_BEGUN: Any = object()


def _empty_copy(value: Any) -> Any:
    """Return a copy that still holds what `value` does."""
    if isinstance(value, types.MappingProxyType):
        return dict(value)
    if not isinstance(value, types.FunctionType):
        return copy.copy(value)
    cells = tuple([types.CellType() for _ in value.__closure__ or ()])
    twin = types.FunctionType(
        value.__code__, value.__globals__, value.__name__, value.__defaults__, cells
    )
    twin.__dict__.update(value.__dict__)
    twin.__qualname__, twin.__doc__ = value.__qualname__, value.__doc__
    return twin


X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")
Result = TypeVar("Result")
X_contra = TypeVar("X_contra", contravariant=True)
Y_contra = TypeVar("Y_contra", contravariant=True)
Z_contra = TypeVar("Z_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)
Tensors: TypeAlias = Mapping[str, Tensor[Any, Any, Any]]


class RunsOne(Protocol[X_contra, Result_co]):
    """A model of one input."""

    def forward(self, x: X_contra, /) -> Result_co:
        """Return the output."""


class RunsTwo(Protocol[X_contra, Y_contra, Result_co]):
    """A model of two inputs."""

    def forward(self, x: X_contra, y: Y_contra, /) -> Result_co:
        """Return the output."""


class RunsThree(Protocol[X_contra, Y_contra, Z_contra, Result_co]):
    """A model of three inputs."""

    def forward(self, x: X_contra, y: Y_contra, z: Z_contra, /) -> Result_co:
        """Return the output."""


@overload
def functional_call(model: RunsOne[X, Result], tensors: Tensors, x: X, /) -> Result: ...
@overload
def functional_call(model: RunsTwo[X, Y, Result], tensors: Tensors, x: X, y: Y, /) -> Result: ...
@overload
def functional_call(
    model: RunsThree[X, Y, Z, Result], tensors: Tensors, x: X, y: Y, z: Z, /
) -> Result: ...
@overload
def functional_call(model: Module, tensors: Tensors, /, *inputs: Any, **options: Any) -> Any: ...
def functional_call(model: Any, tensors: Tensors, /, *inputs: Any, **options: Any) -> Any:
    """Return the output of a model with other tensors in the places of parameters or buffers.

        model.forward(*inputs), with tensors[name] for the parameter of that name

    The tensors may be computed, from other parameters or by a network, and may have a tape, through
    which gradients flow back. So a hypernetwork can compute the weights of a model, and a model can
    be differentiated after steps of training (MAML). `model` stays as it is, except for fields that
    its `forward` assigns: running statistics, counters.

    A weight that two layers share is replaced in both.

    Args:
        model: a module. Its `forward` gives the call its type.
        tensors: tensors by the dotted names of `model.parameters()` and `model.buffers()`. Other
            parameters and buffers stay.
        *inputs: the inputs of `forward`.
        **options: its arguments by name.

    Raises:
        ArgumentTypeError: if `model` is no module, or `tensors` are no tensors by name.
        ArgumentValueError: if the model has no tensor of that name.
        ShapeError: if a tensor has another shape than the one that it replaces.
        DTypeError: if it has another dtype.
        UntracedTensorError: if a tensor has a tape and no input has, so that the type of the
            result, which is that of a plain input, would be wrong.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Linear(2, 1, rng=np.random.default_rng(0))
    >>> scale, x = tt.full((1, 2), 3.0), tt.ones((1, 2))
    >>> loss = nn.functional_call(layer, {"weight": scale.trace() * 2.0}, x.trace()).sum()
    >>> loss.backward()[scale]
    Tensor([[2., 2.]], shape=(1, 2), dtype=float32, NoneTape)
    """
    op = "functional_call"
    check_kind(op, "model", model, Module, "a module")
    check_kind(op, "tensors", tensors, Mapping, "tensors by name, as model.parameters() are")
    known = {**model.buffers(), **model.parameters()}
    replaced: dict[int, Tensor[Any, Any, Any]] = {}
    for name, tensor in tensors.items():
        check_tensor(op, f"tensors[{name!r}]", tensor)
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ArgumentValueError(
                f"{op}: {type(model).__name__} has no tensor {name!r}; {meant}it has "
                f"{', '.join(known)}"
            )
        own = known[name]
        check_matching(op, f"the tensor {name!r} of the model", own, "the one in its place", tensor)
        replaced[own.id] = tensor
    values = [*inputs, *options.values()]
    traced = [name for name, tensor in tensors.items() if tensor.owns_tape]
    if traced and not any(isinstance(one, Tensor) and one.owns_tape for one in values):
        raise UntracedTensorError(
            f"{op}: {traced[0]!r} has a tape and no input has; trace one: x.trace()"
        )
    copying = Copying(replaced)
    view = copying.copy_of(model)
    before = [(one, twin, dict(vars(twin))) for one, twin in copying.modules()]
    result = view.forward(*inputs, **options)
    for one, twin, fields in before:
        for name, value in vars(twin).items():
            if fields.get(name, one) is not value:
                setattr(one, name, value)
    return result


class Selection:
    """Some of the parameters of a model, for an optimizer and for `backward`.

    The rest is frozen: ``backward(wrt=selection)`` runs no pullback that only leads to a frozen
    parameter, and an optimizer of the selection neither updates it nor holds state for it.

    A name stands for the parameter of that dotted name, or for all within the field of that name:
    ``"hidden"`` for ``"hidden.weight"`` and ``"hidden.bias"``. A tensor that goes by two names, as
    tied weights do, is left out if one of them is.

    Args:
        model: a module, or another selection.
        only: the names to select; None for all.
        without: the names to leave out of those.

    Raises:
        ArgumentTypeError: if `model` has no parameters(), or the names are not several strings.
        ArgumentValueError: if a name is that of no parameter, or none are left.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> class Mlp(nn.Module):
    ...     hidden: nn.Linear[L[4], L[8]]
    ...     out: nn.Linear[L[8], L[2]]
    >>> model = tt.build(Mlp, rng=np.random.default_rng(0))
    >>> nn.Selection(model, without=["hidden", "out.bias"])
    Selection(out.weight)
    """

    def __init__(
        self,
        model: HasParameters,
        *,
        only: Iterable[str] | None = None,
        without: Iterable[str] = (),
    ) -> None:
        if not callable(getattr(model, "parameters", None)) or isinstance(model, type):
            raise ArgumentTypeError(
                f"Selection: expected a model with parameters(), got {type(model).__name__}"
            )
        self._model = model
        self._only = None if only is None else _as_names("only", only)
        self._without = _as_names("without", without)
        known = list(model.parameters())
        for name in [*(self._only or ()), *self._without]:
            if not any(_is_within(one, name) for one in known):
                raise ArgumentValueError(
                    f"Selection: there is no parameter {name!r}; there are {', '.join(known)}"
                )
        if not self.parameters():
            raise ArgumentValueError("Selection: no parameter is left to train")

    def parameters(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the selected tensors by dotted name, in the order of the model."""
        parameters: Mapping[str, Any] = self._model.parameters()
        # By id, for a tensor that goes by two names is one tensor: tied weights.
        frozen = {
            tensor.id
            for name, tensor in parameters.items()
            if any(_is_within(name, one) for one in self._without)
        }
        return {
            name: tensor
            for name, tensor in parameters.items()
            if (self._only is None or any(_is_within(name, one) for one in self._only))
            and tensor.id not in frozen
        }

    @override
    def __repr__(self) -> str:
        """Show the names."""
        return f"Selection({', '.join(self.parameters())})"


def _as_names(argument: str, names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentTypeError(
            f"Selection: {argument} must be several names, got {names!r}; write ['hidden'], say"
        )
    several = tuple(names)
    if not all(isinstance(name, str) for name in several):
        raise ArgumentTypeError(f"Selection: {argument} must be names, got {several!r}")
    return several


def _is_within(parameter: str, name: str) -> bool:
    return parameter == name or parameter.startswith(name + ".")
