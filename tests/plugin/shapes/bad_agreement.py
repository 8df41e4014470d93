"""One name of a signature, two sizes: a name of the caller beside a number. Every thunk raises.

Without the plugin mypy takes the two for one `Any`: in one run, and not in the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor4D, nn
from tapetensor.typing import B, K, M, N, T
from tests.typing.operands import m, m77


def project(x: Tensor2D[B, N, T], weight: Tensor2D[N, K]) -> Tensor2D[B, K, T]:
    return x @ weight


def through(layer: nn.Linear[N, K], x: Tensor2D[B, N, T]) -> Tensor2D[B, K, T]:
    return layer.forward(x)


class Projector:
    def project(self, x: Tensor2D[B, N, T], weight: Tensor2D[N, K]) -> Tensor2D[B, K, T]:
        return x @ weight


def by_function(x: Tensor2D[B, M], w: Tensor2D[L[7], K]) -> object:
    return project(x, w)  # E: Argument 2 to "project" has incompatible type


def by_method(x: Tensor2D[B, M], w: Tensor2D[L[7], K]) -> object:
    return Projector().project(x, w)  # E: Argument 2 to "project" of "Projector" has incompatible


def by_layer(x: Tensor2D[B, M], layer: nn.Linear[L[7], K]) -> object:
    return through(layer, x)  # E: Argument 2 to "through" has incompatible type


def paired(x: Tensor2D[B, N], y: Tensor2D[B, N]) -> Tensor2D[B, N]:
    return x * y


def whole(x: Tensor2D[B, N]) -> Tensor2D[B, N]:
    return x


def by_argument(x: Tensor2D[B, M], y: Tensor2D[B, K]) -> object:
    return whole(paired(x, y))  # E: Argument 2 to "paired" has incompatible type


def by_outer(x: Tensor2D[B, M], y: Tensor2D[B, K]) -> object:
    return paired(paired(x, x), y)  # E: Argument 2 to "paired" has incompatible


def by_both(x: Tensor2D[B, M], y: Tensor2D[B, K]) -> Tensor2D[B, M]:
    return paired(paired(x, y), x)  # E: Argument 2 to "paired" has incompatible


def by_second(x: Tensor2D[B, M], y: Tensor2D[B, K]) -> Tensor2D[B, M]:
    return paired(x, paired(y, y))  # E: Argument 2 to "paired" has incompatible


def by_keyword(x: Tensor2D[B, M], y: Tensor2D[B, K]) -> Tensor2D[B, M]:
    return paired(y=paired(y, y), x=paired(x, x))  # E: Argument "y" to "paired" has


def by_number(layer: nn.Linear[L[7], K], x: Tensor2D[B, L[8]]) -> object:
    return layer.forward(x.relu())  # E: Linear: the last axis of the input must have size 7


def in_a_loop(x: Tensor2D[B, L[3]], layer: nn.Linear[L[3], L[2]]) -> object:
    for _ in range(2):
        x = layer.forward(x)  # E: Incompatible types in assignment
    return x


def column(x: Tensor2D[B, L[3]], layer: nn.Linear[L[3], L[1]]) -> Tensor1D[B]:
    return layer.forward(x)  # E: got ... tuple[B, Literal[1]] ... expected ... tuple[B],


class Image(nn.Module):
    conv: nn.Conv2d[L[1], L[3], L[1]]

    def forward(self, x: Tensor4D[B, L[1], M, N, T]) -> Tensor4D[B, L[3], M, N, T]:
        return self.conv.forward(x)


def by_rank(model: Image, x: Tensor2D[B, M]) -> float:
    # E: Argument 1 to "forward" of "Image" ... expected ... tuple[B, Literal[1], M, N]
    y = model.forward(x)
    return float(y.mean().item())


def halves(x: Tensor2D[B, L[4], T]) -> tuple[Tensor2D[B, L[2], T], Tensor2D[B, L[2], T]]:
    left, right = x.split(2, axis=-1)
    return left, right


def by_both_halves(x: Tensor2D[B, L[3]]) -> object:
    left, right = halves(x.relu())  # E: Argument 1 to "halves" has incompatible type
    return left + right


BAD: tuple[Callable[[], object], ...] = (
    lambda: tt.losses.mse(column(m, nn.Linear(3, 1, rng=np.random.default_rng(0))), tt.ones((2,))),
    lambda: by_function(m, m77),
    lambda: by_method(m, m77),
    lambda: by_layer(m, nn.Linear(7, 2, rng=np.random.default_rng(0))),
    lambda: by_argument(m, tt.ones((2, 7))),
    lambda: by_outer(m, tt.ones((2, 7))),
    lambda: in_a_loop(m, nn.Linear(3, 2, rng=np.random.default_rng(0))),
    lambda: by_both(m, tt.ones((2, 7))),
    lambda: by_second(m, tt.ones((2, 7))),
    lambda: by_keyword(m, tt.ones((2, 7))),
    lambda: by_number(nn.Linear(7, 2, rng=np.random.default_rng(0)), tt.ones((2, 8))),
    lambda: by_both_halves(m),
    lambda: by_rank(tt.build(Image, rng=np.random.default_rng(0)), m),
    lambda: whole(paired(m, tt.ones((2, 7)))),  # E: Argument 2 to "paired" has incompatible type
)
