"""Modules side by side: values, gradients, and who owns what was recorded before."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import (
    ArgumentTypeError,
    BuildError,
    ShapeError,
)

_ONE_INPUT = [nn.ResidualAdd, nn.ResidualMul, nn.ParallelAdd, nn.ParallelMul]


def linear(rng: np.random.Generator, out_features: int = 4) -> Any:
    return nn.Linear(4, out_features, np.float64, rng=rng)


def inputs(rng: np.random.Generator, *shape: int) -> Any:
    return tt.from_numpy(rng.standard_normal(shape or (5, 4)))


def test_a_residual_is_added_or_multiplied(rng: np.random.Generator) -> None:
    layer, x = linear(rng), inputs(rng)
    branch = layer.forward(x).numpy()

    added, multiplied = nn.ResidualAdd(layer), nn.ResidualMul(layer)

    np.testing.assert_array_equal(added.forward(x).numpy(), x.numpy() + branch)
    np.testing.assert_array_equal(multiplied.forward(x).numpy(), x.numpy() * branch)


def test_parallel_branches_are_added_or_multiplied(rng: np.random.Generator) -> None:
    layers, x = [linear(rng, 3) for _ in range(3)], inputs(rng)
    first, second, third = (layer.forward(x).numpy() for layer in layers)

    added, multiplied = nn.ParallelAdd(*layers), nn.ParallelMul(*layers)

    np.testing.assert_array_equal(added.forward(x).numpy(), first + second + third)
    np.testing.assert_array_equal(multiplied.forward(x).numpy(), first * second * third)


def test_every_output_of_a_split_owns_what_was_recorded_before(rng: np.random.Generator) -> None:
    before, first, second = linear(rng), linear(rng, 2), linear(rng, 3)
    split, x = nn.SplitInto(first, second), inputs(rng)

    for position, head in enumerate((first, second)):
        output = split.forward(before.forward(x.trace()))[position]
        wanted = head.forward(before.forward(x.trace()))
        np.testing.assert_array_equal(output.detach().numpy(), wanted.detach().numpy())
        found, expected = output.sum().backward(), wanted.sum().backward()
        for tensor in (x, before.weight, before.bias, head.weight):
            np.testing.assert_array_equal(
                found[tensor].detach().numpy(), expected[tensor].detach().numpy()
            )


@pytest.mark.parametrize("traced", [(True, False), (False, True), (True, True)])
def test_any_of_several_inputs_may_own_a_tape(
    traced: tuple[bool, bool], rng: np.random.Generator
) -> None:
    join: Any = nn.AddInto(nn.Square(), nn.Tanh())
    plain = inputs(rng), inputs(rng)

    output = join.forward(tuple(x.trace() if t else x for x, t in zip(plain, traced, strict=True)))

    grads = output.sum().backward()
    assert all(x in grads for x, t in zip(plain, traced, strict=True) if t)


def test_branches_are_built_from_their_types(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        residual: nn.ResidualAdd[nn.Linear[L[4], L[4]]]
        gate: nn.ResidualMul[nn.Sequential[nn.Linear[L[4], L[4]], nn.Sigmoid]]
        sum: nn.ParallelAdd[nn.Linear[L[4], L[2]], nn.Linear[L[4], L[2]]]
        product: nn.ParallelMul[nn.Tanh, nn.Sigmoid]
        split: nn.SplitInto[nn.Linear[L[4], L[1]], nn.Tanh]
        join: nn.AddInto[nn.Linear[L[1], L[2]], nn.Linear[L[4], L[2]]]

    net = tt.build(Net, rng=rng)

    x = tt.ones((3, 4)).trace()
    assert net.join.forward(net.split.forward(net.gate.forward(net.residual.forward(x)))).shape == (
        3,
        2,
    )
    assert net.residual.layer.weight.shape == (4, 4)
    assert net.sum.forward(tt.ones((3, 4))).shape == (3, 2)


def test_a_branch_that_does_not_fit_is_refused_and_nothing_is_broadcast(
    rng: np.random.Generator,
) -> None:
    x = inputs(rng)
    for kind in (nn.ResidualAdd, nn.ResidualMul):
        traced = x.trace()
        with pytest.raises(ShapeError, match=rf"{kind.__name__}: .* \(5, 1\) of \(5, 4\)"):
            kind(linear(rng, 1)).forward(traced)
        assert traced.owns_tape
    for parallel in (nn.ParallelAdd, nn.ParallelMul):
        with pytest.raises(ShapeError, match=r"shapes \(5, 1\) and \(5, 4\); they must be equal"):
            parallel(linear(rng, 1), linear(rng, 4)).forward(x)
    with pytest.raises(ShapeError, match="AddInto: the modules made shapes"):
        nn.AddInto(linear(rng, 1), linear(rng, 4)).forward((x, x))


@pytest.mark.parametrize("kind", [*_ONE_INPUT, nn.SplitInto, nn.AddInto])
def test_what_is_no_module_and_no_tensor_is_refused(kind: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{kind.__name__}: layer 0 is a type, not a"):
        kind(nn.ReLU)
    layer = kind(nn.ReLU())
    with pytest.raises(ArgumentTypeError, match=kind.__name__):
        layer.forward(np.ones((2, 3)))
    with pytest.raises(BuildError, match="build: "):
        tt.build(kind, rng=np.random.default_rng(0))


def test_a_join_wants_an_input_for_each_module() -> None:
    join: Any = nn.AddInto(nn.ReLU(), nn.ReLU())

    with pytest.raises(ArgumentTypeError, match="a tuple of 2 inputs, one for each module, got 3"):
        join.forward((tt.ones((1,)),) * 3)
