"""`Sequential` is typed from end to end, and the first pair that does not fit is named."""

from __future__ import annotations

from typing import Any, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D, nn
from tapetensor.typing import B, M, N, S, T
from tests.typing.check import assert_type, check

Batch = NewType("Batch", int)
Hidden = nn.Sequential[nn.Linear[L[6], L[4]], nn.ReLU]
rng = np.random.default_rng(0)
images: Tensor2D[Batch, L[6]] = tt.ones((Batch(5), 6))
doubles: Tensor2D[Batch, L[6], NoneTape, np.float64] = tt.ones((Batch(5), 6), np.float64)
first: nn.Linear[L[6], L[4]] = nn.Linear(6, 4, rng=rng)
last: nn.Linear[L[4], L[2]] = nn.Linear(4, 2, rng=rng)
short: nn.Linear[L[3], L[2]] = nn.Linear(3, 2, rng=rng)
wide: nn.Linear[L[4], L[2], np.float64] = nn.Linear(4, 2, np.float64, rng=rng)


class Flat(nn.Module):
    def forward(self, x: Tensor3D[B, N, L[1], T]) -> Tensor2D[B, N, T]:
        return x.squeeze(-1)


class Net(nn.Module):
    body: nn.Sequential[nn.Linear[L[6], L[4]], nn.GELU, nn.Linear[L[4], L[2]]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[2], T]:
        return self.body(x)


class Backbone(nn.Sequential[nn.Linear[L[6], L[4]], nn.ReLU]):
    pass


class NoForward(nn.Module):  # type: ignore[module-no-forward]  # what is tried below
    act: nn.ReLU


