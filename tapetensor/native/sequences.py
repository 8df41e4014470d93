"""Linear recurrences and the gates of recurrent networks as loops of numbers.

They stand beside `numerics.recurrence` and `kernels.recurrent`. In a loop an array lies flat: a
sequence of it begins at a start, and every step lies a stride further on. The products of the steps
of recurrent networks are the BLAS's. What comes between two of them is one pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from textwrap import indent

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import recurrence, threads
from tapetensor.kernels.numerics.along_axes import sum_of_rows
from tapetensor.native.loading import (
    are_known,
    loop_for,
    pullbacks_of,
    run_shares,
    without_gaps,
    workers_for,
)
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel, Needed

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


def run_recurrence(kernel: Callable[..., None], out: Array, values: Array, decay: Array) -> None:
    """Write a recurrence."""
    ones = np.broadcast_to(values.dtype.type(1), values.shape)
    if not _has_written(out, values, decay, ones):
        kernel(out, values, decay)


def run_scan(
    kernel: Callable[..., None], out: Array, values: Array, decay: Array, gain: Array
) -> None:
    """Write a scan."""
    rows = [recurrence.steps_first(one) for one in (out, values, decay, gain)]
    if not _has_written(rows[0], rows[1], rows[2][1:], rows[3]):
        kernel(out, values, decay, gain)


def _has_written(out: Array, *operands: Array) -> bool:
    """Write a recurrence of values, decays and gains; tell whether a loop is written for them."""
    values, decay, gain = operands
    arrays = [_steps_inside(one) for one in (out, *operands)]
    is_apart = not any(np.may_share_memory(out, one) for one in operands)
    fits = 0 < decay.shape[0] == out.shape[0] - 1 and not recurrence.needs_doubles(values)
    if not (is_apart and fits and are_known(*arrays) and arrays[0].flags.c_contiguous):
        return False
    with np.errstate(all="ignore"):
        np.multiply(gain[:1], values[:1], out=out[:1])
    names = "out", "values", "before_decay", "gain", "before_out"
    _run(names, _STEP, [*arrays, arrays[0]])
    return True


def scan_cotangents(
    kernel: Callable[..., list[Array]],
    g: Array,
    x: Array,
    a: Array,
    b: Array,
    h: Array,
    needed: tuple[bool, ...],
) -> list[Array]:
    """Return the cotangents of a scan, all from one pass."""
    operands = [g, x, a, b, h]
    if not are_known(*operands) or recurrence.needs_doubles(recurrence.steps_first(g)):
        return kernel(g, x, a, b, h, needed)
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


_EACH = re.compile(r"^( *)each (.+?): (.+)$", re.MULTILINE)


def _by_element(source: str) -> str:
    """Return a source with a loop for every line ``each COUNT: ...`` of elements j.

    LLVM makes better code of several short loops than of one, and of loops that begin at 0.
    """
    return _EACH.sub(r"\1for j in range(\2):\n\1    \3", source)


# What is done in one step, and on the way back.
_LSTM = _by_element("""
def loop(t, summed, bias, gates, opened, cells, squashed, before, output):
    half = np.float32(0.5)
    size, last = cells.shape[2], gates.shape[1] - 1
    for row in range(gates.shape[0]):
        total, given, four = summed[row], gates[row, t], opened[t, row]
        each 4 * size: four[j] = total[j] + bias[j] + given[j]
        i, f, g, o = four[:size], four[size : 2 * size], four[2 * size : 3 * size], four[3 * size :]
        each size: i[j] = half + half * tanh(half * i[j])
        each size: f[j] = half + half * tanh(half * f[j])
        each size: g[j] = tanh(g[j])
        each size: o[j] = half + half * tanh(half * o[j])
        old, new, flat = cells[t, row], cells[t + 1, row], squashed[t, row]
        h, c = output[row, t, :size], output[row, t, size:]
        each size: new[j] = f[j] * old[j] + i[j] * g[j]
        each size: flat[j] = tanh(new[j])
        each size: h[j] = o[j] * flat[j]
        each size: c[j] = new[j]
        if t < last:
            state = before[row, t + 1]
            each size: state[j] = h[j]
""")
_LSTM_BACK = _by_element("""
def loop(t, opened, cells, squashed, cotangent, flow, cell_flow, slopes):
    one = np.float32(1)
    size = cells.shape[2]
    for row in range(slopes.shape[0]):
        four, to = opened[t, row], slopes[row, t]
        i, f, g, o = four[:size], four[size : 2 * size], four[2 * size : 3 * size], four[3 * size :]
        to_i, to_f = to[:size], to[size : 2 * size]
        to_g, to_o = to[2 * size : 3 * size], to[3 * size :]
        h, c = cotangent[row, t, :size], cotangent[row, t, size:]
        old, flat, of_state, of_cell = cells[t, row], squashed[t, row], flow[row], cell_flow[row]
        each size: of_state[j] += h[j]
        each size: of_cell[j] += c[j] + of_state[j] * o[j] * (one - flat[j] * flat[j])
        each size: to_i[j] = of_cell[j] * g[j] * (i[j] * (one - i[j]))
        each size: to_f[j] = of_cell[j] * old[j] * (f[j] * (one - f[j]))
        each size: to_g[j] = of_cell[j] * i[j] * (one - g[j] * g[j])
        each size: to_o[j] = of_state[j] * flat[j] * (o[j] * (one - o[j]))
        each size: of_cell[j] *= f[j]
