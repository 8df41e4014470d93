"""Random programs, compiled: replays give what eager mode gives, also for other values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tapetensor as tt
from tests.properties.programs import TapeMachine
from tests.properties.test_programs import Session, random_programs


def asked(grads: tt.Gradients, tensor: Any) -> Any:
    """Return a gradient; None where there is none, or a part of it was not recorded."""
    try:
        return grads.get(tensor)
    except tt.MissingGradientError:
        return None


@settings(random_programs, max_examples=30)
@given(data=st.data())
def test_a_compiled_random_program_gives_what_eager_mode_gives(data: st.DataObject) -> None:
    session = Session(data.draw)
    for _ in range(data.draw(st.integers(4, 30))):
        session.extend()
    # A mask as an index is refused: the shape of its result depends on values.
    assume(all("mask" not in repr(step.what) for step in session.steps))
    steps = session.steps
    weights: Any = tt.from_numpy(np.cos(np.arange(session.machine.result().size)))

    def run(leafs: list[Any], stores: list[tt.Gradients], cotangent: Any) -> Any:
        machine = TapeMachine(list(leafs), list(stores))
        for step in steps:
            machine.run(step)
        value, tape = machine.result().split_tape()
        grads = value.put_tape(tape).backward(cotangent)
        return value, [asked(grads, leaf) for leaf in leafs]

    def forward(leafs: list[Any], stores: list[tt.Gradients]) -> Any:
        machine = TapeMachine(list(leafs), list(stores))
        for step in steps:
            machine.run(step)
        return machine.result()

    compiled, taped = tt.compile(run), tt.compile(forward)
    for scale in (1.0, 1.0, 0.9):
        leafs = [tt.from_numpy(leaf * scale) for leaf in session.leafs]
        stores = [tt.Gradients(), tt.Gradients()]
        for store, array in zip(stores, session.carried, strict=True):
            store.insert(leafs[0], array)
        expected, expected_gradients = run(leafs, stores, weights)
        found, gradients = compiled(leafs, stores, weights)

        output = taped(leafs, stores)
        outside = output.detach(), output.backward(weights)
        of_tape = [asked(outside[1], leaf) for leaf in leafs]
        for value, some in ((found, gradients), (outside[0], of_tape)):
            np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
            for one, other in zip(some, expected_gradients, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-7, atol=1e-10)
