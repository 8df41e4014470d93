"""Linear recurrences and their derivatives as loops of numbers, beside `numerics.recurrence`.

In a loop an array lies flat: a sequence of it begins at a start, and every step lies a stride
further on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from textwrap import indent

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import recurrence, threads
from tapetensor.native.loading import are_known, run_shares, without_gaps, workers_for

# The channels of a block.
_CHANNELS = 64
# What is done for a channel of one step.
_STEP = ("state[j] = before_decay[j] * before_out[j]", "out[j] = state[j] + gain[j] * values[j]")
_STEP_BACK = ("total[j] = g[j] + state[j]", "state[j] = total[j] * a[j]")
_COTANGENTS = {
    "x": "x_cotangent[j] = total[j] * b[j]",
    "a": "a_cotangent[j] = total[j] * before_h[j]",
    "b": "b_cotangent[j] = total[j] * x[j]",
}

# As they are on numpy.
_recurrence = inspect.unwrap(recurrence.run_recurrence)
_cotangents: Callable[..., list[Array]] = inspect.unwrap(recurrence.scan_cotangents)


def run_recurrence(out: Array, values: Array, decay: Array, gain: Array | None = None) -> None:
    """Write a recurrence."""
    factor = np.broadcast_to(values.dtype.type(1), values.shape) if gain is None else gain
    operands = (values, decay, factor)
    arrays = [_steps_inside(one) for one in (out, *operands)]
    is_apart = not any(np.may_share_memory(out, one) for one in operands)
    fits = 0 < decay.shape[0] == out.shape[0] - 1 and not recurrence.needs_doubles(values)
    if not (is_apart and fits and are_known(*arrays) and arrays[0].flags.c_contiguous):
        added = values if gain is None else np.multiply(gain, values)
        _recurrence(out, added, decay)
        return
    with np.errstate(all="ignore"):
        np.multiply(factor[:1], values[:1], out=out[:1])
    names = "out", "values", "before_decay", "gain", "before_out"
    _run(names, _STEP, [*arrays, arrays[0]])


def run_scan(out: Array, values: Array, decay: Array, gain: Array) -> None:
    """Write a scan."""
    rows = [recurrence.steps_first(one) for one in (out, values, decay, gain)]
    run_recurrence(rows[0], rows[1], rows[2][1:], rows[3])


def scan_cotangents(
    g: Array, x: Array, a: Array, b: Array, h: Array, needed: tuple[bool, ...]
) -> list[Array]:
    """Return the cotangents of a scan, all from one pass."""
    operands = [g, x, a, b, h]
    if not are_known(*operands) or recurrence.needs_doubles(recurrence.steps_first(g)):
        return _cotangents(g, x, a, b, h, needed)
    wanted = [one for one, is_needed in zip("xab", needed, strict=True) if is_needed]
    found = [np.empty(g.shape, g.dtype) for _ in wanted]
    names = "g", "x", "a", "b", "before_h", *[f"{one}_cotangent" for one in wanted]
    lines = *_STEP_BACK, *[_COTANGENTS[one] for one in wanted]
    _run(names, lines, [*operands, *found], is_backwards=True)
    if "a" in wanted:
        found[wanted.index("a")][..., :1, :] = 0
    return found


def _steps_inside(rows: Array) -> Array:
    """Return a sequence of rows as sequences, steps along the last axis but one."""
    rank = rows.ndim
    # Numbers are rows of one.
    return rows.transpose(*range(1, rank - 1), 0, rank - 1) if rank > 1 else rows[:, None]


def _run(
    names: tuple[str, ...],
    lines: tuple[str, ...],
    arrays: Sequence[Array],
    *,
    is_backwards: bool = False,
) -> None:
    """Run a loop over sequences, steps along the last axis but one, on threads if it is long."""
    first, flat = arrays[0], [_flat(one) for one in arrays]
    starts, strides = [np.array([one[place] for one in flat]) for place in (1, 2)]
    blocks, rest = divmod(first.shape[-1], _CHANNELS)
    # Where there is a rest, all channels are one block.
    width, blocks = (first.shape[-1], 1) if rest else (_CHANNELS, blocks)
    source = _source(names, lines, None if rest else width, is_backwards)
    workers = workers_for(first.size)
    rows = starts.shape[1]
    # No channel knows of another.
    pairs = [
        (*of_rows, *of_blocks)
        for of_rows in threads.shares(rows, workers if rows >= workers else 1)
        for of_blocks in threads.shares(blocks, 1 if rows >= workers else workers)
    ]
    shares = [(*pair, number) for number, pair in enumerate(pairs)]
    scratch = np.empty((len(shares), first.shape[-1] + width), first.dtype)
    given = width, first.shape[-2], starts, strides, scratch, *[one[0] for one in flat]
    run_shares(source, shares, *given)


def _flat(array: Array) -> tuple[Array, Array, int]:
    """Return all that lies between an array's first and last element, and where sequences begin.

    The third is how many elements a step is further on than the one before.
    """
    size, (*leading, stride, unit) = array.itemsize, array.strides
    is_known = unit == size and all(one >= 0 and one % size == 0 for one in array.strides)
    if array.flags.c_contiguous or not is_known:
        array = np.ascontiguousarray(array)
        steps, width = array.shape[-2:]
        return array.reshape(-1), np.arange(0, array.size, steps * width), width
    return *without_gaps(array, len(leading)), stride // size


@cache
def _source(
    names: tuple[str, ...], lines: tuple[str, ...], known_width: int | None, is_backwards: bool
) -> str:
    """Return a loop over some sequences and some blocks of their channels, step by step.

    Args:
        names: the arrays. Of one whose name begins with "before" a step reads the row before.
        lines: what is done for one channel after the other; LLVM makes better code of several short
            loops than of one. What is in `state` stays for the next step.
        known_width: the channels of a block, if that is to be part of the code, which is faster.
        is_backwards: whether it goes from the last step to the first, and not from the second to
            the last. So do the channels then: the processor fetches ahead in one direction.
    """
    n = known_width or "n"
    body = [f"at = block * {n}", f"state, total = states[at : at + {n}], totals[:{n}]"]
    for i, name in enumerate(names):
        step = "max(t - 1, 0)" if name.startswith("before") else "t"
        body.append(f"p = starts[{i}, row] + {step} * strides[{i}] + at")
        body.append(f"{name} = {name}_[p : p + {n}]")
    body += [f"for j in range({n}):\n    {line}" for line in lines]
    steps = "range(steps - 1, -1, -1)" if is_backwards else "range(1, steps)"
    blocks = "range(stop - 1, start - 1, -1)" if is_backwards else "range(start, stop)"
    memory = ", ".join([f"{name}_" for name in names])
    return f"""
def loop(first, last, start, stop, share, n, steps, starts, strides, scratch, {memory}):
    states, totals = scratch[share, : stop * n], scratch[share, stop * n :]
    for row in range(first, last):
        # Unlike 0.0, it changes nothing that it is added to.
        states[:] = -0.0
        for t in {steps}:
            for block in {blocks}:
{indent(chr(10).join(body), " " * 16)}
"""
