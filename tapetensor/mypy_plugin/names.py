"""The full names by which mypy knows our classes and functions."""

from __future__ import annotations

TENSOR = "tapetensor.tensor.tensor.Tensor"
TENSOR_BASE = "tapetensor.tensor.base.TensorBase"
NONE_TAPE = "tapetensor.tape.NoneTape"
OWNED_TAPE = "tapetensor.tape.OwnedTape"
MODULE = "tapetensor.nn.module.Module"
SEQUENTIAL = "tapetensor.nn.sequential.Sequential"
BUILD = "tapetensor.nn.build.build"
# Where `parameter`, `buffer`, `options` and `repeat` are defined.
FIELDS = "tapetensor.nn.fields"

# Where `Mul` and the like are defined, and what the plugin takes them for.
TYPING = "tapetensor.typing"
COMPUTED = "tapetensor.typing._Computed"
# How computed dims are spelled.
OPERATIONS = ("Add", "Sub", "Mul", "Div")

# Packages whose functions return neither tensors nor modules.
ELSEWHERE = ("builtins.", "typing.", "typing_extensions.", "numpy.", "math.", "collections.")

# Every method of Tensor is defined in a room of this package.
TENSOR_ROOMS = "tapetensor.tensor."
