"""The gradient check accepts right pullbacks, finds wrong ones and refuses what it cannot check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply
from tapetensor.testing import GradientMismatchError, check_grad

_X = tt.from_numpy(np.array([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]]))
_Y = tt.from_numpy(np.array([1.5, -0.5, 0.9]))


def _halved(x: Array) -> tuple[Array, Pullbacks]:
    return np.exp(x), (lambda g: 0.5 * g * np.exp(x),)


def _right_factor_forgotten(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    return lhs * rhs, (lambda g: g * rhs, np.zeros_like)


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (lambda x: x.exp(), (_X,)),
        (lambda x: x.sum(), (_X,)),
        (lambda x, y: (x * y).tanh().mean(axis=0), (_X, _Y)),
        (lambda x, y: x * x + y, (_X, _Y)),
        (lambda x, y: x @ y, (_X, _Y)),
        # Twice the same tensor: two inputs all the same.
        (lambda x, y: x / (y * y + 1.0), (_X, _X)),
        (lambda x: x * 2.0, (tt.from_numpy(np.zeros((0, 3))),)),
        (lambda x: x, (_X,)),
    ],
)
def test_right_pullbacks_are_accepted(f: Any, inputs: tuple[Any, ...]) -> None:
    check_grad(f, *inputs, rng=np.random.default_rng(3))


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_factor_is_found_and_the_op_is_named(seed: int) -> None:
    def wrong_exp(x: Any) -> Any:
        return apply(_halved, (x,)) * 3.0

    message = r"wrong_exp by input 0(.|\n)*_halved, multiply\n(.|\n)*shape \(2, 3\): \[\[ 0.3"
    with pytest.raises(GradientMismatchError, match=message) as raised:
        check_grad(wrong_exp, _X, rng=np.random.default_rng(seed))

    assert isinstance(raised.value, AssertionError)
    assert isinstance(raised.value, tt.TapeTensorError)


def test_the_input_whose_pullback_is_wrong_is_named() -> None:
    with pytest.raises(GradientMismatchError, match="by input 1 is wrong"):
        check_grad(
            lambda x, y: apply(_right_factor_forgotten, (x, y)),
            _Y,
            _Y,
            rng=np.random.default_rng(0),
        )


def test_a_function_that_hides_an_operand_from_the_tape_is_found() -> None:
    with pytest.raises(GradientMismatchError):
        check_grad(lambda x: x * x.detach(), _X, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((None, _X), {}, tt.ArgumentTypeError, "f must be a function, got NoneType"),
        ((lambda x: x,), {}, tt.ArgumentValueError, "at least one input"),
        ((lambda x: x, np.ones(2)), {}, tt.ArgumentTypeError, "input 0 must be a tensor"),
        ((lambda x: x, _X, 2.0), {}, tt.ArgumentTypeError, "input 1 must be a tensor"),
        ((lambda x: x, tt.ones((2,))), {}, tt.DTypeError, "input 0 has dtype float32"),
        ((lambda x: x, tt.arange(2)), {}, tt.DTypeError, "int64"),
        ((lambda x: x, _X.trace()), {}, tt.UntracedTensorError, "input 0 must be a plain value"),
        ((lambda x: x.detach().numpy(), _X), {}, tt.ArgumentTypeError, "the result of f"),
        ((lambda x: x.astype(np.float32), _X), {}, tt.DTypeError, "the result of f has dtype"),
        ((lambda x: x.detach(), _X), {}, tt.UntracedTensorError, "the result of f owns no tape"),
        ((lambda x: x, _X), {"eps": 0.0}, tt.ArgumentValueError, "eps must be > 0"),
        ((lambda x: x, _X), {"eps": np.nan}, tt.ArgumentValueError, "eps"),
        ((lambda x: x, _X), {"rtol": -1.0}, tt.ArgumentValueError, "rtol"),
        ((lambda x: x, _X), {"atol": np.inf}, tt.ArgumentValueError, "atol"),
        ((lambda x: x, _X), {"atol": "0"}, tt.ArgumentTypeError, "got '0'"),
        ((lambda x: x, _X), {"rng": 0}, tt.ArgumentTypeError, "rng must be a numpy Generator"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        check_grad(*arguments, **{"rng": np.random.default_rng(0), **options})

    assert str(raised.value).startswith("check_grad: ")
