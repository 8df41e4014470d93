"""The arithmetic of windows over images, and how the numbers of a window are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mypy.types import Instance, TupleType, Type, get_proper_type

from tapetensor.mypy_plugin.shapes.calls import MismatchError
from tapetensor.mypy_plugin.shapes.dims import ANY, Dim, Dims, Size, written
from tapetensor.mypy_plugin.shapes.reading import read_int

# One number per axis; None where it is no literal.
Numbers: TypeAlias = tuple[int | None, ...]


@dataclass(frozen=True)
class Window:
    """The numbers of a window, one of each kind per axis."""

    kernel: Numbers
    stride: Numbers
    padding: Numbers
    dilation: Numbers

    def counts(self, op: str, shape: Dims) -> Dims:
        """Return how many windows fit along each axis of an image.

        Raises:
            MismatchError: if none does.
        """
        sizes = shape[-len(self.kernel) :]
        numbers = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        found = tuple(_count(*one) for one in numbers)
        if any(
            isinstance(one, Size) and one.literal is not None and one.literal < 1 for one in found
        ):
            padded = [_plus(size, extra) for size, extra in zip(sizes, self.padding, strict=True)]
            wide = any(one is not None and one > 1 for one in self.dilation)
            spread = f" with dilation {listed(self.dilation)}" if wide else ""
            raise MismatchError(
                f"{op}: a kernel of {listed(self.kernel)}{spread} is larger than the padded input "
                f"{written(padded)} of shape {written(shape)}"
            )
        return found

    def extents(self, shape: Dims, more: Numbers) -> Dims:
        """Return the sizes of an image in which every pixel of another has written a window.

        Args:
            shape: of the other.
            more: what is added at the end of each axis.
        """
        sizes = shape[-len(self.kernel) :]
        numbers = zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, more, strict=True
        )
        return tuple(_extent(*one) for one in numbers)


def read_numbers(
    op: str, name: str, found: Type | None, axes: int, default: int, low: int = 1
) -> Numbers | None:
    """Return one number per axis; None where the type is of nothing that can be one.

    Raises:
        MismatchError: if one is a literal below `low`.
    """
    if found is None:
        return (default,) * axes
    proper = get_proper_type(found)
    items = proper.items if isinstance(proper, TupleType) else [proper] * axes
    if len(items) != axes or not all(_is_int(item) for item in items):
        return None
    numbers = tuple(read_int(item) for item in items)
    for number in numbers:
        if number is not None and number < low:
            says = f"must be > {low - 1}" if low or number >= 0 else "must not be negative"
            raise MismatchError(f"{op}: {name} {says}, got {number}")
    return numbers


def listed(numbers: Iterable[int | None]) -> str:
    """Return numbers as a tuple is written."""
    return written([ANY if one is None else Size.of(one) for one in numbers])


def is_nothing(size: Dim) -> bool:
    """Tell whether a computed size is a number below 1."""
    return isinstance(size, Size) and size.literal is not None and size.literal < 1


def _is_int(found: Type) -> bool:
    proper = get_proper_type(found)
    is_one = isinstance(proper, Instance) and proper.type.fullname == "builtins.int"
    return is_one or read_int(proper) is not None


def _count(
    size: Dim, kernel: int | None, stride: int | None, padding: int | None, dilation: int | None
) -> Dim:
    if not isinstance(size, Size):
        return ANY
    if kernel is None or stride is None or padding is None or dilation is None:
        return ANY
    steps = size + Size.of(2 * padding - dilation * (kernel - 1) - 1)
    if stride == 1:
        return steps + Size.of(1)
    return ANY if steps.literal is None else Size.of(steps.literal // stride + 1)


def _extent(
    size: Dim,
    kernel: int | None,
    stride: int | None,
    padding: int | None,
    dilation: int | None,
    more: int | None,
) -> Dim:
    if not isinstance(size, Size) or more is None:
        return ANY
    if kernel is None or stride is None or padding is None or dilation is None:
        return ANY
    steps = (size + Size.of(-1)) * Size.of(stride)
    return steps + Size.of(dilation * (kernel - 1) - 2 * padding + more + 1)


def _plus(size: Dim, padding: int | None) -> Dim:
    if not isinstance(size, Size) or padding is None:
        return ANY
    return size + Size.of(2 * padding)
