"""Recurrent networks over whole sequences, each one op: backpropagation through time by hand.

If a step were made of ops, it would be a dozen records, and reading it out of the sequence would
fill a cotangent of the size of the sequence. All kernels take the gates that the inputs contribute,
``(B, L, gates * H)``, the weight and the bias of the state, and the state before the first step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.along_axes import sum_of_rows
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, whole_kernel
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import computed_once

# From so many steps on it pays to copy the transposed weight into C order.
_MANY = 4


def _shape_of_states(gates: Array, weight: Array, bias: Array, *states: Array) -> tuple[int, ...]:
    """Return the shape of the states after every step, one beside another."""
    return *gates.shape[:2], len(states) * states[0].shape[1]


@whole_kernel(_shape_of_states)
def rnn(gates: Array, weight: Array, bias: Array, state: Array) -> tuple[Array, Pullbacks]:
    """``h[t] = tanh(gates[t] + weight @ h[t - 1] + bias)``; the output is ``h``."""
    states = [state]
    turned = _turned(weight, gates.shape[1])
    for step in range(gates.shape[1]):
        summed = _linear(states[-1], turned, bias)
        summed += gates[:, step]
        states.append(np.tanh(summed))
    output = _in_sequence(states[1:])

    def backwards(g: Array) -> tuple[Array, Array]:
        slopes = []
        flow = np.zeros_like(state)
        for step in reversed(range(g.shape[1])):
            flow = flow + g[:, step]
            slope = flow * (1 - np.square(states[step + 1]))
            slopes.append(slope)
            flow = np.matmul(slope, weight)
        return _in_sequence(slopes[::-1]), flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[0], states),
        lambda g: sum_of_rows(once(g)[0]),
        lambda g: once(g)[1],
    )


@whole_kernel(_shape_of_states)
@native_from(MANY_STEPS)
def lstm(
    gates: Array, weight: Array, bias: Array, state: Array, cell: Array
) -> tuple[Array, Pullbacks]:
    """Long short-term memory; the output is ``h`` beside ``c``, ``(B, L, 2 * H)``.

    The gates are those of input, forget, cell and output, in this order: ``c[t] = f * c[t - 1] +
    i * g`` and ``h[t] = o * tanh(c[t])``.
    """
    batch, steps, width = gates.shape
    size = state.shape[1]
    # The same calls compute all gates: a sigmoid is 1/2 plus half of a tanh of half its argument.
    # The factors have the whole shape, which numpy multiplies in half of the time.
    factors = np.full((batch, width), 0.5, gates.dtype)
    factors[:, 2 * size : 3 * size] = 1
    factor, rest = like(factors, gates), like(1 - factors, gates)
    states, cells, opened = [state], [cell], []
    turned = _turned(weight, steps)
    for step in range(steps):
        summed = _linear(states[-1], turned, bias)
        summed += gates[:, step]
        summed *= factor
        four = np.tanh(summed)
        four *= factor
        four += rest
        i, f, g, o = _quarters(four, size)
        fresh = f * cells[-1]
        fresh += i * g
        cells.append(fresh)
        squashed = np.tanh(fresh)
        states.append(o * squashed)
        opened.append((four, squashed))
    both = [one for pair in zip(states[1:], cells[1:], strict=True) for one in pair]
    output = np.reshape(_in_sequence(both), (batch, steps, 2 * size))

    def backwards(cotangent: Array) -> tuple[Array, Array, Array]:
        is_sigmoid, is_tanh = like(2 - 2 * factors, gates), like(2 * factors - 1, gates)
        slopes = []
        flow, cell_flow = np.zeros_like(state), np.zeros_like(cell)
        for step in reversed(range(steps)):
            four, squashed = opened[step]
            i, f, g, o = _quarters(four, size)
            flow = flow + cotangent[:, step, :size]
            # The slope of the squashing: o * (1 - squashed**2).
            inward = o - states[step + 1] * squashed
            inward *= flow
            cell_flow = cell_flow + cotangent[:, step, size:]
            cell_flow += inward
            slope = np.concatenate(
                [cell_flow * g, cell_flow * cells[step], cell_flow * i, flow * squashed], axis=1
            )
            # s * (1 - s) for the sigmoids, 1 - t**2 for the tanh.
            opening = is_sigmoid - four
            opening *= four
            opening += is_tanh
            slope *= opening
            slopes.append(slope)
            flow = np.matmul(slope, weight)
            cell_flow = cell_flow * f
        return _in_sequence(slopes[::-1]), flow, cell_flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[0], states),
        lambda g: sum_of_rows(once(g)[0]),
        lambda g: once(g)[1],
        lambda g: once(g)[2],
    )


@whole_kernel(_shape_of_states)
@native_from(MANY_STEPS)
def gru(gates: Array, weight: Array, bias: Array, state: Array) -> tuple[Array, Pullbacks]:
    """A gated recurrent unit; the output is ``h``.

    The gates are those of reset, update and new state, in this order: with ``s`` the part of the
    new state that the old one contributes, ``n = tanh(gates_n[t] + r * s)`` and ``h[t] = (1 - z) *
    n + z * h[t - 1]``.
    """
    states, opened = [state], []
    size = state.shape[1]
    turned = _turned(weight, gates.shape[1])
    for step in range(gates.shape[1]):
        given, own = gates[:, step], _linear(states[-1], turned, bias)
        opening = _logistic(given[:, : 2 * size] + own[:, : 2 * size])
        r, z = opening[:, :size], opening[:, size:]
        contributed = own[:, 2 * size :]
        reached: Array = r * contributed
        n: Array = np.tanh(given[:, 2 * size :] + reached)
        kept: Array = z * (states[-1] - n)
        states.append(n + kept)
        opened.append((r, z, n, contributed))
    output = _in_sequence(states[1:])

    def backwards(g: Array) -> tuple[Array, Array, Array]:
        given_slopes, own_slopes = [], []
        flow = np.zeros_like(state)
        for step in reversed(range(g.shape[1])):
            r, z, n, contributed = opened[step]
            flow = flow + g[:, step]
            of_tanh: Array = 1 - np.square(n)
            of_r: Array = r * (1 - r)
            of_z: Array = z * (1 - z)
            new: Array = flow * (1 - z) * of_tanh
            reset: Array = new * contributed * of_r
            update: Array = flow * (states[step] - n) * of_z
            given_slopes.append(np.concatenate([reset, update, new], axis=1))
            own = np.concatenate([reset, update, new * r], axis=1)
            own_slopes.append(own)
            flow = flow * z + np.matmul(own, weight)
        return _in_sequence(given_slopes[::-1]), _in_sequence(own_slopes[::-1]), flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[1], states),
        lambda g: sum_of_rows(once(g)[1]),
        lambda g: once(g)[2],
    )


def _turned(weight: Array, steps: int) -> Array:
    """Return the transposed weight; for many steps in C order, which the BLAS need not pack."""
    if steps < _MANY:
        return weight.T
    return np.reshape(np.reshape(weight.T, (-1,)), weight.shape[::-1])


def _linear(x: Array, turned: Array, bias: Array) -> Array:
    y: Array = np.matmul(x, turned)
    y += bias
    return y


def _logistic(x: Array) -> Array:
    # This never overflows, and is half the work of the form that keeps all digits near 0.
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _quarters(x: Array, size: int) -> tuple[Array, Array, Array, Array]:
    # np.split takes longer than the arithmetic of a gate.
    return (x[:, :size], x[:, size : 2 * size], x[:, 2 * size : 3 * size], x[:, 3 * size :])


def _in_sequence(steps: Sequence[Array]) -> Array:
    """Return arrays of shape (B, N) as one of shape (B, L, N)."""
    batch, size = steps[0].shape
    return np.reshape(np.concatenate(steps, axis=1), (batch, len(steps), size))


def _weight_cotangent(slopes: Array, states: list[Array]) -> Array:
    """Return the sum over batch and steps of slope times the state before the step."""
    batch, steps, width = slopes.shape
    left = np.reshape(slopes, (batch * steps, width))
    before = _in_sequence(states[:-1])
    right = np.reshape(before, (batch * steps, before.shape[2]))
    cotangent: Array = np.matmul(left.T, right)
    return cotangent
