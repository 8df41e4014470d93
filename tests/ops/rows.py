"""What a row of the table of ops is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.errors import TapeTensorError


@dataclass(frozen=True)
class Sample:
    """One call of an op, inside the domain in which it is smooth.

    Float arrays among the operands become tensors of the dtype under test and may be traced, other
    arrays become plain tensors as they are; numbers and options are passed on.
    """

    operands: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def float_positions(self) -> tuple[int, ...]:
        """Where the operands are that can be traced."""
        return tuple(i for i, operand in enumerate(self.operands) if is_float_array(operand))


@dataclass(frozen=True)
class Refusal:
    """One call that an op must refuse, with the error that it must raise."""

    sample: Sample
    error: type[TapeTensorError]
    message: str


@dataclass(frozen=True, kw_only=True)
class Op:
    """One op: how it is called, what numpy says, and what to try it on.

    Args:
        name: as its errors spell it.
        covers: the public methods and functions that the row stands for.
        call: the op, on tensors.
        reference: the same on arrays. It must accept complex arrays, and be analytic in them
            (choosing by the real part at a kink), for its derivative is taken by complex step.
        samples: calls in the smooth domain.
        refusals: calls that must fail, beyond those that `test_refusals` makes up for every op.
        takes_integers: whether integer tensors are accepted, and give integers.
        result_dtype: the dtype of the result; None for that of the operands.
        is_differentiable: whether the op takes the tape. One that does not borrows its operands.
        has_complex_step: whether `reference` can be differentiated by complex step.
    """

    name: str
    covers: tuple[str, ...]
    call: Callable[..., Any]
    reference: Callable[..., Any]
    samples: tuple[Sample, ...]
    refusals: tuple[Refusal, ...] = ()
    takes_integers: bool = False
    result_dtype: type[np.generic] | None = None
    is_differentiable: bool = True
    has_complex_step: bool = True


@dataclass(frozen=True)
class Case:
    """One sample of one op: what a system test is run on."""

    op: Op
    sample: Sample
    name: str = field(compare=False)


def given(*operands: Any, **options: Any) -> Sample:
    """Return the sample ``op(*operands, **options)``."""
    return Sample(operands, options)


def refused(*operands: Any, error: type[TapeTensorError], message: str, **options: Any) -> Refusal:
    """Return the refusal of ``op(*operands, **options)``."""
    return Refusal(Sample(operands, options), error, message)


def spaced(*shape: int, low: float = -2.03, high: float = 2.11, seed: int = 0) -> Array:
    """Return equally spaced numbers in random order: no ties, and none at 0 for these bounds."""
    count = int(np.prod(shape, dtype=int))
    values = np.linspace(low, high, max(count, 1))[:count]
    return np.random.default_rng(seed + count).permutation(values).reshape(shape)


def is_float_array(operand: object) -> bool:
    """Tell whether an operand is one of those that can be traced."""
    return isinstance(operand, np.ndarray) and operand.dtype.kind == "f"
