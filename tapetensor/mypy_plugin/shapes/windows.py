"""The arithmetic of windows over images, and how the numbers of a window are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mypy.types import TupleType, Type, get_proper_type

from tapetensor.mypy_plugin.kinds import is_int
from tapetensor.mypy_plugin.names import MAY_BE_0
from tapetensor.mypy_plugin.shapes.calls import Call, MismatchError
from tapetensor.mypy_plugin.shapes.dims import ANY, ONE, Dim, Dims, Size, computed, stepped, written
from tapetensor.mypy_plugin.shapes.reading import all_known, known, read_dim, read_int

_TWO: Final = Size.of(2)


@dataclass(frozen=True)
class Window:
    """The numbers of a window, one of each kind per axis; ANY for one that is not known."""

    kernel: Dims
    stride: Dims
    padding: Dims
    dilation: Dims

    def counts(self, shape: Dims) -> Dims:
        """Return how many windows fit along each axis of an image.

        Raises:
            MismatchError: if none does.
        """
        sizes = shape[-len(self.kernel) :]
        numbers = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        found = tuple(computed(_count, *one) for one in numbers)
        if any(map(is_nothing, found)):
            padded = [computed(_padded, *one) for one in zip(sizes, self.padding, strict=True)]
            wide = any((one.literal or 0) > 1 for one in self.dilation)
            spread = f" with dilation {written(self.dilation)}" if wide else ""
            raise MismatchError(
                f"a kernel of {written(self.kernel)}{spread} is larger than the padded input "
                f"{written(padded)} of shape {written(shape)}"
            )
        return found

    def extents(self, shape: Dims, more: Dims) -> Dims:
        """Return the sizes of an image in which every pixel of another has written a window.

        Args:
            more: what is added at the end of each axis.

        Raises:
            MismatchError: if nothing is left of it.
        """
        sizes = shape[-len(self.kernel) :]
        numbers = zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, more, strict=True
        )
        found = tuple(computed(_extent, *one) for one in numbers)
        if any(map(is_nothing, found)):
            raise MismatchError(
                f"the padding leaves nothing of the output for an input of shape {written(shape)}"
            )
        return found


def read_numbers(call: Call, axes: Mapping[str, int]) -> list[Dims]:
    """Return the numbers that arguments give.

    Args:
        axes: how many numbers to read, by the name of the argument.

    Raises:
        MismatchError: if one is a literal that is too small.
        UndecidedError: if a type is of nothing that can be a number.
    """
    # All are read before one may leave the call to plain typing, for the first may be refused.
    found = [_numbers(name, call.argument(name), count) for name, count in axes.items()]
    return [*known(all_known(found))]


def _numbers(name: str, found: Type | None, axes: int) -> Dims | None:
    low = 0 if name in MAY_BE_0 else 1
    if found is None:
        return (Size.of(low),) * axes
    proper = get_proper_type(found)
    items = proper.items if isinstance(proper, TupleType) else [proper] * axes
    if len(items) != axes or not all(is_int(one) or read_int(one) is not None for one in items):
        return None
    for number in map(read_int, items):
        if number is not None and number < low:
            says = "must be > 0" if low else "must not be negative"
            raise MismatchError(f"{name} {says}, got {number}")
    return tuple(map(read_number, items))


def read_number(found: Type) -> Dim:
    """Return the number that a type names, be it by a name; ANY where it names none."""
    dim = read_dim(found)
    return dim if isinstance(dim, Size) else ANY


def is_nothing(size: Dim) -> bool:
    """Tell whether a computed size is a number below 1."""
    return size.literal is not None and size.literal < 1


def _count(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size) -> Dim:
    fitting = _TWO * padding - dilation * (kernel - ONE) - ONE + stride
    return stepped(size, fitting, stride)


def _extent(
    size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, more: Size
) -> Size:
    return (size - ONE) * stride + dilation * (kernel - ONE) - _TWO * padding + more + ONE


def _padded(size: Size, padding: Size) -> Size:
    return size + _TWO * padding
