"""Layers that normalize: features, groups of channels, or channels over a batch."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import Array, as_floating_dtype
from tapetensor.arrays.stand_ins import plain
from tapetensor.errors import ShapeError, refusal
from tapetensor.kernels import normalization as kernels
from tapetensor.kernels.numerics import along_axes as means
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.fields import buffer
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.nn.views import is_training
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.layers import batch_norm_1d, batch_norm_2d, check_variance
from tapetensor.rules.windows import check_division
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import B, Ds, F, K, M, N, P, Q, T


class LayerNorm(Module, Generic[N, W]):
    """Normalize the last axis, then scale and shift.

        (x - mean(x)) / sqrt(var(x) + eps) * weight + bias

    Shape: ``(*Ds, N) -> (*Ds, N)``.
    Derivative: ``(g - mean(g) - xhat * mean(g * xhat)) / sqrt(var + eps)`` for `x`, with ``g`` the
        cotangent times the weight and ``xhat`` the normalized input.
    Initialization: weight 1, bias 0.

    Args:
        normalized_features: the size of the last axis, > 0.
        dtype: float32 or float64.
        eps: added to the variance, >= 0.

    Source: Ba, Kiros & Hinton (2016), "Layer normalization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.LayerNorm(2).forward(tt.from_numpy([[1.0, 3.0]], shape=(1, 2))).numpy().round(3)
    array([[-1.,  1.]], dtype=float32)
    """

    weight: Tensor1D[N, NoneTape, W]
    bias: Tensor1D[N, NoneTape, W]
    normalized_features: N
    eps: float

    @overload
    def __init__(
        self: LayerNorm[N, np.float32], normalized_features: N, *, eps: float = 1e-5
    ) -> None: ...
    @overload
    def __init__(self, normalized_features: N, dtype: type[W], *, eps: float = 1e-5) -> None: ...
    def __init__(
        self, normalized_features: N, dtype: type[Any] = np.float32, *, eps: float = 1e-5
    ) -> None:
        size = as_size("LayerNorm", "normalized_features", normalized_features, low=1)
        scalar_type = as_floating_dtype("LayerNorm", "weights", dtype)
        self.eps = as_number("LayerNorm", "eps", eps, at_least=0)
        self.normalized_features = size
        self.weight = init.make(init.ones, (size,), scalar_type, init.NO_RANDOMNESS)
        self.bias = init.make(init.zeros, (size,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return the normalized input.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("LayerNorm", x, self.weight, self.normalized_features)
        return apply(kernels.layer_norm, (x, self.weight, self.bias), (self.eps,))


class BatchNorm(Module, Generic[N, W]):
    """The base of layers that normalize channels over a batch."""

    weight: Tensor1D[N, NoneTape, W]
    bias: Tensor1D[N, NoneTape, W]
    running_mean: Tensor1D[N, NoneTape, W] = buffer(init.zeros)
    running_var: Tensor1D[N, NoneTape, W] = buffer(init.ones)
    num_features: N
    eps: float
    momentum: float

    def _initialize(self, num_features: N, dtype: object, eps: float, momentum: float) -> None:
        name = type(self).__name__
        size = self.num_features = as_size(name, "num_features", num_features, low=1)
        scalar_type = as_floating_dtype(name, "weights", dtype)
        self.eps = as_number(name, "eps", eps, at_least=0)
        self.momentum = as_number(name, "momentum", momentum, at_least=0, at_most=1)
        self.weight = init.make(init.ones, (size,), scalar_type, init.NO_RANDOMNESS)
        self.bias = init.make(init.zeros, (size,), scalar_type, init.NO_RANDOMNESS)
        self.running_mean = init.make(init.zeros, (size,), scalar_type, init.NO_RANDOMNESS)
        self.running_var = init.make(init.ones, (size,), scalar_type, init.NO_RANDOMNESS)

    def _normalized(self, x: Tensor[Any, Any, Any], *, batched: bool) -> Tensor[Any, Any, Any]:
        """Return the normalized input; the running statistics move if the module trains on it."""
        name = type(self).__name__
        trains, count = is_training(self, x), x.size // self.num_features
        if trains and count < 2:
            check_variance(name, sized(x.shape), Size.of(self.num_features))
        batch = x if batched else x.expand_dims(0)
        if trains:
            result = self._trained(batch, count)
        else:
            operands = (batch, self.weight, self.bias, self.running_mean, self.running_var)
            result = apply(kernels.batch_norm_inference, operands, (self.eps,))
        return result if batched else result.squeeze(0)

    def _trained(self, batch: Tensor[Any, Any, Any], count: int) -> Tensor[Any, Any, Any]:
        observed: list[tuple[Array, Array]] = []
        result = apply(
            kernels.batch_norm,
            (batch, self.weight, self.bias),
            # Statistics are no part of a derivative of higher order.
            (self.eps, lambda mean, var: observed.append((plain(mean), plain(var)))),
        )
        running = (self.running_mean._array, self.running_var._array)
        mean, var = means.moved_statistics(running, observed[0], count, self.momentum)
        # The tensors stay, as parameters do at the step of an optimizer: `inference` shares them.
        self.running_mean._array, self.running_var._array = mean, var
        return result


class BatchNorm1d(BatchNorm[N, W]):
    """Normalize every channel over the batch, then scale and shift.

        (x - mean) / sqrt(var + eps) * weight + bias

    `forward` is split by the tape of its input, so a type checker tells the two uses apart. With a
    tape it is training: mean and (biased) variance are those of the batch, and the running
    statistics move towards them, the variance as its unbiased estimate. Without one it is
    inference: the running statistics are used and left alone; so they are under any tape in what
    `tapetensor.nn.inference` returned.

    Shape: ``(B, N)`` or ``(B, N, L)``, the same out.
    Initialization: weight 1, bias 0, running mean 0, running variance 1.

    Args:
        num_features: the number of channels, the size of axis 1, > 0.
        dtype: float32 or float64.
        eps: added to the variance, >= 0.
        momentum: the weight of the batch in the running statistics, in [0, 1].

    Source: Ioffe & Szegedy (2015), "Batch normalization: accelerating deep network training by
        reducing internal covariate shift".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> norm = nn.BatchNorm1d(1)
    >>> x = tt.from_numpy([[1.0], [3.0]], shape=(2, 1))
    >>> norm.forward(x.trace()).detach().numpy().round(3)
    array([[-1.],
           [ 1.]], dtype=float32)
    >>> norm.running_mean
    Tensor([0.2], shape=(1,), dtype=float32, NoneTape)
    """

    @overload
    def __init__(
        self: BatchNorm1d[N, np.float32],
        num_features: N,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None: ...
    @overload
    def __init__(
        self, num_features: N, dtype: type[W], *, eps: float = 1e-5, momentum: float = 0.1
    ) -> None: ...
    def __init__(
        self,
        num_features: N,
        dtype: type[Any] = np.float32,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        self._initialize(num_features, dtype, eps, momentum)

    def forward(self, x: Tensor[tuple[B, N, *Ds], T, W]) -> Tensor[tuple[B, N, *Ds], T, W]:
        """Return the normalized input, and move the running statistics if it owns a tape.

        Raises:
            ShapeError: if axis 1 of `x` does not have the size of the layer, or a training batch
                has fewer than two values per channel.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("BatchNorm1d", x, self.weight)
        shape = x._array.shape
        if len(shape) not in (2, 3) or shape[1] != self.num_features:
            features = Size.of(self.num_features)
            raise refusal(lambda: batch_norm_1d("BatchNorm1d", sized(shape), features))
        return self._normalized(x, batched=True)


