"""Rules give the shapes that numpy gives, and refuse what numpy refuses.

Random expressions under the plugin (tests/plugin/test_shape_programs.py) ask the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

from tapetensor.errors import TapeTensorError
from tapetensor.rules import broadcasting, indexing, layers, rearranging, windows
from tapetensor.rules.dims import Dims, Size, sized

Rng: TypeAlias = np.random.Generator
Shape: TypeAlias = tuple[int, ...]
# What the rule says, and what numpy says.
Question: TypeAlias = tuple[Callable[[], Dims | None], Callable[[], Shape]]

ROUNDS = 400


def some_shape(rng: Rng, low: int = 0, high: int = 4) -> Shape:
    return tuple(rng.integers(0, 4, rng.integers(low, high)).tolist())


def nearly(rng: Rng, shape: Shape) -> Shape:
    """Return a shape with another dim, or one axis fewer, now and then."""
    changed = list(shape)
    if changed and rng.random() < 0.5:
        changed[rng.integers(len(changed))] = int(rng.integers(0, 4))
    return tuple(changed[: -1 if rng.random() < 0.1 else None])


def empty(shape: Shape) -> Any:
    return np.zeros(shape)


def broadcast(rng: Rng) -> Question:
    shapes = [some_shape(rng) for _ in range(rng.integers(1, 4))]
    return (
        lambda: broadcasting.broadcast("op", list(map(sized, shapes))),
        lambda: np.broadcast_shapes(*shapes),
    )


def matmul(rng: Rng) -> Question:
    lhs, rhs = some_shape(rng), some_shape(rng)
    if rng.random() < 0.7 and lhs and rhs:
        rhs = (*rhs[:-2], lhs[-1], rhs[-1]) if len(rhs) > 1 else lhs[-1:]
    return (
        lambda: broadcasting.matmul("op", sized(lhs), sized(rhs)),
        lambda: np.matmul(empty(lhs), empty(rhs)).shape,
    )


def einsum(rng: Rng) -> Question:
    letters = ["".join(rng.choice(list("ijk"), rng.integers(0, 3))) for _ in range(2)]
    groups = [one + "..." * (rng.random() < 0.3) for one in letters]
    sizes = {letter: int(rng.integers(2, 4)) for letter in "ijk"}
    named = [nearly(rng, tuple(sizes[letter] for letter in one)) for one in letters]
    # numpy also repeats a letter's axis of size 1, which is refused here.
    shapes = [
        tuple(2 if size == 1 else size for size in shape)
        + ((int(rng.integers(2 - (len(shape) == len(one)), 4)),) if "..." in group else ())
        for shape, one, group in zip(named, letters, groups, strict=True)
    ]
    kept = "".join(sorted({letter for letter in "".join(letters) if rng.random() < 0.6}))
    subscripts = ",".join(groups) + "->" + "..." * ("..." in "".join(groups)) + kept

    def by_rule() -> Dims:
        _, output, dims = broadcasting.einsum(
            "op", subscripts, list(map(sized, shapes)), broadcasting.shared_dim
        )
        return tuple(dims[letter] for letter in output)

    return by_rule, lambda: np.einsum(subscripts, *map(empty, shapes)).shape


def reshape(rng: Rng) -> Question:
    shape = some_shape(rng)
    target = tuple(rng.permutation(shape).tolist()) if rng.random() < 0.5 else some_shape(rng)
    if target and rng.random() < 0.5:
        target = (-1, *target[1:])
    return (
        lambda: rearranging.reshape("op", sized(shape), sized(target)),
        lambda: empty(shape).reshape(target).shape,
    )


def split(rng: Rng) -> Question:
    shape, count = some_shape(rng, 1), int(rng.integers(1, 4))
    axis = int(rng.integers(len(shape)))

    def by_rule() -> Dims:
        size = rearranging.split("op", sized(shape), axis, count)
        return (*sized(shape[:axis]), size, *sized(shape[axis + 1 :]))

    return by_rule, lambda: np.split(empty(shape), count, axis)[0].shape


def getitem(rng: Rng) -> Question:
    shape = some_shape(rng)
    index: list[Any] = []
    asked: list[indexing.Index] = []
    for _ in range(rng.integers(0, 4)):
        kind = list(indexing.Kind)[rng.integers(5)]
        start, stop, step = (
            None if rng.random() < 0.4 else int(rng.integers(-4, 5)) for _ in range(3)
        )
        if kind is indexing.Kind.POSITION:
            index.append(int(rng.integers(-4, 4)))
            asked.append(indexing.Index(kind, position=index[-1]))
        elif kind is indexing.Kind.SLICE:
            index.append(slice(start, stop, step))
            bounds = [None if one is None else Size.of(one) for one in (start, stop, step)]
            asked.append(indexing.Index(kind, bounds=(bounds[0], bounds[1], bounds[2])))
        elif kind is indexing.Kind.TENSOR:
            # Of positions that are there, if the axis has any.
            index.append(np.zeros(some_shape(rng, 0, 3), int))
            asked.append(indexing.Index(kind, shape=sized(index[-1].shape)))
        else:
            index.append(None if kind is indexing.Kind.NEW_AXIS else ...)
            asked.append(indexing.Index(kind))
    if 0 in shape:
        # Positions along an axis without elements are refused by their values.
        shape = tuple(max(size, 1) for size in shape)
    return (
        lambda: indexing.getitem("op", asked, sized(shape)),
        lambda: empty(shape)[tuple(index)].shape,
    )


def mask(rng: Rng) -> Question:
    shape = tuple(max(size, 1) for size in some_shape(rng))
    read = tuple(max(size, 1) for size in nearly(rng, shape))[: rng.integers(len(shape) + 2)]
    rest = shape[len(read) :]

    def ask() -> Dims:
        indexing.check_mask("op", sized(read), sized(shape))
        return sized((0, *rest))

    return ask, lambda: empty(shape)[np.zeros(read, bool)].shape


def take_along_axis(rng: Rng) -> Question:
    shape = tuple(max(size, 1) for size in some_shape(rng, 1))
    places, axis = nearly(rng, shape), int(rng.integers(len(shape)))
    return (
        lambda: indexing.take_along_axis("op", sized(shape), sized(places), axis),
        lambda: np.take_along_axis(empty(shape), np.zeros(places, int), axis).shape,
    )


def solve(rng: Rng) -> Question:
    size = int(rng.integers(1, 4))
    shape = nearly(rng, (*some_shape(rng, 0, 2), size, size))
    other = nearly(rng, (*some_shape(rng, 0, 2), size, 2))

    def by_rule() -> Dims:
        broadcasting.solve("op", sized(shape), sized(other))
        return sized(by_numpy())

    def by_numpy() -> Shape:
        if len(other) == 1 and len(shape) != 2:
            raise ValueError("several matrices take matrices, not one vector")
        matrices = np.broadcast_to(np.eye(shape[-2], shape[-1]), shape)
        found: Shape = np.linalg.solve(matrices, empty(other)).shape
        return found

    return by_rule, by_numpy


def scores(rng: Rng) -> Question:
    leading, (m, n, k, p) = some_shape(rng, 0, 2), rng.integers(0, 3, 4).tolist()
    query, key = (*leading, m, k), nearly(rng, (*leading, n, k))
    value = nearly(rng, (*leading, n, p))

    def by_numpy() -> Shape:
        if min(len(key), len(value)) < 2 or not query[:-2] == key[:-2] == value[:-2]:
            raise ValueError("attention broadcasts nothing")
        found = empty(query) @ np.swapaxes(empty(key), -1, -2)
        np.matmul(found, empty(value))
        shape: Shape = found.shape
        return shape

    return lambda: layers.scores("op", sized(query), sized(key), sized(value)), by_numpy


def window(rng: Rng) -> Question:
    sizes = rng.integers(0, 7, 2).tolist()
    kernel, stride, dilation = (rng.integers(1, 4, 2).tolist() for _ in range(3))
    padding = rng.integers(0, 3, 2).tolist()
    rule = windows.Window(*map(sized, (kernel, stride, padding, dilation)))

    def by_numpy() -> Shape:
        image = np.pad(empty((*sizes,)), [(one, one) for one in padding])
        spans = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
        seen = np.lib.stride_tricks.sliding_window_view(image, spans)
        found = seen[:: stride[0], :: stride[1]].shape[:2]
        if 0 in found:
            raise ValueError("no window fits")
        return found

    return lambda: rule.counts("op", sized(sizes)), by_numpy


QUESTIONS = [
    *[broadcast, matmul, einsum, reshape, split, getitem],
    *[mask, take_along_axis, solve, scores, window],
]


def answer(ask: Callable[[], Any]) -> tuple[int | None, ...] | None:
    """Return the shape; None where the question is refused."""
    try:
        return tuple(one.literal if isinstance(one, Size) else one for one in ask())
    except (TapeTensorError, ValueError, IndexError, np.linalg.LinAlgError):
        return None


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.__name__)
def test_a_rule_gives_the_shape_that_numpy_gives_or_refuses_with_it(
    question: Callable[[Rng], Question],
) -> None:
    rng = np.random.default_rng(5)
    answers = []
    for number in range(ROUNDS):
        by_rule, by_numpy = map(partial, question(rng))
        expected = answer(by_numpy)
        assert answer(by_rule) == expected, f"round {number}"
        answers.append(expected)

    # Both kinds are asked for.
    assert ROUNDS > answers.count(None) > 0
