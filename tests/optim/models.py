"""Models and gradients as small as they can be."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd

Array = np.ndarray[Any, np.dtype[Any]]
Parameter = tt.Tensor[Any, tt.NoneTape, Any]

OPTIMIZERS: list[Any] = [Sgd, Adam, AdamW, RMSprop, Adagrad]
# What of a parameter may be held on to.
HOLDS: list[Callable[[Any], Any]] = [
    lambda w: w.numpy(),
    lambda w: w.numpy()[1:],
    lambda w: w.detach(),
    lambda w: w.trace(),
    copy.copy,
    lambda w: w.reshape((-1,)),
    lambda w: memoryview(w.numpy()),
    lambda w: w.trace() * w,
]

SHAPES: dict[str, tuple[int, ...]] = {
    "hidden.weight": (3, 2),
    "hidden.bias": (2,),
    "scale": (),
    "out.weight": (1, 4),
}


class Model:
    """Parameters by name, and nothing else."""

    def __init__(self, **parameters: Parameter) -> None:
        self._parameters = parameters

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def parameters(self) -> dict[str, Parameter]:
        return self._parameters

    def arrays(self) -> dict[str, Array]:
        """Return copies of the values."""
        return {name: tensor.numpy().copy() for name, tensor in self._parameters.items()}


def small_model(rng: np.random.Generator, dtype: Any = np.float64) -> Model:
    """Return four parameters of ranks 0 to 2."""
    parameters: dict[str, Parameter] = {
        name: tt.normal(shape, dtype, rng=rng) for name, shape in SHAPES.items()
    }
    return Model(**parameters)


def gradients_of(model: Model, **arrays: Any) -> tt.Gradients:
    """Return Gradients with an array each for the parameters named."""
    grads = tt.Gradients()
    for name, array in arrays.items():
        tensor = model[name]
        grads.insert(tensor, np.asarray(array, tensor.dtype))
    return grads


def seen_by(holder: Any) -> Array:
    """Return a copy of the values that somebody sees who holds on to something."""
    return np.array(holder.detach().numpy() if isinstance(holder, tt.Tensor) else holder)


def assert_close(found: dict[str, Array], expected: dict[str, Array], rtol: float = 1e-12) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=rtol, atol=rtol / 100, err_msg=name)


def drawn(model: Model, rng: np.random.Generator) -> dict[str, Array]:
    """Return an array for each parameter that depends on its value, as a gradient does."""
    return {
        name: np.sin(array) + 0.1 * rng.standard_normal(array.shape)
        for name, array in model.arrays().items()
    }
