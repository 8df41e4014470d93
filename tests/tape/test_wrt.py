"""`backward(wrt=...)`: only what is asked for is computed, counted by the pullbacks that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Kernel, Pullbacks
from tapetensor.tensor.apply import apply

Vector = tt.Tensor[Any, Any, np.float32]


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


class Counting:
    """Ops that count which of their pullbacks run."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def double(self, name: str, x: Vector) -> Any:
        def kernel(x: Any) -> tuple[Any, Pullbacks]:
            return 2 * x, (self._pullback(name, 2),)

        return apply(kernel, (x,))

    def add(self, name: str, lhs: Vector, rhs: Vector) -> Any:
        kernel: Kernel = lambda lhs, rhs: (  # noqa: E731  # a kernel is a function of arrays
            lhs + rhs,
            (self._pullback(name + ".lhs", 1), self._pullback(name + ".rhs", 1)),
        )
        return apply(kernel, (lhs, rhs))

    def gather(self, name: str, table: Vector, ids: Any) -> Any:
        def kernel(table: Any, ids: Any) -> tuple[Any, Pullbacks]:
            return table[ids], (self._pullback(name, 1), None)

        return apply(kernel, (table, ids), keeps_dtype=False)

    def _pullback(self, name: str, slope: int) -> Any:
        def pullback(g: Any) -> Any:
            self.runs[name] += 1
            return g * slope

        return pullback


class Model:
    """As much of a module as `wrt` needs."""

    def __init__(self, **parameters: Vector) -> None:
        self._parameters = parameters

    def parameters(self) -> dict[str, Any]:
        return self._parameters


@pytest.fixture
def ops() -> Counting:
    return Counting()


def test_without_wrt_every_pullback_runs_once(ops: Counting) -> None:
    x, w = vector(1.0), vector(1.0)
    grads = ops.add("add", ops.double("x", x.trace()), ops.double("w", w.trace())).sum().backward()

    assert ops.runs == {"add.lhs": 1, "add.rhs": 1, "x": 1, "w": 1}
    assert {x.id, w.id} == set(grads)


def test_pullbacks_that_lead_to_nothing_asked_for_are_not_run(ops: Counting) -> None:
    x, w = vector(1.0), vector(1.0)
    hidden = ops.add("first", ops.double("x", x.trace()), w)
    loss = ops.add("second", hidden, ops.double("tail", vector(1.0).trace())).sum()
    grads = loss.backward(wrt=w)

    assert ops.runs == {"second.lhs": 1, "first.rhs": 1}
    assert [w.id] == list(grads)


def test_nothing_runs_for_a_tensor_that_took_no_part(ops: Counting) -> None:
    x, stranger = vector(1.0), vector(1.0)
    grads = ops.double("x", x.trace()).sum().backward(wrt=stranger)

    assert not ops.runs
    assert len(grads) == 0
    assert grads.get(stranger) is None


def test_a_module_stands_for_its_parameters(ops: Counting) -> None:
    x, w, b = vector(1.0), vector(2.0), vector(3.0)
    loss = ops.add("bias", ops.double("x", x.trace()) * w, b).sum()
    grads = loss.backward(wrt=Model(weight=w, bias=b))

    assert ops.runs == {"bias.lhs": 1, "bias.rhs": 1}
    assert {w.id, b.id} == set(grads)
    assert grads[w].numpy().tolist() == [2.0]


@pytest.mark.parametrize("several", [list, tuple, iter])
def test_several_tensors_can_be_asked_for(several: Any) -> None:
    x, w, b = vector(1.0), vector(2.0), vector(3.0)
    grads = (x.trace() * w + b).sum().backward(wrt=several([b, x, b]))

    assert {x.id, b.id} == set(grads)
    assert grads[x].numpy().tolist() == [2.0]
    assert grads[b].numpy().tolist() == [1.0]


def test_an_intermediate_tensor_can_be_asked_for_and_nothing_behind_it_runs(
    ops: Counting,
) -> None:
    x = vector(3.0)
    middle = ops.double("x", x.trace())
    loss = ops.double("middle", middle).sum()
    grads = loss.backward(wrt=middle)

    assert ops.runs == {"middle": 1}
    assert [middle.id] == list(grads)
    assert grads[middle].numpy().tolist() == [2.0]


def test_asking_for_indices_runs_nothing_for_no_gradient_flows_to_them(ops: Counting) -> None:
    ids = tt.from_numpy([0], shape=(1,), dtype=np.int64)
    rows = ops.gather("gather", vector(1.0).trace(), ids)
    grads = ops.double("after", rows).sum().backward(wrt=ids)

    assert not ops.runs
    assert len(grads) == 0


def test_carried_gradients_of_others_stay_under_wrt() -> None:
    x, w = vector(1.0), vector(5.0)
    carried = tt.Gradients()
    carried.insert(x, vector(7.0))
    grads = (x.trace(carried) * w).sum().backward(wrt=w)

    assert grads[x].numpy().tolist() == [7.0]
    assert grads[w].numpy().tolist() == [1.0]


class _ParametersInAList:
    def parameters(self) -> list[Any]:
        return [vector(1.0), "bias"]


@pytest.mark.parametrize(
    "wrt", [5, "weight", Model, [vector(1.0), None], np.ones(2), _ParametersInAList(), [[]]]
)
def test_wrt_of_another_kind_is_refused_and_the_loss_stays_usable(wrt: Any) -> None:
    x = vector(1.0)
    loss = x.trace().square().sum()

    with pytest.raises(tt.ArgumentTypeError, match="backward: wrt must be"):
        loss.backward(wrt=wrt)
    assert loss.backward(wrt=x)[x].numpy().tolist() == [2.0]


def test_wrt_of_several_modules_is_refused_with_the_way_to_write_them() -> None:
    x = vector(1.0)
    wrt: Any = [Model(a=x), Model(b=x)]

    with pytest.raises(tt.ArgumentTypeError, match=r"got a Model among several; write \[\*a\."):
        x.trace().sum().backward(wrt=wrt)


def test_wrt_that_fails_is_noticed_before_anything_happens() -> None:
    x = vector(1.0)
    loss = x.trace().square().sum()

    def failing() -> Iterator[Vector]:
        yield x
        raise KeyError("no such parameter")

    with pytest.raises(KeyError, match="no such parameter"):
        loss.backward(wrt=failing())
    assert loss.backward(wrt=x)[x].item() == 2.0
