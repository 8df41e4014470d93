"""A model that is run with other tensors in the places of its own."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias, overload

from typing_extensions import TypeVar

from tapetensor.arguments import check_kind
from tapetensor.arrays.libraries import check_matching
from tapetensor.errors import ArgumentValueError, UntracedTensorError
from tapetensor.nn.inference_view import Copying
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor

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
    before = [
        (one, twin, dict(vars(twin))) for one, twin in copying.copies() if isinstance(one, Module)
    ]
    result = view.forward(*inputs, **options)
    for one, twin, fields in before:
        for name, value in vars(twin).items():
            if fields.get(name, one) is not value:
                setattr(one, name, value)
    return result
