"""Buckets: gradients end to end in one flat array, which travels as one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any, final

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.tensor import Tensor

# A parameter of so many bytes is sent from where its gradient lies, if nobody else holds on to it.
_LARGE = 1 << 20


@final
class Bucket:
    """Parameters of one dtype whose gradients travel together.

    Behind the gradients stands a number per parameter, 1 if this rank has a gradient for it. Its
    sum says how many ranks have one: a parameter that none has used stays without a gradient. A
    large parameter that is alone has its number elsewhere, so that its gradient need not be copied.
    """

    def __init__(self, parameters: Sequence[Tensor[Any, Any, Any]]) -> None:
        self.ids: frozenset[int] = frozenset([tensor.id for tensor in parameters])
        ends = np.cumsum([tensor.size for tensor in parameters]).tolist()
        self._size: int = ends[-1]
        self._dtype = parameters[0].dtype
        is_large = self._size * self._dtype.itemsize >= _LARGE
        self.is_alone = len(parameters) == 1 and is_large
        self._length = self._size + (0 if self.is_alone else len(parameters))
        self._places = [
            (tensor.id, slice(start, end), tensor.shape)
            for tensor, start, end in zip(parameters, [0, *ends[:-1]], ends, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """The bytes of the message."""
        size: int = self._length * self._dtype.itemsize
        return size

    def packed(self, arrays: dict[int, Array]) -> Array:
        """Return gradients, given by the ids of the parameters, as one array to be written to."""
        if self.is_alone and _is_free(arrays, self._places[0][0]):
            return arrays[self._places[0][0]].reshape(-1)
        flat = np.empty(self._length, self._dtype)
        for position, (unique_id, place, _) in enumerate(self._places):
            array = arrays.get(unique_id)
            flat[place] = 0 if array is None else np.reshape(array, -1)
            if not self.is_alone:
                flat[self._size + position] = array is not None
        return flat

    def unpacked(self, flat: Array, divisor: int, *, is_used: bool = False) -> dict[int, Array]:
        """Return the gradients that are in a sum of packed arrays, divided by a number.

        They are views of `flat`, which is written to.

        Args:
            flat: the sum.
            divisor: the number.
            is_used: of a parameter that is alone, whether a rank has a gradient for it.
        """
        if divisor != 1:
            flat[: self._size] /= divisor
        return {
            unique_id: flat[place].reshape(shape)
            for position, (unique_id, place, shape) in enumerate(self._places)
            if (is_used if self.is_alone else flat[self._size + position])
        }


def _is_free(arrays: dict[int, Array], key: int) -> bool:
    """Tell whether nobody but a dict holds on to an array, which lies in C order."""
    array = arrays.get(key)
    return (
        type(array) is np.ndarray
        and array.base is None
        and array.flags.c_contiguous
        and array.flags.writeable
        and getrefcount(array) == _REFERENCES_OF_FREE
    )


def _references_of_free() -> int:
    """Return the reference count of what only a dict holds, as `_is_free` sees it."""
    arrays = {0: np.empty(1)}
    array = arrays.get(0)
    return getrefcount(array)


_REFERENCES_OF_FREE = _references_of_free()


def buckets_of(parameters: Mapping[str, Tensor[Any, Any, Any]], limit: int) -> list[Bucket]:
    """Return the parameters in buckets, in the order in which a backward pass comes to them.

    This is taken to be the reverse of their own order. It is the same on all ranks, whatever each
    of them computes, as the order of messages must be.

    Args:
        parameters: the parameters by name; one that goes by two names travels once.
        limit: the bytes at which a bucket is full.
    """
    unique = {tensor.id: tensor for tensor in parameters.values()}
    filling: dict[np.dtype[Any], list[Tensor[Any, Any, Any]]] = {}
    buckets: list[Bucket] = []
    for tensor in reversed(unique.values()):
        if tensor._array.nbytes >= max(limit, _LARGE):
            buckets.append(Bucket([tensor]))
            continue
        gathered = filling.setdefault(tensor.dtype, [])
        gathered.append(tensor)
        if sum([one._array.nbytes for one in gathered]) >= limit:
            buckets.append(Bucket(filling.pop(tensor.dtype)))
    return buckets + [Bucket(rest) for rest in filling.values()]
