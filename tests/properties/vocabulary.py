"""The ops that random programs are made of, each spelled for tensors and for complex arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tests.properties.programs import Array, Op


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _maximum(lhs: Array, rhs: Array) -> Any:
    return np.where(lhs.real == rhs.real, (lhs + rhs) / 2, np.where(lhs.real > rhs.real, lhs, rhs))


def _max(x: Array, axis: int | None) -> Any:
    ties = x.real == x.real.max(axis=axis, keepdims=True)
    return (x * ties).sum(axis=axis) / ties.sum(axis=axis)


def _softmax(x: Array, axis: int) -> Any:
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def _var(x: Array, axis: int | None) -> Any:
    return ((x - x.mean(axis=axis, keepdims=True)) ** 2).mean(axis=axis)


UNARY = [
    Op("exp", lambda x: x.exp(), np.exp),
    Op("sin", lambda x: x.sin(), np.sin),
    Op("cos", lambda x: x.cos(), np.cos),
    Op("tanh", lambda x: x.tanh(), np.tanh),
    Op("sigmoid", lambda x: x.sigmoid(), _sigmoid),
    Op("silu", lambda x: x.silu(), lambda x: x * _sigmoid(x)),
    Op("softplus", lambda x: x.softplus(), lambda x: np.log(1 + np.exp(x))),
    Op("square", lambda x: x.square(), np.square),
    Op("relu", lambda x: x.relu(), lambda x: np.where(x.real > 0, x, 0)),
    Op("abs", lambda x: x.abs(), lambda x: np.sign(x.real) * x),
    Op("negative", lambda x: -x, np.negative),
    Op("add 1.5", lambda x: x + 1.5, lambda x: x + 1.5),
    Op("subtract from 2", lambda x: 2.0 - x, lambda x: 2 - x),
    Op("multiply by -0.5", lambda x: -0.5 * x, lambda x: -0.5 * x),
    Op("cube", lambda x: x**3, lambda x: x**3),
    Op("sqrt of 1 + square", lambda x: (x.square() + 1.0).sqrt(), lambda x: np.sqrt(x**2 + 1)),
    Op("log of 1 + square", lambda x: (x.square() + 1.0).log(), lambda x: np.log(x**2 + 1)),
    Op("reciprocal", lambda x: (x.square() + 1.0).reciprocal(), lambda x: 1 / (x**2 + 1)),
    Op("astype", lambda x: x.astype(np.float64), lambda x: x),
]
# Tame: its result is small whatever it is given.
TANH = UNARY[3]

# One op each: of a composite, the part on plain tensors alone would be a constant.
BROADCASTING = [
    Op("add", lambda x, y: x + y, np.add),
    Op("subtract", lambda x, y: x - y, np.subtract),
    Op("multiply", lambda x, y: x * y, np.multiply),
    Op("divide", lambda x, y: x / y, np.divide),
    Op("maximum", tt.maximum, _maximum),
    Op(
        "where",
        lambda x, y: tt.where(x > 0.5, x, y),
        lambda x, y: np.where(x.real > 0.5, x, y),
    ),
]

MATMUL = Op("matmul", lambda x, y: x @ y, np.matmul)


def reducing_ops(shape: tuple[int, ...]) -> list[Op]:
    """Ops that reduce a tensor of a shape."""
    axes: list[int | None] = [None, *range(-1, len(shape))] if shape else [None]
    return [op for axis in axes for op in _reductions(axis)]


def _reductions(axis: int | None) -> list[Op]:
    # Softmax runs along one axis.
    along = -1 if axis is None else axis
    over_one = [
        Op(
            f"cumulative_sum along {along}",
            lambda x: x.cumulative_sum(along),
            lambda x: np.cumsum(x, along),
        ),
        Op(f"softmax along {along}", lambda x: x.softmax(along), lambda x: _softmax(x, along)),
        Op(
            f"log_softmax along {along}",
            lambda x: x.log_softmax(along),
            lambda x: np.log(_softmax(x, along)),
        ),
    ]
    return [
        *(over_one if axis is not None else []),
        Op(f"sum over {axis}", lambda x: x.sum(axis=axis), lambda x: x.sum(axis=axis)),
        Op(f"mean over {axis}", lambda x: x.mean(axis=axis), lambda x: x.mean(axis=axis)),
        Op(f"max over {axis}", lambda x: x.max(axis=axis), lambda x: _max(x, axis)),
        Op(f"min over {axis}", lambda x: x.min(axis=axis), lambda x: -_max(-x, axis)),
        Op(f"var over {axis}", lambda x: x.var(axis=axis), lambda x: _var(x, axis)),
        Op(
            f"logsumexp over {axis}",
            lambda x: x.logsumexp(axis=axis),
            lambda x: np.log(np.exp(x).sum(axis=axis)),
        ),
        Op(
            f"sum over {axis} with kept axes",
            lambda x: x.sum(axis=axis, keepdims=True),
            lambda x: x.sum(axis=axis, keepdims=True),
        ),
    ]


def rearranging_ops(shape: tuple[int, ...]) -> list[Op]:
    """Ops that keep the elements of a tensor of a shape, or most of them, in another order."""
    anywhere = [
        Op("flatten", lambda x: x.flatten(), np.ravel),
        Op("expand_dims and squeeze", lambda x: x.expand_dims(0).squeeze(0), lambda x: x),
        Op("broadcast_to", lambda x: x.broadcast_to((2, *shape)).mean(axis=0), lambda x: x),
    ]
    if not shape:
        return anywhere
    backwards = tuple(reversed(range(len(shape))))
    positions = np.array([shape[0] - 1, 0, -1])
    ids = tt.from_numpy(positions)
    return [
        *anywhere,
        Op("reshape", lambda x: x.reshape((-1, shape[0])), lambda x: x.reshape((-1, shape[0]))),
        Op("permute_dims", lambda x: x.permute_dims(backwards), np.transpose),
        Op("first", lambda x: x[0], lambda x: x[0]),
        Op("backwards", lambda x: x[..., ::-1], lambda x: x[..., ::-1]),
        Op("by position", lambda x: x[positions], lambda x: x[positions]),
        Op("take", lambda x: x.take(ids), lambda x: x[positions]),
        Op("by mask", lambda x: x[x.detach() > -99.0], np.ravel),
    ]


def splitting_ops(shape: tuple[int, ...]) -> list[Op]:
    """Ops that make several tensors of one of a shape, which has axes."""
    return [
        Op(
            "split into ones",
            lambda x: x.split([1] * shape[-1], -1),
            lambda x: list(np.split(x, shape[-1], -1)),
        ),
        Op("split in two", lambda x: x.split([1, shape[0] - 1]), lambda x: list(np.split(x, [1]))),
        Op("split in one", lambda x: x.split(1), lambda x: [x]),
    ]


def joining_ops(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> list[Op]:
    """Ops on two tensors that fit their shapes."""
    fitting: list[Op] = []
    try:
        np.broadcast_shapes(lhs, rhs)
    except ValueError:
        pass
    else:
        fitting += BROADCASTING
    if lhs and rhs and lhs[-1] == rhs[max(len(rhs) - 2, 0)] and max(len(lhs), len(rhs)) <= 2:
        fitting.append(MATMUL)
    if lhs and lhs[1:] == rhs[1:] and len(lhs) == len(rhs):
        fitting.append(
            Op("concat", lambda x, y: tt.concat((x, y)), lambda x, y: np.concatenate((x, y)))
        )
    if lhs == rhs:
        fitting.append(
            Op("stack", lambda x, y: tt.stack((x, y), -1), lambda x, y: np.stack((x, y), -1))
        )
        letters = "ijklm"[: len(lhs)]
        fitting.append(
            Op(
                "einsum",
                lambda x, y: tt.einsum(f"{letters},{letters}->", x, y),
                lambda x, y: (x * y).sum(),
            )
        )
    return fitting
