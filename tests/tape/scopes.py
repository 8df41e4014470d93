"""What the tests of contexts share: a traced value, and whether its tape is open."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tapetensor as tt

X = tt.from_numpy([1.0, 2.0], shape=(2,))


def traced() -> Any:
    return X.trace().square()


def is_open(y: Any) -> bool:
    """Tell whether the tape of `y` is open, and make sure that it is closed or whole."""
    if repr(y).endswith("OwnedTape(closed))"):
        with pytest.raises(tt.TapeClosedError):
            y.sum()
        return False
    assert y.sum().backward()[X].numpy().tolist() == [2.0, 4.0]
    return True


def alone(test: Callable[[], None]) -> Callable[[], None]:
    """Run a test in a thread of its own, whose context 0 holds no tape of another test."""

    @functools.wraps(test)
    def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test).result()

    return run
