"""Fit a small network to a curve by scipy's L-BFGS, which sees its parameters as one flat array.

Pays off where all data fit into one batch and the last digits count: the line search and the
curvature that L-BFGS remembers take the place of a learning rate.

    python examples/lbfgs.py
"""

from __future__ import annotations

from typing import Literal as L

import numpy as np
from scipy.optimize import minimize

import tapetensor as tt
from tapetensor import OwnedTape, Tensor0D, Tensor2D
from tapetensor.typing import B, T


class Curve(tt.nn.Module):
    """A layer of 16 between one number and another."""

    hidden: tt.nn.Linear[L[1], L[16], np.float64]
    out: tt.nn.Linear[L[16], L[1], np.float64]

    def forward(self, x: Tensor2D[B, L[1], T, np.float64]) -> Tensor2D[B, L[1], T, np.float64]:
        """Return the curve's heights at `x`."""
        return self.out.forward(self.hidden.forward(x).tanh())


def main() -> None:
    """Fit the sine."""
    model = tt.build(Curve, rng=np.random.default_rng(0))
    values = np.linspace(-3.0, 3.0, 64)[:, np.newaxis]
    x: Tensor2D[L[64], L[1], tt.NoneTape, np.float64] = tt.from_numpy(values, (64, 1))
    y = x.sin()

    def loss_of() -> Tensor0D[OwnedTape, np.float64]:
        return tt.losses.mse(model.forward(x.trace()), y)

    before = loss_of().item()
    weights = tt.ravel(model)
    found = minimize(weights.objective(loss_of), weights.numpy(), jac=True, method="L-BFGS-B")
    weights.assign(found.x)
    print(f"{weights.numpy().size} parameters, {found.nit} steps, {found.nfev} losses")
    print(f"loss {before:.2e} -> {loss_of().item():.2e}")


if __name__ == "__main__":
    main()
