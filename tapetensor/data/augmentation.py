"""Random changes of images for training.

Each function takes a stack of images and a generator, and draws anew for every image. An array
gives an array, and a plain tensor a plain tensor. No function has a derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_number, as_size, check_rng
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ShapeError
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, from_numpy
from tapetensor.tensor.base import check_plain

S = TypeVar("S", bound=tuple[Any, ...])
D = TypeVar("D", bound=np.generic)


@overload
def random_flip(
    images: Tensor[S, NoneTape, D], rng: np.random.Generator, p: float = 0.5
) -> Tensor[S, NoneTape, D]: ...
@overload
def random_flip(
    images: np.ndarray[S, np.dtype[D]], rng: np.random.Generator, p: float = 0.5
) -> np.ndarray[S, np.dtype[D]]: ...
def random_flip(
    images: Tensor[Any, NoneTape, Any] | Array, rng: np.random.Generator, p: float = 0.5
) -> Tensor[Any, NoneTape, Any] | Array:
    """Return the images, some with left and right exchanged.

    Shape: that of `images`, ``(N, *Ds, height, width)``.

    Args:
        images: the images.
        rng: draws the images to flip.
        p: the probability for each image, from 0 to 1.

    Raises:
        ShapeError: if there are fewer than three axes.
        ArgumentTypeError: if `images` is neither a tensor nor an array.
        ArgumentValueError: if `p` is outside its range.
        UntracedTensorError: if a tensor owns a tape.

    >>> random_flip(np.array([[[1, 2]]]), np.random.default_rng(0), p=1.0)
    array([[[2, 1]]])
    """
    likely = as_number("random_flip", "p", p, at_least=0, at_most=1)

    def flipped(array: Array) -> Array:
        chosen = rng.random(len(array)) < likely
        return np.where(_for_each(chosen, array), array[..., ::-1], array)

    return _applied("random_flip", images, rng, flipped)


@overload
def random_crop(
    images: Tensor[S, NoneTape, D], padding: int, rng: np.random.Generator
) -> Tensor[S, NoneTape, D]: ...
@overload
def random_crop(
    images: np.ndarray[S, np.dtype[D]], padding: int, rng: np.random.Generator
) -> np.ndarray[S, np.dtype[D]]: ...
def random_crop(
    images: Tensor[Any, NoneTape, Any] | Array, padding: int, rng: np.random.Generator
) -> Tensor[Any, NoneTape, Any] | Array:
    """Return the images, moved by up to `padding` pixels in each direction, with zeros behind them.

    Shape: that of `images`, ``(N, *Ds, height, width)``.

    Args:
        images: the images.
        padding: the largest number of pixels, >= 0.
        rng: draws the numbers of pixels.

    Raises:
        ShapeError: if there are fewer than three axes.
        ArgumentTypeError: if `images` is neither a tensor nor an array, or `padding` no int.
        ArgumentValueError: if `padding` is negative.
        UntracedTensorError: if a tensor owns a tape.

    Source: He et al. (2016), "Deep residual learning for image recognition", section 4.2.

    >>> random_crop(np.ones((8, 1, 4, 4)), 1, np.random.default_rng(0)).shape
    (8, 1, 4, 4)
    """
    most = as_size("random_crop", "padding", padding)

    def moved(array: Array) -> Array:
        count, *leading, height, width = array.shape
        whole = array.reshape((count, math.prod(leading), height, width))
        padded = np.pad(whole, ((0, 0), (0, 0), (most, most), (most, most)))
        tops, lefts = rng.integers(2 * most + 1, size=(2, count))
        numbers = np.arange(count)[:, None, None, None]
        channels = np.arange(padded.shape[1])[:, None, None]
        rows = (tops[:, None] + np.arange(height))[:, None, :, None]
        columns = (lefts[:, None] + np.arange(width))[:, None, None, :]
        found: Array = padded[numbers, channels, rows, columns].reshape(array.shape)
        return found

    return _applied("random_crop", images, rng, moved)


@overload
def random_erase(
    images: Tensor[S, NoneTape, D], size: int, rng: np.random.Generator, value: float = 0.0
) -> Tensor[S, NoneTape, D]: ...
@overload
def random_erase(
    images: np.ndarray[S, np.dtype[D]], size: int, rng: np.random.Generator, value: float = 0.0
) -> np.ndarray[S, np.dtype[D]]: ...
def random_erase(
    images: Tensor[Any, NoneTape, Any] | Array,
    size: int,
    rng: np.random.Generator,
    value: float = 0.0,
) -> Tensor[Any, NoneTape, Any] | Array:
    """Return the images, each with a square of one value at a random place.

    The square may reach over an edge, so that pixels in the corners are erased less often.

    Shape: that of `images`, ``(N, *Ds, height, width)``.

    Args:
        images: the images.
        size: the side of the square in pixels, >= 1.
        rng: draws the middle of the square.
        value: the value in the square, in the dtype of the images.

    Raises:
        ShapeError: if there are fewer than three axes.
        ArgumentTypeError: if `images` is neither a tensor nor an array, or `size` no int.
        ArgumentValueError: if `size` is not positive.
        UntracedTensorError: if a tensor owns a tape.

    Source: DeVries & Taylor (2017), "Improved regularization of convolutional neural networks with
        Cutout".

    >>> int(random_erase(np.ones((1, 5, 5)), 1, np.random.default_rng(0)).sum())
    24
    """
    side = as_size("random_erase", "size", size, low=1)
    number = as_number("random_erase", "value", value)

    def erased(array: Array) -> Array:
        height, width = array.shape[-2:]
        tops = rng.integers(height, size=len(array)) - side // 2
        lefts = rng.integers(width, size=len(array)) - side // 2
        down, across = np.arange(height)[:, None], np.arange(width)
        top, left = _for_each(tops, array), _for_each(lefts, array)
        inside = (down >= top) & (down < top + side) & (across >= left) & (across < left + side)
        return np.where(inside, array.dtype.type(number), array)

    return _applied("random_erase", images, rng, erased)


def _for_each(numbers: Array, images: Array) -> Array:
    """Return one number for each image, as it broadcasts to all of its pixels."""
    return numbers.reshape((-1,) + (1,) * (images.ndim - 1))


def _applied(
    op: str, images: Any, rng: object, change: Callable[[Array], Array]
) -> Tensor[Any, NoneTape, Any] | Array:
    """Return what `change` makes of the images, as an array or a tensor, as they are."""
    check_rng(op, rng)
    is_tensor = isinstance(images, Tensor)
    if is_tensor:
        check_plain(op, "images", images, "trace what comes out instead")
    elif not isinstance(images, np.ndarray):
        raise ArgumentTypeError(
            f"{op}: images must be a tensor or a numpy array, got {type(images).__name__}"
        )
    array: Any = images.numpy() if is_tensor else images
    if array.ndim < 3:
        raise ShapeError(
            f"{op}: images are of shape (N, height, width) or (N, channels, height, width), got "
            f"{array.shape}; of one image write image[None]"
        )
    changed = change(array)
    return from_numpy(changed) if is_tensor else changed
