"""Random programs, compiled: replays give what eager mode gives, also for other values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.properties.programs import Program, tensors_of


def asked(grads: tt.Gradients, tensor: Any) -> Any:
    """Return a gradient; None where there is none, or where it lacks a part."""
    try:
        return grads.get(tensor)
    except tt.MissingGradientError:
        return None


@pytest.mark.parametrize("seed", range(30))
def test_a_compiled_random_program_gives_what_eager_mode_gives(seed: int) -> None:
    program = Program(seed)
    program.run(int(program.rng.integers(4, 31)), goes_back=False)

    def forward(leafs: list[Any], stores: list[tt.Gradients]) -> Any:
        parts = [leafs[0].trace(stores[0]).flatten(), leafs[0].trace(stores[1]).flatten()]
        parts += [one.flatten() for one in program.tensors(leafs) if one.owns_tape]
        return tt.concat(parts)

    def run(leafs: list[Any], stores: list[tt.Gradients], cotangent: Any) -> Any:
        result = forward(leafs, stores)
        grads = result.backward(cotangent)
        return result.detach(), [asked(grads, leaf) for leaf in leafs]

    compiled, taped = tt.compile(run), tt.compile(forward)
    for scale in (1.0, 1.0, 0.9):
        leafs = tensors_of([leaf * scale for leaf in program.leafs])
        stores = [tt.Gradients(), tt.Gradients()]
        for number, store in enumerate(stores):
            store.insert(leafs[0], np.full(leafs[0].shape, 1.0 + number))
        size = forward(leafs, stores).size
        weights: Any = tt.from_numpy(np.cos(np.arange(size)))
        expected, expected_gradients = run(leafs, stores, weights)
        found, gradients = compiled(leafs, stores, weights)

        output = taped(leafs, stores)
        value, grads = output.detach(), output.backward(weights)
        of_tape = [asked(grads, leaf) for leaf in leafs]
        for result, some in ((found, gradients), (value, of_tape)):
            np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
            for one, other in zip(some, expected_gradients, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-7, atol=1e-10)
