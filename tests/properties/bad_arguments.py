"""Arguments that are bad wherever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

NAN = float("nan")
INF = float("inf")
HUGE = 10**400
TOO_LARGE = 10**30
ARRAY = np.ones((2, 3), np.float32)

BAD_DTYPES: list[Any] = [
    None,
    "float33",
    np.float16,
    np.complex64,
    object,
    str,
    ">f4",
    "M8[s]",
    5,
    [1],
]
NOT_NUMBERS: list[Any] = ["1", 1j, None, [1.0], ARRAY]
NOT_FINITE: list[Any] = [NAN, INF, -INF]
