"""All parameters of a model at once: as their moving average in another, and as one flat array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_number, check_function
from tapetensor.arrays.array import check_unmasked
from tapetensor.arrays.libraries import check_matching, like
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from tapetensor.kernels.numerics import optimizers
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.base import TensorBase, check_tensor
from tapetensor.tensor.tensor import Tensor

Flat: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
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


def ravel(model: HasTensors) -> Raveled:
    """Return the parameters of a model as one flat array, with the way back.

    It serves libraries that need a function of one vector, such as `scipy.optimize.minimize`:

        weights = tt.ravel(model)
        found = minimize(weights.objective(lambda: loss_of(model, x)), weights.numpy(), jac=True)
        weights.assign(found.x)

    Args:
        model: a module, whose parameters are read each time, and changed only by `assign` and
            `objective`. A parameter that goes by two names is there once; buffers are not.

    Raises:
        ArgumentTypeError: if it has no parameters().
        ArgumentValueError: if it has none to train.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> layer = tt.nn.Linear(2, 1, rng=np.random.default_rng(0))
    >>> weights = tt.ravel(layer)
    >>> weights.assign(np.array([1.0, 2.0, 3.0]))
    >>> layer.weight, layer.bias
    (Tensor([[1., 2.]], shape=(1, 2), dtype=float32, NoneTape), \
Tensor([3.], shape=(1,), dtype=float32, NoneTape))
    >>> weights.numpy()
    array([1., 2., 3.])
    """
    if not callable(getattr(model, "parameters", None)) or isinstance(model, type):
        raise ArgumentTypeError(f"ravel: expected a model, got {type(model).__name__}")
    return Raveled(model)


class Raveled:
    """The parameters of a model as one flat float64 array, as `tapetensor.ravel` returns them.

    float64 holds every parameter exactly, whatever its dtype. They stand in the order of
    ``model.parameters()``, each row by row.
    """

    __slots__ = ("_tensors",)

    def __init__(self, model: HasTensors) -> None:
        parameters = model.parameters().values()
        self._tensors: list[Tensor[Any, NoneTape, Any]] = list(
            {id(tensor): tensor for tensor in parameters}.values()
        )
        if not self._tensors:
            raise ArgumentValueError(f"ravel: a {type(model).__name__} has no parameters")

    def numpy(self) -> Flat:
        """Return the parameters as they are now, a copy."""
        return _joined(self._tensors)

    def assign(self, flat: np.ndarray[Any, Any]) -> None:
        """Give the parameters the numbers of a flat array, converted to their dtypes.

        The tensors keep their ids and get new data, as from an optimizer.

        Raises:
            ArgumentTypeError: if it is no numpy array of real numbers, or is masked.
            ShapeError: if it has not as many elements as the parameters, on one axis.
        """
        check_unmasked("Raveled.assign", "the array", flat)
        if not isinstance(flat, np.ndarray) or flat.dtype.kind not in "fiu":
            kind = getattr(flat, "dtype", type(flat).__name__)
            raise ArgumentTypeError(f"Raveled.assign: expected an array of numbers, got {kind}")
        count = sum(tensor.size for tensor in self._tensors)
        if flat.shape != (count,):
            raise ShapeError(
                f"Raveled.assign: the parameters have shape ({count},), the array has {flat.shape}"
            )
        start = 0
        for tensor in self._tensors:
            part = flat[start : start + tensor.size].reshape(tensor.shape)
            tensor._array = like(np.array(part, tensor.dtype), tensor._array)
            start += tensor.size

    def objective(
        self, loss_of: Callable[[], Tensor[tuple[()], OwnedTape, Any]]
    ) -> Callable[[np.ndarray[Any, Any]], tuple[float, Flat]]:
        """Return the loss as a function of the flat array: its value and its gradient.

        `scipy.optimize.minimize` takes this function with ``jac=True``. A call assigns the array to
        the parameters. Minimizers also try points that are not the best, so `assign` their result
        at the end.

        Args:
            loss_of: computes the loss of the model, a scalar that owns a tape. It has to be the
                same function each time: no dropout, and no batch drawn anew.

        Raises:
            ArgumentTypeError: if `loss_of` is no function.
            MissingGradientError: from the function that is returned, if the loss does not lead to
                a parameter; it raises what `assign`, `loss_of` and `backward` raise, too.
        """
        check_function("Raveled.objective", "loss_of", loss_of)

        def value_and_gradient(flat: np.ndarray[Any, Any]) -> tuple[float, Flat]:
            self.assign(flat)
            loss = loss_of()
            check_tensor("Raveled.objective", "the loss", loss)
            value = float(loss)
            grads = loss.backward(wrt=self._tensors)
            return value, _joined([grads[tensor] for tensor in self._tensors])

        return value_and_gradient


def _joined(tensors: list[Any]) -> Flat:
    parts: list[TensorBase[Any, Any, Any]] = tensors
    return np.concatenate([part.numpy().ravel() for part in parts], dtype=np.float64)
