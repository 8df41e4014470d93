"""Arguments that are missing, too many or of a wrong kind. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tapetensor as tt
from tapetensor import nn
from tests.typing.operands import m, md, s, z

rng = np.random.default_rng(0)
mask = tt.zeros((2, 3), np.bool_)
lstm = nn.LSTM(3, 5, rng=rng)

BAD: list[Callable[[], object]] = [
    lambda: tt.zeros(3),  # E: zeros: shape must be a tuple, got 3; write (5, 3), say
    lambda: tt.full((2,)),  # E: full: the argument value is missing
    lambda: tt.arange(3.5),  # E: arange: size must be an int, got a float
    lambda: tt.normal((2,)),  # E: normal: the argument rng is missing
    lambda: tt.ones((2,), 4),  # E: ones: dtype must be a dtype such as np.float32, got 4
    lambda: tt.zeros((3, -1)),  # E: zeros: a dim must not be negative, got -1
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
    lambda: m["a"],  # E: getitem: an index must be an int, a slice, a tensor or a tuple, got 'a'
    lambda: m @ 3,  # E: matmul: the other operand must be a tensor, got 3
    lambda: m - "a",  # E: subtract: the other operand must be a number or a tensor, got 'a'
    lambda: m ** "a",  # E: power: the other operand must be a number or a tensor, got 'a'
    lambda: tt.concat(m),  # E: concat: tensors must be a tuple or a list, got a tensor; write ((x,
    lambda: tt.concat((m, md)),  # E: concat: dtypes differ: float32 and float64; convert one with a
    lambda: tt.where(mask, 1.0, 2.0),  # E: where: at least one of the two values must be a tensor
    lambda: tt.avg_pool2d(z, "a"),  # E: avg_pool2d: kernel_size must be an int or a tuple, got 'a'
    lambda: nn.Linear(3, 2),  # E: Linear: the argument rng is missing
    lambda: nn.Linear("a", 2, rng=rng),  # E: Linear: in_features must be an int, got 'a'
    lambda: nn.Linear(3, 2, np.int64, rng=rng),  # E: dtype must be a dtype such as np.float32, got
    lambda: lstm(z, s),  # E: LSTM: state must be a tuple, got a tensor
]