class BatchNorm2d(BatchNorm[N, W]):
    """Normalize every channel of images over the batch and all pixels, then scale and shift.

        (x - mean) / sqrt(var + eps) * weight + bias

    Training and inference as in `BatchNorm1d`: the tape of the input says which.

    Shape: ``(B, N, H, W)`` or ``(N, H, W)``, the same out.
    Initialization: weight 1, bias 0, running mean 0, running variance 1.

    Args:
        num_features: the number of channels, > 0.
        dtype: float32 or float64.
        eps: added to the variance, >= 0.
        momentum: the weight of the batch in the running statistics, in [0, 1].

    Source: Ioffe & Szegedy (2015), "Batch normalization: accelerating deep network training by
        reducing internal covariate shift".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> norm = nn.BatchNorm2d(1)
    >>> x = tt.from_numpy([[[1.0, 3.0]]], shape=(1, 1, 2))
    >>> norm.forward(x.trace()).detach().numpy().round(3)
    array([[[-1.,  1.]]], dtype=float32)
    """

    @overload
    def __init__(
        self: BatchNorm2d[N, np.float32],
        num_features: N,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None: ...
    @overload
    def __init__(
        self, num_features: N, dtype: type[W], *, eps: float = 1e-5, momentum: float = 0.1
    ) -> None: ...
    def __init__(
        self,
        num_features: N,
        dtype: type[Any] = np.float32,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        self._initialize(num_features, dtype, eps, momentum)

    @overload
    def forward(self, x: Tensor[tuple[B, N, P, Q], T, W]) -> Tensor[tuple[B, N, P, Q], T, W]: ...
    @overload
    def forward(self, x: Tensor[tuple[N, P, Q], T, W]) -> Tensor[tuple[N, P, Q], T, W]: ...
    def forward(self, x: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return the normalized input, and move the running statistics if it owns a tape.

        Raises:
            ShapeError: if `x` has another number of channels than the layer, or a training batch
                has fewer than two values per channel.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("BatchNorm2d", x, self.weight)
        shape = x._array.shape
        if len(shape) not in (3, 4) or shape[-3] != self.num_features:
            features = Size.of(self.num_features)
            raise refusal(lambda: batch_norm_2d("BatchNorm2d", sized(shape), features))
        return self._normalized(x, batched=len(shape) == 4)


class RMSNorm(Module, Generic[N, W]):
    """Divide the last axis by the root of its mean square, then scale.

        x / sqrt(mean(x ** 2) + eps) * weight

    Shape: ``(*Ds, N) -> (*Ds, N)``.
    Derivative: ``(g - xhat * mean(g * xhat)) / sqrt(mean(x ** 2) + eps)`` for `x`, with ``g`` the
        cotangent times the weight and ``xhat`` the normalized input.
    Initialization: weight 1.

    Args:
        normalized_features: the size of the last axis, > 0.
        dtype: float32 or float64.
        eps: added to the mean square, >= 0. (PyTorch takes the smallest step from 1 of the dtype,
            if none is given.)

    Source: Zhang & Sennrich (2019), "Root mean square layer normalization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.RMSNorm(2).forward(tt.from_numpy([[1.0, 7.0]], shape=(1, 2))).numpy().round(3)
    array([[0.2, 1.4]], dtype=float32)
    """

    weight: Tensor1D[N, NoneTape, W]
    normalized_features: N
    eps: float

    @overload
    def __init__(
        self: RMSNorm[N, np.float32], normalized_features: N, *, eps: float = 1e-6
    ) -> None: ...
    @overload
    def __init__(self, normalized_features: N, dtype: type[W], *, eps: float = 1e-6) -> None: ...
    def __init__(
        self, normalized_features: N, dtype: type[Any] = np.float32, *, eps: float = 1e-6
    ) -> None:
        size = as_size("RMSNorm", "normalized_features", normalized_features, low=1)
        scalar_type = as_floating_dtype("RMSNorm", "weights", dtype)
        self.eps = as_number("RMSNorm", "eps", eps, at_least=0)
        self.normalized_features = size
        self.weight = init.make(init.ones, (size,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return the normalized input.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("RMSNorm", x, self.weight, self.normalized_features)
        return apply(kernels.rms_norm, (x, self.weight), (self.eps,))


class GroupNorm(Module, Generic[M, N, W]):
    """Normalize every group of channels of every sample, then scale and shift each channel.

        (x - mean) / sqrt(var + eps) * weight + bias

    With one group it is layer normalization over all but the batch; with as many as there are
    channels it is instance normalization. Training and inference are the same.

    Shape: ``(B, N, *Ds)``, the same out.
    Initialization: weight 1, bias 0.

    Args:
        num_groups: how many groups the channels make, > 0; it divides `num_channels`.
        num_channels: the size of axis 1, > 0.
        dtype: float32 or float64.
        eps: added to the variance, >= 0.

    Source: Wu & He (2018), "Group normalization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> x = tt.from_numpy([[1.0, 3.0, 4.0, 8.0]], shape=(1, 4))
    >>> nn.GroupNorm(2, 4).forward(x).numpy().round(3)
    array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    weight: Tensor1D[N, NoneTape, W]
    bias: Tensor1D[N, NoneTape, W]
    num_groups: M
    num_channels: N
    eps: float

    @overload
    def __init__(
        self: GroupNorm[M, N, np.float32], num_groups: M, num_channels: N, *, eps: float = 1e-5
    ) -> None: ...
    @overload
    def __init__(
        self, num_groups: M, num_channels: N, dtype: type[W], *, eps: float = 1e-5
    ) -> None: ...
    def __init__(
        self,
        num_groups: M,
        num_channels: N,
        dtype: type[Any] = np.float32,
        *,
        eps: float = 1e-5,
    ) -> None:
        self.num_groups = as_size("GroupNorm", "num_groups", num_groups, low=1)
        self.num_channels = as_size("GroupNorm", "num_channels", num_channels, low=1)
        divided = {"num_channels": Size.of(self.num_channels)}
        check_division("GroupNorm", "groups", Size.of(self.num_groups), divided)
        scalar_type = as_floating_dtype("GroupNorm", "weights", dtype)
        self.eps = as_number("GroupNorm", "eps", eps, at_least=0)
        shape = (self.num_channels,)
        self.weight = init.make(init.ones, shape, scalar_type, init.NO_RANDOMNESS)
        self.bias = init.make(init.zeros, shape, scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[B, N, *Ds], T, W]) -> Tensor[tuple[B, N, *Ds], T, W]:
        """Return the normalized input.

        Raises:
            ShapeError: if `x` has another number of channels than the layer.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("GroupNorm", x, self.weight)
        shape: Any = x.shape
        if len(shape) < 2 or shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: the input must have shape (B, {self.num_channels}, ...), got {shape}"
            )
        grouped = (shape[0], self.num_groups, math.prod(shape[1:]) // self.num_groups)
        normalized = x.reshape(grouped).normalize(eps=self.eps).reshape(x.shape)
        per_channel: Any = (self.num_channels, *[1] * (len(shape) - 2))
        scale: Any = self.weight.reshape(per_channel)
        result: Tensor[Any, Any, Any] = normalized * scale + self.bias.reshape(per_channel)
        return result


class InstanceNorm(Module):
    """The base of the instance norms of sequences and of images."""

    eps: float

    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = as_number(type(self).__name__, "eps", eps, at_least=0)

    def _normalized(self, x: Tensor[Any, Any, Any], rank: int) -> Tensor[Any, Any, Any]:
        name = type(self).__name__
        check_tensor(name, "the input", x)
        shape = x._array.shape
        if len(shape) != rank or 0 in shape[2:]:
            axes = "(N, C, L)" if rank == 3 else "(N, C, H, W)"
            raise ShapeError(f"{name}: takes {axes} with elements, the input has shape {shape}")
        return x.reshape((*shape[:2], math.prod(shape[2:]))).normalize(eps=self.eps).reshape(shape)


class InstanceNorm1d(InstanceNorm, init=False):
    """Every channel of every sequence made mean 0 and variance 1, in training as in inference.

        (x - mean(x)) / sqrt(var(x) + eps)   over each (n, c)

    It has no parameters, as PyTorch's by default; with a scale and a bias for each channel it is
    ``nn.GroupNorm(channels, channels)``.

    Shape: ``(N, C, L) -> (N, C, L)``.
    Derivative: that of `tapetensor.Tensor.normalize` over the positions.

    Args:
        eps: added to the variance, >= 0.

    Raises:
        ArgumentValueError: if `eps` is negative or not finite.

    Source: Ulyanov, Vedaldi & Lempitsky (2016), "Instance normalization: the missing ingredient for
        fast stylization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.InstanceNorm1d(eps=0.0).forward(tt.from_numpy([[[1.0, 3.0]]], (1, 1, 2)))
    Tensor([[[-1.,  1.]]], shape=(1, 1, 2), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[tuple[B, N, K], T, F]) -> Tensor[tuple[B, N, K], T, F]:
        """Return the normalized sequences.

        Raises:
            ShapeError: if `x` has not three axes, or no positions.
        """
        return self._normalized(x, 3)


class InstanceNorm2d(InstanceNorm, init=False):
    """Every channel of every image made mean 0 and variance 1, in training as in inference.

        (x - mean(x)) / sqrt(var(x) + eps)   over each (n, c)

    It has no parameters, as PyTorch's by default; with a scale and a bias for each channel it is
    ``nn.GroupNorm(channels, channels)``.

    Shape: ``(N, C, H, W) -> (N, C, H, W)``.
    Derivative: that of `tapetensor.Tensor.normalize` over the pixels.

    Args:
        eps: added to the variance, >= 0.

    Raises:
        ArgumentValueError: if `eps` is negative or not finite.

    Source: Ulyanov, Vedaldi & Lempitsky (2016), "Instance normalization: the missing ingredient for
        fast stylization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.InstanceNorm2d(eps=0.0).forward(tt.from_numpy([[[[1.0, 3.0]]]], (1, 1, 1, 2)))
    Tensor([[[[-1.,  1.]]]], shape=(1, 1, 1, 2), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[tuple[B, N, M, K], T, F]) -> Tensor[tuple[B, N, M, K], T, F]:
        """Return the normalized images.

        Raises:
            ShapeError: if `x` has not four axes, or no pixels.
        """
        return self._normalized(x, 4)
