"""What the table of ops calls, and what it says must be refused for its shapes, as programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.errors import ShapeError
from tapetensor.mypy_plugin import shapes
from tests.ops.rows import Each, Op, Sample
from tests.ops.samples import OPS

_HEAD = "import numpy as np\n\nimport tapetensor as tt\n"


@cache
def refused_calls() -> str:
    """Return a program with a function on a line for each such call, if it can be written down.

    No lambdas in a list: mypy checks those several times, for each type that the list may have.
    """
    calls = [call for op in OPS for call in _refused_by(op)]
    functions = [f"def call_{n}() -> object: return {call}" for n, call in enumerate(calls)]
    return "\n".join([_HEAD, *functions, ""])


@cache
def right_calls() -> list[str]:
    """Return the calls of ops with a rule that can be written down, each as an expression."""
    known = {one.rpartition(".")[2] for one in (*shapes._METHODS, *shapes._FUNCTIONS)}
    # Operators are in the random expressions.
    ops = [op for op in OPS if op.covers and op.covers[0] in known and op.covers[0][0] != "_"]
    calls = [_call(op, sample) for op in ops for sample in op.samples]
    return [*dict.fromkeys(call for call in calls if call is not None)]


def _refused_by(op: Op) -> Iterator[str]:
    refusals = [one for one in op.refusals if issubclass(one.error, ShapeError)]
    for call in [_call(op, one.sample, value) for one in refusals for value in one.values]:
        if call is not None:
            yield call


def _call(op: Op, sample: Sample, value: Any = None) -> str | None:
    """Return a call as a program has it; None where an argument is no shape, number or name."""
    name, arguments = op.covers[0] if op.covers else "", _arguments(sample, value)
    if arguments is not None and hasattr(tt.Tensor, name):
        receiver, *others = arguments
        return f"{receiver}.{name}({', '.join(others)})"
    return f"tt.{name}({', '.join(arguments)})" if arguments and hasattr(tt, name) else None


def _arguments(sample: Sample, value: Any) -> list[str] | None:
    found = [_argument(value if isinstance(one, Each) else one) for one in sample.operands]
    named = {
        name: _argument(value if isinstance(one, Each) else one)
        for name, one in sample.options.items()
    }
    found += [None if one is None else f"{name}={one}" for name, one in named.items()]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _argument(one: object) -> str | None:
    if isinstance(one, np.ndarray):
        return _array(one)
    is_plain = one is None or isinstance(one, int | str) or (type(one) is float and one < np.inf)
    is_plain |= isinstance(one, tuple) and all(isinstance(item, int) for item in one)
    return repr(one) if is_plain else None


def _array(array: Array) -> str:
    if array.dtype.kind == "f":
        return f"tt.ones({array.shape})"
    # Positions and labels: what is refused for its shape is so whatever its values.
    return f"tt.zeros({array.shape}, np.{array.dtype}{'_' if array.dtype == bool else ''})"
