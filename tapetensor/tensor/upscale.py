"""Images made larger or smaller by interpolation."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from tapetensor.arguments import as_flag, check_choice
from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.kernels import images
from tapetensor.rules.dims import sized
from tapetensor.rules.refusals import refusal
from tapetensor.rules.windows import check_rank, check_stretch
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_floating, check_tensor
from tapetensor.tensor.tensor import Tensor
from tapetensor.tensor.windows import per_axis
from tapetensor.typing import Ds, F, K, M, N, P, Q, T

Mode: TypeAlias = Literal["nearest", "bilinear", "bicubic"]


def interpolate(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    size: tuple[P, Q],
    mode: Mode = "nearest",
    *,
    align_corners: bool = False,
) -> Tensor[tuple[*Ds, K, P, Q], T, F]:
    """Return images of another size, larger or smaller.

        "nearest": result[h, w] = x[floor(h * H / H'), floor(w * W / W')]
        "bilinear": between the four pixels around a place
        "bicubic": by cubics through the sixteen pixels around it

    The place of row ``h`` is ``(h + 1/2) * H / H' - 1/2``, for pixels are taken for squares; with
    aligned corners it is ``h * (H - 1) / (H' - 1)``, and so for the columns. Beyond the image its
    outermost pixels go on. A smaller image is made of the pixels around the places alone, and not
    of all that it had; `avg_pool2d` takes means.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')``.
    Derivative: every pixel receives the cotangents of what it was read for, by the same weights.

    Args:
        x: images.
        size: the height and the width of the result, > 0.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: whether the middles of the outermost pixels, not their edges, stay in place.

    Raises:
        ShapeError: if `x` has no pixels.
        ArgumentValueError: if the mode is another, a size is not > 0, or corners are aligned of the
            nearest pixels.
        DTypeError: if the dtype is not floating.

    Source: PyTorch, ``nn.functional.interpolate``; Keys (1981), "Cubic convolution interpolation
        for digital image processing", with -3/4 for its parameter.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[0.0, 4.0, 8.0, 12.0]]], shape=(1, 1, 4))
    >>> interpolate(x, (1, 2), "bilinear")
    Tensor([[[ 2., 10.]]], shape=(1, 1, 2), dtype=float32, NoneTape)
    """
    height, width = _checked("interpolate", x, size, mode)
    is_aligned = as_flag("interpolate", "align_corners", align_corners)
    if is_aligned and mode == "nearest":
        raise ArgumentValueError(
            'interpolate: align_corners is for "bilinear" and "bicubic", not for "nearest"'
        )
    return apply(images.interpolate, (x,), (height, width, mode, is_aligned))


def upscale2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    size: tuple[P, Q],
    mode: Mode = "nearest",
    *,
    align_corners: bool = True,
) -> Tensor[tuple[*Ds, K, P, Q], T, F]:
    """Return images stretched to a size: `interpolate` with corners that stay corners.

        "nearest": result[h, w] = x[floor(h * H / H'), floor(w * W / W')]
        "bilinear": between the four pixels around (h * (H - 1) / (H' - 1), w * (W - 1) / (W' - 1))

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')``.
    Derivative: every pixel receives the cotangents of what it was read for, by the same weights.

    Args:
        x: images.
        size: the height and the width of the result, not less than those of `x`.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: False for the places that `interpolate` has by default; of no effect on the
            nearest pixels.

    Raises:
        ShapeError: if the result is to be smaller than `x`, or `x` has no pixels.
        ArgumentValueError: if the mode is another, or a size is not > 0.
        DTypeError: if the dtype is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 3.0]]], shape=(1, 1, 2))
    >>> tt.upscale2d(x, (1, 4))
    Tensor([[[1., 1., 3., 3.]]], shape=(1, 1, 4), dtype=float32, NoneTape)
    >>> tt.upscale2d(x, (1, 3), mode="bilinear")
    Tensor([[[1., 2., 3.]]], shape=(1, 1, 3), dtype=float32, NoneTape)
    """
    height, width = _checked("upscale2d", x, size, mode)
    is_aligned = as_flag("upscale2d", "align_corners", align_corners)
    shape: tuple[int, ...] = x._array.shape
    if height < shape[-2] or width < shape[-1]:
        wanted = sized((height, width))
        raise refusal(lambda: check_stretch("upscale2d", sized(shape), wanted))
    return apply(images.upscale2d, (x,), (height, width, mode, is_aligned))


def _checked(op: str, x: Any, size: object, mode: object) -> tuple[int, ...]:
    """Return the height and the width, after a look at the arguments."""
    check_tensor(op, "the input", x)
    check_floating(op, x)
    check_rank(op, x._array.shape, 2)
    sizes = per_axis(op, "size", size, 2)
    check_choice(op, "mode", mode, ("nearest", "bilinear", "bicubic"))
    if min(x._array.shape[-2:]) < 1:
        raise ShapeError(f"{op}: an input of shape {x._array.shape} has no pixels")
    return sizes
