"""Rows of what the recurrent layers apply: one op for a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels import recurrent
from tapetensor.tape import Kernel
from tapetensor.tensor.apply import apply
from tests.ops.elementwise_rows import sigmoid
from tests.ops.rows import Op, Sample, given, spaced


def rnn(gates: Array, weight: Array, bias: Array, state: Array) -> Array:
    outputs = []
    for step in range(gates.shape[1]):
        state = np.tanh(gates[:, step] + state @ weight.T + bias)
        outputs.append(state)
    return np.stack(outputs, axis=1)


def lstm(gates: Array, weight: Array, bias: Array, state: Array, cell: Array) -> Array:
    outputs = []
    for step in range(gates.shape[1]):
        i, f, g, o = np.split(gates[:, step] + state @ weight.T + bias, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        outputs.append(np.concatenate([state, cell], axis=1))
    return np.stack(outputs, axis=1)


def gru(gates: Array, weight: Array, bias: Array, state: Array) -> Array:
    outputs = []
    for step in range(gates.shape[1]):
        r_x, z_x, n_x = np.split(gates[:, step], 3, axis=1)
        r_h, z_h, n_h = np.split(state @ weight.T + bias, 3, axis=1)
        r, z = sigmoid(r_x + r_h), sigmoid(z_x + z_h)
        state = (1.0 - z) * np.tanh(n_x + r * n_h) + z * state
        outputs.append(state)
    return np.stack(outputs, axis=1)


def _samples(count: int, states: int) -> tuple[Sample, ...]:
    """Samples of batch, steps and size, with `count` gates and as many `states`."""
    return tuple(
        given(
            spaced(batch, steps, count * size),
            spaced(count * size, size, seed=1),
            spaced(count * size, seed=2),
            *(spaced(batch, size, seed=3 + one) for one in range(states)),
        )
        for batch, steps, size in ((2, 4, 3), (1, 1, 1), (3, 1, 2), (0, 2, 2))
    )


def _row(kernel: Kernel, reference: Any, count: int, states: int) -> Op:
    return Op(
        name=kernel.__name__,
        # Not public by themselves: what `nn.RNN`, `nn.LSTM` and `nn.GRU` apply.
        covers=(),
        call=lambda *operands: apply(kernel, operands),
        reference=reference,
        samples=_samples(count, states),
    )


RECURRENT = (
    _row(recurrent.rnn, rnn, 1, 1),
    _row(recurrent.lstm, lstm, 4, 2),
    _row(recurrent.gru, gru, 3, 1),
)
