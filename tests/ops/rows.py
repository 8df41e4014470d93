"""What a row of the table of ops is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapetensor as tt
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
class Each:
    """What an argument is, one value after another, each passed on as it is."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Refusal:
    """A call that must be refused, with the error that it must raise."""

    sample: Sample
    error: type[TapeTensorError]
    message: str

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the argument that is several, or None for a single call."""
        arguments = (*self.sample.operands, *self.sample.options.values())
        several = [one.values for one in arguments if isinstance(one, Each)]
        return several[0] if several else (None,)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is called, and what it refuses.

    Args:
        name: as its errors spell it.
        call: the function, on tensors.
        refusals: calls that must fail, beyond those that `test_refusals` makes up for every op.
    """

    name: str
    call: Callable[..., Any]
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Op(Row):
    """One op: what numpy says, and what to try it on.

    Args:
        covers: the public methods and functions that the row stands for.
        reference: the same on arrays. It must accept complex arrays, and be analytic in them
            (choosing by the real part at a kink), for its derivative is taken by complex step.
        samples: calls in the smooth domain.
        takes_integers: whether integer tensors are accepted, and give integers.
        result_dtype: the dtype of the result; None for that of the operands.
        is_differentiable: whether the op takes the tape. One that does not borrows its operands.
        has_complex_step: whether `reference` can be differentiated by complex step.
    """

    covers: tuple[str, ...]
    reference: Callable[..., Any]
    samples: tuple[Sample, ...]
    takes_integers: bool = False
    result_dtype: type[np.generic] | None = None
    is_differentiable: bool = True
    has_complex_step: bool = True


def named(
    name: str, reference: Callable[..., Any], samples: tuple[Sample, ...], **others: Any
) -> Op:
    """Return the row of the public method or function of that name."""
    call = public(name)
    return Op(name=name, covers=(name,), call=call, reference=reference, samples=samples, **others)


def refusing(name: str, *refusals: Refusal) -> Row:
    """Return the row of a public method or function of which nothing but refusals is tried."""
    return Row(name=name, call=public(name), refusals=refusals)


def public(name: str) -> Callable[..., Any]:
    """Return the public method or function of that name."""
    found: Callable[..., Any] = getattr(tt.Tensor, name, None) or getattr(tt, name)
    return found


@dataclass(frozen=True)
class Case:
    """One sample of one op: what a system test is run on."""

    op: Op
    sample: Sample
    name: str = field(compare=False)


def given(*operands: Any, **options: Any) -> Sample:
    """Return the sample ``op(*operands, **options)``."""
    return Sample(operands, options)


def refused(
    error: type[TapeTensorError], message: str, /, *operands: Any, **options: Any
) -> Refusal:
    """Return the refusal of ``op(*operands, **options)``."""
    return Refusal(Sample(operands, options), error, message)


def each(*values: Any) -> Each:
    """Return an argument that is one value after another."""
    return Each(values)


def spaced(*shape: int, low: float = -2.03, high: float = 2.11, seed: int = 0) -> Array:
    """Return equally spaced numbers in random order: no ties, and none at 0 for these bounds."""
    count = int(np.prod(shape, dtype=int))
    values = np.linspace(low, high, max(count, 1))[:count]
    return np.random.default_rng(seed + count).permutation(values).reshape(shape)


def is_float_array(operand: object) -> bool:
    """Tell whether an operand is one of those that can be traced."""
    return isinstance(operand, np.ndarray) and operand.dtype.kind == "f"
