"""A second model whose parameters are the moving average of those of a model in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from typing_extensions import TypeVar

from tapetensor.arguments import as_number
from tapetensor.arrays.libraries import check_matching
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.kernels.numerics import optimizers
from tapetensor.tape import NoneTape
from tapetensor.tensor.tensor import Tensor

Tensors = Mapping[str, Tensor[Any, NoneTape, Any]]


class HasTensors(Protocol):
    """A module, as far as its tensors go."""

    def parameters(self) -> Tensors:
        """Return the parameters by dotted name."""

    def buffers(self) -> Tensors:
        """Return the buffers by dotted name."""


ModelT = TypeVar("ModelT", bound=HasTensors)


def exponential_moving_average(average: ModelT, model: ModelT, decay: float) -> None:
    """Move the parameters of `average` towards those of `model`.

        average = decay * average + (1 - decay) * parameter

    Buffers are not averaged: those of `average` become those of `model`. Begin with a copy:

        average = copy.deepcopy(model)
        ...
        optimizer.step(grads)
        exponential_moving_average(average, model, decay=0.999)

    The tensors of `average` keep their ids and get new data, as from an optimizer.

    Args:
        average: a model of the same tensors, which changes.
        model: the model in training, which does not.
        decay: the share of `average` that is kept, in [0, 1).

    Raises:
        ArgumentValueError: if `decay` is outside its range, if the two share a tensor, or if one
            has a tensor that the other has not.
        ArgumentTypeError: if an argument is of the wrong kind.
        ShapeError: if a tensor has another shape in the other.
        DTypeError: if it has another dtype.

    Source: Polyak & Juditsky (1992), "Acceleration of stochastic approximation by averaging".

    >>> import copy
    >>> import numpy as np
    >>> from tapetensor import nn
    >>> model = nn.Linear(2, 1, rng=np.random.default_rng(0))
    >>> average = copy.deepcopy(model)
    >>> exponential_moving_average(average, model, decay=0.9)
    """
    kept = as_number("exponential_moving_average", "decay", decay, at_least=0, below=1)
    parameters = _paired("parameters", average, model)
    buffers = _paired("buffers", average, model)
    # One that goes by two names moves once.
    for mine, theirs in {id(mine): (mine, theirs) for mine, theirs in parameters}.values():
        mine._array = optimizers.moving_average(mine._array, theirs._array, kept)
    for mine, theirs in buffers:
        mine._array = theirs._array.copy()


def _paired(
    kind: str, average: HasTensors, model: HasTensors
) -> list[tuple[Tensor[Any, NoneTape, Any], Tensor[Any, NoneTape, Any]]]:
    """Return the tensors of both models that go by one name, checked."""
    op = "exponential_moving_average"
    for one in (average, model):
        if not callable(getattr(one, kind, None)) or isinstance(one, type):
            raise ArgumentTypeError(f"{op}: expected two models, got {type(one).__name__}")
    mine: Tensors = getattr(average, kind)()
    theirs: Tensors = getattr(model, kind)()
    if mine.keys() != theirs.keys():
        names = ", ".join(sorted(mine.keys() ^ theirs.keys()))
        raise ArgumentValueError(f"{op}: only one of the two models has {names}")
    for name, tensor in mine.items():
        other = theirs[name]
        if tensor is other:
            raise ArgumentValueError(
                f"{op}: {name} is one tensor in both models; begin with copy.deepcopy(model)"
            )
        check_matching(f"{op}: {name}", "the average", tensor._array, "the model", other._array)
    return [(mine[name], theirs[name]) for name in mine]
