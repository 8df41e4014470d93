"""Gradients of gradients: against known Hessians, and what they refuse."""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn
from tapetensor.higher_order import kernels
from tapetensor.kernels.numerics import recurrence
from tapetensor.kernels.numerics.decorators import writing_step
from tapetensor.testing import check_grad

_X = tt.from_numpy(np.array([0.3, -1.2, 0.7]))
_V = tt.from_numpy(np.array([1.0, 2.0, -0.5]))


def test_the_hessian_of_a_quadratic_form_is_its_matrix(rng: np.random.Generator) -> None:
    matrix = rng.standard_normal((3, 3))
    a = tt.from_numpy(matrix)

    for direction in np.eye(3):
        row = tt.hessian_vector_product(lambda x: (x @ a) @ x, _X, tt.from_numpy(direction))
        np.testing.assert_allclose(row.numpy(), (matrix + matrix.T) @ direction, rtol=1e-12)


SMOOTH: dict[str, Any] = {
    "sigmoid": lambda x: x.sigmoid(),
    "silu": lambda x: x.silu(),
    "gelu": lambda x: x.gelu(),
    "gelu_tanh": lambda x: x.gelu("tanh"),
    "softplus": lambda x: x.softplus(),
    "power": lambda x: x**3.0,
    "first power": lambda x: x**1.0,
    "power of a number": lambda x: 2.0**x,
    "power of a tensor": lambda x: x ** tt.full((4,), 2.0, np.float64),
    "var": lambda x: x.var(),
    "logsumexp": lambda x: x.logsumexp(),
    "softmax": lambda x: x.softmax(),
    "log_softmax": lambda x: x.log_softmax(),
    "layer norm": lambda x: nn.LayerNorm(4, dtype=np.float64).forward(x),
    "mse": lambda x: losses.mse(x, tt.zeros((4,), np.float64)),
    "huber": lambda x: losses.huber(x, tt.zeros((4,), np.float64)),
    "binary cross entropy": lambda x: losses.binary_cross_entropy_with_logits(
        x, tt.full((4,), 0.3, np.float64)
    ),
    "cross entropy": lambda x: losses.cross_entropy(x.reshape((1, 4)), tt.zeros((1,), np.int64)),
}

# Where the kernels put a smooth function together from pieces: at 0, at ties, and where the ranges
# of the error function meet.
SEAMS = {
    "zeros": np.zeros(4),
    "ties": np.array([1.5, 1.5, -0.5, 1.5]),
    "ranges": np.array([0.46875, 4.0, -4.0, 6.0]) * np.sqrt(2.0),
}


