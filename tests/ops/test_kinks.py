"""The derivative at a kink is the one that the docstring promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

_ONE_OPERAND: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "relu at 0": (lambda x: x.relu(), [-1.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    "relu at -0": (lambda x: x.relu(), [-0.0], [0.0]),
    "leaky_relu at 0": (lambda x: x.leaky_relu(0.1), [-1.0, 0.0, 1.0], [0.1, 0.1, 1.0]),
    "elu at 0": (lambda x: x.elu(0.5), [0.0, 1.0], [0.5, 1.0]),
    "nans_to at NaN": (lambda x: x.nans_to(7.0), [np.nan, 1.0], [0.0, 1.0]),
    "std with eps where flat": (lambda x: x.std(eps=0.1), [2.0, 2.0], [0.0, 0.0]),
    "relu at NaN": (lambda x: x.relu(), [np.nan, -1.0], [1.0, 0.0]),
    "relu at NaN of a long array": (lambda x: x.relu(), [np.nan, -1.0] * 4096, [1.0, 0.0] * 4096),
    "leaky_relu at NaN": (lambda x: x.leaky_relu(0.1), [np.nan, -1.0], [1.0, 0.1]),
    "elu at NaN": (lambda x: x.elu(), [np.nan, 1.0], [1.0, 1.0]),
    "clip at NaN": (lambda x: x.clip(-1.0, 1.0), [np.nan, 2.0], [1.0, 0.0]),
    "max at NaN": (lambda x: x.max(), [np.nan, 2.0], [1.0, 0.0]),
    "maximum of NaN and a number": (lambda x: tt.maximum(x, 1.0), [np.nan], [1.0]),
    "minimum of NaN and a number": (lambda x: tt.minimum(x, 1.0), [np.nan], [1.0]),
    "abs at 0": (lambda x: x.abs(), [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
    "clip at both bounds": (
        lambda x: x.clip(-1.0, 1.0),
        [-2.0, -1.0, 0.0, 1.0, 2.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    "clip at its only bound": (lambda x: x.clip(low=0.0), [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]),
    "maximum of a number": (lambda x: tt.maximum(x, 1.0), [0.0, 1.0, 2.0], [0.0, 0.5, 1.0]),
    "minimum of a number": (lambda x: tt.minimum(x, 1.0), [0.0, 1.0, 2.0], [1.0, 0.5, 0.0]),
    "max of ties": (lambda x: x.max(), [3.0, 1.0, 3.0, 3.0], [1 / 3, 0.0, 1 / 3, 1 / 3]),
    "min of ties": (lambda x: x.min(), [1.0, 3.0, 1.0], [0.5, 0.0, 0.5]),
    "cumulative_max of ties": (
        lambda x: x.cumulative_max(0),
        [1.0, 3.0, 3.0, 2.0],
        [1.0, 1.0, 2.0, 0.0],
    ),
    "cumulative_min at NaN": (lambda x: x.cumulative_min(0), [1.0, np.nan, 0.0], [1.0, 2.0, 0.0]),
    "cumulative_logsumexp at an infinity": (
        lambda x: x.cumulative_logsumexp(0),
        [0.0, -np.inf, 1000.0],
        [2.0, 0.0, 1.0],
    ),
    "max of ties along an axis": (
        lambda x: x.max(axis=-1),
        [[2.0, 2.0], [0.0, 1.0]],
        [[0.5, 0.5], [0.0, 1.0]],
    ),
    "max_pool2d of ties": (
        lambda x: tt.max_pool2d(x.reshape((1, 2, 4)), 2),
        [2.0, 2.0, 5.0, 5.0, 0.0, 1.0, 5.0, 5.0],
        [0.5, 0.5, 0.25, 0.25, 0.0, 0.0, 0.25, 0.25],
    ),
    "max_pool2d of ties in windows that overlap": (
        lambda x: tt.max_pool2d(x.reshape((1, 1, 3)), (1, 2), stride=1),
        [3.0, 3.0, 1.0],
        [0.5, 1.5, 0.0],
    ),
    "min_pool2d of ties": (
        lambda x: tt.min_pool2d(x.reshape((1, 2, 2)), 2),
        [1.0, 1.0, 3.0, 1.0],
        [1 / 3, 1 / 3, 0.0, 1 / 3],
    ),
    "max_pool2d of infinities beside padding": (
        lambda x: tt.max_pool2d(x.reshape((1, 2, 2)), 2, stride=2, padding=1),
        [-np.inf, -np.inf, np.nan, 1.0],
        [1.0, 1.0, 1.0, 1.0],
    ),
    "max_pool2d of ties beside padding": (
        lambda x: tt.max_pool2d(x.reshape((1, 1, 2)), (1, 2), padding=(0, 1)),
        [-3.0, -3.0],
        [1.0, 1.0],
    ),
    "max of infinities": (lambda x: x.max(), [np.inf, 0.0, np.inf], [0.5, 0.0, 0.5]),
    "std where flat": (lambda x: x.std(), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    "std where one row is flat": (
        lambda x: x.std(axis=1),
        [[2.0, 2.0], [1.0, 3.0]],
        [[0.0, 0.0], [-0.5, 0.5]],
    ),
    "var where flat": (lambda x: x.var(), [2.0, 2.0], [0.0, 0.0]),
    "square of a power at 0": (lambda x: x**2, [0.0], [0.0]),
    "a power of 0": (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    "a power of 1 at 0": (lambda x: x**1, [0.0], [1.0]),
    "an element read twice": (
        lambda x: x[tt.from_numpy([0, 2, 0], dtype=np.int64)],
        [1.0, 2.0, 3.0],
        [2.0, 0.0, 1.0],
    ),
    "a row taken twice": (
        lambda x: x.take(tt.from_numpy([1, -1, 0], dtype=np.int64)),
        [[1.0], [2.0]],
        [[1.0], [2.0]],
    ),
}
_TWO_OPERANDS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any, Any, Any]] = {
    "maximum": (tt.maximum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [0.0, 0.5, 1.0], [1.0, 0.5, 0.0]),
    "minimum": (tt.minimum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [1.0, 0.5, 0.0], [0.0, 0.5, 1.0]),
    "maximum beside NaN": (tt.maximum, [np.nan, 1.0], [1.0, np.nan], [1.0, 1.0], [1.0, 1.0]),
    "minimum beside NaN": (tt.minimum, [np.nan, 1.0], [1.0, np.nan], [1.0, 1.0], [1.0, 1.0]),
    "power at a base of 0": (lambda x, p: x**p, [0.0, 0.0], [2.0, 1.0], [0.0, 1.0], [0.0, 0.0]),
    "power at an exponent of 0": (
        lambda x, p: x**p,
        [0.0, 1.0],
        [0.0, 0.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kink", _ONE_OPERAND)
def test_the_derivative_at_a_kink(kink: str, dtype: Any) -> None:
    f, values, derivative = _ONE_OPERAND[kink]
    x = tt.from_numpy(values, dtype=dtype)

    gradient = f(x.trace()).sum().backward()[x]

    np.testing.assert_allclose(gradient.numpy(), derivative, rtol=1e-6)


@pytest.mark.parametrize("kink", _TWO_OPERANDS)
def test_the_derivatives_at_a_tie_of_two_operands(kink: str) -> None:
    f, left, right, by_left, by_right = _TWO_OPERANDS[kink]
    lhs, rhs = tt.from_numpy(left), tt.from_numpy(right)

    grads = f(lhs.trace(), rhs.trace()).sum().backward()

    np.testing.assert_array_equal(grads[lhs].numpy(), by_left)
    np.testing.assert_array_equal(grads[rhs].numpy(), by_right)


def test_the_derivative_of_sqrt_and_log_at_0_is_infinite_as_numpys() -> None:
    x = tt.zeros((1,))

    with np.errstate(divide="ignore"):
        assert x.trace().sqrt().sum().backward()[x].item() == np.inf
        assert x.trace().log().sum().backward()[x].item() == np.inf


def test_the_derivatives_of_a_negative_power_of_0_are_infinite() -> None:
    x, p = tt.zeros((1,)), tt.full((1,), -1.0)

    with np.errstate(divide="ignore"):
        grads = (x.trace() ** p).sum().backward()

    assert (grads[x].item(), grads[p].item()) == (-np.inf, -np.inf)


def test_nan_is_sorted_as_the_largest_in_both_directions() -> None:
    x = tt.from_numpy([1.0, np.nan, 3.0, np.inf], (4,))

    assert x.argsort().numpy().tolist() == [0, 2, 3, 1]
    assert x.argsort(descending=True).numpy().tolist() == [1, 3, 2, 0]
    np.testing.assert_array_equal(x.sort().numpy(), [1.0, 3.0, np.inf, np.nan])
    np.testing.assert_array_equal(x.topk(2)[0].numpy(), [np.nan, np.inf])


def test_of_equal_elements_the_first_comes_first_and_gets_the_first_cotangent() -> None:
    x = tt.from_numpy([1.0, 2.0, 1.0, 2.0], (4,))
    by_place = tt.from_numpy([1.0, 2.0, 3.0, 4.0], (4,))

    rising = x.trace().sort().backward(by_place)[x]
    falling = x.trace().sort(descending=True).backward(by_place)[x]
    values, positions = x.trace().topk(3)

    assert rising.numpy().tolist() == [1.0, 3.0, 2.0, 4.0]
    assert falling.numpy().tolist() == [3.0, 1.0, 4.0, 2.0]
    assert positions.numpy().tolist() == [1, 3, 0]
    assert values.backward(by_place[:3])[x].numpy().tolist() == [3.0, 1.0, 0.0, 2.0]


def test_a_nan_makes_its_slice_nan_and_gets_the_derivative_of_the_quantile() -> None:
    x = tt.from_numpy([[1.0, np.nan, 3.0], [1.0, -np.inf, 3.0]], (2, 3))

    values = x.trace().quantile(0.25, axis=1)
    np.testing.assert_array_equal(values.detach().numpy(), [np.nan, -np.inf])
    np.testing.assert_array_equal(x.median(axis=1).numpy(), [np.nan, 1.0])

    gradient = values.sum().backward()[x].numpy()
    assert gradient.tolist() == [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]


def test_equal_eigenvalues_have_a_derivative_and_their_vectors_none() -> None:
    x = tt.eye(3, np.float64)

    assert np.array_equal(x.trace().eigh()[0].square().sum().backward()[x].numpy(), 2.0 * x.numpy())
    assert np.array_equal(x.trace().svd()[1].square().sum().backward()[x].numpy(), 2.0 * x.numpy())
    with np.errstate(all="ignore"):
        gradient = x.trace().eigh()[1].square().sum().backward()[x]
    assert np.isnan(gradient.numpy()).all()


def test_the_logarithm_of_the_determinant_of_a_singular_matrix_is_minus_infinity() -> None:
    sign, logarithm = tt.zeros((2, 2)).trace().slogdet()

    assert (sign.item(), logarithm.detach().item()) == (0.0, -np.inf)
    with pytest.raises(tt.ArgumentValueError, match=r"slogdet: the derivative divides by it"):
        logarithm.backward()


def test_the_derivative_of_columns_that_depend_on_each_other_is_refused() -> None:
    q, _ = tt.zeros((3, 2)).trace().qr()

    with pytest.raises(tt.ArgumentValueError, match=r"qr: the derivative divides by R"):
        q.sum().backward()


_FLAT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "std": (lambda x: x.std(), [3.0, 3.0, 3.0]),
    "std of one element": (lambda x: x.std(), [3.0]),
    "std of a flat row": (lambda x: x.std(axis=1).sum(), [[2.0, 2.0], [1.0, 3.0]]),
    "a squared std": (lambda x: x.std().square(), [3.0, 3.0]),
    "norm": (lambda x: x.norm(), [0.0, 0.0]),
    "norm of a row of zeros": (lambda x: x.norm(axis=1).sum(), [[0.0, 0.0], [0.0, 2.0]]),
    "rmse": (lambda x: tt.losses.rmse(x, tt.zeros((2,), x.dtype)), [0.0, 0.0]),
    "atan2 at the origin": (lambda x: x.atan2(0.0).sum(), [0.0]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", _FLAT)
def test_where_a_derivative_is_zero_by_convention_so_is_the_second(name: str, dtype: Any) -> None:
    f, values = _FLAT[name]
    x = tt.from_numpy(np.array(values, dtype))

    def second(x: Any) -> Any:
        return tt.hessian_vector_product(f, x, x + 1.0)

    for found in (second(x), tt.compile(second)(x)):
        assert found.numpy()[:1].tolist() == np.zeros_like(x.numpy()[:1]).tolist()
        assert np.isfinite(found.numpy()).all()


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, 1e-30), (np.float32, 1e30), (np.float64, 1e-200), (np.float64, 1e200)],
)
def test_lengths_and_angles_are_right_where_squares_are_no_numbers(
    dtype: Any, scale: float
) -> None:
    x, one = tt.from_numpy(np.array([3.0, 4.0], dtype)), tt.ones((1,), dtype)
    factor = tt.full((), scale, dtype)

    def length(x: Any) -> Any:
        return x.norm(), x.trace().norm().backward()[x]

    for found in (length, tt.compile(length)):
        value, slope = found(x * factor)
        assert value.item() == pytest.approx(5.0 * scale)
        np.testing.assert_allclose(slope.numpy(), [0.6, 0.8], rtol=1e-6)
    y = one * factor
    turned = y.trace().atan2(2.0 * scale).sum().backward()[y]
    np.testing.assert_allclose(turned.numpy() * scale, [0.4], rtol=1e-6)
    z = one * factor
    grads = y.trace().atan2(z.trace()).sum().backward()
    np.testing.assert_allclose(grads[y].numpy() * scale, [0.5], rtol=1e-6)
    np.testing.assert_allclose(grads[z].numpy() * scale, [-0.5], rtol=1e-6)
