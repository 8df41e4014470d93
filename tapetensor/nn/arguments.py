"""Checks of the arguments of layers and of their inputs; a tape for several inputs."""

from __future__ import annotations

from typing import Any

from tapetensor.arguments import as_size
from tapetensor.arrays.array import FLOATING
from tapetensor.errors import ArgumentTypeError, BuildError, DTypeError, ShapeError, refusal
from tapetensor.nn.annotations import uncompiled
from tapetensor.nn.module import Module
from tapetensor.rules import layers as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.tape import OwnedTape
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import TensorBase, check_tensor
from tapetensor.tensor.operands import per_axis


def check_modules(layer: str, modules: tuple[object, ...]) -> None:
    """Raise an error if there are no modules, or one that cannot be run."""
    if not modules:
        raise ArgumentTypeError(f"{layer}: give one module or more")
    for position, module in enumerate(modules):
        if not isinstance(uncompiled(module), Module):
            raise ArgumentTypeError(
                f"{layer}: layer {position} is a {type(module).__name__}, not a Module"
            )
        if not hasattr(module, "forward"):
            raise BuildError(
                f"{layer}: layer {position}, a {type(module).__name__}, has no forward()"
            )


def as_sizes(layer: str, name: str, value: Any, axes: int, low: int = 0) -> Any:
    """Return an int that holds for all axes of a window, or one for each in a tuple."""
    if axes > 1 and isinstance(value, tuple | list):
        return per_axis(layer, name, value, axes, low)
    return as_size(layer, name, value, low)


def on_axes(value: Any, axes: int) -> tuple[int, ...]:
    """Return the result of `as_sizes` as one number for each axis."""
    return value if isinstance(value, tuple) else (value,) * axes


def check_input(
    layer: str,
    x: TensorBase[Any, Any, Any],
    weight: Tensor[Any, Any, Any],
    features: int | None = None,
) -> None:
    """Raise an error if the input of a layer does not go with its weights."""
    check_tensor(layer, "the input", x)
    shape, dtype = x._array.shape, x._array.dtype
    if features is not None and shape[-1:] != (features,):
        wanted = Size.of(features)
        raise refusal(lambda: rules.check_features(layer, sized(shape), wanted))
    # Equal dtypes are one object but for rare ones, and every layer asks.
    if dtype is not weight._array.dtype and dtype != weight.dtype:
        cure = f"convert it with x.astype(np.{weight.dtype})"
        if dtype in FLOATING:
            cure += f", or make the layer with dtype np.{dtype}"
        raise DTypeError(
            f"{layer}: the input has dtype {dtype}, the weights have {weight.dtype}; {cure}"
        )


def check_sequences(
    layer: str,
    names: tuple[str, str],
    inputs: tuple[TensorBase[Any, Any, Any], TensorBase[Any, Any, Any]],
    weight: Tensor[Any, Any, Any],
) -> None:
    """Raise an error if two inputs are not as many sequences ``(*Ds, length, features)``."""
    for x in inputs:
        check_input(layer, x, weight, weight.shape[-1])
    shape, beside = [x._array.shape for x in inputs]
    if min(len(shape), len(beside)) < 2 or shape[:-2] != beside[:-2]:
        raise refusal(lambda: rules.check_sequences(layer, names, sized(shape), sized(beside)))


def check_sequence(
    layer: str, x: TensorBase[Any, Any, Any], weight: Tensor[Any, Any, Any], features: int
) -> None:
    """Raise an error if the input of a layer is not ``(batch, length, features)``."""
    check_input(layer, x, weight, features)
    shape = x._array.shape
    if len(shape) != 3:
        raise ShapeError(
            f"{layer}: the input must have shape (batch, length, {features}), got {shape}; "
            "expand_dims(0) makes one sequence a batch"
        )


def trained_together(*inputs: Tensor[Any, Any, Any]) -> tuple[Any, ...]:
    """Return the inputs of a layer, all with a tape if one has one.

    What a weight does to a plain input is not recorded; without this the weights of one branch
    would get no gradient because the tape came in by another.
    """
    if not any(x.owns_tape for x in inputs):
        return inputs
    return tuple([x if x.owns_tape else x.retaped(OwnedTape) for x in inputs])