@pytest.mark.parametrize("seam", SEAMS)
@pytest.mark.parametrize("name", SMOOTH)
def test_the_second_derivative_of_a_smooth_function_has_no_seams(
    name: str, seam: str, rng: np.random.Generator
) -> None:
    f = SMOOTH[name]
    x = tt.from_numpy(SEAMS[seam])
    weight = tt.from_numpy(rng.standard_normal(()))

    def gradient(x: Any) -> Any:
        # The value itself is in the gradient as well, by the square.
        return tt.grad(lambda x: ((f(x) + weight).square() * 0.5 + 1.0).sum(), x)

    check_grad(gradient, x, rng=rng, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_tensor_that_owns_a_tape_from_outside_is_refused(is_recorded: bool) -> None:
    outside: Any = _X.trace()
    x: Any = _V.trace() if is_recorded else _V

    with pytest.raises(tt.HigherOrderError, match="has a tape from outside; give it to grad"):
        tt.grad(lambda x: (x * outside).sum(), x)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, _X), tt.ArgumentTypeError, "f must be a function, got int"),
        ((lambda x: x.sum(),), tt.ArgumentTypeError, r"grad\(f, x\)"),
        ((lambda x: x.sum(), np.ones(2)), tt.ArgumentTypeError, "input 0 must be a tensor"),
        ((lambda x: x.sum(), tt.arange(3)), tt.DTypeError, "not defined for dtype int64"),
        ((lambda x, y: x.sum(), _X, tt.ones((3,))), tt.DTypeError, "dtypes differ"),
        ((lambda x, y: x.sum(), _X, _X.trace()), tt.UntracedTensorError, "input 1 has a tape"),
        ((lambda x: 3.0, _X), tt.ArgumentTypeError, "the result of f"),
        ((lambda x: x, _X), tt.ShapeError, "f must return a scalar"),
        ((lambda x: x.detach().sum(), _X), tt.UntracedTensorError, "does not depend"),
        ((lambda x: x.detach().sum(), _X.trace()), tt.UntracedTensorError, "does not depend"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tt.grad(*arguments)


@pytest.mark.parametrize(
    ("x", "v", "error", "message"),
    [
        (_X, tt.ones((2,), np.float64), tt.ShapeError, r"x has shape \(3,\), v \(2,\)"),
        (_X, tt.ones((3,)), tt.DTypeError, "^hessian_vector_product: x has dtype float64, v f"),
        (_X, _V.trace(), tt.UntracedTensorError, "v must be a plain value"),
        (_X, 1.0, tt.ArgumentTypeError, "v must be a tensor"),
        (None, _V, tt.ArgumentTypeError, "x must be a tensor"),
    ],
)
def test_a_vector_that_does_not_fit_is_refused(
    x: Any, v: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tt.hessian_vector_product(lambda x: x.sum(), x, v)


CUBED: dict[str, Any] = {
    "conv2d": lambda x: tt.conv2d(x, tt.ones((1, 1, 2, 2), np.float64), padding=1),
    "max_pool2d": lambda x: tt.max_pool2d(x, 2, stride=1),
    "upscale2d": lambda x: tt.upscale2d(x, (4, 3), mode="bilinear"),
    "ssm_scan": lambda x: tt.ssm_scan(x, x, x),
    **{
        name: getattr(tt.Tensor, name)
        for name in ("exp", "sin", "tanh", "sigmoid", "gelu", "silu", "softplus")
    },
}


@pytest.mark.parametrize("name", CUBED)
def test_third_derivatives_are_those_of_central_differences(
    name: str, rng: np.random.Generator
) -> None:
    x, v = (tt.from_numpy(rng.standard_normal((1, 1, 3, 2))) for _ in range(2))

    def cubed(x: Any) -> Any:
        return (CUBED[name](x) ** 3).sum()

    check_grad(lambda x: tt.grad(lambda x: (tt.grad(cubed, x) * v).sum(), x), x, rng=rng, rtol=1e-4)


def test_a_step_that_may_run_as_machine_code_has_a_second_derivative(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpys = inspect.unwrap(recurrence.run_recurrence)
    as_chosen = wraps(numpys)(lambda *args: numpys(*args))
    for room in (recurrence, kernels):
        monkeypatch.setattr(room, "run_recurrence", writing_step(as_chosen))
    x = tt.from_numpy(rng.standard_normal((3, 2)))

    def f(x: Any) -> Any:
        return (tt.ssm_scan(x, x, x) ** 3).sum()

    check_grad(lambda x: tt.grad(f, x), x, rng=rng, rtol=1e-4)


@pytest.mark.parametrize("order", [2, 3])
def test_what_is_closed_over_gets_its_gradient_through_derivatives_of_every_order(
    order: int, rng: np.random.Generator
) -> None:
    x = tt.from_numpy(rng.standard_normal(3))

    def loss(w: Any) -> Any:
        def f(u: Any) -> Any:
            a = b = u
            return (a * w.retaped(u.tape_type).sin()).tanh().sum() + (b * w).exp().sum()

        def slope(g: Any, u: Any) -> Any:
            return tt.grad(lambda u: g(u).square().sum() if g is not f else f(u), u)

        g: Any = f
        for _ in range(order):
            g = partial(slope, g)
        return g(x.trace()).sum()

    w = tt.from_numpy(rng.standard_normal(3))
    found = loss(w).backward(wrt=[w])[w].numpy()
    for index in range(3):
        step = np.zeros(3)
        step[index] = 1e-6
        above, below = (loss(tt.from_numpy(w.numpy() + sign * step)).item() for sign in (1, -1))
        np.testing.assert_allclose(found[index], (above - below) / 2e-6, rtol=1e-5)


def test_value_and_grad_computes_the_function_once_and_takes_any_shape_and_number() -> None:
    calls = []

    def f(*inputs: Any) -> Any:
        calls.append(len(inputs))
        first, *others = inputs
        for one in others:
            first = first * one
        return first.exp()

    arrays = [np.random.default_rng(seed).standard_normal((2, 3)) for seed in range(3)]
    for count in (1, 2, 3):
        inputs = [tt.from_numpy(array, (2, 3)) for array in arrays[:count]]
        value, gradients = tt.value_and_grad(f, *inputs)

        expected = np.exp(np.prod(arrays[:count], axis=0))
        np.testing.assert_allclose(value.numpy(), expected)
        for number, gradient in enumerate([gradients] if count == 1 else gradients):
            others = np.prod(arrays[:number] + arrays[number + 1 : count], axis=0)
            np.testing.assert_allclose(gradient.numpy(), expected * others)
    assert calls == [1, 2, 3]


@pytest.mark.parametrize(
    "slope",
    [
        tt.grad,
        lambda f, x: tt.value_and_grad(f, x)[1],
        lambda f, x: tt.hessian_vector_product(f, x, tt.ones(x.shape)),
    ],
    ids=["grad", "value_and_grad", "hessian_vector_product"],
)
def test_what_the_function_computes_and_drops_gets_no_gradient_and_not_zeros(slope: Any) -> None:
    rng = np.random.default_rng(0)
    used, dropped = [nn.Linear(3, 1, rng=rng) for _ in range(2)]

    def f(x: Any) -> Any:
        dropped.forward(x)
        return used.forward(x).sum()

    grads = slope(f, tt.ones((2, 3)).trace()).square().sum().backward()

    assert grads.get(dropped.weight) is None
    # The result has it, and its derivative has not.
    assert grads[used.bias].numpy().tolist() == [0.0]
