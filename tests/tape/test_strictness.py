"""What `backward` looks for on request: ops that lead nowhere, gradients that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt

X = tt.from_numpy([1.0, 4.0], shape=(2,))


def with_a_side_branch() -> Any:
    """Return a loss whose tape holds two ops that do not lead to it."""
    _, tape = (X.trace().exp() * X).split_tape()
    return X.put_tape(tape).square().sum()


def test_ops_that_do_not_lead_to_the_output_are_reported_on_request() -> None:
    loss = with_a_side_branch()

    with pytest.raises(
        tt.MissingGradientError,
        match=r"^backward: 2 recorded ops do not lead to the output.*: exp, multiply; leave them",
    ):
        loss.backward(unused="error")
    assert loss.backward()[X].numpy().tolist() == [2.0, 8.0]


def test_a_tape_whose_ops_all_lead_to_the_output_passes() -> None:
    trunk = X.trace().exp()
    loss = (trunk.sin() + trunk.cos()).sum()
    expected = np.exp(X.numpy()) * (np.cos(np.exp(X.numpy())) - np.sin(np.exp(X.numpy())))

    np.testing.assert_allclose(
        loss.backward(unused="error")[X].numpy(), expected, rtol=1e-5, atol=1e-5
    )


def test_an_op_whose_result_is_only_an_index_does_not_lead_to_the_output() -> None:
    table = tt.ones((3, 2))
    positions, tape = (X.trace() * 0.25).astype(np.int64).split_tape()
    loss = (X.put_tape(tape).sum() * table.take(positions).sum()).sum()

    with pytest.raises(tt.MissingGradientError, match="2 recorded ops do not"):
        loss.backward(unused="error")


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
    y = X.trace().exp()
    cotangent = tt.full((2,), float("nan"))

    with pytest.raises(tt.NumericalInstabilityError, match="from 'the cotangent'"):
        y.backward(cotangent, check_finite=True)
    assert y.owns_tape
