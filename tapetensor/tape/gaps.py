"""Where gradients stopped though there was something to flow on to, for those who ask for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tapetensor.errors import MissingGradientError, TapeUsedError
from tapetensor.pictures.places import Place, is_users_file
from tapetensor.tape.history import (
    BackwardPass,
    Ids,
    Step,
    UsedUp,
    gap_step,
    ids_before,
    op_name,
    reached_from,
    size_of,
)

# A value that comes of so many is that of a whole model.
_FEW_IDS = 4
_RECORD = "give it a tape before them, weight.retaped(x.tape_type) or x.trace()"
_CONSTANT = "detach() it where it is a constant"
_OF_MODELS = "run a whole model that is constant as nn.inference(model)"


class Gap:
    """A missing part of gradients that stopped at a value.

    Args:
        what: where they stopped, and why; a sentence that goes on with what is concerned.
        cure: what to write instead.
        kernel: of the op that they stopped at.
        step: the gap, whose past is what is concerned; None if all is among `ids`.
        ids: of further tensors that the gradients should have flowed on to.
    """

    __slots__ = ("_cure", "_first", "_found", "_ids", "_what", "kernel", "step")

    def __init__(
        self,
        what: str,
        cure: str,
        kernel: Callable[..., object],
        step: Step | None,
        ids: Iterable[int] = (),
    ) -> None:
        self._what = what
        self.kernel = kernel
        self._cure = cure
        self.step = step
        self._ids = frozenset(ids)
        # The past is looked through as far back as somebody asks.
        self._first = sys.maxsize
        self._found = Ids()

    @classmethod
    def at(cls, step: Step, shape: tuple[int, ...] | None = None) -> Gap:
        """Return the gap at a value, of a shape if that is known, whose step has no pullbacks."""
        op = op_name(step[1])
        of_shape = "" if shape is None else f" of shape {shape}"
        for kernel, what, cure in _WHAT_ELSE:
            if step[1] is kernel:
                return cls(what.format(of_shape), f"{cure}, or {_CONSTANT}", kernel, step)
        if isinstance(step[1], UsedUp):
            return cls(
                f"{op} made a plain value{of_shape} of it that backward(){_at(step[1].done)} has "
                "used up",
                "compute it again in each step, write backward(retain=True) there, or detach() it "
                "where it is a constant",
                step[1],
                step,
            )
        # Of a value of a few ops a weight is more likely to be meant, of one of many a teacher.
        is_deep = step[5] > _FEW_IDS
        return cls(
            f"{op} made a plain value{of_shape} of it, and ops on plain values that come of data "
            "are not recorded",
            f"{_CONSTANT}, {_OF_MODELS}, or {_RECORD}" if is_deep else f"{_RECORD}, or {_CONSTANT}",
            step[1],
            step,
        )

    @classmethod
    def constant(cls, step: Step, parent: int, steps: Sequence[Step]) -> Gap:
        """Return the gap at an operand that a kernel takes as a constant.

        Args:
            step: of the op.
            parent: the id of the operand.
            steps: those before, the earliest first.
        """
        ids = reached_from(steps, {parent})
        behind = next((one for one in steps if one[0] == parent and one[2] is None), None)
        return cls(
            f"{op_name(step[1])} takes an operand that comes of it as a constant",
            "detach() the operand, or write the loss by other ops",
            step[1],
            behind,
            ids,
        )

    def of_others(self, past: tuple[Any, ...]) -> Gap:
        """Return the same of a value that came of other ids, with the history of each."""
        unique_id = 1 + max([one for one in past if isinstance(one, int)])
        step = gap_step(unique_id, self.kernel, past, size_of(past))
        return Gap(self._what, self._cure, self.kernel, step)

    def concerns(self, unique_id: int) -> bool:
        """Tell whether the gradient of a tensor lacks a part."""
        if unique_id in self._ids:
            return True
        if unique_id < self._first and self.step is not None:
            self._first, self._found = unique_id, ids_before(self.step, unique_id)
        return unique_id in self._found

    def error(self, op: str, names: Sequence[str]) -> MissingGradientError:
        """Return the error for those who ask for gradients that lack a part.

        Args:
            op: what asks.
            names: the tensors whose gradients they are.
        """
        of = "gradient" if len(names) == 1 else "gradients"
        return MissingGradientError(
            f"{op}: a part of the {of} of {', '.join(names)} is missing: {self._what}; {self._cure}"
        )


def gradient_of_pass() -> None:
    """Stand in a step for what made a gradient that is computed with."""


def computed_outside() -> None:
    """Stand in a step for what made a value that comes into a compiled function."""


# What a gap is that no op made, with the shape to be filled in; and the cure.
_WHAT_ELSE: tuple[tuple[Callable[..., object], str, str], ...] = (
    (
        gradient_of_pass,
        "a gradient{} that another backward pass gave takes part, and no gradient flows through it",
        "write tt.grad(...), which is recorded",
    ),
    (
        computed_outside,
        "a plain value{} was computed of it before a compiled function got it",
        "compute it inside",
    ),
)


def name_of(wanted: Any) -> str:
    """Return what a message calls a tensor: its name, or what can be told of it without one."""
    return wanted if isinstance(wanted, str) else f"the tensor of shape {wanted.shape}"


def used_error(op: str, step: Step) -> TapeUsedError:
    """Return the error for a recorded step that a backward pass has used up."""
    return TapeUsedError(
        f"{op}: what {op_name(step[1])!r} recorded was used up by backward(){_at(step[4])}; write "
        "backward(retain=True) there for a second backward pass through it, or detach() a value "
        "that is carried on from step to step"
    )


def _at(done: object) -> str:
    place = done.place if isinstance(done, BackwardPass) else None
    return f" at {Place(*place)}" if place is not None and is_users_file(place[0]) else ""


def check_complete(
    op: str,
    steps: list[Step],
    output_id: int,
    wanted: Mapping[int, Any],
    gaps: Sequence[Step],
    constants: Sequence[tuple[Step, int]],
) -> None:
    """Raise an error if gradients that are wanted would lack a part.

    Args:
        op: for the message.
        steps: all before the output, the earliest first.
        output_id: the id that gradients flow from.
        wanted: by id the tensors, or their names.
        gaps: those of the steps that have no pullbacks.
        constants: steps with the id of an operand that they take as a constant.

    Raises:
        MissingGradientError: if they would.
        TapeUsedError: if that is because a backward pass has used a step up.
    """
    oldest = min(wanted, default=0)
    # Of data alone come as many gaps as there are batches, or slices of a sequence.
    if not constants and not ids_before(tuple(gaps), oldest).among(wanted):
        return
    reached = reached_from(steps, {output_id})
    for step in gaps:
        if step[0] in reached:
            behind = ids_before(step, oldest)
            concerned = [name_of(one) for key, one in wanted.items() if key in behind]
            if concerned and not step[5]:
                raise used_error(op, step)
            if concerned:
                raise Gap.at(step).error(op, concerned)
    for step, parent in constants:
        if step[0] in reached:
            gap = Gap.constant(step, parent, steps)
            concerned = [name_of(one) for key, one in wanted.items() if gap.concerns(key)]
            if concerned:
                raise gap.error(op, concerned)
