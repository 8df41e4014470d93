"""Bad calls of the creation functions: what is called, and with which bad arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.properties.bad_arguments import (
    ARRAY,
    BAD_DTYPES,
    HUGE,
    INF,
    NAN,
    NOT_FINITE,
    NOT_NUMBERS,
    TOO_LARGE,
)

# The rows are what a type checker rejects, so nothing here is typed.
api: Any = tt
RNG = np.random.default_rng(0)

BAD_SHAPES = [None, 3, 2.0, "ab", (2, 1.5), (2, -1), (True,), ((2,),), (2, None), (TOO_LARGE,)]

Call = Callable[[Any], object]

CREATION: dict[str, list[tuple[Call, list[Any]]]] = {
    "zeros": [
        (lambda bad: api.zeros(bad), BAD_SHAPES),
        (lambda bad: api.zeros((2,), bad), BAD_DTYPES),
    ],
    "ones": [
        (lambda bad: api.ones(bad), BAD_SHAPES),
        (lambda bad: api.ones((2,), bad), BAD_DTYPES),
    ],
    "full": [
        (lambda bad: api.full(bad, 1.0), BAD_SHAPES),
        (lambda bad: api.full((2,), bad), [*NOT_NUMBERS, HUGE]),
        (lambda bad: api.full((2,), bad, np.uint8), [300, 300.0, -1, 0.5, NAN, INF, HUGE]),
        (lambda bad: api.full((2,), 1.0, bad), BAD_DTYPES),
    ],
    "arange": [
        (lambda bad: api.arange(bad), [None, -1, 2.0, "3", (3,), True, TOO_LARGE]),
        (lambda bad: api.arange(3, bad), BAD_DTYPES),
        (lambda bad: api.arange(bad, np.uint8), [257]),
    ],
    "eye": [
        (lambda bad: api.eye(bad), [None, -1, 2.0, "3", (3, 3), True, TOO_LARGE]),
        (lambda bad: api.eye(3, bad), BAD_DTYPES),
    ],
    "normal": [
        (lambda bad: api.normal(bad, rng=RNG), BAD_SHAPES),
        (lambda bad: api.normal((2,), bad, rng=RNG), [*BAD_DTYPES, np.int64, np.bool_]),
        (
            lambda bad: api.normal((2,), rng=bad),
            [None, 0, "seed", np.random, np.random.RandomState(0)],
        ),
        (lambda bad: api.normal((2,), rng=RNG, mean=bad), [*NOT_NUMBERS, *NOT_FINITE, HUGE]),
        (lambda bad: api.normal((2,), rng=RNG, std=bad), [*NOT_NUMBERS, *NOT_FINITE, -1.0]),
    ],
    "uniform": [
        (lambda bad: api.uniform(bad, rng=RNG), BAD_SHAPES),
        (lambda bad: api.uniform((2,), bad, rng=RNG), [*BAD_DTYPES, np.int64]),
        (lambda bad: api.uniform((2,), rng=bad), [None, 0, np.random.RandomState(0)]),
        (lambda bad: api.uniform((2,), rng=RNG, low=bad), [*NOT_NUMBERS, *NOT_FINITE, 2.0]),
        (lambda bad: api.uniform((2,), rng=RNG, high=bad), [*NOT_NUMBERS, *NOT_FINITE, -1.0]),
        (lambda bad: api.uniform((2,), rng=RNG, low=-bad, high=bad), [3e38]),
        (lambda bad: api.uniform((2,), np.float64, rng=RNG, low=-bad, high=bad), [1.7e308]),
    ],
    "from_array": [
        (lambda bad: api.from_array(bad), [None, 1.0, [1.0], tt.ones((2,)), np.ones(2, complex)]),
        (lambda bad: api.from_array(ARRAY, bad), [3, 2.0, (3, 2), (6,), (2, -1), (2, 3.0)]),
    ],
    "from_numpy": [
        (
            lambda bad: api.from_numpy(bad),
            [
                *[None, 1.0, "1", {1.0}, range(3), tt.ones((2,)), [[1.0], [1.0, 2.0]], ["a"]],
                *[[1j], [None], [HUGE], [tt.ones(())], np.ones(2, np.float16), np.ones(2, ">f8")],
                *[np.ones(2, complex), np.array(["a"]), np.array([None]), np.ones(2, "M8[s]")],
            ],
        ),
        (lambda bad: api.from_numpy(ARRAY, bad), [3, 2.0, "ab", (3, 2), (6,), (2, -1), (2, 3.0)]),
        (lambda bad: api.from_numpy(ARRAY, dtype=bad), BAD_DTYPES[1:]),
        (lambda bad: api.from_numpy(bad, dtype=np.int64), [[NAN], ["a"], [1e30], [2.0**63]]),
        (lambda bad: api.from_numpy(bad, dtype=np.uint8), [[300], [-1], [255.5, 256.0]]),
    ],
}
