"""Shapes of queries, keys, values and what is seen of them, and of sequences side by side."""

from __future__ import annotations

from tapetensor.errors import ShapeError
from tapetensor.rules.broadcasting import stays_apart
from tapetensor.rules.dims import Dims, differ, written

# What a layer offers in the place of a mask that it refuses.
OR_KEYS = ", or say by keys_mask (*Ds, N) which keys are there"


def scores(op: str, query: Dims, key: Dims, value: Dims) -> Dims:
    """Return the shape of the scores."""
    shapes = (query, key, value)
    said = f"{op}: query {written(query)}, key {written(key)} and value {written(value)} do not fit"
    if min(map(len, shapes)) < 2 or len({len(one) for one in shapes}) > 1:
        raise ShapeError(
            f"{said}; they are (*Ds, M, K), (*Ds, N, K) and (*Ds, N, P) with equal leading axes"
        )
    for words, lhs, rhs in (
        *[("leading axes", *pair) for pair in zip(query[:-2], key[:-2], strict=True)],
        *[("leading axes", *pair) for pair in zip(key[:-2], value[:-2], strict=True)],
        ("features of queries and keys", query[-1], key[-1]),
        ("numbers of keys and values", key[-2], value[-2]),
    ):
        if differ(lhs, rhs):
            raise ShapeError(f"{said}: the {words} differ, {lhs} != {rhs}")
    return (*query[:-1], key[-2])


def check_broadcasts(op: str, name: str, shape: Dims, to: Dims) -> None:
    """Raise ShapeError if a mask or a bias surely does not broadcast to the scores."""
    if stays_apart(shape, to):
        raise ShapeError(
            f"{op}: a {name} of shape {written(shape)} does not broadcast to the scores "
            f"{written(to)}"
        )


def check_mask(op: str, shape: Dims, to: Dims, cure: str = "") -> None:
    """Raise ShapeError if a mask surely does not say of queries and keys which see which.

    One of more axes than these, and of fewer than the scores, as of a batch and its keys, would
    meet the heads, and fit where there are as many by chance.
    """
    if 2 < len(shape) < len(to):
        raise ShapeError(
            f"{op}: a mask of shape {written(shape)} has more axes than queries and keys and fewer "
            f"than the scores {written(to)}: its first would meet one of theirs by chance; give it "
            f"{len(to)} axes, of size 1 where all are alike{cure}"
        )
    check_broadcasts(op, "mask", shape, to)


def check_keys_mask(op: str, shape: Dims, key: Dims) -> None:
    """Raise ShapeError if a mask of keys surely has not a truth for each of them."""
    wanted = key[:-1]
    if len(shape) != len(wanted) or any(map(differ, shape, wanted)):
        raise ShapeError(
            f"{op}: a keys_mask says of each key whether it is there, {written(wanted)}, got shape "
            f"{written(shape)}; what each query sees says mask"
        )


def check_sequences(op: str, names: tuple[str, str], shape: Dims, beside: Dims) -> None:
    """Raise ShapeError if two inputs are not as many sequences."""
    shapes = (shape, beside)
    leading = zip(shape[:-2], beside[:-2], strict=False)
    if (
        min(map(len, shapes)) < 2
        or len(shape) != len(beside)
        or any(differ(*pair) for pair in leading)
    ):
        raise ShapeError(
            f"{op}: {names[0]} {written(shape)} and {names[1]} {written(beside)} do not fit; they "
            "are (*Ds, length, features) with equal leading axes"
        )
