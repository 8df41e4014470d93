"""What a step raises by values at a later call: the function itself answers, or raises."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.compiler import plans
from tests.compiler.test_training import _state

A = np.arange(3.0)
GOOD, BAD = np.array([0, 1, 2]), np.array([0, 1, 9])


def _element(a: Any, i: Any) -> Any:
    try:
        return a[i]
    except IndexError:
        return a * 0.0 - 1.0


# What raises for BAD, by values alone, while nobody reads what it gives.
_UNREAD: dict[str, Callable[[Any, Any], Any]] = {
    "elements": lambda a, i: a[i],
    "an element": lambda a, i: a[i[2]],
    "a row": lambda a, i: np.stack([a, a, a])[i[2]],
    "what is taken": lambda a, i: np.take(a, i),
    "sums between places": lambda a, i: np.add.reduceat(a, i),
    "parts by a place": lambda a, i: np.partition(a, i[2]),
    "places of parts": lambda a, i: np.argpartition(a, i[2]),
    "a running sum along an axis": lambda a, i: np.cumsum(a, axis=i[2] - 2),
    "a mean along an axis": lambda a, i: np.mean(a, axis=i[2] - 2),
    "the place of the largest number": lambda a, i: np.nanargmax(np.where(i[2] > 8, np.nan, a)),
    "a geometric sequence": lambda a, i: np.geomspace(9.0 - i[2], 3.0),
    "a power": lambda a, i: np.power(i, 8 - i),
    "a quotient": lambda a, i: 1 / (i[2].item() - 9),
}


def _unread(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(a: Any, i: Any) -> Any:
        try:
            step(a, i)
        except (IndexError, ValueError, ArithmeticError):
            return a - 1.0
        return a + 1.0

    return run


@pytest.mark.parametrize(
    "function",
    [_element, *[_unread(step) for step in _UNREAD.values()]],
    ids=["element", *_UNREAD],
)
def test_an_except_around_an_op_sees_what_it_raises_at_a_later_call(function: Any) -> None:
    compiled = tt.compile(function)
    for i in (GOOD, BAD, GOOD, BAD):
        expected = function(A, i)
        found = compiled(A, i)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert len(plans(compiled)) == 1


@pytest.mark.parametrize(
    "run",
    [
        lambda x, k: np.mean(x, axis=k[0]) * 2.0,
        lambda x, k: np.sum(x, axis=k[0], where=x > -9.0) * 2.0,
        lambda x, k: x - np.median(x, k[0].item(), keepdims=True),
        lambda x, k: np.take(x, [0], axis=k[0]).sum(),
        lambda x, k: np.fft.fft(x, k[0] + 2).real.sum(1),
    ],
)
def test_an_axis_that_comes_in_decides_the_shape_at_every_call(run: Any) -> None:
    x = np.arange(5.0).reshape(1, 1, 5)
    compiled = tt.compile(run)
    for k in (0, 2, -1, 1, 2):
        found, expected = compiled(x, np.array([k])), run(x, np.array([k]))
        np.testing.assert_array_equal(found, expected, strict=True)


def test_an_error_is_the_functions_own_with_its_line() -> None:
    compiled: Any = tt.compile(lambda a, i: a[i] * 2.0)
    compiled(A, GOOD)
    with pytest.raises(IndexError, match="index 9 is out of bounds") as error:
        compiled(A, BAD)
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert (last.filename, error.value.__context__) == (__file__, None)


class Model(nn.Module):
    norm: nn.BatchNorm1d[Any]
    drop: nn.Dropout
    out: nn.Linear[Any, Any]

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.drop.forward(self.norm.forward(x)))


class Training:
    """A training step that reads elements at given places, before or after the optimizer's step."""

    def __init__(self, *, catches: bool = False, is_late: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.model = Model(
            norm=nn.BatchNorm1d(3), drop=nn.Dropout(0.5, rng=rng), out=nn.Linear(3, 2, rng=rng)
        )
        self.optimizer = optim.Adam(self.model, lr=0.1)
        self.rng, self.catches, self.is_late = rng, catches, is_late

    def read(self, i: Any) -> Any:
        try:
            return np.take(self.model.out.bias.numpy().sum() + np.arange(3.0), i)
        except IndexError:
            if not self.catches:
                raise
            return i * 0.0

    def step(self, x: Any, i: Any) -> Any:
        noisy = x + tt.from_numpy(self.rng.normal(size=(4, 3)).astype(np.float32))
        loss = losses.mse(self.model.forward(noisy.trace()), tt.zeros((4, 2)))
        read = None if self.is_late else self.read(i)
        value = loss.detach()
        self.optimizer.step(loss.backward(wrt=self.model))
        return value.numpy(), self.read(i) if self.is_late else read

    def state(self) -> dict[str, Any]:
        arrays = {**_state(self.model), **self.optimizer.state_arrays()}
        copies = {name: np.array(array).tolist() for name, array in arrays.items()}
        return {**copies, "rng": self.rng.bit_generator.state["state"]["state"]}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_training_step_that_catches_an_error_trains_as_it_does_in_eager_mode(
    is_late: bool,
) -> None:
    eager, planned = [Training(catches=True, is_late=is_late) for _ in range(2)]
    step = tt.compile(planned.step)
    x = tt.normal((4, 3), rng=np.random.default_rng(2))
    for i in (GOOD, BAD, GOOD, BAD):
        for found, expected in zip(step(x, i), eager.step(x, i), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    found, expected = planned.state(), eager.state()
    assert found.pop("rng") == expected.pop("rng")
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_training_step_that_fails_leaves_all_as_it_was(is_late: bool) -> None:
    training = Training(is_late=is_late)
    step = tt.compile(training.step)
    x = tt.normal((4, 3), rng=np.random.default_rng(2))
    step(x, GOOD)
    before = training.state()
    for _ in range(2):
        with pytest.raises(IndexError):
            step(x, BAD)
        assert training.state() == before
    step(x, GOOD)
    assert training.state() != before


class Interrupted(np.random.Generator):
    """A generator that raises, when it is told to."""

    error: BaseException | None = None

    @override
    def standard_normal(self, *args: Any, **options: Any) -> Any:
        super().standard_normal(2)
        if self.error is not None:
            raise self.error
        return super().standard_normal(*args, **options)


@pytest.mark.parametrize(
    ("error", "is_run"), [(KeyboardInterrupt(), False), (SystemExit(), False), (OSError(), True)]
)
def test_only_errors_lead_to_the_function_and_no_interrupt(
    error: BaseException, is_run: bool
) -> None:
    rng = Interrupted(np.random.PCG64(0))
    compiled: Any = tt.compile(lambda x: x + rng.standard_normal(3))
    compiled(A)
    before = rng.bit_generator.state
    rng.error = error
    with pytest.raises(type(error)) as raised:
        compiled(A)
    assert rng.bit_generator.state == before
    assert raised.value is error
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert ("<lambda>" in names) is is_run


def _kernel(x: Any) -> Any:
    inverse = np.linalg.inv(x)
    return inverse, (lambda g: -inverse.T @ g @ inverse.T,)


def test_an_op_of_ones_own_that_raises_is_caught_with_its_tape() -> None:
    def run(x: Any) -> Any:
        try:
            loss = tt.custom_op(_kernel, x.trace(), shape=(2, 2)).sum()
        except tt.ArgumentValueError:
            loss = (x.trace() * 3.0).sum()
        return loss.backward(wrt=x)[x]

    compiled = tt.compile(run)
    for array in (np.eye(2), np.zeros((2, 2)), 2.0 * np.eye(2)):
        x = tt.from_numpy(array)
        np.testing.assert_array_equal(compiled(x).numpy(), run(x).numpy())


def test_an_errstate_around_the_call_raises_what_eager_mode_raises() -> None:
    def unread(a: Any) -> Any:
        1.0 / a
        return a * 2.0

    for function in (unread, lambda a: np.log(a)):
        compiled = tt.compile(function)
        compiled(A + 1.0)
        for _ in range(2):
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
                compiled(A)
            np.testing.assert_array_equal(compiled(A + 1.0), function(A + 1.0))


def test_a_warning_that_is_an_error_is_one_that_the_function_may_expect() -> None:
    def run(a: Any) -> Any:
        try:
            return np.log(a)
        except RuntimeWarning:
            return a - 1.0

    compiled = tt.compile(run)
    np.testing.assert_array_equal(compiled(A + 1.0), np.log(A + 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(compiled(A), A - 1.0)
    assert len(plans(compiled)) == 1


def test_an_error_that_comes_too_late_says_that_parameters_are_updated() -> None:
    weight = nn.Linear(1, 1, rng=np.random.default_rng(0))
    optimizer = optim.Sgd(weight, lr=0.1)

    def step(x: Any) -> Any:
        optimizer.step(weight.forward(x.trace()).sum().backward(wrt=weight))
        return np.log(weight.bias.numpy() * 0.0 + x.numpy())

    compiled = tt.compile(step)
    compiled(tt.ones((1, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning) as error:
            compiled(tt.zeros((1, 1)))
    assert "parameters may be updated" in error.value.__notes__[0]
    assert optimizer.steps == 2


@pytest.mark.parametrize(
    "run",
    [
        lambda a: a.max().item() * 2**62,
        lambda a: a.max().item() ** -1,
        lambda a: -(a.max().item() * a.max().item() ** 60),
    ],
)
def test_integers_are_those_of_python_where_no_array_holds_them(run: Any) -> None:
    compiled = tt.compile(run)
    for a in (np.array([1, 0]), np.array([3, 1])):
        assert repr(compiled(a)) == repr(run(a))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: memoryview(x)[0],
        lambda x: bytes(x),  # what is refused
        lambda x: np.frombuffer(x)[0],
        lambda x: json.dumps(x[0].item()),
        lambda x: Decimal(x[0].item()),
        lambda x: np.timedelta64(x.astype(int)[0], "s"),
    ],
)
def test_an_error_that_only_stand_ins_raise_is_not_taken_for_the_functions_own(read: Any) -> None:
    def known(x: Any) -> Any:
        try:
            return read(x)
        except (TypeError, ValueError):
            return None

    with pytest.raises(tt.TraceError, match=r"test_steps_that_raise.py:\d+: .*; "):
        tt.compile(known)(np.ones(2))
