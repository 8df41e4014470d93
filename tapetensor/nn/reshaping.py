"""Another shape for each example of a batch."""

from __future__ import annotations

import math
from typing import Any, Generic

from typing_extensions import TypeVarTuple

from tapetensor.arguments import as_size
from tapetensor.errors import ShapeError
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import B, D, Ds, T

# The dims of an example. For ``tuple[Any, ...]`` in its place mypy 2.0 refuses every input.
Gs = TypeVarTuple("Gs")


class Reshape(Module, Generic[*Ds]):
    """Bring every example of a batch into another shape.

    Shape: ``(B, ...) -> (B, *sizes)``, with as many elements.

    Args:
        *sizes: the shape of one example.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = tt.build(nn.Reshape[L[2], L[3]], rng=np.random.default_rng(0))
    >>> layer.forward(tt.ones((5, 6))).shape
    (5, 2, 3)
    """

    sizes: tuple[*Ds]

    def __init__(self, *sizes: *Ds) -> None:
        for size in sizes:
            as_size("Reshape", "a size", size)
        self.sizes = sizes

    def forward(self, x: Tensor[tuple[B, *Gs], T, D]) -> Tensor[tuple[B, *Ds], T, D]:
        """Return every example in the shape of the layer.

        Raises:
            ShapeError: if an example does not hold as many elements.
        """
        check_tensor("Reshape", "the input", x)
        shape: tuple[int, ...] = x._array.shape
        sizes: Any = self.sizes
        if not shape or math.prod(shape[1:]) != math.prod(sizes):
            raise ShapeError(
                f"Reshape: examples of shape {sizes} were asked for, "
                f"the input has shape {shape}, whose first axis is the batch"
            )
        result: Tensor[tuple[B, *Ds], T, D] = x.reshape((shape[0], *sizes))
        return result
