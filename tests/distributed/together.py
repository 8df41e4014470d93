"""What ranks do together, each checking its own side.

mpiexec -n 2 python -m tests.distributed.together FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, distributed, io, losses, nn, optim


class Both(nn.Module):
    """Parameters of two dtypes, one shared layer, and buffers."""

    rare: nn.Bias1d[Any]
    single: nn.Linear[Any, Any]
    tied: nn.Linear[Any, Any]
    double: nn.Bias1d[Any, np.float64]
    norm: nn.BatchNorm1d[Any]


def both(seed: int) -> Both:
    """Return a model with values that depend on the seed."""
    rng = np.random.default_rng(seed)
    layer: Any = nn.Linear(3, 3, rng=rng)
    model = Both(
        rare=nn.Bias1d(4),
        single=layer,
        tied=layer,
        double=nn.Bias1d(2, np.float64),
        norm=nn.BatchNorm1d(3),
    )
    state = {name: array + array.dtype.type(seed) for name, array in io.state_dict(model).items()}
    io.load_state_dict(model, state)
    return model


def same_bits(part: Any, other: Any) -> bool:
    """Tell whether two parts have the same state."""
    one, two = io.state_dict(part), io.state_dict(other)
    return one.keys() == two.keys() and all(one[k].tobytes() == two[k].tobytes() for k in one)


def parts_become_those_of_rank_0(ranks: distributed.Communicator) -> None:
    """Send a model, an optimizer and a generator."""
    model = both(seed=ranks.rank)
    ranks.broadcast(model)
    assert same_bits(model, both(seed=0))
    rng = np.random.default_rng(ranks.rank)
    ranks.broadcast(rng)
    assert rng.integers(1 << 30) == np.random.default_rng(0).integers(1 << 30)
    optimizer = optim.Adam(model, lr=0.1 * (1 + ranks.rank))
    ranks.broadcast(optimizer)
    assert optimizer.lr == 0.1


def a_gradient_that_one_rank_has_is_shared(ranks: distributed.Communicator) -> None:
    """Average gradients of two dtypes, of which rank 0 has more than the others."""
    model = both(seed=0)
    grads = Gradients()
    for name, tensor in model.parameters().items():
        if not name.startswith("norm") and (ranks.is_root or not name.startswith("rare")):
            array = np.full(tensor.shape, 1.0 + ranks.rank, tensor.dtype)
            if tensor not in grads:
                grads.insert(tensor, array)
    reduced = distributed.Reducer(model, ranks).all_reduce(grads)
    mean = sum(range(1, ranks.size + 1)) / ranks.size
    assert model.norm.weight not in reduced
    np.testing.assert_array_equal(reduced[model.rare.bias].numpy(), np.float32(1 / ranks.size))
    np.testing.assert_array_equal(reduced[model.single.weight].numpy(), np.float32(mean))
    np.testing.assert_array_equal(reduced[model.double.bias].numpy(), mean)


def ranks_that_use_other_parameters_do_not_wait_for_each_other(
    ranks: distributed.Communicator,
) -> None:
    """Run backward passes that come to the buckets in different orders, or not at all."""
    rng = np.random.default_rng(0)
    layers: Any = [nn.Linear(4, 4, rng=rng) for _ in range(3)]
    model = nn.Sequential(*layers)
    reducer = distributed.Reducer(model, ranks, op="sum", bucket_bytes=1)
    x: Any = tt.ones((2, 4))
    # The first rank from the last layer to the first, the others the other way round, without one.
    used = layers if ranks.is_root else layers[:0:-1]
    h = x.trace()
    for layer in used:
        h = layer.forward(h)
    grads = reducer.backward(h.sum())
    assert len(grads) == 6


def rows_of_a_table_are_summed(ranks: distributed.Communicator) -> None:
    """Average gradients of rows, which rank 0 has not, and of a table that one rank uses whole."""
    model: Any = nn.Embedding(40, 3, rng=np.random.default_rng(0), sparse=True)
    reducer = distributed.Reducer(model, ranks)
    plain: Any = nn.Embedding(40, 3, rng=np.random.default_rng(0))
    beside = distributed.Reducer(plain, ranks)
    optimizer = optim.SparseAdam(model)

    def of(table: Any, read: list[int]) -> Any:
        ids: Any = tt.from_numpy(np.array(read, np.int64))
        return table.forward(ids.trace()).square().sum()

    read = [ranks.rank + 3, 7, 7, 39]
    for one in (read, [] if ranks.is_root else read):
        found = reducer.backward(of(model, one))
        wanted = beside.backward(of(plain, one))
        np.testing.assert_allclose(
            found[model.weight].numpy(), wanted[plain.weight].numpy(), rtol=1e-6
        )
        optimizer.step(found)
        io.load_state_dict(plain, io.state_dict(model))
    used = model.weight.trace().sum() + of(model, read) if ranks.is_root else of(model, read)
    whole = plain.weight.trace().sum() + of(plain, read) if ranks.is_root else of(plain, read)
    found, wanted = reducer.backward(used), beside.backward(whole)
    np.testing.assert_allclose(found[model.weight].numpy(), wanted[plain.weight].numpy(), rtol=1e-6)
    assert model.weight not in reducer.all_reduce(Gradients())


def a_compiled_function_can_be_decorated(ranks: distributed.Communicator) -> None:
    """Average the loss and the gradients of a compiled function."""
    rng = np.random.default_rng(0)
    model: Any = nn.Linear(3, 2, rng=rng)

    def loss_and_gradients(model: Any, x: Any, y: Any) -> Any:
        loss = losses.mse(model.forward(x.trace()), y)
        return loss.detach(), loss.backward(wrt=model)

    x, y = tt.normal((4 * ranks.size, 3), rng=rng), tt.normal((4 * ranks.size, 2), rng=rng)
    value, grads = distributed.data_parallel(tt.compile(loss_and_gradients))(model, x, y=y)
    expected, whole = loss_and_gradients(model, x, y)
    np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-5)
    for parameter in model.parameters().values():
        np.testing.assert_allclose(grads[parameter].numpy(), whole[parameter].numpy(), atol=1e-6)


def a_file_of_rank_0_is_for_all(ranks: distributed.Communicator) -> None:
    """Save what rank 0 has, and load it where no other rank can read."""
    path = Path(sys.argv[1]) / "run.npz"
    ranks.save_checkpoint(path, model=both(seed=7 + ranks.rank))
    loaded = both(seed=ranks.rank)
    ranks.load_checkpoint(path if ranks.is_root else "/nowhere.npz", model=loaded)
    assert same_bits(loaded, both(seed=7))


def numbers_are_averaged(ranks: distributed.Communicator) -> None:
    """Take the mean of the ranks' numbers."""
    assert ranks.mean(float(ranks.rank)) == (ranks.size - 1) / 2


def main() -> None:
    """Do all of it."""
    ranks = distributed.world()
    for check in (
        parts_become_those_of_rank_0,
        a_gradient_that_one_rank_has_is_shared,
        ranks_that_use_other_parameters_do_not_wait_for_each_other,
        rows_of_a_table_are_summed,
        a_compiled_function_can_be_decorated,
        a_file_of_rank_0_is_for_all,
        numbers_are_averaged,
    ):
        check(ranks)
        ranks.barrier()
    print("done", flush=True)


if __name__ == "__main__":
    main()
