"""How many items a list has that is built in plain sight, and what `stack` makes of it."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, nn
from tapetensor.typing import B, K, M, Mul, N, Sub
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)


def appended(x: Tensor2D[B, N], count: M) -> Tensor3D[B, M, N]:
    rows = []
    for _ in range(count):
        rows.append(x)  # noqa: PERF401 - what is tested
    return assert_type(tt.stack(rows, axis=1), Tensor3D[B, M, N])


def declared(x: Tensor2D[B, N], count: M) -> Tensor2D[Mul[B, M], N]:
    rows: list[Tensor2D[B, N]] = []
    for _ in range(1, count):
        rows.append(x if len(rows) == 0 else rows[-1])
    rows.append(x)
    return assert_type(tt.concat(rows), Tensor2D[Mul[B, M], N])


def begun(x: Tensor2D[B, N], pair: tuple[nn.Linear[N, N], nn.Linear[N, N]]) -> None:
    rows = [x]
    for one, other in zip(pair, pair, strict=True):
        rows.append(one.forward(x))
        rows.append(other.forward(x))
    check(assert_type(tt.stack(rows, axis=1), Tensor3D[B, L[5], N]), (2, 5, 3))
    made = [layer.forward(x) for layer in pair]
    check(assert_type(tt.stack(made), Tensor3D[L[2], B, N]), (2, 2, 3))
    check(assert_type(tt.stack([row for row in x]), Tensor2D[B, N]), (2, 3))  # noqa: C416
    fewer = [x for _, _ in enumerate(range(1, x.shape[1]))]
    check(assert_type(tt.stack(fewer), Tensor3D[Sub[N, L[1]], B, N]), (2, 2, 3))


def of_its_own(x: Tensor2D[B, K], count: M) -> Tensor3D[B, N, K]:
    """It has a name of its own for what it returns, which no computed size would fit."""
    rows = [x for _ in range(count)]
    return assert_type(tt.stack(rows, axis=1), Tensor3D[B, Any, K])


def unknown(x: Tensor2D[B, N], count: int) -> None:
    """Nobody knows how many items these have."""
    some = [x]
    for index in range(4):
        if index > count:
            some.append(x)  # noqa: PERF401 - what is tested
    check(assert_type(tt.stack(some), Tensor3D[Any, B, N]), (2, 2, 3))
    stopped = []
    for index in range(4):
        stopped.append(x)
        if index > count:
            break
    check(assert_type(tt.stack(stopped), Tensor3D[Any, B, N]), (4, 2, 3))
    inner = []
    for _ in range(1):
        inner.append(x)
        check(assert_type(tt.stack(inner), Tensor3D[Any, B, N]), (1, 2, 3))
    own = [x]
    other = own
    other.append(x)
    check(assert_type(tt.stack(own), Tensor3D[Any, B, N]), (2, 2, 3))
    longer = [x]
    longer.extend([x, x])
    check(assert_type(tt.stack(longer), Tensor3D[Any, B, N]), (3, 2, 3))
    shorter = [x, x]
    del shorter[0]
    check(assert_type(tt.stack(shorter), Tensor3D[Any, B, N]), (1, 2, 3))
    chosen = [x for index in range(4) if index > count]
    check(assert_type(tt.stack(chosen), Tensor3D[Any, B, N]), (1, 2, 3))
    counted = [x for _ in range(count)]
    check(assert_type(tt.stack(counted), Tensor3D[Any, B, N]), (2, 2, 3))


m = tt.ones((2, 3))
check(assert_type(appended(m, 4), Tensor3D[L[2], L[4], L[3]]), (2, 4, 3))
check(assert_type(declared(m, 4), Tensor2D[L[8], L[3]]), (8, 3))
begun(m, (nn.Linear(3, 3, rng=rng), nn.Linear(3, 3, rng=rng)))
check(of_its_own(m, 4), (2, 4, 3))
unknown(m, 2)
