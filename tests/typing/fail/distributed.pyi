import numpy as np

from tapetensor import Gradients, distributed, nn
from tests.typing.operands import m, s

ranks = distributed.alone()
layer = nn.Linear(3, 2, rng=np.random.default_rng(0))
reducer = distributed.Reducer(layer, ranks)

# A share is one of rows, of plain tensors.
ranks.shard(s)  # type: ignore[arg-type]  # a scalar has no rows
ranks.shard(m.trace())  # type: ignore[arg-type]  # trace the share instead
ranks.shard([m])  # type: ignore[call-overload]  # tensors, not a list

# What is reduced are the gradients of a traced scalar.
reducer.backward(m.sum())  # type: ignore[arg-type]  # no tape: nothing was recorded
reducer.all_reduce(m)  # type: ignore[arg-type]  # Gradients, not a tensor
distributed.Reducer(layer, ranks, op="max")  # type: ignore[arg-type]  # "mean" or "sum"
distributed.Reducer(m, ranks)  # type: ignore[arg-type]  # a model

# Who belongs to the job is for mpiexec to say.
distributed.world("all")  # type: ignore[arg-type]  # how many there must be
ranks.broadcast(Gradients())  # type: ignore[arg-type]  # a model, an optimizer or a generator
