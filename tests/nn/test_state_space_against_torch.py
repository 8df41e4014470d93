"""`ssm_scan` and the layers built on it against loops that PyTorch differentiates, in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional


def leaf(array: Any) -> Any:
    return torch.from_numpy(np.array(array)).requires_grad_()


def scan(x: Any, a: Any, b: Any) -> Any:
    """Run the recurrence over axis 1 of operands of one shape."""
    state, states = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = a[:, t] * state + b[:, t] * x[:, t]
        states.append(state)
    return torch.stack(states, dim=1)


def linear(p: dict[str, Any], name: str, x: Any) -> Any:
    return functional.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def diagonal(p: dict[str, Any], x: Any) -> Any:
    step = functional.softplus(p["step"])
    size = (*x.shape[:2], *p["log_a"].shape)
    decay = torch.exp(-torch.exp(p["log_a"]) * step).expand(size)
    states = scan(x.unsqueeze(2).expand(size), decay, (p["b"] * step).expand(size))
    return (states * p["c"]).sum(2) + p["d"] * x


def selective(p: dict[str, Any], x: Any) -> Any:
    step = functional.softplus(linear(p, "step_out", linear(p, "step_in", x))).unsqueeze(2)
    size = (*x.shape[:2], *p["log_a"].shape)
    decay = torch.exp(-torch.exp(p["log_a"]) * step)
    into = linear(p, "b_proj", x).unsqueeze(3).expand(size)
    states = scan((step * x.unsqueeze(2)).expand(size), decay, into)
    return (states * linear(p, "c_proj", x).unsqueeze(3)).sum(2) + p["d"] * x


def mamba(p: dict[str, Any], x: Any) -> Any:
    inner = linear(p, "in_proj", x).transpose(1, 2)
    width, channels = p["conv_weight"].shape
    padded = functional.pad(inner, (width - 1, 0))
    kernel = p["conv_weight"].T.unsqueeze(1)
    mixed = functional.conv1d(padded, kernel, p["conv_bias"], groups=channels).transpose(1, 2)
    below = {name.removeprefix("ssm."): value for name, value in p.items()}
    scanned = selective(below, functional.silu(mixed))
    return linear(p, "out_proj", scanned * functional.silu(linear(p, "gate_proj", x)))


def test_the_scan_and_its_three_gradients(rng: np.random.Generator) -> None:
    x, b, g = (rng.standard_normal((3, 40, 5)).astype(np.float32) for _ in range(3))
    a = rng.uniform(-1.0, 1.0, (3, 40, 5)).astype(np.float32)
    operands = [tt.from_numpy(one) for one in (x, a, b)]
    theirs = [leaf(one) for one in (x, a, b)]

    h = tt.ssm_scan(*[one.trace() for one in operands])
    states = h.detach().numpy()
    grads = h.backward(tt.from_numpy(g))
    wanted = scan(*theirs)
    wanted.backward(torch.from_numpy(g))

    np.testing.assert_allclose(states, wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    for one, their in zip(operands, theirs, strict=True):
        np.testing.assert_allclose(grads[one].numpy(), their.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "their_forward"),
    [(nn.DiagonalSSM, diagonal), (nn.SelectiveSSM, selective), (nn.MambaBlock, mamba)],
)
def test_a_layer_and_the_gradients_of_all_its_parameters(
    layer: Any, their_forward: Any, rng: np.random.Generator
) -> None:
    sizes = (6, 8, 4) if layer is nn.MambaBlock else (6, 4)
    ours = layer(*sizes, rng=rng)
    x, g = (rng.standard_normal((3, 20, 6)).astype(np.float32) for _ in range(2))
    their_x = leaf(x)
    theirs = {name: leaf(one.numpy()) for name, one in ours.parameters().items()}

    plain = tt.from_numpy(x)
    y = ours.forward(plain.trace())
    values = y.detach().numpy()
    grads = y.backward(tt.from_numpy(g))
    wanted = their_forward(theirs, their_x)
    wanted.backward(torch.from_numpy(g))

    np.testing.assert_allclose(values, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grads[plain].numpy(), their_x.grad.numpy(), rtol=1e-4, atol=1e-5)
    for name, parameter in ours.parameters().items():
        found, their = grads[parameter].numpy(), theirs[name].grad.numpy()
        np.testing.assert_allclose(found, their, rtol=1e-3, atol=1e-4, err_msg=name)
