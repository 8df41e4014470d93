"""Derivatives of higher order of kernels that a user wrote: what is followed, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tensor.apply import apply
from tapetensor.testing import check_grad
from tapetensor.typing import Array, Pullbacks

_X = tt.from_numpy(np.array([0.3, -1.2, 0.7]))


def _kernel_of(forward: Any, pullback: Any = lambda x, g: g) -> Any:
    def own_kernel(x: Array) -> tuple[Array, Pullbacks]:
        return forward(x), (lambda g: pullback(x, g),)

    return lambda x: tt.custom_op(own_kernel, x, shape=x.shape).sum()


def _written_through_a_view(x: Array) -> Array:
    y = x * 2.0
    np.reshape(y, (3, 1))[...] = 0.0
    return y


def _written_beside_a_view(x: Array) -> Array:
    y = x * 2.0
    view = np.reshape(y, (3, 1))
    y += 1.0
    return np.reshape(view, (3,))


def _written_beside_a_part(x: Array) -> Array:
    y = x * 2.0
    first, last = y[:2], y[1:]
    last += 1.0
    return np.concatenate([first, last])


def _written_to_given(x: Array) -> Array:
    y = np.zeros(3)
    np.copyto(y, x)
    return y


def _written_twice(x: Array) -> Array:
    y = x * 2.0
    y[np.array([0, 0])] = x[:2]
    return y


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda x: np.asarray(x) * 2.0, "reads the values of an array"),
        (lambda x: np.cbrt(x), r"numpy.cbrt, whose derivative is not known"),
        (lambda x: np.linalg.svd(np.reshape(x, (3, 1)))[1], "numpy.svd with full matrices"),
        (
            lambda x: np.linalg.eigh(np.reshape(x[:1], (1, 1)), "U")[0],
            "numpy.eigh with the up",
        ),
        (lambda x: np.linalg.qr(np.reshape(x, (3, 1)), "r"), "numpy.qr with mode"),
        (lambda x: np.cumprod(x), "numpy.cumprod, whose derivative is not known"),
        (lambda x: np.cumsum(x, dtype=np.float32), "numpy.cumsum with another dtype"),
        (lambda x: np.add.accumulate(x), "numpy.add.accumulate"),
        (lambda x: np.sum(x, keepdims=True, where=x > 0) + x, "numpy.sum with where"),
        (lambda x: np.add.reduce(x, initial=1.0) + x, "numpy.add.reduce with initial"),
        (lambda x: np.add(x, x, where=x > 0), "numpy.add with where"),
        (lambda x: np.add(x, x, out=np.zeros(3)), "numpy.add to a given array"),
        (lambda x: x.cumsum(), "uses array.cumsum"),
        (lambda x: x if x[0] > 0 else float(x[1]) * x, "reads an element as a number"),
        (lambda x: np.stack(list(x)), "iterates over an array"),
        (lambda x: x.astype(object).astype(x.dtype), "converts an array to object"),
        (lambda x: np.abs(x.astype(complex)), "converts an array to complex128"),
        (lambda x: x * int(x[0]), "reads an element as a number"),
        (lambda x: x.view(np.int64) * x, "uses array.view"),
        (lambda x: x.view() * x, "uses array.view"),
        (_written_through_a_view, "writes .item assignment. to memory"),
        (_written_beside_a_view, "writes .numpy.add with out=. to memory"),
        (_written_beside_a_part, "writes .numpy.add with out=. to memory"),
        (_written_to_given, "numpy.copyto with a given array"),
        (_written_twice, "assigns to one element twice"),
    ],
)
def test_a_kernel_that_cannot_be_followed_is_refused_by_name(forward: Any, message: str) -> None:
    # Once, in the forward pass or in the pullback, numpy computes it.
    x = tt.from_numpy(np.array([-0.3, 1.2, 0.7]))

    with pytest.raises(tt.HigherOrderError, match=f"^own: no derivative of higher.*{message}"):
        tt.grad(_kernel_of(forward), x.trace())
    with pytest.raises(tt.HigherOrderError, match=f"^own: no derivative of higher.*{message}"):
        tt.grad(_kernel_of(lambda x: x * 1.0, lambda x, g: forward(g * x)), x.trace())


def test_a_kernel_that_writes_to_a_part_of_its_operand_is_refused() -> None:
    def kernel(x: Array) -> tuple[Array, Pullbacks]:
        part = np.reshape(x, (3, 1))[1:]
        part += 1.0
        return x * 1.0, (lambda g: g,)

    tape = tt.GradientTape()
    with pytest.raises(tt.ArgumentValueError, match="writes to a value that it was given"):
        tape.record(kernel, (tape.alloc(np.ones(3)),))
    with pytest.raises(tt.HigherOrderError, match="to memory that another array may share"):
        tt.grad(lambda x: apply(kernel, (x,)).sum(), _X.trace())


def _cotangent_in_an_array(x: Array, g: Array) -> Array:
    slope = x * x
    slope *= 3.0
    product = slope * g
    result = np.zeros_like(x)
    result[1:] = product[1:]
    result[np.array([0])] += product[:1]
    np.add.at(result, np.array([2, 2]), product[:2])
    np.subtract(result, np.full_like(x, 0.0), out=result)
    result[np.array([2])] -= product[:1] + product[1:2]
    return result


def _cotangent_in_parts(x: Array, g: Array) -> Array:
    result = np.empty_like(x, shape=(2, 3, 2))
    np.copyto(result, 0.0)
    result[0, 1:] += np.reshape(3.0 * x * x * g, (3, 2))[1:]
    # A part of a part, the axes of which are permuted.
    np.transpose(result)[:, :1][..., 0] += np.reshape(3.0 * x[:2] * x[:2] * g[:2], (2, 1))
    np.multiply(np.copy(result[0]), 2.0, out=result[1])
    return np.reshape(result[1] - result[0], (6,))


@pytest.mark.parametrize("cotangent", [_cotangent_in_an_array, _cotangent_in_parts])
def test_arrays_of_a_kernels_own_and_parts_of_them_may_be_written_to(
    cotangent: Any, rng: np.random.Generator
) -> None:
    cubes = _kernel_of(lambda x: x**3, cotangent)
    x, v = (tt.from_numpy(rng.standard_normal(6)) for _ in range(2))

    check_grad(cubes, x, rng=rng)
    check_grad(lambda x: tt.grad(cubes, x), x, rng=rng)
    check_grad(lambda x: tt.grad(lambda x: (tt.grad(cubes, x) * v).sum(), x), x, rng=rng)


@pytest.mark.parametrize(
    "function",
    [
        *(np.linalg.cholesky, lambda x: np.linalg.pinv(x), lambda x: np.linalg.qr(x)[0]),
        # Of a matrix that is not symmetric these read the lower triangle.
        *(lambda x: np.linalg.eigh(x)[1], lambda x: np.linalg.eigh(x)[0]),
        *(lambda x: np.linalg.svd(x, full_matrices=False)[2], lambda x: np.linalg.slogdet(x)[1]),
    ],
)
def test_linear_algebra_in_a_pullback_gives_what_it_gives_in_numpy(
    function: Any, rng: np.random.Generator
) -> None:
    x = tt.from_numpy(np.array([[3.0, 0.4, -0.2], [0.7, 2.0, 0.3], [0.1, -0.5, 4.0]]))
    f = _kernel_of(lambda x: x * 1.0, lambda x, g: g * function(x))

    slope = tt.grad(f, x.trace())

    np.testing.assert_array_equal(slope.detach().numpy() - function(x.numpy()), np.zeros((3, 3)))
    check_grad(lambda x: tt.grad(f, x), x, rng=rng)
