"""The graph of a tape: its records as ops, with what one pass through their pullbacks shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.pictures import Graph, Op
from tapetensor.tape.gradients import Tensorlike
from tapetensor.tape.history import BackwardPass, Step, op_name
from tapetensor.tape.replay import checked, replay

Form = tuple[tuple[int, ...], np.dtype[Any]]

_UNMEASURED = (
    "Shapes and times are known where the tape belongs to a tensor: draw that with "
    "tensor.to_html(), or give it as tape.to_html(tensor)."
)


class Output(Tensorlike[Any], Protocol):
    """The tensor that a tape leads to, as far as a picture needs to know it."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""


class Passage:
    """The facts of one pass back through the steps, which are not used up.

    A gradient has the shape and dtype of what it is the gradient of, and pullbacks take time. The
    tape itself keeps neither: recording them would make every op slower.
    """

    def __init__(self, steps: list[Step], output: Output) -> None:
        self.forms: dict[int, Form] = {}
        self.seconds: dict[int, float] = {}
        self._running: int | None = None
        self._since = 0.0
        ones = np.ones(output.shape, output.dtype)
        self.forms[output.id] = (ones.shape, ones.dtype)
        with np.errstate(all="ignore"):
            replay(checked(steps, self._note), {output.id: ones}, BackwardPass(), [])

    def _note(self, _: str, unique_id: int, gradient: Array) -> None:
        """Take note of a gradient: pullbacks report what they take and then what they give."""
        now = perf_counter()
        self.forms[unique_id] = (np.shape(gradient), gradient.dtype)
        if self._running is None:
            self._running, self._since = unique_id, perf_counter()
        else:
            earlier = self.seconds.get(self._running, 0.0)
            self.seconds[self._running] = earlier + now - self._since
            self._running = None


def graph_of_steps(
    steps: list[Step],
    output: Output | None,
    names: Mapping[str, Tensorlike[Any]] | None = None,
) -> Graph:
    """Return the graph of steps.

    Args:
        steps: the earliest first.
        output: the tensor that they lead to; None if that is not known, then nothing is measured.
    """
    named: dict[int, str] = {tensor.id: name for name, tensor in (names or {}).items()}
    inputs: Any = (names or {}).values()
    forms: dict[int, Form] = {tensor.id: (tensor.shape, tensor.dtype) for tensor in inputs}
    if output is None:
        ops = _numbered(_ops(steps, forms, {}, named))
        return Graph("tape", ops, note=_UNMEASURED)
    seen = Passage(steps, output)
    ops = _numbered(_ops(steps, {**forms, **seen.forms}, seen.seconds, named))
    title = f"tape of Tensor {output.shape}, {output.dtype}"
    return Graph(title, ops, time_is="backward time")


def graph_of_slots(steps: list[Step], values: list[Array]) -> Graph:
    """Return the graph of a tape whose values are all there, in slots."""
    forms = {slot: (value.shape, value.dtype) for slot, value in enumerate(values)}
    return Graph("tape", _ops(steps, forms, {}, {}))


def _ops(
    steps: list[Step],
    forms: Mapping[int, Form],
    seconds: Mapping[int, float],
    named: Mapping[int, str],
) -> list[Op]:
    ops: dict[int, Op] = {}
    for produced_id, kernel, pullbacks, parents, _, _ in steps:
        if parents.__class__ is int:
            pullbacks, parents = (pullbacks,), (parents,)
        for parent in parents:
            if parent not in ops:
                name = named.get(parent, "input")
                ops[parent] = _op(parent, name, forms, is_input=True)
        facts = tuple(
            [
                ("no gradient to", f"operand {position}")
                for position, pullback in enumerate(pullbacks)
                if pullback is None
            ]
        )
        if options := _options(kernel):
            facts = (("options", options), *facts)
        ops[produced_id] = _op(
            produced_id, op_name(kernel), forms, operands=parents, facts=facts,
            seconds=seconds.get(produced_id), place=getattr(kernel, "place", None),
        )  # fmt: skip
    return list(ops.values())


def _numbered(ops: list[Op]) -> list[Op]:
    """Return the ops with keys from 1 on, so that one program gives one picture at every run."""
    keys = {op.key: number for number, op in enumerate(ops, 1)}
    return [
        replace(op, key=keys[op.key], operands=tuple([keys[one] for one in op.operands]))
        for op in ops
    ]


def _op(key: int, name: str, forms: Mapping[int, Form], **known: Any) -> Op:
    shape, dtype = forms.get(key, (None, None))
    return Op(key, name, shape=shape, dtype=dtype, **known)


def _options(kernel: Any) -> str:
    """Return what a kernel was given beforehand, in words."""
    if not isinstance(kernel, partial):
        return ""
    given = [repr(value) for value in kernel.args]
    given += [f"{name}={value!r}" for name, value in kernel.keywords.items()]
    return ", ".join(given)
