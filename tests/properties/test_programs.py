"""Random programs with every way of handing tapes on, and with steps that must fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapetensor as tt
from tapetensor.tensor.base import tape_state
from tests.properties.programs import (
    LEAF_SHAPES,
    Array,
    Op,
    ReferenceMachine,
    Step,
    TapeMachine,
    derivative,
)
from tests.properties.vocabulary import (
    TANH,
    UNARY,
    joining_ops,
    rearranging_ops,
    reducing_ops,
    splitting_ops,
)

LARGEST_VALUE = 30.0
LARGEST_SIZE = 60

random_programs = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=400,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_Option = TypeVar("_Option")


@cache
def _position(count: int) -> st.SearchStrategy[int]:
    # A strategy is checked when it is first drawn from, which takes longer than to draw.
    return st.integers(0, count - 1)


KINDS = ["tape", "unary", "joining", "joining", "tape", "unary", "joining", "bad"]
ON_PLAIN = ["trace", "traced"]
ON_ANY = ["with_empty_tape", "retaped to own", "retaped to be plain", "detach", "split_tape"]


class Session:
    """A program as it is being drawn, with both machines that follow it."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        self.leafs: list[Array] = [rng.uniform(-1.5, 1.5, shape) for shape in LEAF_SHAPES]
        self.tensors = [tt.from_numpy(leaf) for leaf in self.leafs]
        self.stores = [tt.Gradients(), tt.Gradients()]
        self.carried = [rng.standard_normal(LEAF_SHAPES[0]) for _ in self.stores]
        for store, array in zip(self.stores, self.carried, strict=True):
            store.insert(self.tensors[0], array)
        self.reference = ReferenceMachine(self.leafs)
        self.machine = TapeMachine(self.tensors, self.stores)
        self.steps: list[Step] = []
        self._run(Step("trace", (self._one_of(range(4)),)))

    def extend(self) -> None:
        """Draw one step that must succeed, or one that must fail, and run it."""
        match self._one_of(KINDS):
            case "unary":
                slot = self._draw_live()
                shape = self.reference.values[slot].shape
                families = [
                    UNARY,
                    reducing_ops(shape),
                    rearranging_ops(shape),
                    splitting_ops(shape) if shape else UNARY,
                ]
                self._run(self._tamed(self._one_of(self._one_of(families)), (slot,)))
            case "joining":
                self._join()
            case "tape":
                self._hand_on()
            case _:
                self._fail()

    def restarted(self) -> TapeMachine:
        """Return a machine that has run all steps again."""
        machine = TapeMachine(self.tensors, self.stores)
        for step in self.steps:
            machine.run(step)
        return machine

    def _join(self) -> None:
        lhs = self._draw_live()
        # An owned tensor cannot meet itself.
        partners = [slot for slot in self._live() if slot != lhs or self._is_plain(slot)]
        rhs = self._one_of(partners)
        values = self.reference.values
        fitting = joining_ops(values[lhs].shape, values[rhs].shape)
        if fitting:
            self._run(self._tamed(self._one_of(fitting), (lhs, rhs)))

    def _hand_on(self) -> None:
        slot = self._draw_live()
        if self._is_plain(slot) and self.reference.tapes_on_the_shelf and self.draw(st.booleans()):
            self._run(Step("put_tape", (slot,)))
            return
        what = self._one_of(ON_ANY + ON_PLAIN * self._is_plain(slot))
        if what == "traced" and slot < len(self.leafs):
            what = "trace"  # the leafs are needed again
        carries = self._one_of([None, 0, 1]) if what in ("trace", "traced") else None
        self._run(Step(what, (slot,), carries))

    def _fail(self) -> None:
        x = self.machine.tensors[self._draw_live()]
        spent = [self.machine.tensors[slot] for slot in self.reference.slots("spent")]
        action = self._one_of(BAD_ON_OWNED if x.owns_tape else BAD_ON_PLAIN)
        if spent and self.draw(st.booleans()):
            action, x = self._one_of(BAD_ON_SPENT), (x, spent[-1])
        before = self.machine.snapshot()
        try:
            action(x)
        except tt.TapeTensorError:
            pass
        else:
            raise AssertionError(f"{action} of {x} did not fail")
        assert self.machine.snapshot() == before

    def _run(self, step: Step) -> None:
        self.steps.append(step)
        self.reference.run(step)
        self.machine.run(step)
        states = [
            "owned" if x.owns_tape else "spent" if "spent" in tape_state(x) else "plain"
            for x in self.machine.tensors
        ]
        assert states == self.reference.states
        np.testing.assert_allclose(
            self.machine.tensors[-1].numpy(), self.reference.values[-1].real, rtol=1e-9, atol=1e-9
        )

    def _tamed(self, op: Op, slots: tuple[int, ...]) -> Step:
        """Return the step, or a tame one where it would make values or shapes that are too big."""
        with np.errstate(all="ignore"):
            results = op.on_arrays(*[self.reference.values[slot] for slot in slots])
        for result in results if isinstance(results, list) else [results]:
            small = np.size(result) <= LARGEST_SIZE and np.ndim(result) <= 4
            # An empty part has nothing to say.
            if not small or not np.size(result) or not (np.abs(result) < LARGEST_VALUE).all():
                return Step(TANH, slots[:1])
        return Step(op, slots)

    def _one_of(self, options: Sequence[_Option]) -> _Option:
        position: int = self.draw(_position(len(options)))
        return options[position]

    def _draw_live(self) -> int:
        # Mostly one that owns a tape: an op on plain tensors is soon said.
        owned = self.reference.slots("owned")[::-1]
        prefers_owned = bool(owned) and self._one_of(range(4)) > 0
        slot: int = self._one_of(owned if prefers_owned else self._live())
        return slot

    def _live(self) -> list[int]:
        # The latest first: what is drawn first is drawn more often.
        return self.reference.slots("plain", "owned")[::-1]

    def _is_plain(self, slot: int) -> bool:
        return self.reference.states[slot] == "plain"


