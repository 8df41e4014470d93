"""Conversion to another dtype, and of a shape that is known at run time to one that is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_shape
from tapetensor.arrays.array import as_dtype
from tapetensor.arrays.libraries import Library
from tapetensor.errors import ShapeError
from tapetensor.kernels import indexing
from tapetensor.kernels import shape as kernels
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase
from tapetensor.typing import D, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

NewDType = TypeVar("NewDType", bound=np.generic)
NewShape = TypeVar("NewShape", bound=tuple[Any, ...])


class Conversion(TensorBase[S, T, D]):
    """Conversion of the elements, or of what is known of the shape."""

    __slots__ = ()

    @overload
    def astype(self, dtype: type[NewDType]) -> Tensor[S, T, NewDType]: ...
    @overload
    def astype(self, dtype: Literal["float32"]) -> Tensor[S, T, np.float32]: ...
    @overload
    def astype(self, dtype: Literal["float64"]) -> Tensor[S, T, np.float64]: ...
    @overload
    def astype(self, dtype: Literal["int64"]) -> Tensor[S, T, np.int64]: ...
    @overload
    def astype(self, dtype: Literal["bool"]) -> Tensor[S, T, np.bool_]: ...
    def astype(self, dtype: type[np.generic] | str) -> Tensor[Any, Any, Any]:
        """Return the elements converted to another dtype.

        Shape: that of `self`.
        Derivative: 1 between floating dtypes (the cotangent is converted back), none otherwise.

        Args:
            dtype: float32, float64, an integer dtype or bool; or the name of one.

        Raises:
            DTypeError: if a tensor cannot have that dtype.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).astype(np.int64)
        Tensor([1, 1], shape=(2,), dtype=int64, NoneTape)
        """
        options: tuple[Any, ...] = (as_dtype("astype", dtype),)
        return apply(indexing.astype, (self,), options, keeps_dtype=False)

    def to(self, library: Library) -> Tensor[S, T, D]:
        """Return the same elements as an array of another library, ``x.to(cupy)``, or numpy's.

        Ops run where the arrays of their operands lie, and refuse operands of two libraries.

        Shape: that of `self`.
        Derivative: 1; the cotangent is moved back.

        Args:
            library: the module, numpy or cupy, say. Its `asarray` is called, so that CuPy's current
                device decides which one it is.

        Raises:
            ArgumentTypeError: if it is no such module, or its arrays do not follow numpy's dispatch
                protocols.
            DTypeError: if it changes the dtype.

        >>> import numpy
        >>> import tapetensor as tt
        >>> tt.ones((2,)).to(numpy)
        Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(indexing.to, (self,), (library,))

    def realize(self: Conversion[NewShape, T, D], shape: NewShape) -> Tensor[NewShape, T, D]:
        """Return the same elements with the shape that they have, now known to type checkers.

            x: Tensor2D[L[32], L[10]] = rows.realize((32, 10))

        Dims that were `Any` become those of `shape`, after a check of the sizes; dims that were
        known must agree, which type checkers see to. Nothing is rearranged, unlike `reshape`.

        Shape: `shape`, which must be that of `self`.
        Derivative: 1.

        Args:
            shape: the shape that is expected.

        Raises:
            ShapeError: if `self` has another shape.

        >>> import tapetensor as tt
        >>> tt.ones((2, 3)).flatten().realize((6,)).shape
        (6,)
        """
        expected, found = as_shape("realize", shape), self._array.shape
        if expected != found:
            raise ShapeError(f"realize: expected the shape {expected}, the tensor has {found}")
        return apply(kernels.realize, (self,))
