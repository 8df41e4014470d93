"""Modules one after another, and side by side: several outputs, one sum, residual branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul
from typing import Any, Generic, overload

from typing_extensions import TypeVar, TypeVarTuple, override

from tapetensor.errors import ArgumentTypeError, ShapeError, TapeTensorError, cut_traceback
from tapetensor.nn.arguments import check_modules, trained_together
from tapetensor.nn.fields import repeat
from tapetensor.nn.module import Module
from tapetensor.tape import OwnedTape
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import D, F, N, S, T

Layers = TypeVarTuple("Layers")
Layer = TypeVar("Layer", bound=Module)


class Several(Module, Generic[*Layers]):
    """The base of what holds one module or more by position."""

    layers: tuple[*Layers]

    def __init__(self, *layers: *Layers) -> None:
        check_modules(type(self).__name__, layers)
        self.layers = layers

    def _outputs(self, x: Any) -> tuple[Any, ...]:
        check_tensor(type(self).__name__, "the input", x)
        modules: tuple[Any, ...] = self.layers
        return tuple([module.forward(x) for module in modules])

    def _joined(
        self, join: Callable[[Any, Any], Any], outputs: Sequence[Tensor[Any, Any, Any]]
    ) -> Tensor[Any, Any, Any]:
        shapes = [output.shape for output in outputs]
        if len(set(shapes)) > 1:
            raise ShapeError(
                f"{type(self).__name__}: the modules made shapes {' and '.join(map(str, shapes))}; "
                "they must be equal, nothing is broadcast"
            )
        return reduce(join, outputs)


class Sequential(Several[*Layers], init=False):
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

    def forward(self, x: Tensor[Any, T, Any]) -> Tensor[Any, T, Any]:
        """Return the output of the last module."""
        output: Any = x
        modules: tuple[Any, ...] = self.layers
        for position, module in enumerate(modules):
            output = _run(self, position, module, output)
        result: Tensor[Any, T, Any] = output
        return result

    @override
    def _contents(self) -> list[tuple[str, object, bool]]:
        # The names in files of dfdx and PyTorch: "0.weight", without the name of the field.
        return [
            (path.removeprefix("layers."), value, is_buffer)
            for path, value, is_buffer in super()._contents()
        ]


def _run(owner: Module, position: int, module: Any, x: Any) -> Any:
    """Return what a module makes of an input; an error names its position."""
    try:
        return module.forward(x)
    except TapeTensorError as error:
        cut_traceback(error)
        error.add_note(f"in layer {position} of the {type(owner).__name__}: {module!r}")
        raise


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
        for position, module in enumerate(self.layers):
            output = _run(self, position, module, output)
            if output.shape != shape:
                raise ShapeError(
                    f"Repeated: layer {position} made shape {output.shape} of {shape}; "
                    "every layer must keep the shape"
                )
        result: Tensor[S, T, D] = output
        return result


class Residual(Module, Generic[Layer]):
    """The base of what joins an input with the output of a module for it."""

    layer: Layer

    def __init__(self, layer: Layer) -> None:
        check_modules(type(self).__name__, (layer,))
        self.layer = layer

    def _branch(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``layer(x)``, after checking that the shape stayed."""
        name = type(self).__name__
        layer: Any = self.layer
        check_tensor(name, "the input", x)
        output: Tensor[S, T, F] = layer.forward(x)
        if output.shape != x.shape:
            raise ShapeError(
                f"{name}: the module made shape {output.shape} of {x.shape}; it must keep the shape"
            )
        return output


class ResidualAdd(Residual[Layer], init=False):
    """The input plus the output of a module for it.

        x + layer(x)

    Shape: that of the input, which the module must keep.

    Args:
        layer: a module.

    Source: He et al. (2016), "Deep residual learning for image recognition".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ResidualAdd(nn.Square()).forward(tt.full((2,), 3.0))
    Tensor([12., 12.], shape=(2,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x + layer(x)``.

        Raises:
            ShapeError: if the module changes the shape.
        """
        return x + self._branch(x)


