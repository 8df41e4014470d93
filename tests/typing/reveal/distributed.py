"""Ranks: shares keep what is known of a batch, but for the rows."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, NoneTape, Tensor0D, Tensor1D, Tensor2D, distributed, losses, nn
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, mi, vi

ranks = distributed.alone()
assert_type(ranks, distributed.Communicator)
assert_type(ranks.rank, int)
assert_type(ranks.is_root, bool)
assert_type(ranks.mean(1.0), float)
assert_type(ranks.generator(0, step=1), np.random.Generator)

# One tensor, or a tuple of two or three.
check(assert_type(ranks.shard(m), Tensor2D[Any, L[3]]), (2, 3))
assert_type(ranks.shard(m, mi), tuple[Tensor2D[Any, L[3]], Tensor2D[Any, L[3], NoneTape, np.int64]])
assert_type(
    ranks.shard(m, md, m),
    tuple[
        Tensor2D[Any, L[3]],
        Tensor2D[Any, L[3], NoneTape, np.float64],
        Tensor2D[Any, L[3]],
    ],
)
check(assert_type(ranks.shard(vi), Tensor1D[Any, NoneTape, np.int64]), (3,))

layer: nn.Linear[L[3], L[2]] = nn.Linear(3, 2, rng=np.random.default_rng(0))
reducer = distributed.Reducer(layer, ranks, op="sum")
loss = losses.mse(layer.forward(m.trace()), layer.forward(m))
assert_type(reducer.backward(loss), Gradients)
assert_type(reducer.all_reduce(Gradients()), Gradients)


# The decorator changes no type.
@distributed.data_parallel
def step(model: nn.Linear[L[3], L[2]], x: Tensor2D[L[2], L[3]]) -> tuple[Tensor0D, Gradients]:
    """Return a loss and its gradients."""
    total = model.forward(x.trace()).sum()
    return total.detach(), total.backward(wrt=model)


def loss_of_a_step() -> Tensor0D:
    """Return what the decorated function returns; running it would start MPI."""
    value, grads = step(layer, m)
    assert_type(grads, Gradients)
    return assert_type(value, Tensor0D)


assert_type(tt.distributed.alone(), distributed.Communicator)
