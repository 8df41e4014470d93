"""Conversion to another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import TypeVar

from tapetensor.dtypes import as_dtype
from tapetensor.kernels import indexing
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase
from tapetensor.typing import D, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

NewDType = TypeVar("NewDType", bound=np.generic)


class Conversion(TensorBase[S, T, D]):
    """Conversion of the elements."""

    __slots__ = ()

    def astype(self, dtype: type[NewDType]) -> Tensor[S, T, NewDType]:
        """Return the elements converted to another dtype.

        Shape: that of `self`.
        Derivative: 1 between floating dtypes (the cotangent is converted back), none otherwise.

        Args:
            dtype: float32, float64, an integer dtype or bool.

        Raises:
            DTypeError: if a tensor cannot have that dtype.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).astype(np.int64)
        Tensor([1, 1], shape=(2,), dtype=int64, NoneTape)
        """
        options: tuple[Any, ...] = (as_dtype("astype", dtype),)
        return apply(indexing.astype, (self,), options, keeps_dtype=False)
