"""Laws that hold for all tensors: of merging, of the backward pass, of axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tapetensor as tt
from tests.properties.vocabulary import UNARY

bounded = settings(derandomize=True, deadline=None, database=None, max_examples=60)

chains = st.lists(st.sampled_from(UNARY), min_size=1, max_size=5)
shapes = st.lists(st.integers(0, 3), max_size=5).map(tuple)
# Where no op of a chain over- or underflows.
elements = st.floats(-1.0, 1.0, width=32).map(lambda x: x if abs(x) > 1e-3 else 0.5)


def vectors(size: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(elements, min_size=size, max_size=size).map(
        lambda row: tt.from_numpy(np.array(row, np.float64))
    )


def tamed(chain: list[Any], x: Any) -> Any:
    """Return the ops of a chain applied to `x`, each kept within bounds by a tanh."""
    for op in chain:
        x = op.on_tensors(x).tanh()
    return x


@bounded
@given(x=vectors(), lhs=chains, rhs=chains)
def test_in_which_order_histories_meet_changes_no_bit(
    x: Any, lhs: list[Any], rhs: list[Any]
) -> None:
    gradients = []
    for is_turned in (False, True):
        trunk = x.trace().sin()
        left, right = tamed(lhs, trunk), tamed(rhs, trunk)
        both = right * left if is_turned else left * right
        gradients.append(both.sum().backward()[x].numpy().tolist())

    assert gradients[0] == gradients[1]


@bounded
@given(x=vectors(), chain=chains, weights=st.tuples(elements, elements), data=st.data())
def test_backward_is_linear_in_the_cotangent(
    x: Any, chain: list[Any], weights: tuple[float, float], data: st.DataObject
) -> None:
    def pull_back(cotangent: Any) -> Any:
        y = tamed(chain, x.trace())
        return y.backward(cotangent)[x].numpy()

    u, v = data.draw(vectors()), data.draw(vectors())
    a, b = weights

    np.testing.assert_allclose(
        pull_back(u * a + v * b), a * pull_back(u) + b * pull_back(v), rtol=1e-9, atol=1e-12
    )


@bounded
@given(x=vectors(), chain=chains)
def test_the_gradient_of_a_sum_of_two_functions_is_the_sum_of_their_gradients(
    x: Any, chain: list[Any]
) -> None:
    def gradient(function: Callable[[Any], Any]) -> Any:
        return function(x.trace()).sum().backward()[x].numpy()

    def f(x: Any) -> Any:
        return tamed(chain, x)

    def g(x: Any) -> Any:
        return x.cos() * 3.0

    np.testing.assert_allclose(
        gradient(lambda x: f(x) + g(x)), gradient(f) + gradient(g), rtol=1e-9
    )


@bounded
@given(shape=shapes, data=st.data())
def test_permute_dims_is_undone_by_the_inverse_permutation(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    signed = tuple([axis - len(shape) * data.draw(st.booleans()) for axis in axes])
    inverse = tuple(np.argsort(axes, kind="stable").tolist())
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    x: Any = tt.from_numpy(values)
    y = x.trace().permute_dims(signed)
    assert y.shape == tuple([shape[axis] for axis in axes])
    z = y.permute_dims(inverse)

    assert z.detach().numpy().tolist() == values.tolist()
    cotangent = tt.from_numpy(values * 2)
    assert z.backward(cotangent)[x].numpy().tolist() == (values * 2).tolist()


@bounded
@given(shape=shapes.filter(bool), data=st.data())
def test_concat_undoes_split_along_every_axis(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis: Any = data.draw(st.integers(-len(shape), len(shape) - 1))
    first = data.draw(st.integers(0, shape[axis]))
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    x: Any = tt.from_numpy(values)
    parts = x.trace().split([first, shape[axis] - first], axis)
    whole = tt.concat(parts, axis)

    assert whole.detach().numpy().tolist() == values.tolist()
    cotangent = tt.from_numpy(values * 2)
    assert whole.backward(cotangent)[x].numpy().tolist() == (values * 2).tolist()


@bounded
@given(x=vectors(), passes=st.integers(1, 4))
def test_carrying_a_store_is_the_same_as_adding_up_afterwards(x: Any, passes: int) -> None:
    carried, added = tt.Gradients(), tt.Gradients()
    for number in range(passes):
        carried = (x.trace(carried) ** (number + 1)).sum().backward()
        added.merge((x.trace() ** (number + 1)).sum().backward())

    np.testing.assert_allclose(carried[x].numpy(), added[x].numpy(), rtol=1e-12)