built = tt.build(nn.Sequential[nn.Linear[L[6], L[4]], nn.ReLU, nn.Linear[L[4], L[2]]], rng=rng)
check(assert_type(built.forward(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(built(images.trace()), Tensor2D[Batch, L[2], OwnedTape]), (5, 2))
check(assert_type(nn.Sequential(first, last)(images[0]), Tensor1D[L[2]]), (2,))
check(assert_type(nn.Sequential(nn.ReLU())(images), Tensor2D[Batch, L[6]]), (5, 6))
nested = nn.Sequential(nn.Sequential(first, nn.Tanh()), nn.Sequential(nn.LayerNorm(4), last))
check(assert_type(nested(images), Tensor2D[Batch, L[2]]), (5, 2))
nine = nn.Sequential(first, *(nn.ReLU(), nn.ReLU()), nn.ReLU(), nn.ReLU(), nn.Tanh(), last)
check(assert_type(nine(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(tt.build(Hidden, rng=rng)(images), Tensor2D[Batch, L[4]]), (5, 4))
check(assert_type(tt.build(Net, rng=rng)(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(tt.build(Backbone, rng=rng)(images), Tensor2D[Batch, L[4]]), (5, 4))
check(assert_type(nn.Sequential(Flat())(images.expand_dims(-1)), Tensor2D[Batch, L[6]]), (5, 6))
embedded = nn.Sequential(tt.build(nn.Embedding[L[9], L[6]], rng=rng), first)
ids: Tensor1D[Batch, NoneTape, np.int64] = tt.zeros((Batch(5),), np.int64)
check(assert_type(embedded(ids), Tensor2D[Batch, L[4]]), (5, 4))
# What is expected of the output says nothing about the layers before.
expected: Tensor2D[Batch, L[2]] = nn.Sequential(first, nn.LayerNorm(4), nn.GELU(), last)(images)
check(expected, (5, 2))
bare = nn.Sequential(nn.Linear(6, 4, rng=rng), nn.ReLU(), nn.Linear(4, 2, rng=rng))
check(assert_type(bare(images), Tensor2D[Batch, L[2]]), (5, 2))

# What is not known is not held against anybody.
width: int = sum((2, 2))
computed = nn.Sequential(nn.Linear(6, width, rng=rng), nn.ReLU(), nn.Linear(width, 2, rng=rng))
check(computed(images), (5, 2))
several: list[nn.Module] = [first, last]
check(nn.Sequential(*several)(images), (5, 2))
anything: Any = last
check(nn.Sequential(first, anything)(images), (5, 2))
unknown: Any = images
nn.Sequential(first, last)(unknown)
batch: Tensor2D[Any, Any] = images
check(nn.Sequential(first, last)(batch), (5, 2))


def wrong_layers() -> None:
    # E: Sequential: layers 1 and 2 do not fit: ReLU gives (Batch, 4), Linear[3, 2] takes (..., 3)
    # E: Linear[3, 2] takes (..., 3)  [shape-mismatch]
    nn.Sequential(first, nn.ReLU(), short)(images)
    # E: layers 0 and 1 do not fit: Linear[6, 4] gives (Batch, 4), Linear[3, 2] takes (..., 3)
    nn.Sequential(first, short)(images)
    nn.Sequential(first, short, short).forward(images.trace())  # E: layers 0 and 1 do not fit
    # E: layer 0 does not fit the input: the input is (6, Batch), Linear[6, 4] takes (..., 6)
    nn.Sequential(first, last)(images.transpose())
    # E: Linear[6, 4] gives (Batch, 4) float32, Linear[4, 2, float64] takes (..., 4) float64
    nn.Sequential(first, wide)(images)
    # E: the input is (Batch, 6) float64, Linear[6, 4] takes (..., 6) float32
    nn.Sequential(first)(doubles)
    nn.Sequential(first)(images.astype(np.float64))  # E: the input is (Batch, 6) float64, Linear
    nn.Sequential(Flat())(images)  # E: the input is (Batch, 6), Flat takes (B, N, 1)
    # E: layers 0 and 1 do not fit
    nn.Sequential(nn.Sequential(first), nn.Sequential(nn.ReLU(), short))(images)
    tt.build(Net, rng=rng).body(images.transpose())  # E: layer 0 does not fit the input


def wrong_output() -> None:
    output: Tensor2D[Batch, L[3]] = nn.Sequential(first, nn.GELU(), last)(images)  # E: Incompatible
    bare(output)  # E: layer 0 does not fit the input: the input is (Batch, 3), Linear[6, 4] takes


def no_layers(parts: NoForward) -> None:
    # E: Sequential: layer 1 is the class ReLU itself, not a Module; write ReLU(...)
    # E: write ReLU(...)  [module-forward]
    nn.Sequential(first, nn.ReLU, last)
    nn.Sequential(first, np.tanh)  # E: Sequential: layer 1 is a
    nn.Sequential(first, lambda x: x)  # E: Sequential: layer 1 is a function, not a Module
    nn.Sequential(first, parts)  # E: Sequential: layer 1, a NoForward, has no forward()
    nn.Sequential()  # E: Sequential: give one module or more
    nn.Sequential([first, last])  # E: Sequential: layer 0 is a list, not a Module


# Modules side by side, and beside their input.
three: nn.Linear[L[3], L[3]] = nn.Linear(3, 3, rng=rng)
wider: nn.Linear[L[3], L[4]] = nn.Linear(3, 4, rng=rng)
narrow: nn.Linear[L[4], L[3]] = nn.Linear(4, 3, rng=rng)
m23 = tt.ones((2, 3))
assert nn.ResidualAdd(nn.Sequential(wider, nn.ReLU(), narrow))(m23).shape == (2, 3)
assert nn.ResidualMul(nn.ReLU()).forward(m23.trace()).shape == (2, 3)
assert nn.ParallelAdd(wider, nn.Sequential(three, wider))(m23).shape == (2, 4)
assert len(nn.SplitInto(wider, three)(m23)) == 2
assert nn.AddInto(three, narrow)((m23, tt.ones((2, 4)))).shape == (2, 3)
assert nn.Repeated(layers=[three, three])(m23).shape == (2, 3)


def of_any_shape(x: Tensor[S, T], size: int) -> None:
    nn.ResidualAdd(three)(x)
    nn.ResidualAdd(wider)(tt.zeros((size,)))


def of_other_names(layer: nn.Linear[N, M], x: Tensor2D[B, N]) -> Tensor2D[B, N]:
    return nn.ResidualAdd(layer)(x)


def side_by_side() -> None:
    # E: ResidualAdd: Linear[3, 4] makes shape (2, 4) of (2, 3); it must keep the shape  [shape-mism
    nn.ResidualAdd(wider)(m23)
    nn.ResidualMul(narrow).forward(m23)  # E: ResidualMul: the input is (2, 3), Linear[4, 3] takes
    nn.Repeated(layers=[wider])(m23)  # E: Repeated: Linear[3, 4] makes shape (2, 4) of (2, 3); it
    nn.ParallelAdd(wider, three)(m23)  # E: ParallelAdd: the modules make shapes (2, 4) and (2, 3);
    nn.ParallelMul(wider, narrow)(m23)  # E: ParallelMul: the input is (2, 3), Linear[4, 3] takes
    nn.SplitInto(three, narrow)(m23)  # E: SplitInto: the input is (2, 3), Linear[4, 3] takes
    nn.AddInto(wider, three)((m23, m23))  # E: AddInto: the modules make shapes (2, 4) and (2, 3)
