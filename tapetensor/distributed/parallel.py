"""A decorator that runs a training step of one process on many ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from typing_extensions import TypeVar

from tapetensor.arguments import check_function
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.distributed.communicator import Communicator, world
from tapetensor.distributed.reducer import Reducer
from tapetensor.errors import ArgumentTypeError, TraceError
from tapetensor.nn import Module
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.ids import next_id
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import rewrap

F_ = TypeVar("F_", bound=Callable[..., Any])


def data_parallel(function: F_) -> F_:
    """Return a function that divides its batch among the ranks, and averages its gradients.

        @distributed.data_parallel
        def loss_and_gradients(model: Mlp, x: ..., labels: ...) -> tuple[Tensor0D, Gradients]:
            loss = losses.cross_entropy(model.forward(x.trace()), labels)
            return loss.detach(), loss.backward(wrt=model)

    Every rank calls it with the whole batch. The function gets this rank's rows of each tensor with
    an axis. Losses (floating scalars) and gradients that it returns are averaged over all ranks, so
    they must be means over the rows. At the first call with a model, the ranks' models are
    compared and get the values of rank 0. Without ``mpiexec`` there is one rank, and nothing is
    changed. A function that `tt.compile` returned will do.

    Gradients are sent after the backward pass; `Reducer.backward` sends them meanwhile.

    Args:
        function: takes one module, tensors whose first axis is that of the batch, and anything
            else; returns gradients, a loss, or a tuple of these.

    Raises:
        TraceError: when it is called, if it is compiled; compile the function within.
        ArgumentTypeError: if it is not a function; when it is called, if there is not one module
            among its arguments, or it returns something else.
    """
    check_function("data_parallel", "the argument", function)
    parallel: Any = _DataParallel(function)
    result: F_ = parallel
    return result


class _DataParallel:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._of: tuple[Module, Communicator, Reducer] | None = None
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ranks, reducer = self._connected([*args, *kwargs.values()])
        result = self._function(
            *[_shard(ranks, value) for value in args],
            **{name: _shard(ranks, value) for name, value in kwargs.items()},
        )
        if isinstance(result, tuple):
            return tuple([_reduced(ranks, reducer, value) for value in result])
        return _reduced(ranks, reducer, result)

    def _connected(self, values: list[Any]) -> tuple[Communicator, Reducer]:
        if any(isinstance(one, Tensor) and isinstance(one._array, CapturedArray) for one in values):
            raise TraceError(
                "data_parallel: a compiled function cannot send; compile first: "
                "data_parallel(tt.compile(function))"
            )
        modules = [value for value in values if isinstance(value, Module)]
        if len(modules) != 1:
            raise ArgumentTypeError(
                "data_parallel: the function takes one module, whose gradients it returns, got "
                f"{len(modules)}"
            )
        if self._of is None or self._of[0] is not modules[0]:
            ranks = world()
            self._of = modules[0], ranks, Reducer(modules[0], ranks)
        return self._of[1:]


def _shard(ranks: Communicator, value: Any) -> Any:
    return ranks.shard(value) if isinstance(value, Tensor) and value._array.shape else value


def _reduced(ranks: Communicator, reducer: Reducer, value: Any) -> Any:
    if isinstance(value, Gradients):
        return reducer.all_reduce(value)
    is_loss = isinstance(value, Tensor) and value._array.shape == ()
    if is_loss and value.tape is None and value._array.dtype.kind == "f":
        mean = value._array.dtype.type(ranks.mean(float(value._array)))
        return rewrap(value, mean, next_id(), None)
    raise ArgumentTypeError(
        "data_parallel: the function returns gradients, a loss (a floating scalar without a tape: "
        f"loss.detach()) or a tuple of these, got {value!r}"
    )
