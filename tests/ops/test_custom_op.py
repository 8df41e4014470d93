"""A user's own kernel: tapes as for any op, and what it must keep to is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tensor.apply import apply
from tapetensor.testing import GradientMismatchError, check_grad
from tapetensor.typing import Array, Pullbacks
from tests.ops.custom_rows import softsign_kernel

_X = tt.from_numpy([1.0, -3.0], shape=(2,))


def op(kernel: Any) -> Callable[..., Any]:
    """Return the op of a kernel whose output has the shape of the first operand."""
    return lambda *operands: tt.custom_op(kernel, *operands, shape=operands[0].shape)


def test_a_kernel_is_checked_in_three_lines(rng: np.random.Generator) -> None:
    softsign = op(softsign_kernel)
    x = tt.from_numpy(rng.standard_normal((3, 2)))
    check_grad(softsign, x, rng=rng)


def test_the_result_has_the_tape_and_the_operand_keeps_it() -> None:
    x = _X.trace()

    y = op(softsign_kernel)(x)

    assert y.owns_tape
    np.testing.assert_allclose((y + x).sum().backward()[_X].numpy(), [5 / 4, 17 / 16])


def _in_place(x: Array) -> tuple[Array, Pullbacks]:
    x *= 2.0
    return x, (lambda g: 2.0 * g,)


def _assigning(x: Array) -> tuple[Array, Pullbacks]:
    x[0] = 0.0
    return x, (lambda g: g,)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (3, tt.ArgumentTypeError, "the kernel must be a function, got int"),
        (lambda x: x, tt.ArgumentTypeError, r"must return \(output, pullbacks\), got ndarray"),
        (lambda x: None, tt.ArgumentTypeError, "got NoneType"),
        (lambda x: (x, None, None), tt.ArgumentTypeError, r"\(output, pullbacks\)"),
        (lambda x: (x.tolist(), (None,)), tt.ArgumentTypeError, "must be an array, got list"),
        (lambda x: (_X, (None,)), tt.ArgumentTypeError, "must be an array, got Tensor"),
        (lambda x: (x, [None]), tt.ArgumentTypeError, "must be a tuple.*got list"),
        (lambda x: (x, ()), tt.ArgumentValueError, "1 operands need 1 pullbacks.*returned 0"),
        (lambda x: (x, (None, None)), tt.ArgumentValueError, "returned 2"),
        (lambda x: (x, (2.0,)), tt.ArgumentTypeError, "operand 0 must be a function or None"),
        (lambda x: (x[:1], (None,)), tt.ShapeError, r"returned shape \(1,\), not .*\(2,\)"),
        (lambda x: (x.astype(np.float64), (None,)), tt.DTypeError, "the kernel returned dtype f"),
        (lambda x: (x + np.ones(3), (None,)), tt.ShapeError, "broadcast_to one of them"),
        (_in_place, tt.ArgumentValueError, "the kernel writes to an array that it was given"),
        (_assigning, tt.ArgumentValueError, "the kernel writes to an array that it was given"),
    ],
)
def test_a_kernel_that_breaks_the_rules_is_refused(
    kernel: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        op(kernel)(_X.trace())


def _writing(g: Array) -> Array:
    g *= 2.0
    return g


@pytest.mark.parametrize(
    ("pullback", "error", "message"),
    [
        (lambda g: g[:1], tt.ShapeError, r"operand 0 returned shape \(1,\).*has shape \(2,\)"),
        (lambda g: np.sum(g), tt.ShapeError, r"returned shape \(\)"),
        (lambda g: g * np.float64(2), tt.DTypeError, "returned dtype float64.*float32"),
        (lambda g: None, tt.ArgumentTypeError, "operand 0 must be an array, got NoneType"),
        (lambda g: g.tolist(), tt.ArgumentTypeError, "got list"),
        (_writing, tt.ArgumentValueError, "pullback of operand 0 writes to an array"),
    ],
)
def test_a_pullback_that_breaks_the_rules_is_refused_in_the_backward_pass(
    pullback: Any, error: type[Exception], message: str
) -> None:
    def doubled_kernel(x: Array) -> tuple[Array, Pullbacks]:
        return 2.0 * x, (pullback,)

    y = op(doubled_kernel)(_X.trace()).sum()

    with pytest.raises(error, match=f"doubled: .*{message}"):
        y.backward()


@pytest.mark.parametrize(
    ("operands", "shape", "error", "message"),
    [
        ((), (2,), tt.ArgumentValueError, "softsign: give at least one tensor"),
        ((np.ones(2),), (2,), tt.ArgumentTypeError, "softsign: operand 0 must be a tensor"),
        ((_X,), 2, tt.ArgumentTypeError, "softsign: a shape is a tuple"),
        ((_X,), (-1,), tt.ArgumentValueError, "softsign: a dim must not be negative"),
    ],
)
def test_arguments_of_another_kind_are_refused(
    operands: Any, shape: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tt.custom_op(softsign_kernel, *operands, shape=shape)


def _product_by_a_buffer(scratch: Array) -> Callable[..., tuple[Array, Pullbacks]]:
    def product_kernel(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
        return lhs * rhs, (
            lambda g: np.multiply(g, rhs, out=scratch),
            lambda g: np.multiply(g, lhs, out=scratch),
        )

    return product_kernel


def test_pullbacks_may_fill_one_buffer_at_every_use_and_in_every_pass() -> None:
    product = op(_product_by_a_buffer(np.empty(2, np.float32)))
    x = tt.from_numpy([1.0, 2.0], shape=(2,))
    scale = tt.from_numpy([10.0, 10.0], shape=(2,))
    first = (product(x.trace(), x) + product(x.trace(), scale)).sum().backward()
    second = product(x.trace(), scale).sum().backward()

    assert first[x].numpy().tolist() == [12.0, 14.0]
    assert second[x].numpy().tolist() == [10.0, 10.0]


_MATRIX = tt.from_numpy(np.array([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]]))
_Y = tt.from_numpy(np.array([1.5, -0.5, 0.9]))


def _halved(x: Array) -> tuple[Array, Pullbacks]:
    return np.exp(x), (lambda g: 0.5 * g * np.exp(x),)


def _right_factor_forgotten(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    return lhs * rhs, (lambda g: g * rhs, np.zeros_like)


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (lambda x: x.exp(), (_MATRIX,)),
        (lambda x: x.sum(), (_MATRIX,)),
        (lambda x, y: (x * y).tanh().mean(axis=0), (_MATRIX, _Y)),
        (lambda x, y: x * x + y, (_MATRIX, _Y)),
        (lambda x, y: x @ y, (_MATRIX, _Y)),
        # Twice the same tensor: two inputs all the same.
        (lambda x, y: x / (y * y + 1.0), (_MATRIX, _MATRIX)),
        (lambda x: x * 2.0, (tt.from_numpy(np.zeros((0, 3))),)),
        (lambda x: x, (_MATRIX,)),
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
        check_grad(wrong_exp, _MATRIX, rng=np.random.default_rng(seed))

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
        check_grad(lambda x: x * x.detach(), _MATRIX, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((None, _MATRIX), {}, tt.ArgumentTypeError, "f must be a function, got NoneType"),
        ((lambda x: x,), {}, tt.ArgumentValueError, "at least one input"),
        ((lambda x: x, np.ones(2)), {}, tt.ArgumentTypeError, "input 0 must be a tensor"),
        ((lambda x: x, _MATRIX, 2.0), {}, tt.ArgumentTypeError, "input 1 must be a tensor"),
        ((lambda x: x, tt.ones((2,))), {}, tt.DTypeError, "input 0 has dtype float32"),
        ((lambda x: x, tt.arange(2)), {}, tt.DTypeError, "int64"),
        (
            (lambda x: x, _MATRIX.trace()),
            {},
            tt.UntracedTensorError,
            "input 0 must be a plain value",
        ),
        ((lambda x: x.detach().numpy(), _MATRIX), {}, tt.ArgumentTypeError, "the result of f"),
        ((lambda x: x.astype(np.float32), _MATRIX), {}, tt.DTypeError, "the result of f has dtype"),
        (
            (lambda x: x.detach(), _MATRIX),
            {},
            tt.UntracedTensorError,
            "the result of f owns no tape",
        ),
        ((lambda x: x, _MATRIX), {"eps": 0.0}, tt.ArgumentValueError, "eps must be > 0"),
        ((lambda x: x, _MATRIX), {"eps": np.nan}, tt.ArgumentValueError, "eps"),
        ((lambda x: x, _MATRIX), {"rtol": -1.0}, tt.ArgumentValueError, "rtol"),
        ((lambda x: x, _MATRIX), {"atol": np.inf}, tt.ArgumentValueError, "atol"),
        ((lambda x: x, _MATRIX), {"atol": "0"}, tt.ArgumentTypeError, "got '0'"),
        ((lambda x: x, _MATRIX), {"rng": 0}, tt.ArgumentTypeError, "rng must be a numpy Generator"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        check_grad(*arguments, **{"rng": np.random.default_rng(0), **options})

    assert str(raised.value).startswith("check_grad: ")
