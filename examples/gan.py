"""A GAN with two optimizers: points drawn around a circle, from noise.

The discriminator's pass over generated points begins with `detach()` and a tape of its own: its
loss trains it alone. The generator's pass goes through both networks, and its loss asks for the
generator's gradients only (`wrt=`).

Run ``mypy --strict examples/gan.py`` and then ``python examples/gan.py``.
"""

from __future__ import annotations

import argparse
import time
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T

BATCH: L[256] = 256
HELD_OUT = 4000
MODES = 8


class Generator(nn.Module):
    """Points of the plane, from noise of eight numbers."""

    first: nn.Linear[L[8], L[64]]
    second: nn.Linear[L[64], L[64]]
    out: nn.Linear[L[64], L[2]]

    def forward(self, noise: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[2], T]:
        """Return a point for each row of noise."""
        hidden = self.second.forward(self.first.forward(noise).relu()).relu()
        return self.out.forward(hidden)


class Discriminator(nn.Module):
    """The logit that a point is a real one."""

    first: nn.Linear[L[2], L[64]]
    second: nn.Linear[L[64], L[64]]
    out: nn.Linear[L[64], L[1]]

    def forward(self, points: Tensor2D[B, L[2], T]) -> Tensor1D[B, T]:
        """Return a logit for each point."""
        hidden = self.second.forward(self.first.forward(points).relu()).relu()
        return self.out.forward(hidden).squeeze(-1)


def real_points(count: B, rng: np.random.Generator) -> Tensor2D[B, L[2]]:
    """Return points near the corners of an octagon."""
    angles = rng.integers(MODES, size=count) * (2 * np.pi / MODES)
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return tt.from_numpy(corners + 0.05 * rng.normal(size=(count, 2)), (count, 2), np.float32)


def train(steps: int, rng: np.random.Generator) -> Generator:
    """Train both networks in turns; return the generator."""
    generator = tt.build(Generator, rng=rng)
    discriminator = tt.build(Discriminator, rng=rng)
    for_generator = optim.Adam(generator, lr=1e-3, betas=(0.5, 0.99))
    for_discriminator = optim.Adam(discriminator, lr=4e-3, betas=(0.5, 0.99))
    real: Tensor1D[L[256]] = tt.ones((BATCH,))
    fake: Tensor1D[L[256]] = tt.zeros((BATCH,))

    def step(points: Tensor2D[L[256], L[2]], noise: Tensor2D[L[256], L[8]]) -> None:
        drawn = generator.forward(noise.trace())
        # A constant to the discriminator, with a tape of its own.
        shown = drawn.detach().trace()
        loss = losses.binary_cross_entropy_with_logits(
            discriminator.forward(points.trace()), real
        ) + losses.binary_cross_entropy_with_logits(discriminator.forward(shown), fake)
        for_discriminator.step(loss.backward(wrt=discriminator))
        judged = discriminator.forward(drawn)
        loss = losses.binary_cross_entropy_with_logits(judged, real)
        for_generator.step(loss.backward(wrt=generator))

    step_once = tt.compile(step)
    for _ in range(steps):
        noise: Tensor2D[L[256], L[8]] = tt.normal((BATCH, 8), rng=rng)
        step_once(real_points(BATCH, rng), noise)
    return generator


def quality(points: Tensor2D[B, L[2], NoneTape]) -> tuple[float, int]:
    """Return the share of points near a corner, and how many corners have points near them."""
    angles = np.arange(MODES) * (2 * np.pi / MODES)
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distances = np.linalg.norm(points.numpy()[:, None] - corners, axis=2)
    near = distances.min(axis=1) < 0.25
    return float(near.mean()), len(set(distances.argmin(axis=1)[near].tolist()))


def main() -> None:
    """Train and tell how good the points are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    rng = np.random.default_rng(arguments.seed)
    generator = train(arguments.steps, rng)
    noise: Tensor2D[int, L[8]] = tt.normal((HELD_OUT, 8), rng=rng)
    share, modes = quality(generator.forward(noise))
    print(f"{share:.0%} of the points near a corner, {modes} of {MODES} corners reached")
    print(f"took {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
