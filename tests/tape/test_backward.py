"""The backward pass: seeds, what is computed on request, what is refused and what that leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.tape import Kernel, Pullbacks
from tapetensor.tape.history import History, gathered
from tapetensor.tensor.apply import apply

X = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))


def test_a_scalar_needs_no_cotangent_and_takes_one() -> None:
    loss = X.trace().square().sum()

    assert loss.backward(retain=True)[X].numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert loss.backward(tt.full((), 0.5))[X].numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_cotangent_stays_as_it_was() -> None:
    cotangent = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
    grads = (X.trace() + X).backward(cotangent)
    grads.insert(X, np.ones((2, 2), np.float32))
    grads.clip_by_global_norm(0.1)

    assert cotangent.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("cotangent", "error", "message"),
    [
        (None, tt.ShapeError, r"backward: only a scalar .* shape \(2, 2\)"),
        (
            tt.ones((2,)),
            tt.ShapeError,
            r"backward: the cotangent has shape \(2,\), the tensor \(2, 2\)",
        ),
        (tt.ones((1, 2, 2)), tt.ShapeError, r"backward: the cotangent has shape \(1, 2, 2\)"),
        (
            tt.ones((2, 2), np.float64),
            tt.DTypeError,
            "backward: the cotangent has dtype float64, the tensor float32",
        ),
        (tt.ones((2, 2), np.int64), tt.DTypeError, "backward: the cotangent has dtype int64"),
        (tt.ones((2, 2)).trace(), tt.UntracedTensorError, "backward: .*plain value.*detach"),
        (np.ones((2, 2)), tt.ArgumentTypeError, "backward: the cotangent must be a tensor"),
        (1.0, tt.ArgumentTypeError, "backward: the cotangent must be a tensor, got float"),
    ],
)
def test_a_cotangent_that_does_not_fit_is_refused_and_the_tensor_stays_usable(
    cotangent: Any, error: type[Exception], message: str
) -> None:
    y: Any = X.trace().square()

    with pytest.raises(error, match=message):
        y.backward(cotangent)
    assert y.sum().backward()[X].numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_a_value_computed_without_a_tape_is_a_constant() -> None:
    constant = X.detach().square()
    grads = (X.trace() * constant).sum().backward()

    assert grads[X].numpy().tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert grads[constant].numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


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


def test_a_module_stands_for_its_parameters(ops: Counting) -> None:
    x, w, b = vector(1.0), vector(2.0), vector(3.0)
    loss = ops.add("bias", ops.double("x", x.trace()) * w, b).sum()
    grads = loss.backward(wrt=Model(weight=w, bias=b))

    assert ops.runs == {"bias.lhs": 1, "bias.rhs": 1}
    assert {w.id, b.id} == set(grads)
    assert grads[w].numpy().tolist() == [2.0]


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


POSITIVE = tt.from_numpy([1.0, 4.0], shape=(2,))


def with_a_side_branch() -> Any:
    """Return a loss whose tape holds two ops that do not lead to it."""
    _, tape = (POSITIVE.trace().exp() * POSITIVE).split_tape()
    return POSITIVE.put_tape(tape).square().sum()


def test_ops_that_do_not_lead_to_the_output_are_reported_on_request() -> None:
    loss = with_a_side_branch()

    with pytest.raises(
        tt.MissingGradientError,
        match=r"^backward: 2 recorded ops do not lead to the output.*: exp, multiply; leave them",
    ):
        loss.backward(unused="error")
    assert loss.backward()[POSITIVE].numpy().tolist() == [2.0, 8.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("values", [[0.0, 4.0], [-1.0, 4.0]])
def test_a_gradient_that_is_not_finite_is_refused_with_the_op_that_made_it(
    values: list[float],
) -> None:
    x = tt.from_numpy(values, shape=(2,))
    loss = x.trace().sqrt().clip(0.0, 9.0).sum()

    with pytest.raises(
        tt.NumericalInstabilityError,
        match=rf"^backward: the gradient of the tensor with id {x.id}, from 'sqrt', is not finite: "
        "1 of 2 elements",
    ):
        loss.backward(check_finite=True)
    # It was refused, not used up.
    assert not np.isfinite(loss.backward()[x].numpy()).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_finite_gradients_whose_sum_overflows_are_refused() -> None:
    x = tt.full((1,), 1.0)
    weight = tt.full((1,), 2e38)
    loss = (x.trace() * weight + x.trace() * weight).sum()

    with pytest.raises(tt.NumericalInstabilityError, match="from 'the sum of gradients'"):
        loss.backward(check_finite=True)


def test_a_cotangent_that_is_not_finite_is_refused() -> None:
    y = POSITIVE.trace().exp()
    cotangent = tt.full((2,), float("nan"))

    with pytest.raises(tt.NumericalInstabilityError, match="from 'the cotangent'"):
        y.backward(cotangent, check_finite=True)
    assert y.owns_tape


def test_an_exception_of_any_kind_in_a_kernel_changes_nothing() -> None:
    def kernel(lhs: Any, rhs: Any) -> tuple[Any, Pullbacks]:
        raise RuntimeError("out of luck")

    left, right = tt.ones((2,)), tt.ones((2,))
    x, y = left.trace(), right.trace()

    with pytest.raises(RuntimeError, match="out of luck"):
        apply(kernel, (x, y))
    assert set((x + y).sum().backward()) == {left.id, right.id}


DOUBLES = tt.from_numpy([1.0, 2.0], shape=(2,), dtype=np.float64)
Y = tt.from_numpy([3.0, 5.0], shape=(2,), dtype=np.float64)


def plain_sum(history: History, output_id: int, cotangent: Array) -> dict[int, Array]:
    """Replay by the book, with a fresh array for every sum."""
    arrays: dict[int, Array] = {output_id: cotangent}
    for produced_id, _, pullbacks, parents, _, _ in reversed(gathered(history)[0]):
        if isinstance(parents, int):
            pullbacks, parents = (pullbacks,), (parents,)
        for pullback, parent in zip(pullbacks, parents, strict=True):
            if produced_id in arrays and pullback is not None:
                added = np.array(pullback(arrays[produced_id].copy()))
                arrays[parent] = arrays[parent] + added if parent in arrays else added
    return arrays


def many_uses(x: Any, y: Any) -> Any:
    """Use two values many times, also by ops whose pullbacks return their cotangent itself."""
    for _ in range(3):
        x = (x + y) + (x - y) * y
        x = x.reshape((2, 1)).reshape((2,)) + x
    return x


def numpy_scalars(x: Any, y: Any) -> Any:
    """Use a sum, whose gradient is a numpy scalar, four times."""
    total = y.retaped(tt.OwnedTape).sum()
    return (x.sum() + total) * total * total * total


def parts(x: Any, y: Any) -> Any:
    """Use parts of a value, some twice, some that overlap, and the whole before and after."""
    whole = x * y
    first, second = whole.split(2)
    both = first * second + first
    mask = tt.from_numpy([True, False], shape=(2,), dtype=np.bool_)
    last = whole[1:] + whole[::-1][:1] + whole[mask] + whole
    return last * both + whole


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "many uses": many_uses,
    "identities only": lambda x, y: ((x + y) + y) + y + y,
    "both operands one": lambda x, y: (x * y) * y * y + y,
    "numpy scalars": numpy_scalars,
    "parts": parts,
    "parts of a leaf": lambda x, y: (x[1:] + x[:1]) * x[1:] * y,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wrt", [None, [DOUBLES], [Y], [DOUBLES, Y]], ids=["all", "x", "y", "both"])
def test_sums_in_place_are_the_sums_by_the_book(program: str, wrt: Any) -> None:
    result = PROGRAMS[program](DOUBLES.trace(), Y)
    cotangent = tt.full(result.shape, 1.5, np.float64)
    expected = plain_sum(result.history, result.id, cotangent.numpy())

    grads = result.backward(cotangent, wrt=wrt)

    for leaf in wrt or [DOUBLES, Y]:
        np.testing.assert_array_equal(grads[leaf].numpy(), expected[leaf.id])
    assert len(grads) == len(wrt or [DOUBLES, Y])


def test_the_cotangent_and_the_gradients_of_intermediate_values_stay_as_they_were() -> None:
    """A sum that an identity hands on is one array under two ids."""
    cotangent = tt.ones((2,), np.float64)
    trunk = DOUBLES.trace(tt.Gradients.leaky()) * Y
    middle = trunk + Y
    y = ((middle + trunk) + trunk) + trunk
    grads = y.backward(cotangent)

    assert cotangent.numpy().tolist() == [1.0, 1.0]
    assert grads[middle].numpy().tolist() == [1.0, 1.0]
    assert grads[trunk].numpy().tolist() == [4.0, 4.0]
    assert grads[DOUBLES].numpy().tolist() == [12.0, 20.0]
    assert grads[Y].numpy().tolist() == [5.0, 9.0]
