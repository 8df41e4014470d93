"""`DiagonalSSM`, `SelectiveSSM` and `MambaBlock`, against a loop over the steps."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import TypeVar

import tapetensor as tt
from tapetensor import nn
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentValueError

LayerT = TypeVar("LayerT", bound=nn.Module)

# The leading axes of the input: batch and length.
SIZES: list[tuple[int, int]] = [(2, 7), (1, 1), (3, 2), (2, 0), (0, 3)]


def diagonal(rng: np.random.Generator) -> nn.DiagonalSSM[Any, Any, np.float64]:
    """Return a layer with 3 features and a state of 4, no two numbers of it alike."""
    return randomized(nn.DiagonalSSM(3, 4, np.float64, rng=rng), rng)


def selective(rng: np.random.Generator) -> nn.SelectiveSSM[Any, Any, np.float64]:
    """Return such a layer whose steps come from 2 features."""
    return randomized(nn.SelectiveSSM(3, 4, np.float64, step_rank=2, rng=rng), rng)


def mamba(rng: np.random.Generator) -> nn.MambaBlock[Any, Any, Any, np.float64]:
    """Return such a block with 5 inner features, a state of 2 and a convolution over 3 steps."""
    block = nn.MambaBlock(3, 5, 2, np.float64, conv_width=3, step_rank=2, rng=rng)
    return randomized(block, rng)


def randomized(layer: LayerT, rng: np.random.Generator) -> LayerT:
    """Return the layer with parameters far from where they start."""
    for name, parameter in layer.parameters().items():
        path, _, attribute = name.rpartition(".")
        owner: Any = layer.modules()[path] if path else layer
        setattr(owner, attribute, tt.from_numpy(rng.uniform(-1.0, 1.0, parameter.shape)))
    return layer


LAYERS = pytest.mark.parametrize("make", [diagonal, selective, mamba])


def silu(x: Array) -> Array:
    return np.asarray(x / (1.0 + np.exp(-x)))


def affine(p: dict[str, Array], name: str, x: Array) -> Array:
    return np.asarray(x @ p[f"{name}.weight"].T + p[f"{name}.bias"])


def arrays(layer: nn.Module) -> dict[str, Array]:
    return {name: parameter.numpy() for name, parameter in layer.parameters().items()}


def scanned(p: dict[str, Array], x: Array, steps: Array, into: Array, out: Array) -> Array:
    """Return the readout after every step; `steps` before softplus, the others for every state."""
    y, state, rate = np.zeros_like(x), np.zeros_like(p["log_a"]), np.exp(p["log_a"])
    for t in range(x.shape[1]):
        dt = np.logaddexp(0.0, steps[:, t, np.newaxis])
        state = np.exp(-rate * dt) * state + dt * into[:, t] * x[:, t, np.newaxis]
        y[:, t] = (out[:, t] * state).sum(axis=1) + p["d"] * x[:, t]
    return y


def diagonal_by_hand(p: dict[str, Array], x: Array) -> Array:
    into, out = (np.broadcast_to(p[name], (*x.shape[:2], *p[name].shape)) for name in "bc")
    return scanned(p, x, np.broadcast_to(p["step"], x.shape), into, out)


def selective_by_hand(p: dict[str, Array], x: Array) -> Array:
    into, out = (affine(p, f"{name}_proj", x)[..., np.newaxis] for name in "bc")
    return scanned(p, x, affine(p, "step_out", affine(p, "step_in", x)), into, out)


def mamba_by_hand(p: dict[str, Array], x: Array) -> Array:
    inner = affine(p, "in_proj", x)
    mixed = np.zeros_like(inner) + p["conv_bias"]
    width = len(p["conv_weight"])
    for t in range(x.shape[1]):
        for back in range(min(width, t + 1)):
            mixed[:, t] += p["conv_weight"][width - 1 - back] * inner[:, t - back]
    inside = {name.removeprefix("ssm."): value for name, value in p.items()}
    found = selective_by_hand(inside, silu(mixed))
    return affine(p, "out_proj", found * silu(affine(p, "gate_proj", x)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("make", "by_hand"),
    [(diagonal, diagonal_by_hand), (selective, selective_by_hand), (mamba, mamba_by_hand)],
)
def test_the_value_is_that_of_the_loops(
    make: Any, by_hand: Any, size: tuple[int, int], rng: np.random.Generator
) -> None:
    layer = make(rng)
    x = rng.standard_normal((*size, 3))

    y = layer.forward(tt.from_numpy(x))

    np.testing.assert_allclose(y.numpy(), by_hand(arrays(layer), x), rtol=1e-11, atol=1e-13)


def test_the_first_values_follow_the_papers(rng: np.random.Generator) -> None:
    layer = nn.DiagonalSSM(200, 4, rng=rng)
    steps = np.logaddexp(0.0, layer.step.numpy().astype(np.float64))

    np.testing.assert_allclose(np.exp(layer.log_a.numpy())[:, 0], [1.0, 2.0, 3.0, 4.0], rtol=1e-6)
    assert layer.b.numpy().tolist() == np.ones((4, 200)).tolist()
    assert layer.d.numpy().tolist() == [1.0] * 200
    assert 1e-3 * 0.999 <= steps.min() < 2e-3
    assert 5e-2 < steps.max() <= 0.1 * 1.001
    # As many below the geometric mean of the bounds as above.
    assert 70 < np.sum(steps < 1e-2) < 130


def test_options_reach_the_layers_that_build_makes(rng: np.random.Generator) -> None:
    class Model(nn.Module):
        block: nn.MambaBlock[L[3], L[6], L[4]] = nn.options(conv_width=2, step_rank=3)
        slow: nn.DiagonalSSM[L[3], L[4]] = nn.options(step_min=1e-4, step_max=1e-4)

    model = tt.build(Model, rng=rng)

    assert model.block.conv_weight.shape == (2, 6)
    assert model.block.ssm.step_in.weight.shape == (3, 6)
    np.testing.assert_allclose(np.logaddexp(0.0, model.slow.step.numpy()), 1e-4, rtol=1e-3)


def test_the_bounds_of_the_first_steps_are_positive_and_in_order(rng: np.random.Generator) -> None:
    with pytest.raises(ArgumentValueError, match="step_min must be > 0"):
        nn.DiagonalSSM(3, 2, step_min=0.0, rng=rng)
    with pytest.raises(ArgumentValueError, match=r"DiagonalSSM: step_max must be >= 0\.2"):
        nn.DiagonalSSM(3, 2, step_min=0.2, rng=rng)
