"""Several modules of one kind, one after another."""

from __future__ import annotations

from typing import Any, Generic

from tapetensor.errors import ShapeError, TapeTensorError
from tapetensor.nn.branches import Layer
from tapetensor.nn.fields import repeat
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import D, N, S, T


class Repeated(Module, Generic[Layer, N]):
    """Modules of one class, one after another; the type gives their number.

    Each has parameters of its own: ``Repeated[Block[Literal[64]], Literal[6]]``.

    Shape: that of the input, which the modules must keep.

    Args:
        layers: the modules, a list.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layers = nn.Repeated[nn.Linear[L[4], L[4]], L[3]]
    >>> tt.build(layers, rng=np.random.default_rng(0)).forward(tt.ones((2, 4))).shape
    (2, 4)
    """

    layers: list[Layer] = repeat("N")

    def forward(self, x: Tensor[S, T, D]) -> Tensor[S, T, D]:
        """Return the output of the last module.

        Raises:
            ShapeError: if a module changes the shape.
        """
        check_tensor("Repeated", "the input", x)
        shape = x.shape
        output: Any = x
        modules: list[Any] = list(self.layers)
        for position, module in enumerate(modules):
            try:
                output = module.forward(output)
            except TapeTensorError as error:
                error.add_note(f"in layer {position} of the Repeated: {module!r}")
                raise
            if output.shape != shape:
                raise ShapeError(
                    f"Repeated: layer {position} made shape {output.shape} of {shape}; "
                    "every layer must keep the shape"
                )
        result: Tensor[S, T, D] = output
        return result
