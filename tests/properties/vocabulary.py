"""The ops that random programs are made of, each spelled for tensors and for arrays.

The second spelling serves complex arrays of numpy's and tensors of PyTorch's: it is given the
module whose functions to call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

import tapetensor as tt


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


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def _maximum(xp: Any, lhs: Any, rhs: Any) -> Any:
    larger = xp.where(lhs.real > rhs.real, lhs, rhs)
    return xp.where(lhs.real == rhs.real, (lhs + rhs) / 2, larger)


def _max(xp: Any, x: Any, axis: Any, sign: int = 1) -> Any:
    ties = x.real == sign * xp.amax(sign * x.real, axis, keepdims=True)
    return xp.sum(x * ties, axis) / xp.sum(ties, axis)


def _softmax(xp: Any, x: Any, axis: int) -> Any:
    return xp.exp(x) / xp.sum(xp.exp(x), axis, keepdims=True)


def _var(xp: Any, x: Any, axis: Any) -> Any:
    return xp.mean((x - xp.mean(x, axis, keepdims=True)) ** 2, axis)


UNARY = [
    Op("exp", lambda x: x.exp(), lambda xp, x: xp.exp(x)),
    Op("sin", lambda x: x.sin(), lambda xp, x: xp.sin(x)),
    Op("cos", lambda x: x.cos(), lambda xp, x: xp.cos(x)),
    Op("tanh", lambda x: x.tanh(), lambda xp, x: xp.tanh(x)),
    Op("sigmoid", lambda x: x.sigmoid(), _sigmoid),
    Op("silu", lambda x: x.silu(), lambda xp, x: x * _sigmoid(xp, x)),
    Op("softplus", lambda x: x.softplus(), lambda xp, x: xp.log(1 + xp.exp(x))),
    Op("square", lambda x: x.square(), lambda xp, x: x * x),
    Op("relu", lambda x: x.relu(), lambda xp, x: x * (x.real > 0)),
    Op("abs", lambda x: x.abs(), lambda xp, x: xp.sign(x.real) * x),
    Op("negative", lambda x: -x, lambda xp, x: -x),
    Op("add 1.5", lambda x: x + 1.5, lambda xp, x: x + 1.5),
    Op("subtract from 2", lambda x: 2.0 - x, lambda xp, x: 2 - x),
    Op("multiply by -0.5", lambda x: -0.5 * x, lambda xp, x: -0.5 * x),
    Op("cube", lambda x: x**3, lambda xp, x: x**3),
]
# Tame: its result is small whatever it is given.
TANH = UNARY[3]

BROADCASTING = [
    Op("add", lambda x, y: x + y, lambda xp, x, y: x + y),
    Op("subtract", lambda x, y: x - y, lambda xp, x, y: x - y),
    Op("multiply", lambda x, y: x * y, lambda xp, x, y: x * y),
    Op("divide", lambda x, y: x / y, lambda xp, x, y: x / y),
    Op("maximum", tt.maximum, _maximum),
    Op(
        "where",
        lambda x, y: tt.where(x > 0.5, x, y),
        lambda xp, x, y: xp.where(x.real > 0.5, x, y),
        has_data=True,
    ),
]
MATMUL = Op("matmul", lambda x, y: x @ y, lambda xp, x, y: xp.matmul(x, y))
CONCAT = Op("concat", lambda x, y: tt.concat((x, y)), lambda xp, x, y: xp.concatenate((x, y)))
STACK = Op("stack", lambda x, y: tt.stack((x, y), -1), lambda xp, x, y: xp.stack((x, y), -1))


def single_ops(shape: tuple[int, ...]) -> list[Op]:
    """Ops on a tensor of a shape that is no scalar."""
    backwards = tuple(reversed(range(len(shape))))
    positions = np.array([shape[0] - 1, 0, 0])
    ids = tt.from_numpy(positions)
    first, last = shape[0] - 1, shape[-1]
    axes: list[int | None] = [None, *range(-1, len(shape))]
    return [
        *[op for axis in axes for op in _reductions(axis, len(shape))],
        Op("flatten", lambda x: x.flatten(), lambda xp, x: x.reshape(-1)),
        Op("repeat", lambda x: x.broadcast_to((2, *shape)), lambda xp, x: xp.stack((x, x))),
        Op("permute_dims", lambda x: x.permute_dims(backwards), _permuted),
        Op("first", lambda x: x[0], lambda xp, x: x[0]),
        Op("without the first", lambda x: x[:first], lambda xp, x: x[:first]),
        Op("backwards", lambda x: x[..., ::-1], lambda xp, x: xp.flip(x, (-1,))),
        Op("split", lambda x: x.split([1] * last, -1)[0], lambda xp, x: x[..., :1]),
        Op("by position", lambda x: x[positions], lambda xp, x: x[positions], has_data=True),
        Op("take", lambda x: x.take(ids), lambda xp, x: x[positions], has_data=True),
        Op("cumulative_sum", lambda x: x.cumulative_sum(-1), lambda xp, x: xp.cumsum(x, -1)),
        Op("softmax", lambda x: x.softmax(-1), lambda xp, x: _softmax(xp, x, -1)),
        Op("log_softmax", lambda x: x.log_softmax(0), lambda xp, x: xp.log(_softmax(xp, x, 0))),
    ]


def _permuted(xp: Any, x: Any) -> Any:
    return (
        xp.permute_dims(x, tuple(reversed(range(x.ndim))))
        if xp is np
        else x.permute(*reversed(range(x.ndim)))
    )


def _reductions(axis: int | None, ndim: int) -> list[Op]:
    axes = tuple(range(ndim)) if axis is None else (axis,)
    return [
        Op(f"sum over {axis}", lambda x: x.sum(axis=axis), lambda xp, x: xp.sum(x, axes)),
        Op(f"mean over {axis}", lambda x: x.mean(axis=axis), lambda xp, x: xp.mean(x, axes)),
        Op(f"max over {axis}", lambda x: x.max(axis=axis), lambda xp, x: _max(xp, x, axes)),
        Op(f"min over {axis}", lambda x: x.min(axis=axis), lambda xp, x: _max(xp, x, axes, -1)),
        Op(f"var over {axis}", lambda x: x.var(axis=axis), lambda xp, x: _var(xp, x, axes)),
        Op(
            f"logsumexp over {axis}",
            lambda x: x.logsumexp(axis=axis),
            lambda xp, x: xp.log(xp.sum(xp.exp(x), axes)),
        ),
        Op(
            f"sum over {axis} with kept axes",
            lambda x: x.sum(axis=axis, keepdims=True),
            lambda xp, x: xp.sum(x, axes, keepdims=True),
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
        fitting.append(STACK)
        fitting.append(
            Op(
                "einsum",
                lambda x, y: tt.einsum(f"{letters},{letters}->", x, y),
                lambda xp, x, y: xp.sum(x * y),
            )
        )
    return fitting
