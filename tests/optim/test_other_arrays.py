"""Arrays that are not numpy's go through the plain kernels, by numpy's dispatch alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tests.optim.models import Array, Model, drawn, gradients_of, small_model
from tests.optim.optimizers import BY_TEXTBOOK


class Foreign(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that knows ufuncs and its shape, and cannot become a numpy array."""

    def __init__(self, array: Any) -> None:
        self.array: Array = np.asarray(array)
        self.shape, self.dtype = self.array.shape, self.array.dtype

    @override
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Foreign:
        assert method == "__call__"
        assert not kwargs
        plain = [one.array if isinstance(one, Foreign) else one for one in inputs]
        return Foreign(ufunc(*plain))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise AssertionError("a kernel turned a foreign array into one of numpy's")


def foreign_gradients(model: Model, arrays: dict[str, Array]) -> tt.Gradients:
    grads = tt.Gradients()
    foreign: dict[int, Any] = {model[name].id: Foreign(array) for name, array in arrays.items()}
    grads.accumulate(foreign)
    return grads


@pytest.mark.parametrize("mode", BY_TEXTBOOK)
def test_foreign_arrays_take_the_same_steps_as_numpys(mode: str, rng: np.random.Generator) -> None:
    make, _ = BY_TEXTBOOK[mode]
    model = small_model(rng)
    twin = Model(**{name: tt.from_numpy(array) for name, array in model.arrays().items()})
    optimizer, twin_optimizer = make(model), make(twin)
    for step in range(12):
        arrays = drawn(twin, rng)
        twin_optimizer.step(gradients_of(twin, **arrays))
        if step < 4 or step >= 8:
            optimizer.step(gradients_of(model, **arrays))
            continue
        # Four steps in between are another array library's, values, gradients and state.
        for name, tensor in model.parameters().items():
            values: Any = Foreign(tensor._data)
            model[name]._data = values
        optimizer.step(foreign_gradients(model, arrays))
        for name, tensor in model.parameters().items():
            after: Any = tensor._data
            assert isinstance(after, Foreign), name
            tensor._data = after.array
        _bring_state_home(optimizer)

    for name, array in twin.arrays().items():
        np.testing.assert_allclose(model[name].numpy(), array, rtol=1e-12, atol=1e-14)


def _bring_state_home(optimizer: Any) -> None:
    """Replace foreign state by numpy's, as a compiler does when it has run a step."""
    for group in optimizer._groups:
        for position, state in group._apart.items():
            group._apart[position] = [
                one.array if isinstance(one, Foreign) else one for one in state
            ]
