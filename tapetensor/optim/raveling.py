"""The parameters of a model as one flat array, for optimizers of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tapetensor.arguments import check_function
from tapetensor.arrays.array import check_unmasked
from tapetensor.arrays.libraries import like
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from tapetensor.optim.moving_average import HasTensors
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.base import TensorBase, check_tensor
from tapetensor.tensor.tensor import Tensor

Flat: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


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