def _clashing(x: Any) -> Any:
    """Return a tensor that does not fit beside `x`."""
    size = x.shape[-1] if x.shape else 1
    return tt.ones((size + 1,), np.float64) if size > 1 else tt.ones((), np.float32)


BAD: list[Callable[[Any], object]] = [
    lambda x: x + _clashing(x),
    lambda x: _clashing(x) * x,
    lambda x: tt.maximum(x, _clashing(x)),
    lambda x: x + tt.ones((), np.float32),
    lambda x: x * tt.arange(1),
    lambda x: x + "one",
    lambda x: x @ tt.ones((61, 1), np.float64),
    lambda x: x.sum(axis=9),
    lambda x: x.softmax(axis=-9),
    lambda x: x.reshape((61,)),
    lambda x: x.permute_dims((0,) * 5),
    lambda x: x.broadcast_to(() if x.shape else (-1,)),
    lambda x: x[99],
    lambda x: x.split(-1),
    lambda x: x.split([61]),
    lambda x: x.take(tt.full((1,), 61, np.int64)),
    lambda x: x.astype(np.complex128),
    lambda x: tt.concat((x, tt.ones((9, 9, 9, 9, 9), np.float64))),
    lambda x: tt.stack((tt.ones((61,), np.float64), x)),
    lambda x: tt.where(x, x, 0.0),
    lambda x: tt.einsum("ab,c", x),
    lambda x: x.retaped(None),
    lambda x: x.backward(tt.ones((7,), np.float64)),
    lambda x: x.backward(1.0),
    lambda x: x.backward(wrt=3),
]
BAD_ON_PLAIN: list[Callable[[Any], object]] = [
    *BAD,
    lambda x: x.backward(),
    lambda x: x.trace(1),
    lambda x: x.traced({}),
    lambda x: x.put_tape(None),
]
BAD_ON_OWNED: list[Callable[[Any], object]] = [
    *BAD,
    lambda x: x * x,
    lambda x: x @ x,
    lambda x: tt.concat((x, x)),
    lambda x: tt.maximum(x, x),
    lambda x: x.trace(),
    lambda x: x.traced(),
    lambda x: x.put_tape(tt.OwnedTape()),
    lambda x: x.backward(x),
    lambda x: x.__copy__(),
]
BAD_ON_SPENT: list[Callable[[Any], object]] = [
    lambda pair: pair[1].exp(),
    lambda pair: pair[0] + pair[1],
    lambda pair: pair[1] * pair[0],
    lambda pair: tt.concat((pair[0], pair[1])),
    lambda pair: pair[1].split_tape(),
    lambda pair: pair[1].with_empty_tape(),
    lambda pair: pair[1].trace(),
    lambda pair: pair[1].detach(),
    lambda pair: pair[1].backward(pair[0]),
]


def is_incomplete(grads: tt.Gradients, tensor: Any) -> bool:
    """Tell whether a part of the gradient was not recorded."""
    try:
        grads.get(tensor)
    except tt.MissingGradientError:
        return True
    return False


@random_programs
@given(data=st.data())
def test_the_gradients_of_a_random_program_are_those_of_the_reference_without_a_tape(
    data: st.DataObject,
) -> None:
    session = Session(data.draw)
    for _ in range(data.draw(st.integers(4, 30))):
        session.extend()
    wanted = data.draw(st.lists(st.sampled_from(session.tensors), unique_by=id))
    again = session.restarted().result()
    result = session.machine.result()
    weights = np.cos(np.arange(result.size))
    cotangent = tt.from_numpy(weights)
    grads = result.backward(cotangent)
    expected = derivative(session.steps, session.leafs, weights)
    for carried in session.reference.carried:
        expected[0] += session.carried[carried]

    incomplete = {
        tensor.id for tensor in (*session.tensors, *wanted) if is_incomplete(grads, tensor)
    }
    for tensor, gradient in zip(session.tensors, expected, strict=True):
        if tensor.id in incomplete:
            continue
        found = grads.get(tensor)
        computed = np.zeros(tensor.shape) if found is None else found.numpy()
        np.testing.assert_allclose(computed, gradient, rtol=1e-8, atol=1e-8)

    if any(tensor.id in incomplete for tensor in wanted):
        with pytest.raises(tt.MissingGradientError, match="is missing"):
            again.backward(cotangent, wrt=wanted)
        wanted = [tensor for tensor in wanted if tensor.id not in incomplete]
    partial = again.backward(cotangent, wrt=wanted)
    carried_ids = {session.tensors[0].id} if session.reference.carried else set()
    assert set(partial) <= {tensor.id for tensor in wanted} | carried_ids
    for tensor in wanted:
        full = grads.get(tensor)
        only = partial.get(tensor)
        assert (full is None) == (only is None)
        if full is not None and only is not None:
            np.testing.assert_array_equal(full.numpy(), only.numpy())
