"""Modules one after another."""

from __future__ import annotations

from typing import Any, Generic

from typing_extensions import TypeVarTuple, override

from tapetensor.errors import TapeTensorError, cut_traceback
from tapetensor.nn.arguments import check_modules
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.typing import T

Layers = TypeVarTuple("Layers")


class Sequential(Module, Generic[*Layers]):
    """Modules one after another: each gets the output of the one before.

    The modules and their tensors go by their position, ``0.weight``, as in PyTorch and dfdx.
    Plain typing keeps the tape of the input and leaves shape and dtype of the output open (`Any`);
    a model that is checked from end to end is a `Module` with a `forward` of its own.

    Args:
        *layers: one module or more.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> tt.build(
    ...     nn.Sequential[nn.Linear[L[4], L[8]], nn.ReLU, nn.Linear[L[8], L[2]]],
    ...     rng=np.random.default_rng(0),
    ... )
    Sequential(
      0: Linear(in_features=4, out_features=8)
      1: ReLU()
      2: Linear(in_features=8, out_features=2)
    )
    """

    layers: tuple[*Layers]

    def __init__(self, *layers: *Layers) -> None:
        check_modules("Sequential", layers)
        self.layers = layers

    def forward(self, x: Tensor[Any, T, Any]) -> Tensor[Any, T, Any]:
        """Return the output of the last module."""
        output: Any = x
        modules: tuple[Any, ...] = self.layers
        for position, module in enumerate(modules):
            try:
                output = module.forward(output)
            except TapeTensorError as error:
                cut_traceback(error)
                error.add_note(f"in layer {position} of the Sequential: {module!r}")
                raise
        result: Tensor[Any, T, Any] = output
        return result

    @override
    def _contents(self) -> list[tuple[str, object, bool]]:
        # The names in files of dfdx and PyTorch: "0.weight", without the name of the field.
        return [
            (path.removeprefix("layers."), value, is_buffer)
            for path, value, is_buffer in super()._contents()
        ]
