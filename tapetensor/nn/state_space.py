"""State-space layers, linear recurrences along a sequence, batch first; and the block of Mamba."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size, check_rng
from tapetensor.arrays.array import Array, as_floating_dtype
from tapetensor.nn import init
from tapetensor.nn.arguments import check_sequence
from tapetensor.nn.fields import Initializer
from tapetensor.nn.linear import Linear
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor1D, Tensor2D, Tensor3D, concat, einsum, ssm_scan
from tapetensor.tensor.creation import zeros_beside
from tapetensor.typing import B, K, M, N, P, T


class DiagonalSSM(Module, Generic[N, K, W]):
    """A diagonal state-space model: a state for every channel, the same at all times.

        h[t] = exp(-exp(log_a) dt) h[t - 1] + dt b x[t],   dt = softplus(step)
        y[t] = sum over the state of c h[t] + d x[t]

    Shape: ``(batch, length, features) -> (batch, length, features)``.
    Initialization: the rates are -1, -2, ... ``-state_features`` (S4D-Real), `b` and `d` are 1, `c`
        is normal, the steps are log-uniform between `step_min` and `step_max`.

    Args:
        features: the size of the last axis, > 0.
        state_features: the size of the state of each, > 0.
        dtype: float32 or float64.
        step_min: the smallest first step, > 0. ``1 / step`` is about how far a channel remembers.
        step_max: the largest first step, >= `step_min`.
        rng: draws the initial values.

    Source: Gu, Gupta, Goel & Re (2022), "On the parameterization and initialization of diagonal
        state space models"; the input enters by ``dt b``, as in Gu & Dao (2023), "Mamba".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.DiagonalSSM(3, 4, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((2, 10, 3))).shape
    (2, 10, 3)
    """

    log_a: Tensor2D[K, N, NoneTape, W]
    b: Tensor2D[K, N, NoneTape, W]
    c: Tensor2D[K, N, NoneTape, W]
    d: Tensor1D[N, NoneTape, W]
    step: Tensor1D[N, NoneTape, W]
    features: N
    state_features: K

    @overload
    def __init__(
        self: DiagonalSSM[N, K, np.float32],
        features: N,
        state_features: K,
        *,
        step_min: float = 1e-3,
        step_max: float = 0.1,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        features: N,
        state_features: K,
        dtype: type[W],
        *,
        step_min: float = 1e-3,
        step_max: float = 0.1,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        features: N,
        state_features: K,
        dtype: type[Any] = np.float32,
        *,
        step_min: float = 1e-3,
        step_max: float = 0.1,
        rng: np.random.Generator,
    ) -> None:
        channels = self.features = as_size("DiagonalSSM", "features", features, low=1)
        state = self.state_features = as_size(
            "DiagonalSSM", "state_features", state_features, low=1
        )
        scalar_type = as_floating_dtype("DiagonalSSM", "weights", dtype)
        steps = _log_uniform_steps("DiagonalSSM", step_min, step_max)
        check_rng("DiagonalSSM", rng)
        self.log_a = init.make(_log_rates, (state, channels), scalar_type, rng)
        self.b = init.make(init.ones, (state, channels), scalar_type, rng)
        self.c = init.make(init.normal(1.0), (state, channels), scalar_type, rng)
        self.d = init.make(init.ones, (channels,), scalar_type, rng)
        self.step = init.make(steps, (channels,), scalar_type, rng)

    def forward(self, x: Tensor3D[B, M, N, T, W]) -> Tensor3D[B, M, N, T, W]:
        """Return the states read out at every step.

        Raises:
            ShapeError: if `x` is not ``(batch, length, features)``.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_sequence("DiagonalSSM", x, self.d, self.features)
        # The state stands before the steps: (batch, state, length, features).
        batch, length, channels = x.shape
        wide = (batch, self.state_features, length, channels)
        step = self.step.softplus()
        rate = -self.log_a.exp()
        decay = (rate * step).exp()
        gain = self.b * step
        skipped = x * self.d
        states = ssm_scan(
            x.expand_dims(1).broadcast_to(wide),
            decay.expand_dims(1).broadcast_to(wide),
            gain.expand_dims(1).broadcast_to(wide),
        )
        read: Tensor3D[B, M, N, T, W] = einsum("bkmn,kn->bmn", states, self.c)
        return read + skipped


