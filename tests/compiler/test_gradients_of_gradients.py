"""``tt.grad`` on a traced input, compiled: the same gradients as in eager mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.compiler import plans
from tests.higher_order.test_every_op import gradient_sum
from tests.ops.calling import on_every
from tests.ops.rows import Case
from tests.ops.samples import CASES

_RNG = np.random.default_rng(0)
_IDS = tt.from_numpy(np.array([0, 2, 1]))
_ROWS = tt.from_numpy(_RNG.standard_normal((3, 2)))
_IMAGES = tt.from_numpy(_RNG.standard_normal((2, 2, 6, 6)))
_FILTERS = tt.from_numpy(_RNG.standard_normal((3, 2, 3, 3)))


# The last sample of an op has most of its options.
@on_every([one for one in CASES if one.op.is_differentiable and one.sample is one.op.samples[-1]])
def test_gradients_of_gradients_of_every_op_are_those_of_eager_mode(
    case: Case, rng: np.random.Generator
) -> None:
    f, inputs = gradient_sum(case, rng)

    def gradients(*given: Any) -> Any:
        grads = f(*[x.trace() for x in given]).backward(wrt=given)
        return [grads.array(x.id) for x in given]

    compiled = tt.compile(gradients)

    for _ in range(2):
        for found, expected in zip(compiled(*inputs), gradients(*inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert len(plans(compiled)) == 1


def _constant(*shape: int) -> Any:
    return tt.from_numpy(np.arange(float(np.prod(shape))).reshape(shape)).trace()


def _thrice(f: Any, x: Any) -> Any:
    def twice(x: Any) -> Any:
        return tt.grad(lambda x: tt.grad(f, x).square().mean(), x)

    return tt.grad(lambda x: twice(x).square().mean(), x)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "padded windows to the third order": (
        lambda x: _thrice(lambda x: tt.conv2d(x, _FILTERS, padding=1).square().mean().exp(), x),
        _IMAGES,
    ),
    "rows that are found and summed to the third order": (
        lambda x: _thrice(
            lambda x: tt.segment_sum(x.take(_IDS).exp(), _IDS, 4).square().mean().exp(), x
        ),
        _ROWS,
    ),
    "a constant at places that are given": (
        lambda i: tt.grad(lambda x: x.take(i).exp().sum(), _constant(4)).detach(),
        _IDS,
    ),
    "a constant at an index that is given": (
        lambda i: tt.grad(lambda x: x[i].exp().sum(), _constant(4)).detach(),
        _IDS,
    ),
    "constants that are put in places that are given": (
        lambda i: tt.grad(
            lambda x: x.put_along_axis(i, tt.zeros((3,), np.float64), axis=0).exp().sum(),
            _constant(3),
        ).detach(),
        _IDS,
    ),
    "constants that are added in places that are given": (
        lambda i: tt.grad(
            lambda x: (
                tt.zeros((3,), np.float64).put_along_axis(i, x, 0, accumulate=True).exp().sum()
            ),
            _constant(3),
        ).detach(),
        _IDS,
    ),
    "constant scores of labels that are given": (
        lambda i: tt.grad(lambda x: losses.cross_entropy(x, i), _constant(3, 4)).detach(),
        _IDS,
    ),
    "constant windows beside what is given": (
        lambda x: tt.grad(
            lambda z: (tt.max_pool2d(z, 3, padding=1) * x.sum()).exp().mean(),
            _constant(1, 1, 3, 3),
        ).detach(),
        _IMAGES,
    ),
    "constants beside a mask that is given": (
        lambda i: tt.grad(
            lambda x: tt.scaled_dot_product_attention(x, x, x, mask=i.expand_dims(-1) >= i).sum(),
            _constant(3, 4),
        ).detach(),
        _IDS,
    ),
    "a checkpoint on the way": (
        lambda x: tt.grad(
            lambda x: tt.checkpoint(lambda x: tt.conv2d(x, _FILTERS, padding=1).tanh(), x).sum(),
            x.trace(),
        ).detach(),
        _IMAGES,
    ),
    "a checkpoint of a constant beside what is given": (
        lambda x: tt.checkpoint(lambda z: (z * x.sum()).tanh(), _constant(3)).detach(),
        _IMAGES,
    ),
    "a product of a vector and the hessian": (
        lambda x: tt.hessian_vector_product(
            lambda x: tt.conv2d(x, _FILTERS, padding=1).tanh().square().sum(),
            x,
            tt.ones((2, 2, 6, 6), np.float64),
        ),
        _IMAGES,
    ),
}


@pytest.mark.parametrize(("function", "x"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradients_of_what_is_constant_and_what_is_given_are_planned(function: Any, x: Any) -> None:
    compiled = tt.compile(function)

    for _ in range(2):
        np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy())
    assert len(plans(compiled)) == 1