class ResidualMul(Residual[Layer], init=False):
    """The input times the output of a module for it: a gate.

        x * layer(x)

    Shape: that of the input, which the module must keep.

    Args:
        layer: a module.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ResidualMul(nn.Square()).forward(tt.full((2,), 3.0))
    Tensor([27., 27.], shape=(2,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x * layer(x)``.

        Raises:
            ShapeError: if the module changes the shape.
        """
        return x * self._branch(x)


class ParallelAdd(Several[*Layers], init=False):
    """The sum of the outputs of several modules for one input.

        first(x) + second(x) + ...

    Plain typing leaves the shape of the output open (`Any`).

    Args:
        *layers: one module or more with outputs of one shape.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ParallelAdd(nn.Square(), nn.Abs()).forward(tt.full((2,), -3.0))
    Tensor([12., 12.], shape=(2,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[Any, T, Any]) -> Tensor[Any, T, Any]:
        """Return the sum of the outputs.

        Raises:
            ShapeError: if their shapes differ.
        """
        return self._joined(add, self._outputs(x))


class ParallelMul(Several[*Layers], init=False):
    """The product, element by element, of the outputs of several modules for one input.

        first(x) * second(x) * ...

    Plain typing leaves the shape of the output open (`Any`).

    Args:
        *layers: one module or more with outputs of one shape.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ParallelMul(nn.Square(), nn.Abs()).forward(tt.full((2,), -3.0))
    Tensor([27., 27.], shape=(2,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[Any, T, Any]) -> Tensor[Any, T, Any]:
        """Return the product of the outputs.

        Raises:
            ShapeError: if their shapes differ.
        """
        return self._joined(mul, self._outputs(x))


class SplitInto(Several[*Layers], init=False):
    """One input for several modules, a tuple of outputs.

        (first(x), second(x), ...)

    Args:
        *layers: one module or more.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> squares, sizes = nn.SplitInto(nn.Square(), nn.Abs()).forward(tt.full((1,), -3.0))
    >>> squares.item(), sizes.item()
    (9.0, 3.0)
    """

    def forward(self, x: Tensor[Any, T, Any]) -> tuple[Tensor[Any, T, Any], ...]:
        """Return the outputs, in the order of the modules."""
        return self._outputs(x)


class AddInto(Several[*Layers], init=False):
    """The sum of the outputs of several modules, each for an input of its own.

        first(x) + second(y) + ...

    If one input has a tape, all modules are trained, also those whose input has none.

    Args:
        *layers: one module or more with outputs of one shape.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> join = nn.AddInto(nn.Square(), nn.Abs())
    >>> join.forward((tt.full((2,), 3.0), tt.full((2,), -4.0)))
    Tensor([13., 13.], shape=(2,), dtype=float32, NoneTape)
    """

    @overload
    def forward(self, inputs: tuple[Tensor[Any, T, Any], ...]) -> Tensor[Any, T, Any]: ...
    @overload
    def forward(self, inputs: tuple[Tensor[Any, Any, Any], ...]) -> Tensor[Any, OwnedTape, Any]: ...
    def forward(self, inputs: tuple[Tensor[Any, Any, Any], ...]) -> Tensor[Any, Any, Any]:
        """Return the sum of the outputs.

        Args:
            inputs: one tensor for each module.

        Raises:
            ArgumentTypeError: if there are more or fewer inputs than modules.
            ShapeError: if the shapes of the outputs differ.
        """
        modules: tuple[Any, ...] = self.layers
        if not isinstance(inputs, tuple | list) or len(inputs) != len(modules):
            got = len(inputs) if isinstance(inputs, tuple | list) else type(inputs).__name__
            raise ArgumentTypeError(
                f"AddInto: give a tuple of {len(modules)} inputs, one for each module, got {got}"
            )
        for x in inputs:
            check_tensor("AddInto", "an input", x)
        together = trained_together(*inputs)
        outputs = [module.forward(x) for module, x in zip(modules, together, strict=True)]
        return self._joined(add, outputs)
