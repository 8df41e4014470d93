"""The ops that random programs are made of, each spelled for tensors and for complex arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tests.ops.elementwise_rows import sigmoid
from tests.ops.reduction_rows import softmax, var


@dataclass(frozen=True)
class Op:
    """An op, in two spellings. One step each: a composite would be several, some of them plain."""

    name: str
    on_tensors: Callable[..., Any]
    on_arrays: Callable[..., Any]
    # Whether it is given data beside its operands: positions, a mask.
    has_data: bool = False

    @override
    def __repr__(self) -> str:
        """Show the name, for programs that fail."""
        return self.name


def _same(name: str, function: Callable[..., Any]) -> Op:
    """Return an op that is spelled alike for both."""
    return Op(name, function, function)


def _maximum(lhs: Any, rhs: Any) -> Any:
    larger = np.where(lhs.real > rhs.real, lhs, rhs)
    return np.where(lhs.real == rhs.real, (lhs + rhs) / 2, larger)


def _max(x: Any, axis: Any, sign: int = 1) -> Any:
    ties = x.real == sign * np.max(sign * x.real, axis, keepdims=True)
    return np.sum(x * ties, axis) / np.sum(ties, axis)


UNARY = [
    Op("exp", lambda x: x.exp(), np.exp),
    Op("sin", lambda x: x.sin(), np.sin),
    Op("cos", lambda x: x.cos(), np.cos),
    Op("tanh", lambda x: x.tanh(), np.tanh),
    Op("sigmoid", lambda x: x.sigmoid(), sigmoid),
    Op("silu", lambda x: x.silu(), lambda x: x * sigmoid(x)),
    Op("softplus", lambda x: x.softplus(), lambda x: np.log(1 + np.exp(x))),
    Op("square", lambda x: x.square(), np.square),
    Op("relu", lambda x: x.relu(), lambda x: x * (x.real > 0)),
    Op("abs", lambda x: x.abs(), lambda x: np.sign(x.real) * x),
    _same("negative", lambda x: -x),
    _same("add 1.5", lambda x: x + 1.5),
    _same("subtract from 2", lambda x: 2.0 - x),
    _same("multiply by -0.5", lambda x: -0.5 * x),
    _same("cube", lambda x: x**3),
]
# Tame: its result is small whatever it is given.
TANH = UNARY[3]

BROADCASTING = [
    _same("add", lambda x, y: x + y),
    _same("subtract", lambda x, y: x - y),
    _same("multiply", lambda x, y: x * y),
    _same("divide", lambda x, y: x / y),
    Op("maximum", tt.maximum, _maximum),
    Op(
        "where",
        lambda x, y: tt.where(x > 0.5, x, y),
        lambda x, y: np.where(x.real > 0.5, x, y),
        has_data=True,
    ),
]
MATMUL = _same("matmul", lambda x, y: x @ y)
CONCAT = Op("concat", lambda x, y: tt.concat((x, y)), lambda x, y: np.concatenate((x, y)))
STACK = Op("stack", lambda x, y: tt.stack((x, y), -1), lambda x, y: np.stack((x, y), -1))


def single_ops(shape: tuple[int, ...]) -> list[Op]:
    """Ops on a tensor of a shape that is no scalar."""
    backwards = tuple(reversed(range(len(shape))))
    positions = np.array([shape[0] - 1, 0, 0])
    ids = tt.from_numpy(positions)
    first, last = shape[0] - 1, shape[-1]
    axes: list[int | None] = [None, *range(-1, len(shape))]
    return [
        *[op for axis in axes for op in _reductions(axis, len(shape))],
        _same("flatten", lambda x: x.flatten()),
        Op("repeat", lambda x: x.broadcast_to((2, *shape)), lambda x: np.stack((x, x))),
        Op("permute_dims", lambda x: x.permute_dims(backwards), np.transpose),
        _same("first", lambda x: x[0]),
        _same("without the first", lambda x: x[:first]),
        _same("backwards", lambda x: x[..., ::-1]),
        Op("split", lambda x: x.split([1] * last, -1)[0], lambda x: x[..., :1]),
        Op("by position", lambda x: x[positions], lambda x: x[positions], has_data=True),
        Op("take", lambda x: x.take(ids), lambda x: x[positions], has_data=True),
        Op("cumulative_sum", lambda x: x.cumulative_sum(-1), lambda x: np.cumsum(x, -1)),
        Op("softmax", lambda x: x.softmax(-1), lambda x: softmax(x, -1)),
        Op("log_softmax", lambda x: x.log_softmax(0), lambda x: np.log(softmax(x, 0))),
    ]


def _reductions(axis: int | None, ndim: int) -> list[Op]:
    axes = tuple(range(ndim)) if axis is None else (axis,)
    return [
        Op(f"sum over {axis}", lambda x: x.sum(axis=axis), lambda x: np.sum(x, axes)),
        Op(f"mean over {axis}", lambda x: x.mean(axis=axis), lambda x: np.mean(x, axes)),
        Op(f"max over {axis}", lambda x: x.max(axis=axis), lambda x: _max(x, axes)),
        Op(f"min over {axis}", lambda x: x.min(axis=axis), lambda x: _max(x, axes, -1)),
        Op(f"var over {axis}", lambda x: x.var(axis=axis), lambda x: var(x, axes)),
        Op(
            f"logsumexp over {axis}",
            lambda x: x.logsumexp(axis=axis),
            lambda x: np.log(np.sum(np.exp(x), axes)),
        ),
        Op(
            f"sum over {axis} with kept axes",
            lambda x: x.sum(axis=axis, keepdims=True),
            lambda x: np.sum(x, axes, keepdims=True),
        ),
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
        fitting.append(CONCAT)
    if lhs == rhs:
        letters = "ijkl"[: len(lhs)]
        subscripts = f"{letters},{letters}->"
        fitting.append(STACK)
        fitting.append(
            Op(
                "einsum",
                lambda x, y: tt.einsum(subscripts, x, y),
                lambda x, y: np.sum(x * y),
            )
        )
    return fitting
