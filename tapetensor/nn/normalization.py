"""Layers that normalize: by mean and variance, or by the root of the mean square alone."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import Array, as_floating_dtype
from tapetensor.arrays.stand_ins import plain
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
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.apply import apply
from tapetensor.typing import B, Ds, N, P, Q, T


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
        """Return the normalized input, and move the running statistics if the module trains on it.

        Args:
            x: an input of the right shape and dtype.
            batched: whether axis 0 is the batch, and axis 1 the channels.
        """
        name = type(self).__name__
        trains, count = is_training(self, x), x.size // self.num_features
        if trains and count < 2:
            check_variance(name, sized(x.shape), Size.of(self.num_features))
        batch = x if batched else x.expand_dims(0)
        result = self._trained(batch, count) if trains else self._inferred(batch)
        return result if batched else result.squeeze(0)

    def _inferred(self, batch: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        operands = (batch, self.weight, self.bias, self.running_mean, self.running_var)
        return apply(kernels.batch_norm_inference, operands, (self.eps,))

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
