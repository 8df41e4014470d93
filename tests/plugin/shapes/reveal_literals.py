"""Bare ints keep their size, also through variables without an annotation."""

from __future__ import annotations

import warnings
from typing import Any, Final, Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor3D, nn
from tapetensor.typing import B, M, N, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
FEATURES: Final = 3

x = tt.zeros((5, 3))
check(assert_type(x, Tensor2D[L[5], L[3]]), (5, 3))
check(
    assert_type(tt.zeros((5, FEATURES), np.float64), Tensor2D[L[5], L[3], NoneTape, np.float64]),
    (5, 3),
)
y = tt.full((3,), 2.0)
check(assert_type(x + y, Tensor2D[L[5], L[3]]), (5, 3))
normal = tt.normal((2, 5), rng=rng)
check(assert_type(normal @ x, Tensor2D[L[2], L[3]]), (2, 3))
uniform = tt.uniform((4,), np.float64, rng=rng)
check(assert_type(uniform, Tensor1D[L[4], NoneTape, np.float64]), (4,))
counted = tt.arange(7)
check(assert_type(counted, Tensor1D[L[7], NoneTape, np.int64]), (7,))
identity = tt.eye(3)
check(assert_type(x @ identity, Tensor2D[L[5], L[3]]), (5, 3))
data = tt.from_numpy([[1.0, 2.0]], (1, 2))
check(assert_type(data, Tensor2D[L[1], L[2]]), (1, 2))
array = tt.from_numpy(np.ones((2, 3)), shape=(2, 3))
check(assert_type(array, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
untyped: Any = np.ones((2, 3))
loaded = tt.from_numpy(untyped, (2, 3))
check(assert_type(loaded, Tensor2D[L[2], L[3], NoneTape, Any]), (2, 3))
# numpy's types say of it that it holds floats, and not which.
some_floats = tt.from_numpy(np.cumprod(np.ones(3)), (3,))
check(assert_type(some_floats, Tensor1D[L[3], NoneTape, Any]), (3,))
doubles: Tensor1D[L[3], NoneTape, np.float64] = tt.from_numpy(np.cumprod(np.ones(3)), (3,))
converted = tt.from_numpy(untyped, (2, 3), np.float32)
check(assert_type(converted, Tensor2D[L[2], L[3]]), (2, 3))
listed_sizes = tt.zeros([2, 3])
check(assert_type(listed_sizes, Tensor2D[L[2], L[3]]), (2, 3))
named_dtype: Any = "float64"
open_dtype = tt.ones([2, 3]).astype(named_dtype)
check(assert_type(open_dtype, Tensor2D[L[2], L[3], NoneTape, Any]), (2, 3))
gathered = tt.from_array(np.ones((2, 3)), (2, 3))
check(assert_type(gathered, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))

# What is asked for goes first.
wide: Tensor2D[int, int] = tt.zeros((5, 3))
check(assert_type(wide, Tensor2D[int, int]), (5, 3))
unsized: Tensor2D[int, int, NoneTape, np.float64] = tt.from_numpy(untyped, (2, 3))
check(assert_type(unsized, Tensor2D[int, int, NoneTape, np.float64]), (2, 3))
dynamic: Tensor2D[Any, L[3]] = tt.zeros((5, 3))
check(assert_type(dynamic, Tensor2D[Any, L[3]]), (5, 3))
layers: list[nn.Linear[int, int]] = [nn.Linear(3, 4, rng=rng), nn.Linear(4, 2, rng=rng)]
one: nn.Linear[int, int] = nn.Linear(3, 4, rng=rng)
some = tt.zeros((3,)) if x.ndim == 2 else tt.zeros((4,))
check(some.sum(axis=0), ())

# Items of one display may have different sizes.
listed = [tt.zeros((3,)), tt.zeros((4,))]
named = {"a": tt.zeros((3,)), "b": tt.zeros((4,))}
loads = [tt.from_numpy(untyped, (2, 3)), tt.from_numpy(untyped, shape=(2, 3))]
check(assert_type(loads[0], Tensor2D[int, int, NoneTape, Any]), (2, 3))
pairs = [(tt.zeros((3,)), 0), (tt.zeros((4,)), 1)]
check(listed[0].sum(axis=0), ())
check(named["b"].sum(axis=0), ())
check(pairs[1][0].sum(axis=0), ())
stacked = [nn.Linear(3, 4, rng=rng), nn.Linear(5, 4, rng=rng)]
assert stacked[0].out_features == 4

# A computed size is open, as before.
rows: int = sum((2, 3))
check(assert_type(tt.zeros((rows, 3)), Tensor2D[int, L[3]]), (5, 3))

# Layers.
layer = nn.Linear(3, 4, rng=rng)
check(assert_type(layer.forward(x), Tensor2D[L[5], L[4]]), (5, 4))
assert_type(layer, nn.Linear[L[3], L[4]])
assert_type(nn.Linear(3, 3, np.float64, rng=rng), nn.Linear[L[3], L[3], np.float64])
norm = nn.LayerNorm(4)
check(assert_type(norm.forward(layer.forward(x.trace())).detach(), Tensor2D[L[5], L[4]]), (5, 4))
table = nn.Embedding(10, 4, rng=rng)
check(assert_type(table.forward(counted), Tensor2D[L[7], L[4]]), (7, 4))


class Mlp(nn.Module):
    hidden: nn.Linear[L[3], L[8]]
    out: nn.Linear[L[8], L[2]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).relu())


class Block(nn.Module, Generic[M]):
    inner: nn.Linear[M, M]

    def forward(self, x: Tensor2D[B, M, T]) -> Tensor2D[B, M, T]:
        return self.inner.forward(x)


mlp = Mlp(hidden=nn.Linear(3, 8, rng=rng), out=nn.Linear(8, 2, rng=rng))
check(assert_type(mlp.forward(x), Tensor2D[L[5], L[2]]), (5, 2))
assert_type(Block(inner=nn.Linear(3, 3, rng=rng)), Block[L[3]])


# Functions of the user's.
def made(size: N) -> Tensor1D[N]:
    return tt.zeros((size,))


def repeated(x: Tensor1D[N], size: N) -> Tensor2D[N, N]:
    return x.broadcast_to((size, size))


def grid(rows: M, columns: N) -> Tensor2D[M, N]:
    return tt.zeros((rows, columns))


def takes_ints(x: Tensor3D[int, int, int]) -> None: ...


def same(lhs: Tensor1D[N], rhs: Tensor1D[N]) -> Tensor1D[N]:
    return lhs + rhs


of_six = made(6)
check(assert_type(of_six, Tensor1D[L[6]]), (6,))
check(assert_type(repeated(of_six, 6), Tensor2D[L[6], L[6]]), (6, 6))
six_by_two = grid(6, 2)
check(assert_type(six_by_two, Tensor2D[L[6], L[2]]), (6, 2))
takes_ints(tt.zeros((2, 3, 4)))
known = tt.zeros((2, 3, 4))
takes_ints(known)
open_cotangent = tt.zeros((rows,)).trace().backward(tt.zeros((5,)))
check(same(made(2), tt.zeros((2,))), (2,))
open_size: Tensor1D[int] = tt.zeros((rows,))
check(repeated(open_size, 5), (5, 5))


# Arrays that are written down have to have the shape that is asked for; others may.
def arrays(size: int, row: list[float], more: bool) -> None:
    tt.from_numpy([[1.0, -2], [3, size]], (2, 2))
    tt.from_numpy([row, row], (2, 3))
    tt.from_numpy([*row, 1.0], (4,))
    tt.from_numpy(np.zeros((size, 3)), (2, 3))
    resized = np.zeros((2, 3))
    resized.resize((3, 2))
    tt.from_numpy(resized, (3, 2))
    reshaped = np.zeros((2, 3))
    if more:
        with warnings.catch_warnings():
            # numpy 2.5 warns of it.
            warnings.simplefilter("ignore", DeprecationWarning)
            reshaped.shape = (3, 2)
    tt.from_numpy(reshaped, (3, 2))
    either = np.zeros((2, 3)) if more else np.zeros((3, 2))
    tt.from_numpy(either, (2, 3))
    grown = [1.0]
    grown.append(2.0)
    tt.from_numpy(grown, (2,))
    print(f"{x} {x!r:>9} {x.mean():.2f} {x.mean():.{size}f}")


arrays(2, [1.0, 2.0, 3.0], more=True)
