"""What the table of ops says must be refused for its shapes, as a program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.errors import ShapeError
from tests.ops.rows import Each, Op, Refusal
from tests.ops.samples import OPS

_HEAD = "import numpy as np\n\nimport tapetensor as tt\n"


@cache
def refused_calls() -> str:
    """Return a program with a function on a line for each such call, if it can be written down.

    No lambdas in a list: mypy checks those several times, for each type that the list may have.
    """
    calls = [call for op in OPS for call in _calls_of(op)]
    functions = [f"def call_{n}() -> object: return {call}" for n, call in enumerate(calls)]
    return "\n".join([_HEAD, *functions, ""])


def _calls_of(op: Op) -> Iterator[str]:
    name = op.covers[0] if op.covers else ""
    for refusal in op.refusals:
        if issubclass(refusal.error, ShapeError):
            for value in refusal.values:
                arguments = _arguments(refusal, value)
                if arguments is None:
                    continue
                if hasattr(tt.Tensor, name):
                    receiver, *others = arguments
                    yield f"{receiver}.{name}({', '.join(others)})"
                elif hasattr(tt, name):
                    yield f"tt.{name}({', '.join(arguments)})"


def _arguments(refusal: Refusal, value: Any) -> list[str] | None:
    """Return the arguments as a program has them; None where one is no shape, number or name."""
    sample = refusal.sample
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
    is_plain = one is None or isinstance(one, int | float | str)
    is_plain |= isinstance(one, tuple) and all(isinstance(item, int) for item in one)
    return repr(one) if is_plain else None


def _array(array: Array) -> str:
    if array.dtype.kind == "f":
        return f"tt.ones({array.shape})"
    # Positions and labels: what is refused for its shape is so whatever its values.
    return f"tt.zeros({array.shape}, np.{array.dtype}{'_' if array.dtype == bool else ''})"
