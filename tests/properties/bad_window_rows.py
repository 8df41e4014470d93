"""Bad calls of the ops on images, for `x`, a tensor of shape (2, 3) and dtype float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.properties.bad_arguments import ARRAY, HUGE, NAN

api: Any = tt

Rows = list[tuple[Callable[[Any, Any], object], list[Any]]]

BAD_SIZES = [0, -1, 1.5, "2", NAN, True, (1,), (1, 1, 1), (1, 0), [1, None]]
# Of a padding 0 is right.
BAD_PADDINGS = [-1, 0.5, "same", NAN, (1,), (0, -1), None]
OTHER_WEIGHTS = [
    *[None, 1.0, ARRAY, "w", HUGE],
    *[tt.ones(()), tt.ones((2, 3)), tt.ones((4, 3, 1, 1)), tt.ones((4, 2, 1, 0))],
    *[tt.ones((4, 2, 2, 1)), tt.ones((4, 2, 1, 4)), tt.ones((4, 2, 1, 1), np.float64)],
]
_POINT = tt.ones((2, 2, 1, 1))


def _image(x: Any) -> Any:
    return x.reshape((2, 1, 3))


def _convolution(name: str) -> Rows:
    """Return the rows of a convolution of images with a weight that would do."""

    def call(x: Any, **options: Any) -> object:
        return getattr(api, name)(_image(x), _POINT, **options)

    return [
        (lambda x, bad: call(x, stride=bad), [*BAD_SIZES, None]),
        (lambda x, bad: call(x, padding=bad), BAD_PADDINGS),
        (lambda x, bad: call(x, dilation=bad), [*BAD_SIZES, None]),
        (lambda x, bad: call(x, groups=bad), [0, -1, 3, 1.0, "1", None, (1, 1)]),
        (lambda x, bad: call(x, bias=bad), [1.0, ARRAY, tt.ones((3,)), tt.ones((2, 1))]),
        (lambda x, bad: getattr(api, name)(x, bad), [_POINT]),
        (lambda x, bad: getattr(api, name)(bad, _POINT), [None, ARRAY, 1.0, tt.ones((2, 3))]),
        (lambda x, bad: getattr(api, name)(_image(x).astype(bad), _POINT), [np.int64, np.bool_]),
    ]


def _pooling(name: str) -> Rows:
    def call(x: Any, *window: Any, **options: Any) -> object:
        return getattr(api, name)(_image(x), *window, **options)

    return [
        (lambda x, bad: call(x, bad), [*BAD_SIZES, None, 2, (1, 4)]),
        (lambda x, bad: call(x, 1, stride=bad), BAD_SIZES),
        (lambda x, bad: call(x, 1, padding=bad), [*BAD_PADDINGS, 1]),
        (lambda x, bad: call(x, 1, dilation=bad), BAD_SIZES),
        # The window begins at -2, and its second element lies behind the image, at 2.
        (lambda x, bad: call(x, (2, 1), padding=(2, 0), dilation=(bad, 1)), [4]),
        (lambda x, bad: getattr(api, name)(bad, 1), [None, ARRAY, tt.ones((2, 3))]),
        (lambda x, bad: getattr(api, name)(_image(x).astype(bad), 1), [np.int64, np.bool_]),
    ]


ON_IMAGES: dict[str, Rows] = {
    "conv1d": [
        (lambda x, bad: api.conv1d(x, bad), OTHER_WEIGHTS),
        (lambda x, bad: api.conv1d(x, tt.ones((4, 2, bad))), [0, 4]),
        (lambda x, bad: api.conv1d(x, tt.ones((4, 2, 1)), stride=bad), [0, -1, 1.0, (1, 1), None]),
        (lambda x, bad: api.conv1d(x, tt.ones((4, 2, 1)), padding=bad), [-1, 0.5, (1, 1)]),
        (lambda x, bad: api.conv1d(x, tt.ones((4, 2, 1)), groups=bad), [0, 2, 3, 1.0]),
    ],
    "conv2d": [
        *_convolution("conv2d"),
        (lambda x, bad: api.conv2d(_image(x), bad), OTHER_WEIGHTS),
    ],
    "conv_transpose2d": [
        *_convolution("conv_transpose2d"),
        (
            lambda x, bad: api.conv_transpose2d(_image(x), _POINT, output_padding=bad),
            [1, *BAD_PADDINGS],
        ),
        (lambda x, bad: api.conv_transpose2d(_image(x), _POINT, padding=bad), [1, (0, 2)]),
        (
            lambda x, bad: api.conv_transpose2d(_image(x), bad),
            [None, ARRAY, tt.ones((3, 2, 1, 1)), tt.ones((2, 2, 1)), tt.ones((2, 2, 0, 1))],
        ),
    ],
    "avg_pool2d": _pooling("avg_pool2d"),
    "max_pool2d": _pooling("max_pool2d"),
    "min_pool2d": _pooling("min_pool2d"),
    "upscale2d": [
        (lambda x, bad: api.upscale2d(_image(x), bad), [*BAD_SIZES, None, (1, 2)]),
        (lambda x, bad: api.upscale2d(_image(x), (2, 6), bad), [None, "cubic", 1, "Nearest"]),
        (lambda x, bad: api.upscale2d(x, bad), [(4, 6)]),
        (lambda x, bad: api.upscale2d(_image(x).astype(bad), (2, 6)), [np.int64, np.bool_]),
    ],
}
