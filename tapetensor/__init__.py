"""Automatic differentiation on numpy with shape, dtype and tape in the type of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.accumulator import GradientAccumulator as GradientAccumulator
from tapetensor.backward import compute_gradients as compute_gradients
from tapetensor.checkpointing import checkpoint as checkpoint
from tapetensor.context import GradientContext as GradientContext
from tapetensor.context import clear_default_context_tape as clear_default_context_tape
from tapetensor.context import clear_tape as clear_tape
from tapetensor.errors import ArgumentTypeError as ArgumentTypeError
from tapetensor.errors import ArgumentValueError as ArgumentValueError
from tapetensor.errors import AxisError as AxisError
from tapetensor.errors import BuildError as BuildError
from tapetensor.errors import DTypeError as DTypeError
from tapetensor.errors import HigherOrderError as HigherOrderError
from tapetensor.errors import MissingGradientError as MissingGradientError
from tapetensor.errors import MovedTensorError as MovedTensorError
from tapetensor.errors import NumericalInstabilityError as NumericalInstabilityError
from tapetensor.errors import ShapeError as ShapeError
from tapetensor.errors import TapeClosedError as TapeClosedError
from tapetensor.errors import TapeTensorError as TapeTensorError
from tapetensor.errors import UntracedTensorError as UntracedTensorError
from tapetensor.errors import UnusedParametersError as UnusedParametersError
from tapetensor.gradient_tape import GradientTape as GradientTape
from tapetensor.gradients import Gradients as Gradients
from tapetensor.higher_order import grad as grad
from tapetensor.higher_order import hessian_vector_product as hessian_vector_product
from tapetensor.shapes import Rank0 as Rank0
from tapetensor.shapes import Rank1 as Rank1
from tapetensor.shapes import Rank2 as Rank2
from tapetensor.shapes import Rank3 as Rank3
from tapetensor.shapes import Rank4 as Rank4
from tapetensor.shapes import Rank5 as Rank5
from tapetensor.shapes import Rank6 as Rank6
from tapetensor.tape import NoneTape as NoneTape
from tapetensor.tape import OwnedTape as OwnedTape
from tapetensor.tape import Tape as Tape
from tapetensor.tensor import Tensor as Tensor
from tapetensor.tensor import Tensor0D as Tensor0D
from tapetensor.tensor import Tensor1D as Tensor1D
from tapetensor.tensor import Tensor2D as Tensor2D
from tapetensor.tensor import Tensor3D as Tensor3D
from tapetensor.tensor import Tensor4D as Tensor4D
from tapetensor.tensor import Tensor5D as Tensor5D
from tapetensor.tensor import Tensor6D as Tensor6D
from tapetensor.tensor import arange as arange
from tapetensor.tensor import concat as concat
from tapetensor.tensor import custom_op as custom_op
from tapetensor.tensor import einsum as einsum
from tapetensor.tensor import eye as eye
from tapetensor.tensor import from_numpy as from_numpy
from tapetensor.tensor import full as full
from tapetensor.tensor import maximum as maximum
from tapetensor.tensor import minimum as minimum
from tapetensor.tensor import normal as normal
from tapetensor.tensor import ones as ones
from tapetensor.tensor import ssm_scan as ssm_scan
from tapetensor.tensor import stack as stack
from tapetensor.tensor import uniform as uniform
from tapetensor.tensor import where as where
from tapetensor.tensor import zeros as zeros

if TYPE_CHECKING:
    from tapetensor.nn import build as build
else:

    def __getattr__(name):
        """Import `build` when it is first asked for: modules are a third of the import time."""
        if name == "build":
            from tapetensor.nn import build

            globals()["build"] = build
            return build
        raise AttributeError(f"module 'tapetensor' has no attribute {name!r}")
