"""Dims that are computed from others: inferred, declared, and compared by algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, Union
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor.typing import Add, B, Div, K, M, Mul, N, P, Sub, T
from tests.typing.check import assert_type, check


# (B, T, C) to (B, T, H, C // H) and back: names and types say the same.
def heads(x: Tensor3D[B, M, K, T], count: N) -> Tensor4D[B, M, N, Div[K, N], T]:
    batch, time, channels = x.shape
    return x.reshape((batch, time, count, channels // count))


def worked_out(x: Tensor3D[B, M, K, T], count: N) -> Tensor4D[B, M, N, Div[K, N], T]:
    batch, time, _ = x.shape
    return x.reshape((batch, time, count, -1))


def merged(x: Tensor4D[B, M, N, Div[K, N], T]) -> Tensor3D[B, M, K, T]:
    batch, time, count, width = x.shape
    return x.reshape((batch, time, count * width))


def there_and_back(x: Tensor3D[B, M, K, T], count: N) -> Tensor3D[B, M, K, T]:
    return merged(heads(x, count))


def joined_heads(x: Tensor4D[B, M, N, K, T]) -> Tensor3D[B, M, Mul[K, N], T]:
    batch, time, count, width = x.shape
    features = count * width
    same = width * count
    once = x.with_empty_tape().reshape((batch, time, features))
    assert_type(once, Tensor3D[B, M, Mul[N, K], T])
    return x.reshape((batch, time, same)) + once


X = TypeVar("X")
R = TypeVar("R")
eight = tt.zeros((2, 5, 8))
four: L[4] = 4
check(assert_type(heads(eight, four), Tensor4D[L[2], L[5], L[4], L[2]]), (2, 5, 4, 2))
check(assert_type(heads(eight, 4), Tensor4D[L[2], L[5], L[4], L[2]]), (2, 5, 4, 2))
check(assert_type(worked_out(eight, four), Tensor4D[L[2], L[5], L[4], L[2]]), (2, 5, 4, 2))
check(assert_type(merged(heads(eight, four)), Tensor3D[L[2], L[5], L[8]]), (2, 5, 8))
check(assert_type(there_and_back(eight, 2), Tensor3D[L[2], L[5], L[8]]), (2, 5, 8))
check(assert_type(joined_heads(heads(eight, 4)), Tensor3D[L[2], L[5], L[8]]), (2, 5, 8))


def twice(x: Tensor1D[N]) -> Tensor1D[Mul[N, L[2]]]:
    return tt.concat([x, x])


short = tt.zeros((4,))
# It is taken for a fitting one, also where a size is asked for.
mapped: Tensor1D[L[8]] = next(map(twice, [short]))
mapped = next(map(twice, [short]), mapped)
for one in map(twice, (short, short)):
    check(one, (8,))
listed: list[Tensor1D[L[8]]] = [*map(twice, [short])]
check(listed[0], (8,))


# Sums, differences, multiples; nested, and with literals in them.
def chained(x: Tensor2D[M, B], y: Tensor2D[N, B]) -> Tensor2D[Add[N, M], B]:
    return tt.concat((x, y))


def padded(x: Tensor1D[N], width: M) -> Tensor1D[Add[N, Mul[M, L[2]]]]:
    ends = tt.zeros((width,))
    return tt.concat((ends, x, ends))


def doubled(x: Tensor1D[N, T]) -> Tensor1D[Mul[L[2], N], T]:
    return tt.concat((x, x.with_empty_tape()))


def flat(x: Tensor3D[B, M, N, T]) -> Tensor1D[Mul[N, Mul[M, B]], T]:
    return x.flatten()


def halves(x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
    first, second = x.split(2, axis=-1)
    assert_type(first, Tensor2D[B, Div[N, L[2]], T])
    return tt.concat((second, first), axis=-1)


def odd(x: Tensor1D[Add[Mul[N, L[2]], L[1]]], half: N) -> Tensor1D[Add[N, Add[L[1], N]]]:
    size = 2 * half + 1
    return x.reshape((size,))


def without_last(x: Tensor1D[Sub[N, Sub[M, L[1]]]], y: Tensor1D[Add[L[1], Sub[N, M]]]) -> object:
    return assert_type(x + y, Tensor1D[Add[Sub[N, M], L[1]]])


check(assert_type(chained(tt.zeros((2, 3)), tt.zeros((4, 3))), Tensor2D[L[6], L[3]]), (6, 3))
check(assert_type(padded(tt.zeros((3,)), 2), Tensor1D[L[7]]), (7,))
check(assert_type(doubled(tt.zeros((3,))), Tensor1D[L[6]]), (6,))
check(assert_type(flat(eight), Tensor1D[L[80]]), (80,))
check(assert_type(halves(tt.zeros((3, 4))), Tensor2D[L[3], L[4]]), (3, 4))
check(assert_type(odd(tt.zeros((7,)), 3), Tensor1D[L[7]]), (7,))


# A dim that stands in a computed one alone is solved for.
def rows_of_two(x: Tensor1D[Mul[N, L[2]], T]) -> Tensor2D[N, L[2], T]:
    return x.reshape((-1, 2))


def grid(x: Tensor1D[Mul[M, N]], rows: M) -> Tensor2D[M, N]:
    return x.reshape((rows, -1))


check(assert_type(rows_of_two(tt.zeros((10,))), Tensor2D[L[5], L[2]]), (5, 2))
check(assert_type(grid(tt.zeros((12,)), 3), Tensor2D[L[3], L[4]]), (3, 4))


# Sizes that are made, from names that are assigned once.
def made(x: Tensor2D[B, N]) -> Tensor2D[B, Mul[N, N]]:
    batch, size = x.shape
    square = size * size
    return assert_type(tt.zeros((batch, square)), Tensor2D[B, Mul[N, N]])


def assigned_twice(x: Tensor2D[B, N], more: bool) -> Tensor2D[B, Any]:
    batch, size = x.shape
    square = size * size
    if more:
        square = square + 1
    return assert_type(tt.zeros((batch, square)), Tensor2D[B, int])


check(made(tt.zeros((2, 3))), (2, 9))
check(assigned_twice(tt.zeros((2, 3)), more=True), (2, 10))

# Aliases of computed dims, and names that the caller means otherwise.
Wide: TypeAlias = Tensor2D[B, Mul[N, K]]


def widened(x: Wide[B, N, K], n: N) -> Wide[B, K, N]:
    return assert_type(x, Tensor2D[B, Mul[K, N]])


def passed_on(x: Tensor2D[N, Mul[B, K]], b: B) -> Wide[N, B, K]:
    return widened(x, b)


def itself(x: Tensor1D[Mul[M, N]], m: M, n: N) -> Tensor1D[Mul[N, M]]:
    return x if m == 2 else itself(x, n, m)


check(assert_type(widened(tt.zeros((2, 12)), 3), Tensor2D[L[2], L[12]]), (2, 12))
check(passed_on(tt.zeros((2, 12)), 3), (2, 12))
check(itself(tt.zeros((6,)), 3, 2), (6,))


# Classes: fields, methods, functions that are passed.
class Heads(nn.Module, Generic[N, K]):
    projection: nn.Linear[Mul[N, K], L[3]]

    def forward(self, x: Tensor3D[B, N, K, T]) -> Tensor2D[B, L[3], T]:
        batch, count, width = x.shape
        return self.projection.forward(x.reshape((batch, count * width)))


rng = np.random.default_rng(0)
model = tt.build(Heads[L[2], L[4]], rng=rng)
assert_type(model.projection, nn.Linear[L[8], L[3]])
check(assert_type(model(tt.zeros((5, 2, 4))), Tensor2D[L[5], L[3]]), (5, 3))


def given(function: Callable[[X], R], x: X) -> R:
    return function(x)


def kept(x: X) -> X:
    return x


def applied(function: Callable[[Tensor1D[L[3]]], Tensor1D[L[6]]]) -> Tensor1D[L[6]]:
    return function(tt.zeros((3,)))


check(applied(doubled), (6,))
bound = partial(doubled)
check(assert_type(bound(tt.zeros((3,))), Tensor1D[L[6]]), (6,))
check(next(map(doubled, [tt.zeros((3,))])) + tt.zeros((6,)), (6,))
check(kept(given(doubled, tt.zeros((3,)))), (6,))
several = [doubled, doubled]
check(assert_type(several[0](tt.zeros((3,))), Tensor1D[L[6]]), (6,))


# What is open stays open, and is never an error.
def open_dim(x: Tensor1D[Mul[N, Any]], n: int, y: Tensor1D[Any]) -> Tensor1D[Mul[N, K]]:
    assert_type(x, Tensor1D[Any])
    rows_of_two(y)
    rows_of_two(tt.zeros((n,)))
    return tt.zeros((n,))


def other_products(x: Tensor2D[M, N], rows: P) -> Tensor2D[P, Div[Mul[M, N], P]]:
    return x.reshape((rows, -1))


# Not even the rank is known, so mypy cannot tell what N is.
unknown = tt.from_numpy(np.zeros(6, np.float32))
check(assert_type(doubled(unknown), Tensor1D[Any]), (12,))
untyped: Any = tt.zeros((6,))
check(assert_type(rows_of_two(untyped), Tensor2D[Any, L[2], Any]), (3, 2))
check(other_products(tt.zeros((2, 6)), 4), (4, 3))
numbers: Tensor1D[int, NoneTape] = doubled(tt.zeros((3,)))
check(numbers, (6,))

# A parameter beside them may have a type that contains itself.
Nested: TypeAlias = int | Sequence["Nested"]
Chain: TypeAlias = tuple[int, Union["Chain", None]]


def beside_nested(x: Tensor1D[Mul[M, N]], n: N, nested: Nested, chain: Chain) -> Tensor2D[M, N]:
    assert nested
    assert chain
    return x.reshape((-1, n))


def with_chain(six: Tensor1D[L[6]], columns: L[3], chain: Chain) -> Tensor2D[L[2], L[3]]:
    return assert_type(beside_nested(six, columns, [1, [2]], chain), Tensor2D[L[2], L[3]])


check(with_chain(tt.zeros((6,)), 3, (1, (2, None))), (2, 3))
