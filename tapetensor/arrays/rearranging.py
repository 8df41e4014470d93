"""Functions of numpy that rearrange elements, by the few that a stand-in must know itself."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np


def shadow(x: Any) -> Any:
    """Return an array of the shape and the dtype of another, which takes no memory."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _turned(turn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the axes another order, by the one that numpy has for all."""

    def turned(a: Any, *args: Any, **options: Any) -> Any:
        # Each axis has its own number as its size.
        return np.transpose(a, turn(np.empty(range(a.ndim)), *args, **options).shape)

    return turned


def _expand_dims(a: Any, axis: Any) -> Any:
    return np.reshape(a, np.expand_dims(shadow(a), axis).shape)


def _squeeze(a: Any, axis: Any = None) -> Any:
    shape = np.squeeze(shadow(a), axis).shape
    # Where there is nothing to leave out, numpy returns the very same array.
    return a if shape == a.shape else np.reshape(a, shape)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _parts(np.split, ary, indices_or_sections, axis)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _parts(np.array_split, ary, indices_or_sections, axis)


def _parts(split: Callable[..., Any], ary: Any, indices_or_sections: Any, axis: int) -> Any:
    # Places may be captured, too, which would lead here again.
    places = unwrap(split)(np.arange(ary.shape[axis]), indices_or_sections)
    before = (slice(None),) * (axis % ary.ndim)
    ends = [(one[0], one[-1] + 1) if one.size else (0, 0) for one in places]
    return [ary[(*before, slice(int(start), int(end)))] for start, end in ends]


REARRANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    np.array_split: _array_split,
    np.expand_dims: _expand_dims,
    np.moveaxis: _turned(np.moveaxis),
    np.split: _split,
    np.squeeze: _squeeze,
    np.swapaxes: _turned(np.swapaxes),
}
