"""Bad calls of what works on `x`, a tensor of shape (2, 3) and dtype float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.properties.bad_arguments import (
    ARRAY,
    BAD_DTYPES,
    HUGE,
    INF,
    NAN,
    NOT_FINITE,
    NOT_NUMBERS,
    TOO_LARGE,
)

# The rows are what a type checker rejects, so nothing here is typed.
api: Any = tt

Call = Callable[[Any, Any], object]


def _after_astype(name: str) -> Call:
    return lambda x, bad: getattr(x.astype(bad), name)()


def _diagonal(name: str) -> Call:
    return lambda x, bad: getattr(x, name)(bad)


def _triangle_of_part(name: str) -> Call:
    return lambda x, bad: getattr(x[bad], name)()


OTHER_OPERANDS = [
    *[None, "1", 1j, [1.0], ARRAY, {}, np.datetime64("2020")],
    *[tt.ones((4,)), tt.ones((4, 2)), tt.ones((2, 3), np.float64), tt.ones((2, 3), np.int64)],
]
BAD_AXES = [2, -3, 1.0, "0", [0], (0, 0), (0, 2), (0.5,)]
BAD_AXIS = [2, -3, 1.0, "0", [0], (0,), None]

ON_TENSORS: dict[str, list[tuple[Call, list[Any]]]] = {
    "add": [
        (lambda x, bad: x + bad, OTHER_OPERANDS),
        (lambda x, bad: x + bad, [HUGE]),
        (lambda x, bad: bad + x, [None, "1", 1j, [1.0], ARRAY]),
    ],
    "subtract": [
        (lambda x, bad: x - bad, OTHER_OPERANDS),
        (lambda x, bad: x - bad, [HUGE]),
    ],
    "rsubtract": [(lambda x, bad: bad - x, [None, "1", 1j, [1.0], ARRAY])],
    "multiply": [
        (lambda x, bad: x * bad, OTHER_OPERANDS),
        (lambda x, bad: x * bad, [HUGE]),
        (lambda x, bad: bad * x, [None, 1j, ARRAY]),
    ],
    "divide": [
        (lambda x, bad: x / bad, OTHER_OPERANDS),
        (lambda x, bad: x.astype(np.int64) / bad, [2, tt.ones((2, 3), np.int64)]),
    ],
    "rdivide": [(lambda x, bad: bad / x, [None, "1", 1j, ARRAY])],
    "power": [
        (lambda x, bad: x**bad, OTHER_OPERANDS),
        (lambda x, bad: x.astype(np.int64) ** bad, [2, -1]),
    ],
    "rpower": [(lambda x, bad: bad**x, [None, "1", 1j, ARRAY, 0.0, -2.0, NAN])],
    "matmul": [
        (
            lambda x, bad: x @ bad,
            [*OTHER_OPERANDS, 2.0, tt.ones(()), tt.ones((2, 3)), tt.ones((4, 3, 2), np.float64)],
        ),
        (lambda x, bad: bad @ x, [tt.ones(()), tt.ones((3,)), tt.ones((2, 3))]),
    ],
    "equal": [(lambda x, bad: x == bad, OTHER_OPERANDS)],
    "not_equal": [(lambda x, bad: x != bad, OTHER_OPERANDS)],
    "less": [(lambda x, bad: x < bad, OTHER_OPERANDS)],
    "less_equal": [(lambda x, bad: x <= bad, OTHER_OPERANDS)],
    "greater": [(lambda x, bad: x > bad, OTHER_OPERANDS)],
    "greater_equal": [(lambda x, bad: x >= bad, OTHER_OPERANDS)],
    "and": [(lambda x, bad: (x > 0.0) & bad, [None, 1, True, ARRAY, tt.ones((2, 3))])],
    "or": [(lambda x, bad: (x > 0.0) | bad, [None, 1, True, ARRAY, tt.ones((4,), np.bool_)])],
    "xor": [(lambda x, bad: (x > 0.0) ^ bad, [None, 1, True, ARRAY, tt.ones((2, 3))])],
    "invert": [(lambda x, bad: ~x.astype(bad), [np.float32, np.int64])],
    "sum": [
        (lambda x, bad: x.sum(axis=bad), BAD_AXES),
        (lambda x, bad: x.sum(keepdims=bad), [1, None, "yes"]),
        (lambda x, bad: x.astype(bad).sum(), [np.bool_]),
    ],
    "mean": [
        (lambda x, bad: x.mean(axis=bad), BAD_AXES),
        (lambda x, bad: x.mean(keepdims=bad), [1]),
        (lambda x, bad: x.astype(bad).mean(), [np.int64, np.bool_]),
    ],
    "max": [
        (lambda x, bad: x.max(axis=bad), BAD_AXES),
        (lambda x, bad: x[bad:].max(axis=0), [2]),
    ],
    "min": [
        (lambda x, bad: x.min(axis=bad), BAD_AXES),
        (lambda x, bad: x[:, bad:].min(), [3]),
    ],
    "logsumexp": [
        (lambda x, bad: x.logsumexp(axis=bad), BAD_AXES),
        (lambda x, bad: x.astype(bad).logsumexp(), [np.int64]),
    ],
    "var": [
        (lambda x, bad: x.var(axis=bad), BAD_AXES),
        (lambda x, bad: x.var(correction=bad), [*NOT_NUMBERS, *NOT_FINITE, -1, 6, 7]),
        (lambda x, bad: x.astype(bad).var(), [np.int64]),
    ],
    "std": [
        (lambda x, bad: x.std(axis=bad), BAD_AXES),
        (lambda x, bad: x.std(axis=0, correction=bad), [*NOT_NUMBERS, NAN, -1, 2]),
        (lambda x, bad: x.std(eps=bad), [*NOT_NUMBERS, *NOT_FINITE, -1.0]),
    ],
    "softmax": [
        (lambda x, bad: x.softmax(axis=bad), BAD_AXIS),
        (lambda x, bad: x.astype(bad).softmax(), [np.int64]),
    ],
    "log_softmax": [(lambda x, bad: x.log_softmax(axis=bad), BAD_AXIS)],
    "cumulative_sum": [(lambda x, bad: x.cumulative_sum(axis=bad), BAD_AXIS)],
    "argsort": [
        (lambda x, bad: x.argsort(axis=bad), BAD_AXIS),
        (lambda x, bad: x.argsort(descending=bad), [None, 1, "yes"]),
    ],
    "argmax": [
        (lambda x, bad: x.argmax(axis=bad), BAD_AXIS),
        (lambda x, bad: x[bad:].argmax(axis=0), [2]),
    ],
    "clip": [
        (lambda x, bad: x.clip(bad), ["1", 1j, [1.0], ARRAY, NAN, HUGE]),
        (lambda x, bad: x.clip(high=bad), ["1", NAN, None]),
        (lambda x, bad: x.clip(1.0, bad), [0.5, -INF]),
        (lambda x, bad: x.astype(np.int64).clip(bad), [0.5]),
    ],
    "gelu": [(lambda x, bad: x.gelu(bad), [None, "exact", 1, True])],
    "leaky_relu": [
        (lambda x, bad: x.leaky_relu(bad), [*NOT_NUMBERS, *NOT_FINITE, HUGE]),
        (lambda x, bad: x.astype(bad).leaky_relu(0), [np.int64]),
    ],
    "prelu": [(lambda x, bad: x.prelu(bad), [0.1, *OTHER_OPERANDS])],
    "elu": [(lambda x, bad: x.elu(bad), [*NOT_NUMBERS, *NOT_FINITE, HUGE])],
    "nans_to": [
        (lambda x, bad: x.nans_to(bad), [*NOT_NUMBERS, HUGE]),
        (lambda x, bad: x.astype(bad).nans_to(0.0), [np.int64]),
    ],
    "dropout": [
        (
            lambda x, bad: x.dropout(bad, rng=np.random.default_rng(0)),
            [*NOT_NUMBERS, *NOT_FINITE, -0.1, 1.1],
        ),
        (lambda x, bad: x.dropout(0.5, rng=bad), [None, 0, np.random]),
    ],
    "normalize": [
        (lambda x, bad: x.normalize(axis=bad), BAD_AXIS),
        (lambda x, bad: x.normalize(eps=bad), [*NOT_NUMBERS, *NOT_FINITE, -1.0]),
        (lambda x, bad: x.astype(bad).normalize(), [np.int64]),
    ],
    **{
        name: [(_after_astype(name), [np.int64, np.bool_])]
        for name in (
            *["exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "silu", "softplus"],
            *["reciprocal"],
        )
    },
    **{name: [(_after_astype(name), [np.bool_])] for name in ("square", "relu")},
    "negative": [(lambda x, bad: -x.astype(bad), [np.bool_])],
    "reshape": [
        (
            lambda x, bad: x.reshape(bad),
            [
                *[None, 6, "ab", (4,), (-1, -1), (-2, -3), (4, -1), (2.0, 3), (True, 6)],
                *[(0, -1), (TOO_LARGE,), ((2, 3),)],
            ],
        )
    ],
    "permute_dims": [
        (
            lambda x, bad: x.permute_dims(bad),
            [None, 1, "ab", [1, 0], (0,), (0, 0), (0, 2), (0, 1, 2), (1.0, 0), ()],
        )
    ],
    "transpose": [(lambda x, bad: x[bad].transpose(), [0])],
    "broadcast_to": [
        (
            lambda x, bad: x.broadcast_to(bad),
            [None, 3, "ab", (3,), (3, 3), (2, 3, 1), (2, -1), (2.0, 3), (TOO_LARGE, 2, 3)],
        )
    ],
    "squeeze": [(lambda x, bad: x.squeeze(bad), [*BAD_AXES, None, 0, (0, 1)])],
    "expand_dims": [(lambda x, bad: x.expand_dims(bad), [3, -4, 1.0, "0", None, (0,)])],
    "roll": [
        (lambda x, bad: x.roll(bad, 0), [None, 1.0, "1", (1,)]),
        (lambda x, bad: x.roll(1, bad), BAD_AXIS),
    ],
    "realize": [
        (lambda x, bad: x.realize(bad), [None, 6, (6,), (3, 2), (2, 3, 1), (-1, 3), (2.0, 3)])
    ],
    **{
        name: [
            (_diagonal(name), [None, 1.0, "1"]),
            (_triangle_of_part(name), [0, (0, 0)]),
        ]
        for name in ("tril", "triu")
    },
    "split": [
        (
            lambda x, bad: x.split(bad),
            [None, 0, -1, 3, 1.0, "11", [1], [3, -1], [1, 1, 1], [1.0, 1.0], [True, 1], {1}],
        ),
        (lambda x, bad: x.split(1, bad), BAD_AXIS),
    ],
    "getitem": [
        (
            lambda x, bad: x[bad],
            [
                *[2, -3, 1.0, "0", (0, 0, 0), (2, 0), (..., ...), {0}, 1j, TOO_LARGE],
                *[slice("a", None), slice(0, 2, 0), slice(0.5, None)],
                *[np.array([0, 5]), np.array([0.5]), np.ones((3, 3), bool), np.array(["a"])],
                *[
                    tt.ones((2,)),
                    tt.full((1,), 7, np.int64),
                    tt.ones((4,), np.bool_),
                    [[0], [0, 1]],
                ],
                (tt.arange(2), tt.arange(3)),
            ],
        )
    ],
    "take": [
        (
            lambda x, bad: x.take(bad),
            [
                *[None, 0, [0], np.array([0]), tt.ones((1,)), tt.ones((1,), np.bool_)],
                *[tt.full((1,), 2, np.int64), tt.full((1,), -3, np.int64)],
            ],
        ),
        (lambda x, bad: x.take(tt.arange(1), bad), BAD_AXIS),
    ],
    "take_along_axis": [
        (
            lambda x, bad: x.take_along_axis(bad),
            [
                *[None, 0, [[0]], ARRAY, tt.ones((2, 1)), tt.ones((2, 1), np.bool_)],
                *[tt.full((2, 1), 3, np.int64), tt.full((2, 1), -4, np.int64)],
                *[tt.zeros((2,), np.int64), tt.zeros((3, 1), np.int64)],
            ],
        ),
        (lambda x, bad: x.take_along_axis(tt.zeros((2, 1), np.int64), bad), BAD_AXIS),
    ],
    "astype": [(lambda x, bad: x.astype(bad), BAD_DTYPES)],
    "item": [(lambda x, bad: x[bad].item(), [slice(None), 0, slice(0, 0)])],
    "trace": [(lambda x, bad: x.detach().trace(bad), [1, {}, tt.ones((1,)), tt.Gradients])],
    "traced": [(lambda x, bad: x.traced(bad), [1])],
    "put_tape": [(lambda x, bad: x.put_tape(bad), [None, 1, tt.OwnedTape, tt.Gradients()])],
    "retaped": [(lambda x, bad: x.retaped(bad), [None, 1, "OwnedTape", tt.NoneTape(), int])],
    "backward": [
        (
            lambda x, bad: x.backward(bad),
            [None, 1.0, ARRAY, tt.ones((3,)), tt.ones((2, 3), np.int64)],
        ),
        (lambda x, bad: x.backward(tt.ones((2, 3)), wrt=bad), [1, "w", [None], [[tt.ones(())]]]),
    ],
    "concat": [
        (
            lambda x, bad: api.concat(bad),
            [
                None,
                1,
                "ab",
                (),
                [],
                {},
                (1,),
                (tt.ones((2,)), ARRAY),
                (tt.ones(()),),
                tt.ones((2,)),
            ],
        ),
        (
            lambda x, bad: api.concat((x, bad)),
            [None, ARRAY, tt.ones((2, 2)), tt.ones((3,)), tt.ones((2, 3), np.float64)],
        ),
        (lambda x, bad: api.concat((x, tt.ones((2, 3))), bad), BAD_AXIS),
    ],
    "stack": [
        (lambda x, bad: api.stack(bad), [None, 1, "ab", (), {}, (ARRAY,)]),
        (
            lambda x, bad: api.stack((x, bad)),
            [None, ARRAY, tt.ones((2, 2)), tt.ones(()), tt.ones((2, 3), np.float64)],
        ),
        (lambda x, bad: api.stack((x,), bad), [3, -4, 1.0, "0", None]),
    ],
    "where": [
        (lambda x, bad: api.where(bad, x, 0.0), [None, True, ARRAY > 0, tt.ones((2, 3))]),
        (
            lambda x, bad: api.where(x > 0.0, x, bad),
            [None, "1", 1j, ARRAY, tt.ones((4,)), tt.ones((2, 3), np.float64), HUGE],
        ),
        (lambda x, bad: api.where(x > 0.0, bad, 1.0), [1.0, None]),
        (lambda x, bad: api.where(x > 0.0, x.astype(np.int64), bad), [0.5, NAN]),
    ],
    "maximum": [
        (lambda x, bad: api.maximum(x, bad), OTHER_OPERANDS),
        (lambda x, bad: api.maximum(bad, x), [None, 1.0, ARRAY]),
    ],
    "minimum": [(lambda x, bad: api.minimum(x, bad), [*OTHER_OPERANDS, HUGE])],
    "to": [(lambda x, bad: x.to(bad), [None, 1.0, "cupy", ARRAY])],
    "to_html": [(lambda x, bad: x.detach().trace().to_html(names=bad), [1.0, "x", {"x": 1.0}])],
    "tree": [(lambda x, bad: x.detach().trace().tree(names=bad), [1.0, "x", {"x": 1.0}])],
    "custom_op": [(lambda x, bad: api.custom_op(bad, x, shape=(2, 3)), [None, 1, "exp"])],
    "ssm_scan": [
        (lambda x, bad: api.ssm_scan(x, bad, x.detach()), OTHER_OPERANDS),
        (lambda x, bad: api.ssm_scan(x, x.detach(), bad), OTHER_OPERANDS),
        (lambda x, bad: api.ssm_scan(bad, x, x.detach()), [None, 1.0, ARRAY]),
    ],
    "scaled_dot_product_attention": [
        (
            lambda x, bad: api.scaled_dot_product_attention(x, bad, bad),
            [*OTHER_OPERANDS, 1.0, tt.ones((1, 2, 3))],
        ),
        (
            lambda x, bad: api.scaled_dot_product_attention(x, x.detach(), x.detach(), mask=bad),
            [True, ARRAY > 0, tt.ones((2, 2)), tt.ones((3, 2), np.bool_)],
        ),
        (
            lambda x, bad: api.scaled_dot_product_attention(x, x.detach(), x.detach(), causal=bad),
            [None, 1],
        ),
        (
            lambda x, bad: api.scaled_dot_product_attention(x, x.detach(), x.detach(), scale=bad),
            [*["1", 1j, [1.0], ARRAY], *NOT_FINITE, HUGE],
        ),
    ],
    "einsum": [
        (
            lambda x, bad: api.einsum(bad, x),
            [
                *[None, 1, "i", "ijk", "ij,jk", "ij->k", "ij->ii", "i j k", "i1->i", "ij->i->j"],
                *["ij->ij,", "...->...i", "ii", "", "->", "i...j...", "é"],
            ],
        ),
        (
            lambda x, bad: api.einsum("ij,jk->ik", x, bad),
            [None, ARRAY, tt.ones((2, 2)), tt.ones((3,)), tt.ones((3, 2), np.float64)],
        ),
    ],
}
