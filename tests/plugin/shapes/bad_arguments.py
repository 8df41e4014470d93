"""Arguments that are missing, too many or of a wrong kind. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, nn
from tapetensor.typing import B, N, T
from tests.typing.operands import m, md, s, z

rng = np.random.default_rng(0)
mask = tt.zeros((2, 3), np.bool_)
lstm = nn.LSTM(3, 5, rng=rng)
deep = nn.StackedGRU(3, 5, 2, rng=rng)
gru, cell = nn.GRU(3, 5, rng=rng), nn.GRUCell(3, 5, rng=rng)
norm, flat = nn.BatchNorm2d(3), nn.BatchNorm1d(5)
image = tt.zeros((2, 5, 4, 4))


class Own(nn.Module):
    layer: nn.ReLU

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return self.layer.forward(x)


# What is reported is the one error of its line: not that a function returns `Any`, too.
def product(x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[3], T]:
    return x @ m  # E: matmul: inner dims differ: (B, 3) @ (2, 3), 3 != 2


def total(x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[3], T]:
    return x + tt.ones((4,))  # E: add: shapes (B, 3) and (4,) do not broadcast, 3 != 4


def viewed(x: Tensor2D[B, L[3], T]) -> Tensor2D[L[3], B, T]:
    return x.view(3, -1)  # E: 'Tensor' object has no attribute 'view'


def turned(x: Tensor2D[B, L[3], T]) -> Tensor2D[L[3], B, T]:
    return x.T  # E: 'Tensor' object has no attribute 'T'


def joined(x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[6], T]:
    return tt.cat((x, x), 1)  # E: has no attribute 'cat'


def remembered(x: Tensor3D[B, N, L[4], T]) -> Tensor3D[B, N, L[5], T]:
    return lstm.forward(x)[0]  # E: LSTM: the last axis of the input must have size 3


BAD: tuple[Callable[[], object], ...] = (
    lambda: tt.zeros(3),  # E: zeros: shape must be a tuple or a list, got 3; write (5, 3), say
    lambda: tt.full((2,)),  # E: full: the argument value is missing
    lambda: tt.arange(3.5),  # E: arange: size must be an int, got a float
    lambda: tt.normal((2,)),  # E: normal: the argument rng is missing
    lambda: tt.ones((2,), 4),  # E: ones: dtype must be a dtype such as np.float32, got 4
    lambda: tt.zeros((3, -1)),  # E: zeros: a dim must not be negative, got -1
    lambda: tt.cat((m, m)),  # E: has no attribute 'cat'; write tt.concat((x, y)
    lambda: tt.randn(2, 3),  # E: has no attribute 'randn'; write tt.normal((2, 3), rng=np.random.d
    lambda: m.view(2, 6),  # E: 'Tensor' object has no attribute 'view'; write x.reshape((2, 6)), wi
    lambda: tt.relu(m),  # E: has no attribute 'relu'; write x.relu(), for it is a method
    lambda: m.grad,  # E: has no attribute 'grad'; write loss.backward()[x]
    lambda: tt.nn.CrossEntropyLoss(),  # E: has no attribute 'CrossEntropyLoss'; write losses.
    lambda: tt.optim.SGD(m, lr=0.1),  # E: has no attribute 'SGD'; write optim.Sgd
    lambda: m.softmax(dim=1),  # E: softmax: there is no argument dim; it takes axis
    lambda: m.T,  # E: 'Tensor' object has no attribute 'T'; write x.transpose()
    lambda: m.unsqueeze(0),  # E: 'Tensor' object has no attribute 'unsqueeze'; write x.expand_dims(
    lambda: m.permute(1, 0),  # E: has no attribute 'permute'; write x.permute_dims((1, 0)), with th
    lambda: m.trace().T @ m,  # E: 'Tensor' object has no attribute 'T'; write x.transpose()
    lambda: m.astype("flot32"),  # E: astype: dtype must be a dtype such as np.float32 or a str, got
    lambda: m.reshape(6),  # E: reshape: shape must be a tuple, got 6; write (5, 3), say
    lambda: m.reshape(3, 2),  # E: reshape: takes 1 positional argument, got 2; write reshape((3, 2
    lambda: m.permute_dims(1, 0),  # E: permute_dims: takes 1 positional argument, got 2; write perm
    lambda: m.transpose(1, 0),  # E: takes no positional arguments, got 2; permute_dims((1, 0)) take
    lambda: m.flatten(1),  # E: flatten: takes no positional arguments, got 1
    lambda: m.expand_dims(),  # E: expand_dims: the argument axis is missing
    lambda: m.sum(axis="a"),  # E: sum: axis must be an int or a tuple, got 'a'
    lambda: m.sum(dim=1),  # E: sum: there is no argument dim; it takes axis and keepdims
    lambda: m.exp(out=m),  # E: exp: there is no argument out; it takes none
    lambda: m.argmax(axis=(0, 1)),  # E: argmax: axis must be an int, got a tuple
    lambda: m.roll(1, axis=4),  # E: roll: axis 4 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.split(0),  # E: split: sections must be > 0, got 0
    lambda: m.take(3),  # E: take: indices must be a tensor, got 3
    lambda: m["a"],  # E: getitem: an index must be an int, a slice, ... or a tuple, got 'a'
    lambda: m @ 3,  # E: matmul: the other operand must be a tensor, got 3
    lambda: m - "a",  # E: subtract: the other operand must be a number or a tensor, got 'a'
    lambda: m ** "a",  # E: power: the other operand must be a number or a tensor, got 'a'
    lambda: m.reshape((m, 6)),  # E: reshape: a dim must be an int, got a tensor
    lambda: m.reshape(("a", 6)),  # E: reshape: a dim must be an int, got 'a'
    lambda: tt.zeros((1.5, 2)),  # E: zeros: a dim must be an int, got a float
    lambda: m.broadcast_to((None, 2, 3)),  # E: broadcast_to: a dim must be an int, got None
    lambda: tt.concat(m),  # E: concat: tensors must be a tuple or a list, got a tensor; write ((x,
    lambda: tt.concat((m, md)),  # E: concat: dtypes differ: float32 and float64; convert one with a
    lambda: tt.where(mask, 1.0, 2.0),  # E: where: at least one of the two values must be a tensor
    lambda: tt.avg_pool2d(z, "a"),  # E: avg_pool2d: kernel_size must be an int or a tuple, got 'a'
    lambda: nn.Linear(3, 2),  # E: Linear: the argument rng is missing
    lambda: nn.Linear("a", 2, rng=rng),  # E: Linear: in_features must be an int, got 'a'
    lambda: nn.Conv1d(1, 2, (1, 4), rng=rng),  # E: Conv1d: kernel_size must be an int, got a tuple
    lambda: nn.Conv2d(1, 2, 3.0, rng=rng),  # E: Conv2d: kernel_size must be an int or a tuple, got
    lambda: nn.Conv2d(1, 2, 3, padding="all", rng=rng),  # E: must be an int, a tuple or 'same', got
    lambda: nn.Conv2d(1, 2, 3, 1, 1),  # E: Conv2d: the argument rng is missing
    lambda: nn.EncoderBlock(16, 4, 32, rng=rng),  # E: EncoderBlock: its fields are given by name; f
    lambda: Own(3),  # E: Own: its fields are given by name; for sizes write tt.build(Own, rng=rng)
    lambda: nn.Linear(3, 2, np.int64, rng=rng),  # E: dtype must be a dtype such as np.float32, got
    lambda: norm(image),  # E: BatchNorm2d: the input must have shape (B, 3, H, W) or (3, H, W), got
    lambda: norm.forward(image.trace()),  # E: BatchNorm2d: the input must have shape (B, 3, H, W)
    lambda: flat.forward(image),  # E: BatchNorm1d: the input must have shape (B, 5) or (B, 5, L), g
    lambda: gru(tt.zeros((2, 4))),  # E: GRU: the last axis of the input must have size 3, got shape
    lambda: deep(m),  # E: StackedGRU: the input must have shape (batch, steps, features) with one s
    lambda: gru(m),  # E: GRU: the input must have shape (batch, steps, features) with one step or
    lambda: cell(z, tt.zeros((4, 5))),  # E: GRUCell: the input must have shape (batch, features), g
    lambda: lstm(z, s),  # E: LSTM: state must be a tuple, got a tensor
    lambda: product(m),
    lambda: total(m),
    lambda: viewed(m),
    lambda: turned(m),
    lambda: joined(m),
    lambda: remembered(tt.zeros((2, 3, 4))),
)
