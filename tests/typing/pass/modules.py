"""Models: dims from the annotations stay literals, and one forward is typed for both tapes."""

from __future__ import annotations

from typing import Any, Generic, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, NoneTape, OwnedTape, Tensor1D, Tensor2D, Tensor3D, nn
from tapetensor.nn.typing import W
from tapetensor.typing import B, N, T
from tests.typing.check import assert_type, check

Batch = NewType("Batch", int)


class Mlp(nn.Module):
    hidden: nn.Linear[L[784], L[512]]
    norm: nn.BatchNorm1d[L[512]]
    drop: nn.Dropout = nn.options(p=0.1)
    out: nn.Linear[L[512], L[10]]

    def forward(self, x: Tensor2D[B, L[784], T]) -> Tensor2D[B, L[10], T]:
        h = self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu())
        return self.out.forward(h)


class Block(nn.Module, Generic[N]):
    narrow: nn.Linear[N, L[4]]
    widen: nn.Linear[L[4], N]
    scale: Tensor1D[N] = nn.parameter(nn.init.ones)

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return x + self.widen.forward(self.narrow.forward(x).gelu()) * self.scale


class Tower(nn.Module, Generic[N, W]):
    first: Block[N]
    blocks: list[Block[N]] = nn.repeat(2)
    norm: nn.LayerNorm[N, W]
    head: nn.Linear[N, L[1], W]


class Reader(nn.Module):
    table: nn.Embedding[L[100], L[8]]
    norm: nn.LayerNorm[L[8]]
    eps: float = 1e-5

    def forward(self, ids: Tensor2D[B, N, T, np.int64]) -> Tensor3D[B, N, L[8], T]:
        return self.norm.forward(self.table.forward(ids))


rng = np.random.default_rng(0)
batch = Batch(3)
images: Tensor2D[Batch, L[784]] = tt.zeros((batch, 784))

# Both tapes, through one forward.
model = tt.build(Mlp, rng=rng)
assert_type(model, Mlp)
assert_type(model.hidden, nn.Linear[L[784], L[512]])
check(assert_type(model.hidden.weight, Tensor2D[L[512], L[784]]), (512, 784))
check(assert_type(model.norm.running_mean, Tensor1D[L[512]]), (512,))
check(assert_type(model.forward(images), Tensor2D[Batch, L[10]]), (3, 10))
check(assert_type(model.forward(images.trace()), Tensor2D[Batch, L[10], OwnedTape]), (3, 10))
check(
    assert_type(model.norm.forward(model.hidden.forward(images)), Tensor2D[Batch, L[512]]), (3, 512)
)
check(
    assert_type(
        model.norm.forward(model.hidden.forward(images.trace())),
        Tensor2D[Batch, L[512], OwnedTape],
    ),
    (3, 512),
)
assert_type(model.hidden.in_features, L[784])

# Generic modules keep their argument, through every level.
block = tt.build(Block[L[64]], rng=rng)
assert_type(block, Block[L[64]])
assert_type(block.narrow, nn.Linear[L[64], L[4]])
check(assert_type(block.scale, Tensor1D[L[64]]), (64,))
features: Tensor2D[Batch, L[64]] = tt.zeros((batch, 64))
check(assert_type(block.forward(features), Tensor2D[Batch, L[64]]), (3, 64))
check(assert_type(block.forward(features.trace()), Tensor2D[Batch, L[64], OwnedTape]), (3, 64))
tower = tt.build(Tower[L[64], np.float32], rng=rng)
check(assert_type(tower.first.widen.weight, Tensor2D[L[64], L[4]]), (64, 4))
check(assert_type(tower.blocks[1].scale, Tensor1D[L[64]]), (64,))
doubles = tt.build(Tower[L[64], np.float64], rng=rng)
check(
    assert_type(doubles.head.weight, Tensor2D[L[1], L[64], NoneTape, np.float64]),
    (1, 64),
)

# Layers one by one: any leading dims, and a dtype.
linear: nn.Linear[L[3], L[2]] = nn.Linear(3, 2, rng=rng)
vector: Tensor1D[L[3]] = tt.zeros((3,))
stack: Tensor3D[L[5], L[4], L[3]] = tt.zeros((5, 4, 3))
check(assert_type(linear.forward(vector), Tensor1D[L[2]]), (2,))
check(assert_type(linear.forward(stack.trace()), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
double: nn.Linear[L[3], L[2], np.float64] = nn.Linear(3, 2, np.float64, rng=rng)
check(assert_type(double.bias, Tensor1D[L[2], NoneTape, np.float64]), (2,))
norm: nn.LayerNorm[L[3]] = nn.LayerNorm(3)
check(assert_type(norm.forward(stack), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
groups: nn.GroupNorm[L[2], L[4]] = nn.GroupNorm(2, 4)
check(assert_type(groups.forward(stack), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(assert_type(groups.forward(stack.trace()), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
rms: nn.RMSNorm[L[3]] = nn.RMSNorm(3)
check(assert_type(rms.forward(vector), Tensor1D[L[3]]), (3,))
check(assert_type(rms.forward(stack.trace()), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
channels: nn.BatchNorm1d[L[4]] = nn.BatchNorm1d(4)
check(assert_type(channels.forward(stack), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))
check(
    assert_type(channels.forward(stack.trace()), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3)
)
check(
    assert_type(nn.Dropout(0.5, rng=rng).forward(vector.trace()), Tensor1D[L[3], OwnedTape]), (3,)
)
check(assert_type(nn.GELU("tanh").forward(vector), Tensor1D[L[3]]), (3,))
check(assert_type(nn.Softmax().forward(stack), Tensor3D[L[5], L[4], L[3]]), (5, 4, 3))

# Ids own a tape like any other input.
reader = tt.build(Reader, rng=rng)
ids: Tensor2D[Batch, L[6], NoneTape, np.int64] = tt.zeros((batch, 6), np.int64)
check(assert_type(reader.forward(ids), Tensor3D[Batch, L[6], L[8]]), (3, 6, 8))
check(assert_type(reader.forward(ids.trace()), Tensor3D[Batch, L[6], L[8], OwnedTape]), (3, 6, 8))

# A sequence of modules keeps the tape; the sizes of its output are open.
sequence = nn.Sequential(linear, nn.ReLU())
output: Tensor1D[L[2], OwnedTape] = sequence.forward(vector.trace())
check(output, (2,))

# The constructor takes every field by keyword; a default may be left out.
Reader(table=reader.table, norm=reader.norm)
Reader(table=reader.table, norm=reader.norm, eps=0.0)
Mlp(hidden=model.hidden, norm=model.norm, drop=model.drop, out=nn.Linear(512, 10, rng=rng))

# What a module tells of itself.
assert_type(model.summary(), str)
parameters: dict[str, tt.Tensor[Any, NoneTape, Any]] = model.parameters()
modules: dict[str, nn.Module] = model.modules()
grads = model.forward(images.trace()).square().mean().backward(wrt=model)
assert_type(grads, Gradients)
check(assert_type(grads[model.out.weight], Tensor2D[L[10], L[512]]), (10, 512))
assert set(grads) == {one.id for one in parameters.values()}
