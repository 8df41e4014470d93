"""The header of an array in a file, which is read before the array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from tapetensor.arrays.array import Array
from tapetensor.arrays.dtypes import native

# numpy has no such dtype; its arrays are read as float32, which has all of its numbers.
BFLOAT16 = "bfloat16"
# What a file may hold in the place of an array, and nobody reads.
PICKLE = "pickle"


class Header(NamedTuple):
    """Shape and dtype of an array.

    Attributes:
        shape: the sizes of its axes.
        dtype: as numpy writes it, or as the file does where numpy has no such dtype.
    """

    shape: tuple[int, ...]
    dtype: str


class Source(Protocol):
    """Arrays by name, which can be asked for their headers first."""

    @property
    def headers(self) -> Mapping[str, Header]:
        """The headers by name."""

    def array(self, name: str) -> Array:
        """Return a copy of an array, in C order."""


def header_of(array: Array) -> Header:
    """Return the header of an array, whatever the order of its bytes."""
    return Header(array.shape, str(native(array.dtype)))
