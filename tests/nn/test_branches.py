"""Modules made of modules: one after another, side by side, repeated, and shapes between them."""

from __future__ import annotations

import re
from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor2D, nn
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, BuildError, ShapeError
from tapetensor.typing import K, N
from tests.nn.gradients import check_layer

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
        found = split.forward(before.forward(x.trace()))[position].sum().backward()
        wanted = head.forward(before.forward(x.trace())).sum().backward()
        for tensor in (x, before.weight, head.weight):
            np.testing.assert_array_equal(found[tensor].numpy(), wanted[tensor].numpy())


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


@pytest.mark.parametrize("kind", [*_ONE_INPUT, nn.SplitInto, nn.AddInto, nn.Sequential])
def test_what_is_no_module_and_no_tensor_is_refused(kind: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{kind.__name__}: layer 0 is a type, not a"):
        kind(nn.ReLU)
    layer = kind(nn.ReLU())
    with pytest.raises(ArgumentTypeError, match="ReLU" if kind is nn.Sequential else kind.__name__):
        layer.forward(np.ones((2, 3)))
    with pytest.raises(
        BuildError, match=rf"build: {kind.__name__}: .* needs a value for Layers?; "
    ):
        tt.build(kind, rng=np.random.default_rng(0))


def test_a_join_wants_an_input_for_each_module() -> None:
    join: Any = nn.AddInto(nn.ReLU(), nn.ReLU())

    with pytest.raises(ArgumentTypeError, match="a tuple of 2 inputs, one for each module, got 3"):
        join.forward((tt.ones((1,)),) * 3)


class NoForward(nn.Module):
    act: nn.ReLU


def test_the_output_of_each_goes_into_the_next(rng: np.random.Generator) -> None:
    first, last = nn.Linear(4, 8, rng=rng), nn.Linear(8, 2, rng=rng)
    model = nn.Sequential(first, nn.ReLU(), last)
    x: Tensor2D[Any, Any] = tt.normal((5, 4), rng=rng)

    assert np.array_equal(model.forward(x).numpy(), last.forward(first.forward(x).relu()).numpy())
    assert not model.forward(x).owns_tape
    assert model.forward(x.trace()).owns_tape


def test_a_layer_of_another_size_is_refused_as_a_field(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        body: nn.Sequential[nn.Linear[L[4], L[8]], nn.ReLU]

    body: Any = nn.Sequential(nn.Linear(4, 9, rng=rng), nn.ReLU())
    with pytest.raises(ShapeError, match=re.escape("Net: body.layers.0.weight has shape (9, 4)")):
        Net(body=body)
    body = nn.Sequential(nn.Linear(4, 8, rng=rng))
    with pytest.raises(ShapeError, match=r"Net: body.layers has 1 elements, .* says 2"):
        Net(body=body)


def test_an_error_names_the_layer_that_it_comes_from(rng: np.random.Generator) -> None:
    model = nn.Sequential(nn.Linear(4, 8, rng=rng), nn.ReLU(), nn.Linear(9, 2, rng=rng))
    x = tt.ones((3, 4)).trace()

    with pytest.raises(ShapeError, match="must have size 9") as caught:
        model.forward(x)
    assert caught.value.__notes__ == [
        "cause and cure: python -m tapetensor explain ShapeError",
        "in layer 2 of the Sequential: Linear(in_features=9, out_features=2)",
    ]


def test_what_is_no_module_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ArgumentTypeError, match="Sequential: give one module or more"):
        nn.Sequential()
    with pytest.raises(ArgumentTypeError, match="Sequential: layer 1 is a type, not a Module"):
        nn.Sequential(nn.ReLU(), nn.ReLU)
    with pytest.raises(ArgumentTypeError, match="Sequential: layer 0 is a list, not a Module"):
        nn.Sequential([nn.ReLU()])
    with pytest.raises(BuildError, match=r"Sequential: layer 0, a NoForward, has no forward\(\)"):
        nn.Sequential(NoForward(act=nn.ReLU()))


class Tower(nn.Module, Generic[N, K]):
    blocks: list[nn.Linear[N, N]] = nn.repeat("K")


class Lost(nn.Module, Generic[N]):
    blocks: list[nn.Linear[N, N]] = nn.repeat("M")


def test_the_modules_run_one_after_another(rng: np.random.Generator) -> None:
    layers = [linear(rng) for _ in range(3)]
    model: Any = nn.Repeated(layers=layers)
    x = tt.from_numpy(rng.standard_normal((5, 4)))

    wanted = layers[2].forward(layers[1].forward(layers[0].forward(x)))
    np.testing.assert_array_equal(model.forward(x).numpy(), wanted.numpy())
    check_layer(model, x, rng)


def test_the_type_says_how_many(rng: np.random.Generator) -> None:
    model = tt.build(nn.Repeated[nn.Linear[L[4], L[4]], L[3]], rng=rng)

    assert len(model.layers) == 3
    weights = [layer.weight.numpy() for layer in model.layers]
    assert not np.array_equal(weights[0], weights[1])
    assert len(tt.build(Tower[L[2], L[5]], rng=rng).blocks) == 5


def test_another_number_of_modules_is_refused_as_a_field(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        body: nn.Repeated[nn.Linear[L[4], L[4]], L[3]]

    two: Any = nn.Repeated(layers=[nn.Linear(4, 4, rng=rng), nn.Linear(4, 4, rng=rng)])
    with pytest.raises(ShapeError, match=r"Net: body.layers has 2 elements, .* body says 3"):
        Net(body=two)


def test_a_length_that_cannot_be_read_is_named(rng: np.random.Generator) -> None:
    with pytest.raises(BuildError, match=r"build: Lost.blocks: the dim 'M' has no size"):
        tt.build(Lost[L[2]], rng=rng)
    with pytest.raises(BuildError, match=r"build: Tower.blocks: the dim Any has no size"):
        tt.build(Tower[L[2], Any], rng=rng)


def test_a_module_must_keep_the_shape(rng: np.random.Generator) -> None:
    model: Any = nn.Repeated(layers=[linear(rng, 3)])

    with pytest.raises(ShapeError, match=r"Repeated: layer 0 made shape \(5, 3\) of \(5, 4\)"):
        model.forward(tt.ones((5, 4), np.float64))
    with pytest.raises(ArgumentTypeError, match="Repeated: the input must be a tensor"):
        model.forward([1.0])


def test_every_example_gets_the_shape_that_the_type_says(rng: np.random.Generator) -> None:
    layer = tt.build(nn.Reshape[L[2], L[3]], rng=rng)
    x = tt.from_numpy(rng.standard_normal((5, 6)))

    np.testing.assert_array_equal(layer.forward(x).numpy(), x.numpy().reshape(5, 2, 3))
    check_layer(layer, x, rng)
    assert layer.forward(tt.ones((0, 3, 2))).shape == (0, 2, 3)
    assert nn.Reshape().forward(tt.ones((4, 1))).shape == (4,)


def test_sizes_are_ints_that_are_not_negative() -> None:
    with pytest.raises(ArgumentTypeError, match=r"Reshape: a size must be an int, got 2.0"):
        nn.Reshape(2.0)
    with pytest.raises(ArgumentValueError, match="Reshape: a size must not be negative, got -1"):
        nn.Reshape(-1)