""")
_GRU = _by_element("""
def loop(t, own, bias, gates, opened, before, output):
    half = np.float32(0.5)
    size, last = output.shape[2], gates.shape[1] - 1
    for row in range(gates.shape[0]):
        total, given, four = own[row], gates[row, t], opened[t, row]
        r, z = four[:size], four[size : 2 * size]
        n, new = four[2 * size : 3 * size], four[3 * size :]
        each 2 * size: four[j] = half + half * tanh(half * (total[j] + bias[j] + given[j]))
        of_new, bias_of_new, given_new = total[2 * size :], bias[2 * size :], given[2 * size :]
        each size: new[j] = of_new[j] + bias_of_new[j]
        each size: n[j] = tanh(given_new[j] + r[j] * new[j])
        old, h = before[row, t], output[row, t]
        each size: h[j] = n[j] + z[j] * (old[j] - n[j])
        if t < last:
            state = before[row, t + 1]
            each size: state[j] = h[j]
""")
_GRU_BACK = _by_element("""
def loop(t, opened, before, cotangent, kept, flow, given_slopes, own_slopes):
    one = np.float32(1)
    size = kept.shape[1]
    for row in range(kept.shape[0]):
        four, given, own = opened[t, row], given_slopes[row, t], own_slopes[row, t]
        r, z = four[:size], four[size : 2 * size]
        n, new = four[2 * size : 3 * size], four[3 * size :]
        to_r, to_z = given[:size], given[size : 2 * size]
        to_n, to_new = given[2 * size :], own[2 * size :]
        old, h, to_old, of_state = before[row, t], cotangent[row, t], kept[row], flow[row]
        each size: of_state[j] += to_old[j] + h[j]
        each size: to_n[j] = of_state[j] * (one - z[j]) * (one - n[j] * n[j])
        each size: to_r[j] = to_n[j] * new[j] * (r[j] * (one - r[j]))
        each size: to_z[j] = of_state[j] * (old[j] - n[j]) * (z[j] * (one - z[j]))
        each size: to_new[j] = to_n[j] * r[j]
        each 2 * size: own[j] = given[j]
        each size: to_old[j] = of_state[j] * z[j]
""")


def lstm(
    kernel: Kernel, gates: Array, weight: Array, bias: Array, state: Array, cell: Array
) -> tuple[Array, Pullbacks]:
    """Return the states after every step of a long short-term memory, ``h`` beside ``c``."""
    args = gates, weight, bias, state, cell
    if not _are_known(*args):
        return kernel(*args)
    batch, steps, width = gates.shape
    size = state.shape[1]
    opened, squashed, cells = [
        np.empty((count, batch, each), gates.dtype)
        for count, each in ((steps, width), (steps, size), (steps + 1, size))
    ]
    before, output = _before(state, steps), np.empty((batch, steps, 2 * size), gates.dtype)
    cells[0] = cell
    turned, summed = np.ascontiguousarray(weight.T), np.empty((batch, width), gates.dtype)
    memory = summed, bias, gates, opened, cells, squashed, before, output
    loop = loop_for(_LSTM, 0, *memory)
    for step in range(steps):
        np.matmul(before[:, step], turned, out=summed)
        loop(step, *memory)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        slopes = np.empty_like(gates)
        flow, cell_flow = np.zeros_like(state), np.zeros_like(cell)
        memory = opened, cells, squashed, g, flow, cell_flow, slopes
        loop = loop_for(_LSTM_BACK, 0, *memory)
        for step in reversed(range(steps)):
            loop(step, *memory)
            np.matmul(slopes[:, step], weight, out=flow)
        return [slopes, *_of_parameters(needed, slopes, before), flow, cell_flow]

    return output, pullbacks_of(kernel, args, output, (True,) * 5, cotangents)


def gru(
    kernel: Kernel, gates: Array, weight: Array, bias: Array, state: Array
) -> tuple[Array, Pullbacks]:
    """Return the states after every step of a gated recurrent unit."""
    args = gates, weight, bias, state
    if not _are_known(*args):
        return kernel(*args)
    batch, steps, width = gates.shape
    size = state.shape[1]
    opened = np.empty((steps, batch, 4 * size), gates.dtype)
    before, output = _before(state, steps), np.empty((batch, steps, size), gates.dtype)
    turned, own = np.ascontiguousarray(weight.T), np.empty((batch, width), gates.dtype)
    memory = own, bias, gates, opened, before, output
    loop = loop_for(_GRU, 0, *memory)
    for step in range(steps):
        np.matmul(before[:, step], turned, out=own)
        loop(step, *memory)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        slopes, own_slopes = np.empty_like(gates), np.empty_like(gates)
        kept, flow = np.zeros_like(state), np.zeros_like(state)
        memory = opened, before, g, kept, flow, slopes, own_slopes
        loop = loop_for(_GRU_BACK, 0, *memory)
        for step in reversed(range(steps)):
            loop(step, *memory)
            np.matmul(own_slopes[:, step], weight, out=flow)
        return [slopes, *_of_parameters(needed, own_slopes, before), kept + flow]

    return output, pullbacks_of(kernel, args, output, (True,) * 4, cotangents)


def _are_known(*args: Array) -> bool:
    return all(one.dtype == np.float32 and one.size and one.flags.c_contiguous for one in args)


def _before(state: Array, steps: int) -> Array:
    """Return memory for the states before every step, in which the first is."""
    batch, size = state.shape
    before = np.empty((batch, steps, size), state.dtype)
    before[:, 0] = state
    return before


def _of_parameters(needed: Needed, slopes: Array, before: Array) -> list[Array | None]:
    """Return the cotangents of the weight and the bias of the state."""
    rows, states = [one.reshape(-1, one.shape[2]) for one in (slopes, before)]
    return [
        np.matmul(rows.T, states) if needed[1] else None,
        sum_of_rows(slopes) if needed[2] else None,
    ]
