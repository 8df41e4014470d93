"""`Tensor`, one room per family of its methods, and the functions that make and join tensors.

The rooms name each other's types under `TYPE_CHECKING` only; at run time each needs no more than
`base` and `apply`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Never

from tapetensor.arguments.spellings import OF_PACKAGES
from tapetensor.errors import ArgumentTypeError
from tapetensor.tensor.attention import scaled_dot_product_attention as scaled_dot_product_attention
from tapetensor.tensor.convolution import conv1d as conv1d
from tapetensor.tensor.convolution import conv2d as conv2d
from tapetensor.tensor.creation import arange as arange
from tapetensor.tensor.creation import eye as eye
from tapetensor.tensor.creation import from_array as from_array
from tapetensor.tensor.creation import from_memmap as from_memmap
from tapetensor.tensor.creation import from_numpy as from_numpy
from tapetensor.tensor.creation import full as full
from tapetensor.tensor.creation import normal as normal
from tapetensor.tensor.creation import ones as ones
from tapetensor.tensor.creation import uniform as uniform
from tapetensor.tensor.creation import zeros as zeros
from tapetensor.tensor.custom import custom_op as custom_op
from tapetensor.tensor.images import avg_pool2d as avg_pool2d
from tapetensor.tensor.images import fold as fold
from tapetensor.tensor.images import interpolate as interpolate
from tapetensor.tensor.images import max_pool2d as max_pool2d
from tapetensor.tensor.images import min_pool2d as min_pool2d
from tapetensor.tensor.images import pixel_shuffle as pixel_shuffle
from tapetensor.tensor.images import pixel_unshuffle as pixel_unshuffle
from tapetensor.tensor.images import unfold as unfold
from tapetensor.tensor.images import upscale2d as upscale2d
from tapetensor.tensor.joining import concat as concat
from tapetensor.tensor.joining import einsum as einsum
from tapetensor.tensor.joining import segment_sum as segment_sum
from tapetensor.tensor.joining import stack as stack
from tapetensor.tensor.ownership import owns_tape as owns_tape
from tapetensor.tensor.scan import ssm_scan as ssm_scan
from tapetensor.tensor.selection import maximum as maximum
from tapetensor.tensor.selection import minimum as minimum
from tapetensor.tensor.selection import where as where
from tapetensor.tensor.tensor import Tensor as Tensor
from tapetensor.tensor.tensor import Tensor0D as Tensor0D
from tapetensor.tensor.tensor import Tensor1D as Tensor1D
from tapetensor.tensor.tensor import Tensor2D as Tensor2D
from tapetensor.tensor.tensor import Tensor3D as Tensor3D
from tapetensor.tensor.tensor import Tensor4D as Tensor4D
from tapetensor.tensor.tensor import Tensor5D as Tensor5D
from tapetensor.tensor.tensor import Tensor6D as Tensor6D
from tapetensor.tensor.transposed_convolution import conv_transpose1d as conv_transpose1d
from tapetensor.tensor.transposed_convolution import conv_transpose2d as conv_transpose2d


class _Package(ModuleType):
    """This package, which is called by those who know PyTorch's `torch.tensor`."""

    def __call__(self, *_: Any, **__: Any) -> Never:
        raise ArgumentTypeError(
            "tt.tensor is a package, and makes no tensor; write "
            + OF_PACKAGES["tapetensor"]["as_tensor"]
        )


sys.modules[__name__].__class__ = _Package
