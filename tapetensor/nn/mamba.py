"""The block of Mamba."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.nn import init
from tapetensor.nn.arguments import check_sequence
from tapetensor.nn.linear import Linear
from tapetensor.nn.module import Module
from tapetensor.nn.state_space import SelectiveSSM
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor1D, Tensor2D, Tensor3D, concat
from tapetensor.tensor.creation import zeros_beside
from tapetensor.typing import B, K, M, N, P, T


class MambaBlock(Module, Generic[N, P, K, W]):
    """The block of Mamba: a gated selective state-space model behind a short causal convolution.

        u = silu(conv(in_proj(x)))
        y = out_proj(ssm(u) * silu(gate_proj(x)))

    A residual connection and a norm are the caller's: ``x + block(norm(x))``.

    Shape: ``(batch, length, features) -> (batch, length, features)``.
    Initialization: that of `Linear` and `SelectiveSSM`; the convolution is uniform in
        ``(-1/sqrt(conv_width), 1/sqrt(conv_width))``.

    Args:
        features: the size of the last axis, > 0.
        inner_features: the number of channels that have a state, > 0; twice `features` in the
            paper.
        state_features: the size of the state of each, > 0; 16 in the paper.
        dtype: float32 or float64.
        conv_width: how many steps, the present one and those before, the convolution sees, > 0.
        step_rank: how many features the steps are computed from, > 0; a sixteenth of `features` in
            the paper.
        rng: where the first values come from.

    Source: Gu & Dao (2023), "Mamba: linear-time sequence modeling with selective state spaces",
        figure 3. Its projections have no bias, and `in_proj` and `gate_proj` are one.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> block = nn.MambaBlock(3, 6, 4, rng=np.random.default_rng(0))
    >>> block.forward(tt.zeros((2, 10, 3))).shape
    (2, 10, 3)
    """

    in_proj: Linear[N, P, W]
    gate_proj: Linear[N, P, W]
    conv_weight: Tensor2D[int, P, NoneTape, W]
    conv_bias: Tensor1D[P, NoneTape, W]
    ssm: SelectiveSSM[P, K, W]
    out_proj: Linear[P, N, W]

    @overload
    def __init__(
        self: MambaBlock[N, P, K, np.float32],
        features: N,
        inner_features: P,
        state_features: K,
        *,
        conv_width: int = 4,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        features: N,
        inner_features: P,
        state_features: K,
        dtype: type[W],
        *,
        conv_width: int = 4,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        features: N,
        inner_features: P,
        state_features: K,
        dtype: type[Any] = np.float32,
        *,
        conv_width: int = 4,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None:
        outer = as_size("MambaBlock", "features", features, low=1)
        inner = as_size("MambaBlock", "inner_features", inner_features, low=1)
        state = as_size("MambaBlock", "state_features", state_features, low=1)
        width = as_size("MambaBlock", "conv_width", conv_width, low=1)
        rank = as_size("MambaBlock", "step_rank", step_rank, low=1)
        scalar_type = as_floating_dtype("MambaBlock", "weights", dtype)
        check_rng("MambaBlock", rng)
        uniform = init.uniform(1.0 / math.sqrt(width))
        self.in_proj = Linear(outer, inner, dtype, rng=rng)
        self.gate_proj = Linear(outer, inner, dtype, rng=rng)
        self.conv_weight = init.make(uniform, (width, inner), scalar_type, rng)
        self.conv_bias = init.make(uniform, (inner,), scalar_type, rng)
        self.ssm = SelectiveSSM(inner, state, dtype, step_rank=rank, rng=rng)
        self.out_proj = Linear(inner, outer, dtype, rng=rng)

    def forward(self, x: Tensor3D[B, M, N, T, W]) -> Tensor3D[B, M, N, T, W]:
        """Return what the block adds to a residual stream.

        Raises:
            ShapeError: if `x` is not ``(batch, length, features)``.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_sequence("MambaBlock", x, self.conv_bias, self.in_proj.in_features)
        gate = self.gate_proj.forward(x).silu()
        inner = self._causal_conv(self.in_proj.forward(x)).silu()
        return self.out_proj.forward(self.ssm.forward(inner) * gate)

    def _causal_conv(self, x: Tensor3D[B, M, P, T, W]) -> Tensor3D[B, M, P, T, W]:
        """Return weighted sums of each channel over the present step and those before it."""
        batch, length, channels = x.shape
        weight = self.conv_weight
        present = weight.shape[0] - 1
        total = x * weight[present] + self.conv_bias
        # What lies before the first step is 0.
        for back in range(1, min(present + 1, int(length))):
            missing = zeros_beside(x, (batch, back, channels))
            earlier = concat((missing, x[:, : length - back]), axis=1)
            total = total + earlier * weight[present - back]
        return total
