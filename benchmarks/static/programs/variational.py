"""Samples of a code by the reparameterization trick."""
# ruff: noqa: D101, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor0D, Tensor2D, losses, nn, optim
from tapetensor.typing import B


class Encoder(nn.Module):
    hidden: nn.Linear[L[6], L[8]]
    mean: nn.Linear[L[8], L[3]]
    log_variance: nn.Linear[L[8], L[3]]
    decoder: nn.Linear[L[3], L[6]]


def sample(
    model: Encoder, x: Tensor2D[B, L[6], OwnedTape], noise: Tensor2D[B, L[3]]
) -> tuple[Tensor2D[B, L[6], OwnedTape], Tensor0D[OwnedTape]]:
    h = model.hidden.forward(x).relu()
    mean = model.mean.forward(h)
    log_variance = model.log_variance.forward(h)
    spread = (log_variance * 0.5).exp()
    code = mean + spread * noise
    divergence = mean.square() + log_variance.exp() - log_variance
    return model.decoder.forward(code), divergence.mean()


def main() -> None:
    rng = np.random.default_rng(0)
    model = tt.build(Encoder, rng=rng)
    x: Tensor2D[L[4], L[6]] = tt.normal((4, 6), rng=rng)
    noise: Tensor2D[L[4], L[3]] = tt.normal((4, 3), rng=rng)
    output, divergence = sample(model, x.trace(), noise)
    loss = losses.mse(output, x) + divergence * 0.1
    optim.Adam(model, lr=0.01).step(loss.backward(wrt=model))


if __name__ == "__main__":
    main()
