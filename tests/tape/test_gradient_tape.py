"""The recorder driven by hand: correct gradients, and an error for everything that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array

RNG = np.random.default_rng(20260301)


def normal(*shape: int) -> Array:
    array: Array = np.asarray(RNG.standard_normal(shape))
    return array


def _layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    result: Array = centred / spread * scale + bias
    return result


def _scan(x: Array, a: Array, b: Array) -> Array:
    h = np.zeros_like(x)
    axis = -2 if x.ndim > 1 else 0
    rows, xs, keeps, adds = (np.moveaxis(one, axis, 0) for one in (h, x, a, b))
    for t in range(len(rows)):
        rows[t] = keeps[t] * (rows[t - 1] if t else 0) + adds[t] * xs[t]
    return h


ROWS: dict[str, tuple[Callable[..., int], Callable[..., Array], list[Array]]] = {
    "add": (tt.GradientTape.record_add, np.add, [normal(3), normal(3)]),
    "mul": (tt.GradientTape.record_mul, np.multiply, [normal(2, 3), normal(2, 3)]),
    "matmul": (tt.GradientTape.record_matmul, np.matmul, [normal(2, 3), normal(3, 4)]),
    "silu": (tt.GradientTape.record_silu, lambda x: x / (1 + np.exp(-x)), [normal(5)]),
    "layer_norm": (
        tt.GradientTape.record_layer_norm,
        _layer_norm,
        [normal(6), normal(6), normal(6)],
    ),
    "layer_norm of rows": (
        tt.GradientTape.record_layer_norm,
        _layer_norm,
        [normal(2, 4), normal(4), normal(4)],
    ),
    "ssm_scan": (tt.GradientTape.record_ssm_scan, _scan, [normal(7), normal(7), normal(7)]),
    "ssm_scan of channels": (
        tt.GradientTape.record_ssm_scan,
        _scan,
        [normal(2, 5, 3), normal(2, 5, 3), normal(2, 5, 3)],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_an_op_has_the_value_and_the_gradients_of_mathematics(row: str) -> None:
    record, reference, operands = ROWS[row]
    tape = tt.GradientTape()
    slots = [tape.alloc(operand) for operand in operands]
    output = record(tape, *slots)
    cotangent = normal(*reference(*operands).shape)
    gradients = tape.backward(cotangent)

    np.testing.assert_allclose(tape.value(output), reference(*operands), rtol=1e-12)
    for position, operand in enumerate(operands):
        direction = normal(*operand.shape)
        ahead, behind = (
            reference(*operands[:position], operand + step * direction, *operands[position + 1 :])
            for step in (1e-6, -1e-6)
        )
        expected = np.sum(cotangent * (ahead - behind)) / 2e-6
        gradient = gradients[slots[position]]
        assert gradient is not None
        assert gradient.shape == operand.shape
        assert np.sum(gradient * direction) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_slots_are_handed_out_in_order_so_that_inputs_and_results_do_not_collide() -> None:
    tape = tt.GradientTape()
    inputs = [tape.alloc(np.ones(2)), tape.alloc(np.ones(2))]
    numpy_integer: Any = np.int64(2)

    assert inputs == [0, 1]
    assert tape.record_add(0, 1) == 2
    assert tape.alloc(np.ones(2)) == 3
    assert tape.record_mul(numpy_integer, 3) == 4
    assert repr(tape) == "GradientTape(5 slots, 2 ops)"


def test_a_slot_used_several_times_gets_the_sum() -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.array([3.0]))
    cube = tape.record_mul(tape.record_mul(x, x), x)
    tape.record_add(cube, tape.record_add(x, x))
    gradients = tape.backward(np.ones(1))

    assert gradients[x] == [29.0]
    assert gradients[cube] == [1.0]


def test_backward_can_be_run_again_and_adds_to_the_same_list() -> None:
    tape = tt.GradientTape()
    x, y = tape.alloc(np.array([2.0])), tape.alloc(np.array([5.0]))
    tape.record_mul(x, y)
    gradients: list[Array | None] = [np.array([100.0])]

    assert tape.backward(np.ones(1), gradients) is gradients
    tape.backward(np.ones(1), gradients)

    assert gradients == [[110.0], [4.0], [2.0]]


def test_a_seed_that_was_written_to_in_between_is_read_again() -> None:
    tape = tt.GradientTape()
    x, a, b = [tape.alloc(normal(4, 2)) for _ in range(3)]
    tape.record_ssm_scan(x, a, b)
    seed = np.ones((4, 2))
    once = tape.backward(seed)
    seed *= 2.0

    for gradient, twice in zip(once, tape.backward(seed), strict=True):
        assert gradient is not None
        np.testing.assert_array_equal(2.0 * gradient, twice)


def test_a_slot_that_no_gradient_reaches_has_none() -> None:
    tape = tt.GradientTape()
    x, _ = tape.alloc(np.ones(2)), tape.alloc(np.ones(2))
    tape.record_silu(x)

    assert tape.backward(np.ones(2))[1] is None


def test_a_tape_without_slots_leaves_the_list_as_it_is() -> None:
    assert tt.GradientTape().backward(np.ones(2)) == []
    assert tt.GradientTape().backward(np.ones(2), []) == []


def test_no_array_of_the_caller_is_kept_or_written_to() -> None:
    value, seed, before = np.ones(2), np.ones(2), np.ones(2)
    tape = tt.GradientTape()
    x = tape.alloc(value)
    tape.record_add(x, x)
    value[:] = 9.0
    gradients: list[Array | None] = [before, None]
    tape.backward(seed, gradients)
    for gradient in gradients:
        assert gradient is not None
        gradient[:] = 7.0

    assert tape.value(x).tolist() == [1.0, 1.0]
    assert seed.tolist() == before.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        tape.value(x)[0] = 2.0


def _explosion(x: Array) -> Any:
    """An op whose value is finite and whose derivative is not."""
    return x, (lambda g: g / np.zeros_like(x),)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_gradient_that_is_not_finite_is_refused_with_the_op_and_the_slot_that_it_is_of() -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.array([1.0, 2.0]))
    middle = tape.record(_explosion, (x,))
    tape.record_silu(middle)
    gradients: list[Array | None] = []

    with pytest.raises(
        tt.NumericalInstabilityError,
        match=r"the gradient of slot 0, from '_explosion', is not finite: 2 of 2 .* first is inf",
    ):
        tape.backward(np.ones(2), gradients)
    assert gradients == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_seed_or_an_entry_that_is_not_finite_is_refused(bad: float) -> None:
    tape = tt.GradientTape()
    tape.alloc(np.ones(1))

    with pytest.raises(tt.NumericalInstabilityError, match="slot 0, from 'loss_grad'"):
        tape.backward(np.array([bad]))
    with pytest.raises(tt.NumericalInstabilityError, match="slot 0, from 'tensors'"):
        tape.backward(np.ones(1), [np.array([bad])])


def _broadcasting(x: Array) -> Any:
    return x, (lambda g: np.sum(g, keepdims=True),)


def _writing(x: Array) -> Any:
    x *= 2
    return x, (lambda g: 2 * g,)


def _promoting(x: Array) -> Any:
    return x, (lambda g: g.astype(np.float64),)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda t: t.alloc([1.0]), tt.ArgumentTypeError, "alloc: the value must be an array"),
        (lambda t: t.alloc(np.arange(2)), tt.DTypeError, "alloc: a value of dtype int64 has no"),
        (lambda t: t.record_add(0, 9), tt.ArgumentValueError, "there is no slot 9, the tape has 4"),
        (lambda t: t.record_silu(-1), tt.ArgumentValueError, "there is no slot -1"),
        (lambda t: t.record_silu(0.0), tt.ArgumentTypeError, "a slot of .* must be an int"),
        (lambda t: t.record_add(0, 1), tt.ShapeError, r"record_add: slots 0 and 1 have .*\(2,\) a"),
        (lambda t: t.record_matmul(0, 1), tt.ShapeError, "'matmul': slots 0, 1 of shapes"),
        (lambda t: t.record_layer_norm(0, 0, 1), tt.ShapeError, "record_layer_norm: x of shape"),
        (
            lambda t: t.record_layer_norm(0, 0, 0, -1.0),
            tt.ArgumentValueError,
            "eps must be >= 0 and finite, got -1.0",
        ),
        (lambda t: t.record_layer_norm(0, 0, 0, "1"), tt.ArgumentTypeError, "got '1'"),
        (lambda t: t.record(3, (0,)), tt.ArgumentTypeError, "a kernel and its slots .* got int"),
        (lambda t: t.record(lambda x: (x, ("g",)), (0,)), tt.ArgumentTypeError, "must return its"),
        (lambda t: t.record(_writing, (0,)), tt.ArgumentValueError, "'_writing' writes to a value"),
        (lambda t: t.record_ssm_scan(0, 0, 1), tt.ShapeError, "record_ssm_scan: slots 0 and 1"),
        (lambda t: t.record_mul(0, 2), tt.DTypeError, "'multiply': dtypes differ: float64 and f"),
        (lambda t: t.record(_explosion, ()), tt.ArgumentValueError, "at least one slot"),
        (lambda t: t.record(lambda x: (x, ()), (0,)), tt.ArgumentTypeError, "1 pullbacks, one per"),
        (lambda t: t.record(lambda x: (1, (None,)), (0,)), tt.ArgumentTypeError, "the output of"),
        (lambda t: t.record(lambda x: (x > 0, (None,)), (0,)), tt.DTypeError, "made bool of flo"),
        (lambda t: t.backward(np.ones(2)), tt.ShapeError, r"from 'loss_grad', has shape \(2,\)"),
        (lambda t: t.backward(np.ones((1, 1), np.float32)), tt.DTypeError, "has dtype float32"),
        (lambda t: t.backward(1.0), tt.ArgumentTypeError, "loss_grad must be an array"),
        (lambda t: t.backward(np.ones((1, 1)), ()), tt.ArgumentTypeError, "tensors must be a list"),
        (
            lambda t: t.backward(np.ones((1, 1)), [np.zeros(1)]),
            tt.ShapeError,
            r"slot 0, from 'tensors', has shape \(1,\), the slot \(2,\)",
        ),
        (
            lambda t: t.backward(np.ones((1, 1)), out=[np.ones(2)]),
            tt.ArgumentValueError,
            "out has 1 entries, the tape 4 slots",
        ),
        (
            lambda t: t.backward(np.ones((1, 1)), unused="warn"),
            tt.ArgumentValueError,
            'unused must be "ignore" or "error", got \'warn\'',
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_the_tape_stays_as_it_was(
    mistake: Callable[[Any], object], error: type[Exception], message: str
) -> None:
    tape = tt.GradientTape()
    for value in (np.ones(2), np.ones((1, 1)), np.ones(2, np.float32)):
        tape.alloc(value)
    tape.record_silu(1)
    before = repr(tape)

    with pytest.raises(error, match=message):
        mistake(tape)
    assert repr(tape) == before
    assert tape.value(0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (_broadcasting, tt.ShapeError, r"slot 0, from '_broadcasting', has shape \(1,\)"),
        (_promoting, tt.DTypeError, "slot 0, from '_promoting', has dtype float64"),
    ],
)
def test_a_pullback_that_returns_something_else_is_refused(
    kernel: Any, error: type[Exception], message: str
) -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.ones(3, np.float32))
    tape.record_add(tape.record(kernel, (x,)), x)

    with pytest.raises(error, match=message):
        tape.backward(np.ones(3, np.float32))


def test_ops_that_do_not_lead_to_the_output_are_reported_on_request() -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.ones(2))
    side = tape.record_silu(x)
    tape.record_mul(side, side)
    total = tape.record_add(x, x)

    with pytest.raises(
        tt.MissingGradientError, match=r"2 recorded ops do not lead to the output.*silu, multiply;"
    ):
        tape.backward(np.ones(2), unused="error")
    assert tape.backward(np.ones(2), output=total)[side] is None


def test_backward_starts_at_the_slot_that_is_asked_for_and_guesses_none() -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.array([3.0]))
    loss = tape.record_mul(x, x)
    metric = tape.record_silu(x)

    with pytest.raises(
        tt.ArgumentValueError,
        match=r"no op uses slots 1 \(multiply\), 2 \(silu\); say which.*output=2",
    ):
        tape.backward(np.ones(1))
    gradients = tape.backward(np.ones(1), output=loss)
    assert gradients[metric] is None
    assert float(np.sum(gradients[x])) == 6.0  # type: ignore[arg-type]  # there is one
    with pytest.raises(tt.ArgumentValueError, match="there is no slot 7"):
        tape.backward(np.ones(1), output=7)
