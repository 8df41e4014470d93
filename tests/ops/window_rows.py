"""Rows of the ops that slide windows over sequences and images."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tests.ops import windows_reference as reference
from tests.ops.kinds import ARRAY, HUGE, paddings, refuses, sizes, steps
from tests.ops.rows import Op, Refusal, each, given, refused, spaced

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
        refused(*operands, groups=0, error=value, message="groups must be > 0, got 0"),
        refused(*operands, groups=-1, error=value, message="groups must not be negative"),
        refused(*operands, groups=3, error=value, message="3 groups do not divide the 4 channels"),
        refused(
            *operands,
            groups=each(1.0, "1", None, (1, 1), (2,)),
            error=kind,
            message="groups must be an int, got",
        ),
        refused(
            operands[0],
            each(None, 1.0, ARRAY, "w", HUGE),
            error=kind,
            message="the weight must be a tensor, got",
        ),
        refused(*operands, each(1.0, ARRAY), error=kind, message="the bias must be a tensor, got"),
        refused(
            *operands,
            each(tt.ones((4,), np.float64), tt.ones((3, 1), np.float64)),
            error=tt.ShapeError,
            message=r"bias must have shape \(3,\), one number per output channel, got",
        ),
        refused(
            each(None, 1.0, ARRAY), operands[1], error=kind, message="the input must be a tensor"
        ),
        refused(
            each(tt.ones((2, 4, 5, 6), np.int64), tt.ones((2, 4, 5, 6), np.bool_)),
            operands[1],
            error=tt.DTypeError,
            message="dtypes differ",
        ),
        refused(operands[0], tt.ones((3, 4, 1, 1)), error=tt.DTypeError, message="dtypes differ"),
        refused(
            operands[0],
            each(tt.ones((), np.float64), tt.ones((2, 3), np.float64)),
            error=tt.ShapeError,
            message="the weight must have shape",
        ),
    )


WINDOWS = (
    Op(
        name="conv1d",
        covers=("conv1d",),
        call=tt.conv1d,
        reference=reference.conv1d,
        samples=(
            given(_SEQUENCES, spaced(3, 4, 3, seed=1)),
            given(_SEQUENCES, spaced(3, 4, 3, seed=1), spaced(3, seed=2), padding=1),
            given(_SEQUENCES, spaced(6, 2, 2, seed=1), stride=2, dilation=3, groups=2),
            given(_SEQUENCES, spaced(2, 4, 1, seed=1)),
            given(spaced(4, 1), spaced(1, 4, 3, seed=1), padding=1),
            given(spaced(2, 1, 4, 3), spaced(4, 1, 2, seed=1), groups=4),
            given(spaced(0, 4, 3), spaced(2, 4, 2)),
            given(spaced(1, 1), spaced(1, 1, 1)),
        ),
        refusals=(
            *_of_arguments(1, _SEQUENCES, spaced(3, 4, 3)),
            refused(
                _SEQUENCES,
                tt.ones((3, 4, 1, 1), np.float64),
                error=tt.ShapeError,
                message=r"\(O, C / groups, k\), got \(3, 4, 1, 1\)",
            ),
            refused(
                _SEQUENCES,
                spaced(4, 4, 1),
                groups=2,
                error=tt.ShapeError,
                message="takes 4 in each of 2 groups",
            ),
            refused(_SEQUENCES, spaced(3, 5, 3), error=tt.ShapeError, message="has 4.* takes 5"),
            refused(_SEQUENCES, spaced(3, 4, 8), error=tt.ShapeError, message=r"kernel of \(8,\)"),
            refused(_SEQUENCES, spaced(3, 4, 0), error=tt.ShapeError, message=r"\(O, C / groups"),
            refused(spaced(4), spaced(3, 4, 3), error=tt.ShapeError, message=r"\(..., C, L\)"),
        ),
    ),
    Op(
        name="conv2d",
        covers=("conv2d",),
        call=tt.conv2d,
        reference=reference.conv2d,
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
                _IMAGES,
                spaced(3, 3, 3, 3),
                error=tt.ShapeError,
                message=r"the input of shape \(2, 4, 5, 6\) has 4, the weight of shape "
                r"\(3, 3, 3, 3\) takes 3",
            ),
            refused(
                _IMAGES,
                spaced(2, 4, 3, 3),
                groups=2,
                error=tt.ShapeError,
                message="takes 4 in each of 2 groups",
            ),
            refused(
                _IMAGES,
                spaced(3, 2, 3, 3),
                groups=2,
                error=tt.ArgumentValueError,
                message="2 groups do not divide the 4 channels that go in and the 3 that come out",
            ),
            refused(
                _IMAGES,
                spaced(3, 4, 6, 3),
                error=tt.ShapeError,
                message=r"a kernel of \(6, 3\) is larger than the padded input \(5, 6\) of shape",
            ),
            refused(
                _IMAGES,
                spaced(3, 4, 3, 3),
                dilation=4,
                padding=1,
                error=tt.ShapeError,
                message=r"a kernel of \(3, 3\) with dilation \(4, 4\) is larger than the padded "
                r"input \(7, 8\)",
            ),
            refused(
                _IMAGES,
                spaced(3, 4, 3, 3),
                spaced(4),
                error=tt.ShapeError,
                message=r"bias must have shape \(3,\), one number per output channel, got \(4,\)",
            ),
            refused(_IMAGES, spaced(3, 4, 3), error=tt.ShapeError, message=r"got \(3, 4, 3\)"),
            refused(_IMAGES, spaced(3, 4, 0, 3), error=tt.ShapeError, message=r"\(3, 4, 0, 3\)"),
            refused(spaced(4, 4), spaced(3, 4, 3, 3), error=tt.ShapeError, message="C, H, W"),
            refused(spaced(1, 1, 0, 3), spaced(1, 1, 1, 1), error=tt.ShapeError, message="larger"),
            refused(
                _IMAGES, 1.0, error=tt.ArgumentTypeError, message="the weight must be a tensor"
            ),
            refused(
                _IMAGES,
                spaced(3, 4, 3, 3),
                1.0,
                error=tt.ArgumentTypeError,
                message="the bias must be a tensor",
            ),
        ),
    ),
    Op(
        name="conv_transpose2d",
        covers=("conv_transpose2d",),
        call=tt.conv_transpose2d,
        reference=reference.conv_transpose2d,
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
                _IMAGES,
                spaced(4, 2, 1, 1),
                output_padding=1,
                error=tt.ArgumentValueError,
                message="output_padding",
            ),
            refused(
                _IMAGES[:, :2, :1, :3],
                _POINT,
                padding=each(1, (0, 2)),
                error=tt.ShapeError,
                message="leaves nothing",
            ),
            refused(_IMAGES, spaced(4, 3, 0, 3), error=tt.ShapeError, message=r"\(4, 3, 0, 3\)"),
            refused(spaced(2, 3), _POINT, error=tt.ShapeError, message=r"input .*got \(2, 3\)"),
            refused(
                _IMAGES,
                spaced(3, 4, 3, 3),
                error=tt.ShapeError,
                message=r"has 4, the weight of shape \(3, 4, 3, 3\) takes 3",
            ),
            refused(
                _IMAGES,
                spaced(4, 3, 3, 3),
                stride=2,
                output_padding=2,
                error=tt.ArgumentValueError,
                message=r"output_padding \(2, 2\) must be less than the stride \(2, 2\)",
            ),
            refused(
                _IMAGES,
                spaced(4, 3, 3, 3),
                padding=4,
                error=tt.ShapeError,
                message=r"padding \(4, 4\) leaves nothing",
            ),
            refused(
                _IMAGES,
                spaced(4, 3, 3, 3),
                spaced(4),
                error=tt.ShapeError,
                message=r"bias must have shape \(3,\)",
            ),
            refused(spaced(1, 1, 0, 3), spaced(1, 1, 2, 2), error=tt.ShapeError, message="nothing"),
            refused(_IMAGES, spaced(4, 3, 3), error=tt.ShapeError, message=r"got \(4, 3, 3\)"),
        ),
    ),
    *(
        Op(
            name=name,
            covers=(name,),
            call=getattr(tt, name),
            reference=reference.pool2d(reduce, fill),
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
                    _IMAGES,
                    each(6, (1, 7)),
                    error=tt.ShapeError,
                    message=r"kernel of \((6, 6|1, 7)\) is larger",
                ),
                refused(
                    _IMAGES,
                    2,
                    padding=2,
                    error=tt.ArgumentValueError,
                    message=r"padding \(2, 2\) is more than half of the window \(2, 2\)",
                ),
                refused(_IMAGES, 1, padding=1, error=tt.ArgumentValueError, message="half"),
                # The window begins at -2, and its second element lies behind the image, at 2.
                refused(
                    _IMAGES[..., :1, :],
                    (2, 1),
                    padding=(2, 0),
                    dilation=(4, 1),
                    error=tt.ShapeError,
                    message="holds nothing but padding",
                ),
                refused(
                    each(None, ARRAY), 1, error=tt.ArgumentTypeError, message="must be a tensor"
                ),
                refused(spaced(4, 4), 2, error=tt.ShapeError, message=r"got \(4, 4\)"),
            ),
        )
        for name, reduce, fill in (
            ("avg_pool2d", lambda seen: seen.mean(axis=(-2, -1)), 0.0),
            ("max_pool2d", lambda seen: seen.max(axis=(-2, -1)), -np.inf),
            ("min_pool2d", lambda seen: seen.min(axis=(-2, -1)), np.inf),
        )
    ),
    Op(
        name="upscale2d",
        covers=("upscale2d",),
        call=tt.upscale2d,
        reference=reference.upscale2d,
        samples=tuple(
            given(x, size, mode=mode)
            for mode in ("nearest", "bilinear")
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
        refusals=(
            *refuses(_IMAGES, sizes(2)),
            refused(
                _IMAGES, each((4, 6), (1, 2)), error=tt.ShapeError, message=r"stretched to .*; avg"
            ),
            refused(_IMAGES, (10, 0), error=tt.ArgumentValueError, message="size must be > 0"),
            refused(
                _IMAGES,
                (9, 9),
                mode=each("cubic", None, 1, "Nearest"),
                error=tt.ArgumentValueError,
                message="got ('cubic'|None|1|'Nearest')",
            ),
            refused(spaced(4, 4), (8, 8), error=tt.ShapeError, message=r"got \(4, 4\)"),
            refused(spaced(1, 1, 0, 4), (8, 8), error=tt.ShapeError, message="stretched"),
        ),
    ),
)
