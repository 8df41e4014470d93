"""Arrays that are written part by part: each part is computed where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.test_memory_of_plans import _checked, _random, _titles


def parts_added(x: Any) -> Any:
    """Add to all parts of zeros."""
    whole = np.zeros_like(x)
    whole[:, :3] += np.tanh(x[:, :3])
    whole[:, 3:] += np.sin(x[:, 3:])
    return (whole * 2.0 + whole,)


def parts_with_steps(x: Any) -> Any:
    """Add to every second row, backwards, and to the others."""
    whole = np.zeros_like(x)
    whole[::-2] += np.tanh(x[::2])
    whole[::2] += np.sin(x[::2])
    return (np.exp(whole),)


def parts_seen_transposed(x: Any) -> Any:
    """Write what is computed in another order."""
    whole = np.zeros_like(x)
    whole.T[:2] += np.tanh(x.T[:2])
    whole.T[2:] += np.sin(x.T[2:])
    return (np.exp(whole),)


def parts_of_what_lies_transposed(x: Any) -> Any:
    """Write into zeros that lie in memory as another array in another order does."""
    whole = np.zeros_like(x.T)
    whole[:2] += np.tanh(x.T[:2])
    whole[2:4] += np.sin(x.T[2:4])
    whole[4:] += np.cos(x.T[4:])
    return (np.exp(whole),)


@pytest.mark.parametrize(
    "run", [parts_added, parts_with_steps, parts_seen_transposed, parts_of_what_lies_transposed]
)
def test_an_array_of_parts_needs_neither_zeros_nor_copies(run: Any) -> None:
    titles = _titles(_checked(run, _random(8, 6)))

    assert not {"cast", "write_all", "copyto"} & {*titles}


def parts_that_overlap(x: Any) -> Any:
    """Add twice to some elements."""
    whole = np.zeros_like(x)
    whole[:5] += np.tanh(x[:5])
    whole[3:] += np.sin(x[3:])
    return (np.exp(whole),)


def parts_that_are_not_all(x: Any) -> Any:
    """Leave some zeros."""
    whole = np.zeros_like(x)
    whole[:5] += np.tanh(x[:5])
    whole[6:] += np.sin(x[6:])
    return (np.exp(whole),)


def parts_read_between(x: Any) -> Any:
    """Read the zeros that are left."""
    whole = np.zeros_like(x)
    whole[:5] += np.tanh(x[:5])
    early = whole * 2.0
    whole[5:] += np.sin(x[5:])
    return np.exp(whole), early


def parts_that_are_read(x: Any) -> Any:
    """Add to a part, from others of the same array."""
    whole = np.zeros_like(x)
    whole[:4] += whole[4:] + x[:4]
    whole[4:] += whole[:4]
    return (np.exp(whole),)


@pytest.mark.parametrize(
    "run",
    [
        parts_that_overlap, parts_that_are_not_all, parts_read_between, parts_that_are_read,
    ],
)  # fmt: skip
def test_parts_of_other_kinds_give_what_numpy_gives(run: Any) -> None:
    _checked(run, _random(8, 6))
