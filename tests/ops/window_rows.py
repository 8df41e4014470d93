"""Rows of the ops that slide windows over sequences and images."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tests.ops import windows_reference as reference
from tests.ops.kinds import ARRAY, FLAG, HUGE, INTEGER, paddings, refuses, sizes, steps
from tests.ops.rows import Refusal, each, given, named, refused, spaced

_IMAGES = spaced(2, 4, 5, 6)
_IMAGE = spaced(3, 4, 4)
_SEQUENCES = spaced(2, 4, 7)
_POINT = spaced(2, 2, 1, 1)


def _of_arguments(axes: int, *operands: object) -> tuple[Refusal, ...]:
    """Return the refusals that every convolution has, for operands that are right."""
    value, kind = tt.ArgumentValueError, tt.ArgumentTypeError
    return (
        *refuses(*operands, stride=sizes(axes)),
        *refuses(*operands, padding=paddings(axes)),
        *refuses(*operands, dilation=sizes(axes)),
        refused(value, "groups must be > 0, got 0", *operands, groups=0),
        refused(value, "groups must not be negative", *operands, groups=-1),
        refused(value, "3 groups do not divide in_channels 4", *operands, groups=3),
        refused(
            kind, "groups must be an int, got", *operands, groups=each(1.0, "1", None, (1, 1), (2,))
        ),
        refused(
            kind, "the weight must be a tensor, got", operands[0], each(None, 1.0, ARRAY, "w", HUGE)
        ),
        refused(kind, "the bias must be a tensor, got", *operands, each(1.0, ARRAY)),
        refused(
            tt.ShapeError,
            r"bias must have shape \(3,\), one number per output channel, got",
            *operands,
            each(tt.ones((4,), np.float64), tt.ones((3, 1), np.float64)),
        ),
        refused(kind, "the input must be a tensor", each(None, 1.0, ARRAY), operands[1]),
        refused(
            tt.DTypeError,
            "dtypes differ",
            each(tt.ones((2, 4, 5, 6), np.int64), tt.ones((2, 4, 5, 6), np.bool_)),
            operands[1],
        ),
        refused(tt.DTypeError, "dtypes differ", operands[0], tt.ones((3, 4, 1, 1))),
        refused(
            tt.ShapeError,
            "the weight must have shape",
            operands[0],
            each(tt.ones((), np.float64), tt.ones((2, 3), np.float64)),
        ),
    )


def _of_patches(*operands: object) -> tuple[Refusal, ...]:
    """Return the refusals of what reads or writes windows, for operands that are right."""
    return (
        *refuses(*operands, sizes(2)),
        *refuses(*operands, 2, stride=sizes(2)),
        *refuses(*operands, 2, padding=paddings(2)),
        *refuses(*operands, 2, dilation=sizes(2)),
    )


def _of_no_images(argument: object) -> tuple[Refusal, ...]:
    """Return the refusals of what takes images, given none and a second argument that is right."""
    return (
        refused(tt.ShapeError, r"\(..., C, H, W\), got \(4, 4\)", spaced(4, 4), argument),
        refused(tt.ArgumentTypeError, "the input must be a tensor", each(None, ARRAY), argument),
    )


WINDOWS = (
    named(
        "conv1d",
        reference.conv1d,
        samples=(
            given(_SEQUENCES, spaced(3, 4, 3, seed=1)),
            given(_SEQUENCES, spaced(3, 4, 3, seed=1), spaced(3, seed=2), padding=1),
            given(_SEQUENCES, spaced(6, 2, 2, seed=1), stride=2, dilation=3, groups=2),
            given(_SEQUENCES, spaced(2, 4, 1, seed=1)),
            given(spaced(2, 1, 64), spaced(2, 1, 1, seed=1), spaced(2, seed=2)),
            given(spaced(4, 1), spaced(1, 4, 3, seed=1), padding=1),
            given(spaced(2, 1, 4, 3), spaced(4, 1, 2, seed=1), groups=4),
            given(spaced(0, 4, 3), spaced(2, 4, 2)),
            given(spaced(1, 1), spaced(1, 1, 1)),
        ),
        refusals=(
            *_of_arguments(1, _SEQUENCES, spaced(3, 4, 3)),
            refused(
                tt.ShapeError,
                r"\(O, C / groups, k\), got \(3, 4, 1, 1\)",
                _SEQUENCES,
                tt.ones((3, 4, 1, 1), np.float64),
            ),
            refused(tt.ShapeError, "has 4.* takes 5", _SEQUENCES, spaced(3, 5, 3)),
            refused(tt.ShapeError, r"kernel of \(8,\)", _SEQUENCES, spaced(3, 4, 8)),
            refused(tt.ShapeError, r"\(O, C / groups", _SEQUENCES, spaced(3, 4, 0)),
            refused(tt.ShapeError, r"\(..., C, L\)", spaced(4), spaced(3, 4, 3)),
        ),
    ),
    named(
        "conv2d",
        reference.conv2d,
        samples=(
            given(_IMAGES, spaced(3, 4, 3, 3, seed=1)),
            given(_IMAGES, spaced(3, 4, 3, 3, seed=1), spaced(3, seed=2), padding=1),
            given(_IMAGES, spaced(3, 4, 3, 3, seed=1), stride=2, padding=1),
            given(_IMAGES, spaced(2, 4, 2, 3, seed=1), stride=(3, 2), padding=(0, 2)),
            given(_IMAGES, spaced(2, 4, 2, 3, seed=1), dilation=(3, 2), padding=1),
            given(_IMAGES, spaced(6, 2, 3, 2, seed=1), spaced(6, seed=2), groups=2),
            given(_IMAGES, spaced(4, 1, 3, 3, seed=1), groups=4, stride=2, padding=1),
            given(_IMAGES, spaced(5, 4, 1, 1, seed=1), spaced(5, seed=2)),
            given(_IMAGES, spaced(5, 4, 1, 1, seed=1), stride=2),
            given(spaced(2, 1, 8, 8), spaced(2, 1, 1, 1, seed=1), spaced(2, seed=2)),
            given(_IMAGES, spaced(1, 4, 5, 6, seed=1)),
            # One image without a batch, several leading axes, an empty batch, one pixel.
            given(_IMAGE, spaced(2, 3, 3, 3, seed=1), padding=1),
            given(spaced(2, 1, 3, 4, 4), spaced(2, 3, 2, 2, seed=1), spaced(2, seed=2)),
            given(spaced(0, 3, 4, 4), spaced(2, 3, 3, 3, seed=1), spaced(2, seed=2)),
            given(spaced(1, 1, 1, 1), spaced(1, 1, 3, 3, seed=1), padding=1),
            given(spaced(1, 1, 1, 1), spaced(1, 1, 1, 1, seed=1)),
        ),
        refusals=(
            *_of_arguments(2, _IMAGES, spaced(3, 4, 3, 3)),
            refused(
                tt.ShapeError,
                r"the input of shape \(2, 4, 5, 6\) has 4, the weight of shape "
                r"\(3, 3, 3, 3\) takes 3",
                _IMAGES,
                spaced(3, 3, 3, 3),
            ),
            refused(
                tt.ShapeError, "takes 4 in each of 2 groups", _IMAGES, spaced(2, 4, 3, 3), groups=2
            ),
            refused(
                tt.ArgumentValueError,
                "2 groups do not divide in_channels 4 and out_channels 3",
                _IMAGES,
                spaced(3, 2, 3, 3),
                groups=2,
            ),
            refused(
                tt.ShapeError,
                r"a kernel of \(6, 3\) is larger than the padded input \(5, 6\) of shape",
                _IMAGES,
                spaced(3, 4, 6, 3),
            ),
            refused(
                tt.ShapeError,
                r"a kernel of \(3, 3\) with dilation \(4, 4\) is larger than the padded "
                r"input \(7, 8\)",
                _IMAGES,
                spaced(3, 4, 3, 3),
                dilation=4,
                padding=1,
            ),
            refused(tt.ShapeError, r"got \(3, 4, 3\)", _IMAGES, spaced(3, 4, 3)),
            refused(tt.ShapeError, r"\(3, 4, 0, 3\)", _IMAGES, spaced(3, 4, 0, 3)),
            refused(tt.ShapeError, "C, H, W", spaced(4, 4), spaced(3, 4, 3, 3)),
            refused(tt.ShapeError, "larger", spaced(1, 1, 0, 3), spaced(1, 1, 1, 1)),
        ),
    ),
    named(
        "conv_transpose1d",
        reference.conv_transpose1d,
        samples=(
            given(_SEQUENCES, spaced(4, 3, 3, seed=1)),
            given(_SEQUENCES, spaced(4, 3, 2, seed=1), spaced(3, seed=2), stride=2),
            given(_SEQUENCES, spaced(4, 3, 3, seed=1), stride=2, padding=1, output_padding=1),
            given(_SEQUENCES, spaced(4, 2, 2, seed=1), spaced(4, seed=2), dilation=3, groups=2),
            given(spaced(4, 2), spaced(4, 1, 1, seed=1)),
            given(spaced(0, 4, 3), spaced(4, 2, 2)),
            given(spaced(1, 1), spaced(1, 1, 1)),
        ),
        refusals=(
            *_of_arguments(1, _SEQUENCES, spaced(4, 3, 3)),
            *refuses(_SEQUENCES, spaced(4, 3, 3), output_padding=paddings(1)),
            refused(tt.ShapeError, r"\(C, O / groups, k\)", _SEQUENCES, spaced(4, 3, 0)),
            refused(tt.ShapeError, "has 4.* takes 5", _SEQUENCES, spaced(5, 3, 3)),
            refused(tt.ShapeError, "leaves nothing", _SEQUENCES, spaced(4, 3, 1), padding=9),
            refused(tt.ShapeError, r"\(..., C, L\)", spaced(4), spaced(4, 3, 3)),
            refused(
                tt.ArgumentValueError,
                "output_padding",
                _SEQUENCES,
                spaced(4, 2, 1),
                output_padding=1,
            ),
        ),
    ),
    named(
        "conv_transpose2d",
        reference.conv_transpose2d,
        samples=(
            given(_IMAGES, spaced(4, 3, 3, 3, seed=1)),
            given(_IMAGES, spaced(4, 3, 2, 2, seed=1), spaced(3, seed=2), stride=2),
            given(_IMAGES, spaced(4, 3, 3, 3, seed=1), stride=2, padding=1, output_padding=1),
            given(_IMAGES, spaced(4, 2, 2, 3, seed=1), stride=(1, 3), padding=(1, 2)),
            given(_IMAGES, spaced(4, 2, 3, 2, seed=1), dilation=2, output_padding=(1, 0)),
            given(_IMAGES, spaced(4, 3, 3, 2, seed=1), spaced(6, seed=2), groups=2, padding=1),
            given(_IMAGES, spaced(4, 2, 1, 1, seed=1)),
            given(_IMAGE, spaced(3, 2, 2, 2, seed=1), stride=2),
            given(spaced(0, 3, 4, 4), spaced(3, 2, 2, 2, seed=1), spaced(2, seed=2)),
            given(spaced(1, 1, 1, 1), spaced(1, 1, 2, 2, seed=1), spaced(1, seed=2), stride=3),
        ),
        refusals=(
            *_of_arguments(2, _IMAGES, spaced(4, 3, 3, 3)),
            *refuses(_IMAGES, spaced(4, 3, 3, 3), output_padding=paddings(2)),
            refused(
                tt.ShapeError,
                "leaves nothing",
                _IMAGES[:, :2, :1, :3],
                _POINT,
                padding=each(1, (0, 2)),
            ),
            refused(tt.ShapeError, r"\(4, 3, 0, 3\)", _IMAGES, spaced(4, 3, 0, 3)),
            refused(tt.ShapeError, r"input .*got \(2, 3\)", spaced(2, 3), _POINT),
            refused(
                tt.ShapeError,
                r"has 4, the weight of shape \(3, 4, 3, 3\) takes 3",
                _IMAGES,
                spaced(3, 4, 3, 3),
            ),
            refused(
                tt.ArgumentValueError,
                r"output_padding \(2, 2\) must be less than the stride \(2, 2\)",
                _IMAGES,
                spaced(4, 3, 3, 3),
                stride=2,
                output_padding=2,
            ),
            refused(tt.ShapeError, "nothing", spaced(1, 1, 0, 3), spaced(1, 1, 2, 2)),
            refused(tt.ShapeError, r"got \(4, 3, 3\)", _IMAGES, spaced(4, 3, 3)),
        ),
    ),
    *(
        named(
            name,
            reference.pool2d(reduce, fill),
            samples=(
                given(_IMAGES, 2),
                given(_IMAGES, 3, stride=2, padding=1),
                given(_IMAGES, (2, 3), stride=(1, 2), padding=(1, 0)),
                given(_IMAGES, 2, dilation=3, stride=1),
                given(_IMAGES, 1),
                given(_IMAGE, 4),
                given(spaced(2, 1, 3, 4, 4), 2),
                given(spaced(0, 3, 4, 4), 2),
                given(spaced(1, 1, 1, 1), 2, padding=1),
            ),
            refusals=(
                *refuses(_IMAGES, sizes(2)),
                *refuses(_IMAGES, 2, stride=steps(2)),
                *refuses(_IMAGES, 2, padding=paddings(2)),
                *refuses(_IMAGES, 2, dilation=sizes(2)),
                refused(
                    tt.ShapeError, r"kernel of \((6, 6|1, 7)\) is larger", _IMAGES, each(6, (1, 7))
                ),
                refused(
                    tt.ArgumentValueError,
                    r"padding \(2, 2\) is more than half of the window \(2, 2\)",
                    _IMAGES,
                    2,
                    padding=2,
                ),
                refused(tt.ArgumentValueError, "half", _IMAGES, 1, padding=1),
                # The window begins at -2, and its second element lies behind the image, at 2.
                refused(
                    tt.ShapeError,
                    "holds nothing but padding",
                    _IMAGES[..., :1, :],
                    (2, 1),
                    padding=(2, 0),
                    dilation=(4, 1),
                ),
                *_of_no_images(2),
            ),
        )
        for name, reduce, fill in (
            ("avg_pool2d", lambda seen: seen.mean(axis=(-2, -1)), 0.0),
            ("max_pool2d", lambda seen: seen.max(axis=(-2, -1)), -np.inf),
            ("min_pool2d", lambda seen: seen.min(axis=(-2, -1)), np.inf),
        )
    ),
    named(
        "unfold",
        reference.unfold,
        samples=(
            given(_IMAGES, 2),
            given(_IMAGES, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
            given(_IMAGE, 1, stride=2),
            given(spaced(1, 1, 1), 1),
            given(spaced(0, 1, 3, 3), 2),
        ),
        refusals=(
            *_of_patches(_IMAGES),
            refused(tt.ShapeError, r"a kernel of \(6, 6\) is larger", _IMAGES, 6),
            *_of_no_images(2),
        ),
    ),
    named(
        "fold",
        reference.fold,
        samples=(
            given(spaced(2, 8, 20), (5, 6), 2),
            given(spaced(12, 9), (5, 6), (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 3)),
            given(spaced(2, 4), (4, 4), 1, stride=2),
            given(spaced(1, 1), (1, 1), 1),
            given(spaced(0, 4, 4), (3, 3), 2),
        ),
        refusals=(
            *_of_patches(spaced(2, 8, 20), (5, 6)),
            *refuses(spaced(4, 4), sizes(2), 2),
            refused(tt.ShapeError, r"\(..., C \* 4, 20\), got \(8, 19\)", spaced(8, 19), (5, 6), 2),
            refused(tt.ShapeError, r"\(..., C \* 4, 20\), got \(7, 20\)", spaced(7, 20), (5, 6), 2),
            refused(tt.ShapeError, r"got \(20,\)", spaced(20), (5, 6), 2),
            refused(tt.ShapeError, r"a kernel of \(6, 6\) is larger", spaced(36, 1), (5, 6), 6),
            refused(tt.ArgumentTypeError, "the input must be a tensor", None, (5, 6), 2),
        ),
    ),
    *(
        named(
            name,
            rearranged,
            samples=samples,
            refusals=(
                *refuses(spaced(4, 2, 4), INTEGER),
                refused(tt.ArgumentValueError, "factor must be > 0, got 0", spaced(4, 2, 4), 0),
                refused(tt.ShapeError, message, unfit, 2),
                *_of_no_images(2),
            ),
            takes_integers=True,
        )
        for name, rearranged, samples, message, unfit in (
            (
                "pixel_shuffle",
                reference.pixel_shuffle,
                (
                    given(spaced(2, 8, 2, 3), 2),
                    given(spaced(9, 2, 1), 3),
                    given(spaced(1, 1, 1), 1),
                    given(spaced(0, 4, 1, 1), 2),
                ),
                r"the 6 channels of shape \(6, 2, 2\)",
                spaced(6, 2, 2),
            ),
            (
                "pixel_unshuffle",
                reference.pixel_unshuffle,
                (
                    given(spaced(2, 2, 4, 6), 2),
                    given(spaced(1, 6, 3), 3),
                    given(spaced(1, 1, 1), 1),
                    given(spaced(0, 1, 2, 2), 2),
                ),
                r"\(1, 4, 3\) are no multiples of 2",
                spaced(1, 4, 3),
            ),
        )
    ),
    named(
        "interpolate",
        lambda x, size, mode="nearest", align_corners=False: reference.upscale2d(
            x, size, mode, align_corners
        ),
        samples=(
            *(given(_IMAGES, (3, 9), mode) for mode in ("nearest", "bilinear", "bicubic")),
            *(given(_IMAGE, (2, 1), mode) for mode in ("nearest", "bilinear", "bicubic")),
            given(_IMAGE, (2, 7), "bilinear", align_corners=True),
            given(_IMAGE, (7, 3), "bicubic", align_corners=True),
            given(spaced(0, 1, 2, 2), (3, 1), "bilinear"),
            given(spaced(1, 1, 1), (2, 3), "bicubic"),
        ),
        refusals=(
            *refuses(_IMAGES, sizes(2)),
            *refuses(_IMAGES, (3, 3), "bilinear", align_corners=FLAG),
            refused(tt.ArgumentValueError, "mode must be .*bicubic", _IMAGES, (3, 3), "cubic"),
            refused(
                tt.ArgumentValueError, 'not for "nearest"', _IMAGES, (3, 3), align_corners=True
            ),
            *_of_no_images((8, 8)),
            refused(tt.ShapeError, r"\(1, 0, 4\) has no pixels", spaced(1, 0, 4), (8, 8)),
        ),
    ),
    named(
        "upscale2d",
        reference.upscale2d,
        samples=(
            *(
                given(x, size, mode=mode)
                for mode in ("nearest", "bilinear", "bicubic")
                for x, size in (
                    (_IMAGES, (10, 12)),
                    (_IMAGES, (5, 17)),
                    (_IMAGES, (5, 6)),
                    (_IMAGE, (7, 9)),
                    (spaced(2, 1, 1, 1, 2), (3, 3)),
                    (spaced(0, 1, 2, 2), (3, 4)),
                    (spaced(1, 1, 1), (2, 3)),
                )
            ),
            given(_IMAGE, (7, 9), mode="bilinear", align_corners=False),
        ),
        refusals=(
            *refuses(_IMAGES, sizes(2)),
            *refuses(_IMAGES, (9, 9), align_corners=FLAG),
            refused(tt.ShapeError, r"stretched to .*; interpolate", _IMAGES, each((4, 6), (1, 2))),
            refused(tt.ArgumentValueError, "size must be > 0", _IMAGES, (10, 0)),
            refused(
                tt.ArgumentValueError,
                "got ('cubic'|None|1|'Nearest')",
                _IMAGES,
                (9, 9),
                mode=each("cubic", None, 1, "Nearest"),
            ),
            *_of_no_images((8, 8)),
            refused(tt.ShapeError, "no pixels", spaced(1, 1, 0, 4), (8, 8)),
        ),
    ),
)