class SelectiveSSM(Module, Generic[N, K, W]):
    """A diagonal state-space model whose step, input and readout depend on the input.

        h[t] = exp(-exp(log_a) dt[t]) h[t - 1] + dt[t] b[t] x[t]
        y[t] = sum over the state of c[t] h[t] + d x[t]

    ``dt = softplus(step_out(step_in(x)))`` for every channel; ``b = b_proj(x)`` and
    ``c = c_proj(x)``, one number per state. So a step may be kept for long, or passed over.

    Shape: ``(batch, length, features) -> (batch, length, features)``.
    Initialization: the rates are -1, -2, ... ``-state_features``, `d` is 1, the projections are
        those of `Linear`, but for the bias of `step_out`, which makes the steps of a zero input
        log-uniform between 0.001 and 0.1.

    Args:
        features: the size of the last axis, > 0.
        state_features: the size of the state of each, > 0.
        dtype: float32 or float64.
        step_rank: how many features the steps are computed from, > 0.
        rng: draws the initial values.

    Source: Gu & Dao (2023), "Mamba: linear-time sequence modeling with selective state spaces",
        algorithm 2. Its projections to `b`, `c` and the step have no bias.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.SelectiveSSM(3, 4, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((2, 10, 3))).shape
    (2, 10, 3)
    """

    log_a: Tensor2D[K, N, NoneTape, W]
    d: Tensor1D[N, NoneTape, W]
    step_in: Linear[N, int, W]
    step_out: Linear[int, N, W]
    b_proj: Linear[N, K, W]
    c_proj: Linear[N, K, W]
    features: N
    state_features: K

    @overload
    def __init__(
        self: SelectiveSSM[N, K, np.float32],
        features: N,
        state_features: K,
        *,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        features: N,
        state_features: K,
        dtype: type[W],
        *,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        features: N,
        state_features: K,
        dtype: type[Any] = np.float32,
        *,
        step_rank: int = 1,
        rng: np.random.Generator,
    ) -> None:
        channels = self.features = as_size("SelectiveSSM", "features", features, low=1)
        state = self.state_features = as_size(
            "SelectiveSSM", "state_features", state_features, low=1
        )
        rank = as_size("SelectiveSSM", "step_rank", step_rank, low=1)
        scalar_type = as_floating_dtype("SelectiveSSM", "weights", dtype)
        check_rng("SelectiveSSM", rng)
        self.log_a = init.make(_log_rates, (state, channels), scalar_type, rng)
        self.d = init.make(init.ones, (channels,), scalar_type, rng)
        self.step_in = Linear(channels, rank, dtype, rng=rng)
        self.step_out = Linear(rank, channels, dtype, rng=rng)
        steps = _log_uniform_steps("SelectiveSSM", 1e-3, 0.1)
        self.step_out.bias = init.make(steps, (channels,), scalar_type, rng)
        self.b_proj = Linear(channels, state, dtype, rng=rng)
        self.c_proj = Linear(channels, state, dtype, rng=rng)

    def forward(self, x: Tensor3D[B, M, N, T, W]) -> Tensor3D[B, M, N, T, W]:
        """Return the states read out at every step.

        Raises:
            ShapeError: if `x` is not ``(batch, length, features)``.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_sequence("SelectiveSSM", x, self.d, self.features)
        # The state stands before the steps: (batch, state, length, features).
        batch, length, channels = x.shape
        wide = (batch, self.state_features, length, channels)
        rate = -self.log_a.exp()
        step = self.step_out.forward(self.step_in.forward(x)).softplus()
        into = self.b_proj.forward(x).transpose()
        readout = self.c_proj.forward(x)
        skipped = x * self.d
        spread_step = step.expand_dims(1).broadcast_to(wide)
        states = ssm_scan(
            (x * step).expand_dims(1).broadcast_to(wide),
            (spread_step * rate.expand_dims(1).broadcast_to(wide)).exp(),
            into.expand_dims(-1).broadcast_to(wide),
        )
        read: Tensor3D[B, M, N, T, W] = einsum("bkmn,bmk->bmn", states, readout)
        return read + skipped


def _log_rates(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Return the logarithms of 1, 2, ... down the first axis."""
    rates = np.arange(1.0, shape[0] + 1.0)
    return np.broadcast_to(np.log(rates)[:, np.newaxis], shape).astype(dtype)


def _log_uniform_steps(layer: str, low: float, high: float) -> Initializer:
    """Return an initializer of numbers whose softplus is log-uniform between two bounds."""
    low = as_number(layer, "step_min", low, above=0)
    high = as_number(layer, "step_max", high, at_least=low)

    def initializer(
        shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
    ) -> Array:
        steps = np.exp(rng.uniform(math.log(low), math.log(high), shape))
        # The inverse of softplus, without the loss of digits that log(exp(step) - 1) has.
        return (steps + np.log(-np.expm1(-steps))).astype(dtype)

    return initializer


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
        rng: draws the initial values.

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
        """Return the term that the block adds to a residual stream.

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
