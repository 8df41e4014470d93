"""What one process can say of ranks: buckets, shares, streams, refusals, and a missing package."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed, io, losses, nn, optim
from tapetensor.distributed import communicator
from tapetensor.distributed.communicator import Communicator
from tapetensor.distributed.reducer import Bucket, buckets_of
from tapetensor.distributed.transport import load_mpi
from tapetensor.tape.history import BackwardPass, gathered
from tapetensor.tape.replay import needed_for, replay_by_group
from tests.arrays import foreign

ALONE = distributed.alone()
# For arguments that a type checker refuses.
alone: Any = ALONE
make_reducer: Any = distributed.Reducer
make_data_parallel: Any = distributed.data_parallel


def rank_of(rank: int, size: int) -> Communicator:
    """Return a communicator that knows where it is, and connects nothing."""
    transport: Any = SimpleNamespace(rank=rank, size=size)
    return Communicator(transport)


def mlp(rng: np.random.Generator) -> Any:
    return nn.Sequential(nn.Linear(3, 5, rng=rng), nn.ReLU(), nn.Linear(5, 2, rng=rng))


def traced_loss(model: Any) -> Any:
    x: Any = tt.ones((4, 3))
    return losses.mse(model.forward(x.trace()), tt.zeros((4, 2)))


def test_buckets_go_from_the_last_parameter_to_the_first_and_hold_each_once(
    rng: np.random.Generator,
) -> None:
    model = mlp(rng)
    parameters = model.parameters()

    one_each = buckets_of({**parameters, "tied": parameters["0.weight"]}, 1)
    together = buckets_of(parameters, 10**6)

    ids = [tensor.id for tensor in parameters.values()]
    assert [set(bucket.ids) for bucket in one_each] == [{unique_id} for unique_id in ids[::-1]]
    assert [set(bucket.ids) for bucket in together] == [set(ids)]
    # 32 numbers and, for the four parameters, how many ranks have a gradient.
    assert together[0].nbytes == 4 * (32 + 4)


def test_a_bucket_has_one_dtype_and_a_large_parameter_one_of_its_own() -> None:
    of_two = {str(dtype): tt.ones((2,), dtype) for dtype in (np.float32, np.float64)}
    assert [bucket.nbytes for bucket in buckets_of(of_two, 10**6)] == [3 * 8, 3 * 4]

    parameters = {"a": tt.zeros((3,)), "b": large(), "c": tt.zeros((4,)), "d": large()}
    assert [len(bucket.ids) for bucket in buckets_of(parameters, 1 << 20)] == [1, 1, 2]


def test_what_is_packed_on_two_ranks_adds_up_and_what_none_has_is_left_out() -> None:
    a, b, c = [tt.zeros((2, 1)) for _ in range(3)]
    (bucket,) = buckets_of({"a": a, "b": b, "c": c}, 10**6)
    column = np.array([[1.0], [3.0]], np.float32)

    flat = bucket.packed({a.id: column, b.id: column}) + bucket.packed({a.id: column})
    reduced = bucket.unpacked(flat, 2)

    assert set(reduced) == {a.id, b.id}
    np.testing.assert_array_equal(reduced[a.id], column)
    np.testing.assert_array_equal(reduced[b.id], column / 2)


def large() -> Any:
    return tt.zeros((600, 500))


def test_a_large_gradient_that_nobody_else_holds_is_sent_from_where_it_lies() -> None:
    tensor = large()
    (bucket,) = buckets_of({"weight": tensor}, 1 << 20)
    parts = {tensor.id: np.ones((600, 500), np.float32)}
    flat = bucket.packed(parts)
    assert np.shares_memory(flat, parts[tensor.id])
    flat *= 2
    found = bucket.unpacked(flat, 4, is_used=True)
    np.testing.assert_array_equal(found[tensor.id], np.full((600, 500), 0.5, np.float32))
    assert bucket.unpacked(flat, 4) == {}


HELD: list[Any] = [
    lambda array: array,
    lambda array: array[:10],
    lambda array: memoryview(array),
]


@pytest.mark.parametrize("hold", HELD)
def test_a_gradient_that_somebody_holds_is_copied(hold: Any) -> None:
    tensor = large()
    bucket = Bucket([tensor])
    parts = {tensor.id: np.ones((600, 500), np.float32)}
    held = hold(parts[tensor.id])
    assert not np.shares_memory(bucket.packed(parts), parts[tensor.id])
    assert held is not None


@pytest.mark.parametrize("form", [np.transpose, lambda one: one[:, ::-1], np.asfortranarray])
def test_a_gradient_that_lies_in_another_order_is_copied(form: Any) -> None:
    tensor = tt.zeros((600, 600))
    bucket = Bucket([tensor])
    parts: Any = {tensor.id: form(np.arange(360_000, dtype=np.float32).reshape(600, 600))}
    np.testing.assert_array_equal(bucket.packed(parts), parts[tensor.id].ravel())


@pytest.mark.parametrize("bucket_bytes", [1, 30, 10**6])
def test_backward_in_buckets_gives_what_backward_gives(
    bucket_bytes: int, rng: np.random.Generator
) -> None:
    model = mlp(rng)
    reducer = distributed.Reducer(model, ALONE, bucket_bytes=bucket_bytes)

    in_buckets = reducer.backward(traced_loss(model))

    expected = traced_loss(model).backward(wrt=model)
    for parameter in model.parameters().values():
        np.testing.assert_array_equal(in_buckets[parameter].numpy(), expected[parameter].numpy())


def test_a_bucket_is_handed_out_before_the_records_below_it_run(rng: np.random.Generator) -> None:
    model, ran = mlp(rng), []

    def noted(x: Any) -> Any:
        def pull_back(g: Any) -> Any:
            ran.append("below")
            return g

        return x.copy(), (pull_back,)

    first, second = model.layers[0], model.layers[2]
    x: Any = tt.ones((4, 3))
    loss = second.forward(tt.custom_op(noted, first.forward(x.trace()), shape=(4, 5))).sum()
    groups = [frozenset([second.weight.id]), frozenset([first.weight.id])]
    names = {second.weight.id: "second", first.weight.id: "first"}
    parts = loss.tape.run_backward_by_group(
        loss.history, loss.id, np.ones((), np.float32), groups, names
    )

    assert set(next(parts)) == {second.weight.id}
    assert ran == []
    assert set(next(parts)) == {first.weight.id}
    assert ran == ["below"]


def test_a_backward_pass_by_groups_lets_go_of_what_it_has_handed_out() -> None:
    weights = [tt.full((2, 2), 0.5) for _ in range(3)]
    h = tt.ones((2, 2)).trace()
    for weight in weights:
        h = (h @ weight).tanh()
    steps, _ = gathered(h.history)
    groups = [frozenset([weight.id]) for weight in reversed(weights)]
    needed, _ = needed_for("backward", steps, int(h.id), {weight.id: weight for weight in weights})
    seen: list[tuple[int, Any]] = []
    ones: Any = np.ones((2, 2), np.float32)
    for part in replay_by_group(steps, {int(h.id): ones}, BackwardPass(), needed, groups):
        # What went before is gone while the rest is computed.
        assert all(one() is None for _, one in seen)
        (key,) = part
        seen.append((key, weakref.ref(part[key])))
        part.clear()
    assert [key for key, _ in seen] == [weight.id for weight in reversed(weights)]


def test_an_id_that_a_record_produced_gets_its_gradient_too() -> None:
    x: Any = tt.ones((2,))
    y, tape = (x.trace() * 2.0).split_tape()
    loss = (y.put_tape(tape) * 3.0).sum()
    groups = [frozenset([x.id]), frozenset([y.id])]
    names = {x.id: "x", y.id: "y"}

    parts = list(
        loss.tape.run_backward_by_group(
            loss.history, loss.id, np.ones((), np.float32), groups, names
        )
    )

    np.testing.assert_array_equal(parts[0][x.id], [6.0, 6.0])
    np.testing.assert_array_equal(parts[1][y.id], [3.0, 3.0])


def test_all_reduce_keeps_the_parameters_and_leaves_a_missing_gradient_missing(
    rng: np.random.Generator,
) -> None:
    model = mlp(rng)
    x: Any = tt.ones((4, 3))
    grads = model.forward(x.trace()).sum().backward()
    grads.remove(model.layers[0].bias)

    reduced = distributed.Reducer(model, ALONE).all_reduce(grads)

    assert len(reduced) == 3
    assert model.layers[0].bias not in reduced
    with pytest.raises(tt.UnusedParametersError, match=r"0\.bias: no gradient"):
        optim.Sgd(model, lr=0.1).step(reduced)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: rank_of(0, 3).shard(tt.ones((4, 2))), tt.ShapeError, "batch of 3 or 6"),
        (lambda: rank_of(0, 8).shard(tt.ones((4, 2))), tt.ShapeError, "a batch of 8 or 16"),
        (lambda: alone.shard(tt.ones(())), tt.ShapeError, "first axis"),
        (lambda: alone.shard(tt.ones((2,)), tt.ones((3,))), tt.ShapeError, "first axis"),
        (lambda: alone.shard(), tt.ArgumentTypeError, "at least one tensor"),
        (lambda: alone.shard(np.ones(3)), tt.ArgumentTypeError, "argument 1"),
        (lambda: alone.shard(tt.ones((2,)).trace()), tt.UntracedTensorError, "plain value"),
        (lambda: ALONE.generator(-1), tt.TapeTensorError, "seed"),
        (lambda: alone.broadcast("model"), tt.ArgumentTypeError, "expected a Module"),
        (lambda: make_reducer("model", ALONE), tt.ArgumentTypeError, "Module"),
        (lambda: make_reducer(linear(), "ranks"), tt.ArgumentTypeError, "world"),
        (lambda: make_reducer(linear(), ALONE, op="max"), tt.ArgumentValueError, "max"),
        (
            lambda: make_reducer(linear(), ALONE, bucket_bytes=0),
            tt.ArgumentValueError,
            "bucket_bytes",
        ),
        (
            lambda: make_reducer(linear().to(foreign), ALONE),
            tt.ArgumentTypeError,
            "Reducer: only numpy arrays are sent, got a tensor of ForeignArray",
        ),
        (lambda: make_reducer(nn.ReLU(), ALONE), tt.ArgumentValueError, "no parameters"),
        (lambda: make_reducer(linear(), ALONE).all_reduce({}), tt.ArgumentTypeError, "Gradients"),
        (lambda: make_data_parallel(3), tt.ArgumentTypeError, "a function"),
        (
            lambda: distributed.data_parallel(lambda x: x)(tt.ones((2,))),
            tt.ArgumentTypeError,
            "one module",
        ),
        (lambda: distributed.world(0), tt.ArgumentValueError, "size must be > 0, got 0"),
    ],
)
def test_bad_arguments_are_refused(
    call: Callable[[], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call()


def linear() -> Any:
    return nn.Linear(3, 2, rng=np.random.default_rng(0))


def test_streams_differ_by_rank_and_step_and_are_the_same_in_every_run() -> None:
    def drawn(rank: int, seed: int, step: int) -> list[int]:
        numbers = rank_of(rank, 4).generator(seed, step).integers(1 << 30, size=4)
        return [int(number) for number in numbers]

    keys = [(rank, seed, step) for rank in range(3) for seed in range(2) for step in range(3)]
    streams = [drawn(*key) for key in keys]

    assert len({tuple(stream) for stream in streams}) == len(keys)
    assert [drawn(*key) for key in keys] == streams


def test_a_checkpoint_of_one_rank_is_that_of_io(tmp_path: Path, rng: np.random.Generator) -> None:
    model, other = mlp(rng), mlp(rng)
    ALONE.save_checkpoint(tmp_path / "run.npz", model=model)

    ALONE.load_checkpoint(tmp_path / "run.npz", model=other)

    for name, array in io.state_dict(model).items():
        np.testing.assert_array_equal(io.state_dict(other)[name], array)


def test_a_compiled_function_is_told_to_reduce_outside(rng: np.random.Generator) -> None:
    model = mlp(rng)
    reducer = distributed.Reducer(model, ALONE)

    @tt.compile
    def sends_meanwhile(model: Any, x: Any) -> Any:
        return reducer.backward(model.forward(x.trace()).sum())

    @tt.compile
    def sends_afterwards(model: Any, x: Any) -> Any:
        return reducer.all_reduce(model.forward(x.trace()).sum().backward(wrt=model))

    decorated = tt.compile(distributed.data_parallel(lambda model, x: model.forward(x).sum()))
    for function in (sends_meanwhile, sends_afterwards, decorated):
        with pytest.raises(tt.TraceError, match="a compiled function cannot send"):
            function(model, tt.ones((4, 3)))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("mpi4py"), r"mpi4py: pip install 'tapetensor\[mpi\]'"),
        (RuntimeError("cannot load MPI library"), "finds none; .*pip install.*cannot load"),
    ],
)
def test_a_missing_package_is_told_from_a_missing_mpi_run_time(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def import_module(name: str) -> object:
        assert name == "mpi4py.MPI"
        raise error

    monkeypatch.setattr(importlib, "import_module", import_module)
    load_mpi.cache_clear()
    with pytest.raises(tt.MissingDependencyError, match=said):
        load_mpi()


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_a_launcher_of_another_mpi_is_found(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setattr(communicator, "load_mpi", lambda: SimpleNamespace(size=1))
    monkeypatch.setenv(variable, "1")
    assert communicator._world.__wrapped__().size == 1

    monkeypatch.setenv(variable, "4")
    with pytest.raises(tt.DistributedError, match="world: a launcher has started 4 processes, and"):
        communicator._world.__wrapped__()
