"""Random programs, and two machines that run them: one with tapes, one that has never seen a tape.

A program is a list of steps on numbered slots; every step fills new slots. `TapeMachine` runs it on
tensors. `ReferenceMachine` runs it on complex numpy arrays and knows nothing of pullbacks: give one
element of a leaf a tiny imaginary part, and the imaginary part of the result is the derivative,
exact to the last digits (the complex-step method: Squire & Trapp, 1998). A constant is a real part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor.tensor.base import tape_state

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
State: TypeAlias = Literal["plain", "owned", "spent"]

STEP_SIZE = 1e-30
LEAF_SHAPES = [(2, 3), (3,), (3, 2), ()]


@dataclass(frozen=True)
class Op:
    """An op, in two spellings."""

    name: str
    on_tensors: Callable[..., Any]
    on_arrays: Callable[..., Any]

    @override
    def __repr__(self) -> str:
        """Show the name, for falsifying examples."""
        return self.name


@dataclass(frozen=True)
class Step:
    """What to do with which slots: an op, or the name of an ownership method."""

    what: Op | str
    slots: tuple[int, ...]
    argument: int | None = None


class ReferenceMachine:
    """Runs a program on complex arrays and keeps book of who owns a tape.

    The rules are the documentation's: an op of which no operand owns a tape makes a constant, and
    the plain and the traced handles of one tensor are one value.
    """

    def __init__(self, leafs: list[Array]) -> None:
        self.values: list[Array] = [leaf.astype(np.complex128) for leaf in leafs]
        self.states: list[State] = ["plain"] * len(leafs)
        self.tapes_on_the_shelf = 0
        self.carried: set[int] = set()

    def slots(self, *states: State) -> list[int]:
        return [slot for slot, state in enumerate(self.states) if state in states]

    def run(self, step: Step) -> None:
        value = self.values[step.slots[0]]
        match step.what:
            case Op() as op:
                self._run_op(op, step.slots)
            case "trace" | "traced":
                if step.argument is not None:
                    self.carried.add(step.argument)
                if step.what == "traced":
                    self.states[step.slots[0]] = "spent"
                self._add(value, "owned")
            case "with_empty_tape":
                self._add(value, self.states[step.slots[0]])
            case "retaped to own":
                self._add(value, "owned")
            case "retaped to be plain":
                self._add(value, "plain")
            case "detach":
                self._add(value.real.astype(np.complex128), "plain")
            case "split_tape":
                if self.states[step.slots[0]] == "owned":
                    self.states[step.slots[0]] = "spent"
                    self.tapes_on_the_shelf += 1
                self._add(value, "plain")
            case "put_tape":
                self.tapes_on_the_shelf -= 1
                self._add(value, "owned")
            case unknown:
                raise AssertionError(unknown)

    def result(self) -> Array:
        """Return all that is owned in one vector."""
        return np.concatenate([np.zeros(1), *[self.values[s].ravel() for s in self.slots("owned")]])

    def _run_op(self, op: Op, slots: tuple[int, ...]) -> None:
        owned = any(self.states[slot] == "owned" for slot in slots)
        results = op.on_arrays(*[self.values[slot] for slot in slots])
        for slot in slots:
            if self.states[slot] == "owned":
                self.states[slot] = "spent"
        for result in results if isinstance(results, list) else [results]:
            if owned:
                self._add(np.asarray(result), "owned")
            else:
                self._add(np.asarray(result).real.astype(np.complex128), "plain")

    def _add(self, value: Array, state: State) -> None:
        self.values.append(value)
        self.states.append(state)


class TapeMachine:
    """Runs a program on tensors."""

    def __init__(
        self, leafs: list[tt.Tensor[Any, tt.NoneTape, np.float64]], stores: list[tt.Gradients]
    ) -> None:
        self.tensors: list[Any] = list(leafs)
        self.shelf: list[tt.OwnedTape] = []
        self.stores = stores

    def run(self, step: Step) -> None:
        x = self.tensors[step.slots[0]]
        match step.what:
            case Op() as op:
                results = op.on_tensors(*[self.tensors[slot] for slot in step.slots])
                self.tensors.extend(results if isinstance(results, tuple) else (results,))
            case "trace" | "traced":
                store = None if step.argument is None else self.stores[step.argument]
                self.tensors.append(getattr(x, str(step.what))(store))
            case "retaped to own":
                self.tensors.append(x.retaped(tt.OwnedTape))
            case "retaped to be plain":
                self.tensors.append(x.retaped(tt.NoneTape))
            case "with_empty_tape" | "detach":
                self.tensors.append(getattr(x, str(step.what))())
            case "split_tape":
                plain, tape = x.split_tape()
                self.tensors.append(plain)
                if isinstance(tape, tt.OwnedTape):
                    self.shelf.append(tape)
            case "put_tape":
                self.tensors.append(x.put_tape(self.shelf.pop()))
            case unknown:
                raise AssertionError(unknown)

    def result(self) -> Any:
        """Return all that is owned in one vector, which owns every tape that there is."""
        parts = [tt.zeros((1,), np.float64).trace()]
        while self.shelf:
            parts[0] = parts[0] + tt.zeros((1,), np.float64).put_tape(self.shelf.pop())
        parts.extend(x.flatten() for x in self.tensors if x.owns_tape)
        return tt.concat(parts)

    def snapshot(self) -> list[object]:
        """Return everything that a failed step must leave alone."""
        return [
            (x.id, x.shape, x.numpy().tobytes(), id(x.tape), tape_state(x)) for x in self.tensors
        ] + [(id(tape), repr(tape)) for tape in self.shelf]


def derivative(steps: list[Step], leafs: list[Array], cotangent: Array) -> list[Array]:
    """Return the gradient of ``sum(cotangent * result)`` for each leaf, one element at a time."""
    gradients = [np.zeros(leaf.shape) for leaf in leafs]
    for number, leaf in enumerate(leafs):
        for index in np.ndindex(leaf.shape):
            machine = ReferenceMachine(leafs)
            machine.values[number][index] += 1j * STEP_SIZE
            for step in steps:
                machine.run(step)
            gradients[number][index] = (cotangent * machine.result()).sum().imag / STEP_SIZE
    return gradients
