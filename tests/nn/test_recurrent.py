"""Recurrent layers: against a loop over steps, and one step at a time."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentTypeError, ShapeError
from tests.nn.gradients import check_layer
from tests.nn.test_attention import values
from tests.ops.recurrent_rows import gru, lstm, rnn

STEPS: dict[str, Any] = {"RNN": rnn, "GRU": gru, "LSTM": lstm}
KINDS = tuple(STEPS)


def layer(kind: str, rng: np.random.Generator) -> Any:
    return getattr(nn, kind)(3, 2, np.float64, rng=rng)


def states(kind: str, rng: np.random.Generator, batch: int = 2) -> Any:
    if kind == "LSTM":
        return values(rng, batch, 2), values(rng, batch, 2)
    return values(rng, batch, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_is_that_of_the_steps(kind: str, rng: np.random.Generator) -> None:
    one, x, state = layer(kind, rng), values(rng, 2, 4, 3), states(kind, rng)
    gates = x.numpy() @ one.weight_ih_l0.numpy().T + one.bias_ih_l0.numpy()
    arrays = [part.numpy() for part in (state if kind == "LSTM" else (state,))]

    wanted = STEPS[kind](gates, one.weight_hh_l0.numpy(), one.bias_hh_l0.numpy(), *arrays)

    outputs, last = one.forward(x, state)
    np.testing.assert_allclose(outputs.numpy(), wanted[..., :2], rtol=1e-12)
    for found, end in zip(_ends(kind, last), np.split(wanted[:, -1], len(arrays), 1), strict=True):
        np.testing.assert_allclose(found.numpy(), end, rtol=1e-12)
    zero = one.forward(x)[0].numpy()
    arrays = [np.zeros((2, 2))] * len(arrays)
    wanted = STEPS[kind](gates, one.weight_hh_l0.numpy(), one.bias_hh_l0.numpy(), *arrays)
    np.testing.assert_allclose(zero, wanted[..., :2], rtol=1e-12)


def _ends(kind: str, last: Any) -> Any:
    return last if kind == "LSTM" else (last,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_step_by_step(kind: str, rng: np.random.Generator) -> None:
    one, x, state = layer(kind, rng), values(rng, 2, 4, 3), states(kind, rng)
    cell: Any = getattr(nn, f"{kind}Cell")(3, 2, np.float64, rng=rng)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(one, f"{name}_l0"))

    outputs, last = one.forward(x, state)
    for step in range(4):
        state = cell.forward(x[:, step], state)
        h = state[0] if kind == "LSTM" else state
        np.testing.assert_allclose(outputs.numpy()[:, step], h.numpy(), rtol=1e-12)
    for found, wanted in zip(_ends(kind, last), _ends(kind, state), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def _all_of(kind: str, result: Any) -> Any:
    """Return all outputs of a layer as one tensor."""
    outputs, last = result
    return tt.concat([outputs, *(one.expand_dims(1) for one in _ends(kind, last))], axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradients_by_the_state_train_all_weights(kind: str, rng: np.random.Generator) -> None:
    one, x, cell_state = layer(kind, rng), values(rng, 2, 3, 3), values(rng, 2, 2)

    def forward(h: Any) -> Any:
        state = (h, cell_state) if kind == "LSTM" else h
        return _all_of(kind, one.forward(x, state))

    check_layer(one, values(rng, 2, 2), rng, forward)
    if kind == "LSTM":
        h = values(rng, 2, 2)
        check_layer(one, cell_state, rng, lambda c: _all_of(kind, one.forward(x, (h, c))))


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_start_and_are_named_as_those_of_pytorch(
    kind: str, rng: np.random.Generator
) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    one: Any = tt.build(getattr(nn, kind)[L[50], L[100]], rng=rng)

    assert {name: tensor.shape for name, tensor in one.parameters().items()} == {
        "weight_ih_l0": (gates * 100, 50),
        "weight_hh_l0": (gates * 100, 100),
        "bias_ih_l0": (gates * 100,),
        "bias_hh_l0": (gates * 100,),
    }
    for tensor in one.parameters().values():
        assert 0.09 < np.abs(tensor.numpy()).max() <= 0.1
    cell: Any = tt.build(getattr(nn, f"{kind}Cell")[L[50], L[100]], rng=rng)
    assert list(cell.parameters()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_is_its_layers_in_turn(kind: str, rng: np.random.Generator) -> None:
    stack: Any = getattr(nn, f"Stacked{kind}")(3, 2, 2, np.float64, dropout=0.5, rng=rng)
    x, lower, upper = values(rng, 2, 4, 3), layer(kind, rng), getattr(nn, kind)
    upper = upper(2, 2, np.float64, rng=rng)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(lower, f"{name}_l0", getattr(stack, f"{name}_l0"))
        setattr(upper, f"{name}_l0", getattr(stack, f"{name}_l1"))

    middle, below = lower.forward(x)
    wanted, above = upper.forward(middle)

    outputs, last = stack.forward(x)
    np.testing.assert_array_equal(outputs.numpy(), wanted.numpy())
    for found, *ends in zip(*(_ends(kind, one) for one in (last, below, above)), strict=True):
        np.testing.assert_array_equal(found.numpy(), [end.numpy() for end in ends])
    dropping = stack.forward(x.trace())[0].detach().numpy()
    assert not np.allclose(dropping, wanted.detach().numpy())
    inferred = nn.inference(stack).forward(x.trace())[0]
    np.testing.assert_array_equal(inferred.detach().numpy(), wanted.detach().numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_either_output_of_a_stack_trains_the_weights_that_led_to_it(
    kind: str, rng: np.random.Generator
) -> None:
    make: Any = getattr(nn, f"Stacked{kind}")
    stack = make(3, 2, 2, np.float64, bias=False, bidirectional=True, rng=rng)
    x = values(rng, 2, 4, 3)
    given = (values(rng, 4, 2, 2),) * (2 if kind == "LSTM" else 1)

    outputs, last = stack.forward(x, given if kind == "LSTM" else given[0])
    assert (outputs.shape, _ends(kind, last)[0].shape) == ((2, 4, 4), (4, 2, 2))
    for output in (0, 1):

        def forward(x: Any, output: int = output) -> Any:
            result = stack.forward(x, given if kind == "LSTM" else given[0])
            return result[0] if output == 0 else _ends(kind, result[1])[0]

        check_layer(stack, x, rng, forward)


def test_a_stack_refuses_what_does_not_fit_and_moves_nothing(rng: np.random.Generator) -> None:
    stack = nn.StackedLSTM(3, 2, 2, np.float64, rng=rng)
    x, good = values(rng, 2, 4, 3).trace(), values(rng, 2, 2, 2).trace()
    bad: list[tuple[Any, Any, type[Exception], str]] = [
        (x, (good, values(rng, 4, 2, 2)), ShapeError, r"have shape \(2, 2, 2\), got \(4, 2, 2\)"),
        (x, good, ArgumentTypeError, "a tuple of 2 tensors"),
    ]
    for given, state, error, message in bad:
        with pytest.raises(error, match=f"StackedLSTM: .*{message}"):
            stack.forward(given, state)
    assert x.owns_tape
    assert good.owns_tape
    for option in ("bias", "bidirectional"):
        with pytest.raises(ArgumentTypeError, match=f"StackedLSTM: {option} must be True or False"):
            getattr(nn, "StackedLSTM")(3, 2, 2, rng=rng, **{option: "no"})  # noqa: B009


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_refused_and_moves_nothing(
    kind: str, rng: np.random.Generator
) -> None:
    one = layer(kind, rng)
    x = values(rng, 2, 4, 3).trace()
    bad: list[tuple[Any, Any, type[Exception], str]] = [
        (x, states(kind, rng, 5), ShapeError, r"a state must have shape \(2, 2\), got \(5, 2\)"),
        (x, (values(rng, 2, 2),) * 3, ArgumentTypeError, "tensor"),
    ]
    if kind == "LSTM":
        bad.append((x, values(rng, 2, 2), ArgumentTypeError, "a tuple of 2 tensors, got Tensor\n"))
    for given, state, error, message in bad:
        with pytest.raises(error, match=rf"{kind}: .*{message}"):
            one.forward(given, state)
    assert x.owns_tape
    cell: Any = getattr(nn, f"{kind}Cell")(3, 2, np.float64, rng=rng)
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(ShapeError, match=rf"{kind}Cell: .* \(batch, features\), got"):
            cell.forward(values(rng, *shape), states(kind, rng, 2))
