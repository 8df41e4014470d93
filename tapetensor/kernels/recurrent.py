"""Recurrent networks over whole sequences, each one op: backpropagation through time by hand.

As ops of its own, every step would be a dozen records, and reading it out of the sequence would
fill a cotangent of the size of the sequence. All take the gates that the inputs contribute,
``(B, L, gates * H)``, the weight and the bias of the state, and the state before the first step.
"""

from __future__ import annotations

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.sharing import computed_once
from tapetensor.tape import Pullbacks


def rnn(gates: Array, weight: Array, bias: Array, state: Array) -> tuple[Array, Pullbacks]:
    """``h[t] = tanh(gates[t] + weight @ h[t - 1] + bias)``; the output is ``h``."""
    states = [state]
    for step in range(gates.shape[1]):
        states.append(np.tanh(gates[:, step] + _linear(states[-1], weight, bias)))
    output = np.stack(states[1:], axis=1)

    def backwards(g: Array) -> tuple[Array, Array]:
        slopes = []
        flow = np.zeros_like(state)
        for step in reversed(range(g.shape[1])):
            flow = flow + g[:, step]
            slope = flow * (1 - np.square(states[step + 1]))
            slopes.append(slope)
            flow = np.matmul(slope, weight)
        return np.stack(slopes[::-1], axis=1), flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[0], states),
        lambda g: np.add.reduce(once(g)[0], axis=(0, 1)),
        lambda g: once(g)[1],
    )


def lstm(
    gates: Array, weight: Array, bias: Array, state: Array, cell: Array
) -> tuple[Array, Pullbacks]:
    """Long short-term memory; the output is ``h`` beside ``c``, ``(B, L, 2 * H)``.

    The gates are those of input, forget, cell and output, in this order: ``c[t] = f * c[t - 1] +
    i * g`` and ``h[t] = o * tanh(c[t])``.
    """
    states, cells, opened = [state], [cell], []
    for step in range(gates.shape[1]):
        i, f, g, o = np.split(gates[:, step] + _linear(states[-1], weight, bias), 4, axis=1)
        i, f, g, o = _logistic(i), _logistic(f), np.tanh(g), _logistic(o)
        cells.append(f * cells[-1] + i * g)
        squashed = np.tanh(cells[-1])
        states.append(o * squashed)
        opened.append((i, f, g, o, squashed))
    output = np.concatenate([np.stack(states[1:], axis=1), np.stack(cells[1:], axis=1)], axis=2)
    size = state.shape[1]

    def backwards(cotangent: Array) -> tuple[Array, Array, Array]:
        slopes = []
        flow, cell_flow = np.zeros_like(state), np.zeros_like(cell)
        for step in reversed(range(cotangent.shape[1])):
            i, f, g, o, squashed = opened[step]
            flow = flow + cotangent[:, step, :size]
            cell_flow = cell_flow + cotangent[:, step, size:] + flow * o * (1 - np.square(squashed))
            slope = np.concatenate(
                [
                    cell_flow * g * (i * (1 - i)),
                    cell_flow * cells[step] * (f * (1 - f)),
                    cell_flow * i * (1 - np.square(g)),
                    flow * squashed * (o * (1 - o)),
                ],
                axis=1,
            )
            slopes.append(slope)
            flow = np.matmul(slope, weight)
            cell_flow = cell_flow * f
        return np.stack(slopes[::-1], axis=1), flow, cell_flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[0], states),
        lambda g: np.add.reduce(once(g)[0], axis=(0, 1)),
        lambda g: once(g)[1],
        lambda g: once(g)[2],
    )


def gru(gates: Array, weight: Array, bias: Array, state: Array) -> tuple[Array, Pullbacks]:
    """A gated recurrent unit; the output is ``h``.

    The gates are those of reset, update and new state, in this order: with ``s`` the part of the
    new state that the old one contributes, ``n = tanh(gates_n[t] + r * s)`` and ``h[t] = (1 - z) *
    n + z * h[t - 1]``.
    """
    states, opened = [state], []
    size = state.shape[1]
    for step in range(gates.shape[1]):
        given, own = gates[:, step], _linear(states[-1], weight, bias)
        r, z = np.split(_logistic(given[:, : 2 * size] + own[:, : 2 * size]), 2, axis=1)
        contributed = own[:, 2 * size :]
        n = np.tanh(given[:, 2 * size :] + r * contributed)
        states.append(n + z * (states[-1] - n))
        opened.append((r, z, n, contributed))
    output = np.stack(states[1:], axis=1)

    def backwards(g: Array) -> tuple[Array, Array, Array]:
        given_slopes, own_slopes = [], []
        flow = np.zeros_like(state)
        for step in reversed(range(g.shape[1])):
            r, z, n, contributed = opened[step]
            flow = flow + g[:, step]
            new = flow * (1 - z) * (1 - np.square(n))
            reset = new * contributed * (r * (1 - r))
            update = flow * (states[step] - n) * (z * (1 - z))
            given_slopes.append(np.concatenate([reset, update, new], axis=1))
            own = np.concatenate([reset, update, new * r], axis=1)
            own_slopes.append(own)
            flow = flow * z + np.matmul(own, weight)
        return np.stack(given_slopes[::-1], axis=1), np.stack(own_slopes[::-1], axis=1), flow

    once = computed_once(backwards)
    return output, (
        lambda g: once(g)[0],
        lambda g: _weight_cotangent(once(g)[1], states),
        lambda g: np.add.reduce(once(g)[1], axis=(0, 1)),
        lambda g: once(g)[2],
    )


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    y: Array = np.matmul(x, weight.T)
    y += bias
    return y


def _logistic(x: Array) -> Array:
    # Never overflows, and is half the work of the form that keeps all digits near 0.
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _weight_cotangent(slopes: Array, states: list[Array]) -> Array:
    """Return the sum over batch and steps of slope times the state before the step."""
    before = np.stack(states[:-1], axis=1)
    batch, steps, size = before.shape
    left = np.reshape(slopes, (batch * steps, slopes.shape[2]))
    cotangent: Array = np.matmul(left.T, np.reshape(before, (batch * steps, size)))
    return cotangent
