"""Automatic differentiation on numpy with shape, dtype and tape in the type of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.machine.settings import apply_blas_setting as _apply_blas_setting
from tapetensor.machine.settings import keep_freed_memory as _keep_freed_memory

# Before numpy is imported, which loads its BLAS.
_apply_blas_setting()
_keep_freed_memory()

from tapetensor.arrays.array import Rank0 as Rank0
from tapetensor.arrays.array import Rank1 as Rank1
from tapetensor.arrays.array import Rank2 as Rank2
from tapetensor.arrays.array import Rank3 as Rank3
from tapetensor.arrays.array import Rank4 as Rank4
from tapetensor.arrays.array import Rank5 as Rank5
from tapetensor.arrays.array import Rank6 as Rank6
from tapetensor.checkpointing import checkpoint as checkpoint
from tapetensor.errors import ArgumentTypeError as ArgumentTypeError
from tapetensor.errors import ArgumentValueError as ArgumentValueError
from tapetensor.errors import AxisError as AxisError
from tapetensor.errors import BuildError as BuildError
from tapetensor.errors import DistributedError as DistributedError
from tapetensor.errors import DTypeError as DTypeError
from tapetensor.errors import FileFormatError as FileFormatError
from tapetensor.errors import HigherOrderError as HigherOrderError
from tapetensor.errors import MissingDependencyError as MissingDependencyError
from tapetensor.errors import MissingGradientError as MissingGradientError
from tapetensor.errors import NumericalInstabilityError as NumericalInstabilityError
from tapetensor.errors import ShapeError as ShapeError
from tapetensor.errors import StateMismatchError as StateMismatchError
from tapetensor.errors import TapeClosedError as TapeClosedError
from tapetensor.errors import TapeTensorError as TapeTensorError
from tapetensor.errors import TapeUsedError as TapeUsedError
from tapetensor.errors import TraceError as TraceError
from tapetensor.errors import UntracedTensorError as UntracedTensorError
from tapetensor.errors import UnusedParametersError as UnusedParametersError
from tapetensor.gradient_tape import GradientTape as GradientTape
from tapetensor.higher_order import grad as grad
from tapetensor.higher_order import hessian_vector_product as hessian_vector_product
from tapetensor.higher_order import value_and_grad as value_and_grad
from tapetensor.kernels.numerics.decorators import IS_CHOSEN as _IS_MACHINE_CODE_CHOSEN
from tapetensor.pictures.places import source_lines as source_lines
from tapetensor.tape import NoneTape as NoneTape
from tapetensor.tape import OwnedTape as OwnedTape
from tapetensor.tape import Tape as Tape
from tapetensor.tape.accumulator import GradientAccumulator as GradientAccumulator
from tapetensor.tape.context import GradientContext as GradientContext
from tapetensor.tape.context import clear_default_context_tape as clear_default_context_tape
from tapetensor.tape.context import clear_tape as clear_tape
from tapetensor.tape.gradients import Gradients as Gradients
from tapetensor.tape.history import TensorId as TensorId
from tapetensor.tensor import Tensor as Tensor
from tapetensor.tensor import Tensor0D as Tensor0D
from tapetensor.tensor import Tensor1D as Tensor1D
from tapetensor.tensor import Tensor2D as Tensor2D
from tapetensor.tensor import Tensor3D as Tensor3D
from tapetensor.tensor import Tensor4D as Tensor4D
from tapetensor.tensor import Tensor5D as Tensor5D
from tapetensor.tensor import Tensor6D as Tensor6D
from tapetensor.tensor import arange as arange
from tapetensor.tensor import avg_pool2d as avg_pool2d
from tapetensor.tensor import concat as concat
from tapetensor.tensor import conv1d as conv1d
from tapetensor.tensor import conv2d as conv2d
from tapetensor.tensor import conv_transpose1d as conv_transpose1d
from tapetensor.tensor import conv_transpose2d as conv_transpose2d
from tapetensor.tensor import custom_op as custom_op
from tapetensor.tensor import einsum as einsum
from tapetensor.tensor import eye as eye
from tapetensor.tensor import fold as fold
from tapetensor.tensor import from_array as from_array
from tapetensor.tensor import from_memmap as from_memmap
from tapetensor.tensor import from_numpy as from_numpy
from tapetensor.tensor import full as full
from tapetensor.tensor import interpolate as interpolate
from tapetensor.tensor import max_pool2d as max_pool2d
from tapetensor.tensor import maximum as maximum
from tapetensor.tensor import min_pool2d as min_pool2d
from tapetensor.tensor import minimum as minimum
from tapetensor.tensor import normal as normal
from tapetensor.tensor import ones as ones
from tapetensor.tensor import owns_tape as owns_tape
from tapetensor.tensor import pixel_shuffle as pixel_shuffle
from tapetensor.tensor import pixel_unshuffle as pixel_unshuffle
from tapetensor.tensor import scaled_dot_product_attention as scaled_dot_product_attention
from tapetensor.tensor import segment_sum as segment_sum
from tapetensor.tensor import ssm_scan as ssm_scan
from tapetensor.tensor import stack as stack
from tapetensor.tensor import unfold as unfold
from tapetensor.tensor import uniform as uniform
from tapetensor.tensor import upscale2d as upscale2d
from tapetensor.tensor import where as where
from tapetensor.tensor import zeros as zeros
from tapetensor.tensor.ownership import compute_gradients as compute_gradients

if not TYPE_CHECKING and _IS_MACHINE_CODE_CHOSEN:
    from tapetensor.native.eager import run_kernels as _run_kernels

    _run_kernels()

if TYPE_CHECKING:
    __version__: str
    from tapetensor import data as data
    from tapetensor import distributed as distributed
    from tapetensor import io as io
    from tapetensor import losses as losses
    from tapetensor import metrics as metrics
    from tapetensor import nn as nn
    from tapetensor import optim as optim
    from tapetensor import testing as testing
    from tapetensor import training as training
    from tapetensor.compiler import compile as compile
    from tapetensor.nn import build as build
    from tapetensor.optim.parameters import ravel as ravel
else:
    _ROOMS = frozenset(
        {"data", "distributed", "io", "losses", "metrics", "nn", "optim", "testing", "training"}
    )

    def __getattr__(name):
        """Import when first asked for what would be a third of the import time."""
        if name == "build":
            from tapetensor.nn import build as found
        elif name == "compile":
            from tapetensor.compiler import compile as found
        elif name == "ravel":
            from tapetensor.optim.parameters import ravel as found
        elif name == "__version__":
            from importlib.metadata import version

            found = version("tapetensor")
        elif name in _ROOMS:
            from importlib import import_module

            found = import_module(f"tapetensor.{name}")
        else:
            from tapetensor.arguments.spellings import missing_from

            raise missing_from("tapetensor", name)
        globals()[name] = found
        return found
