"""Shapes that layers, attention and losses take; of losses None for a shape that is open."""

from __future__ import annotations

from collections.abc import Mapping

from tapetensor.errors import ShapeError
from tapetensor.rules.broadcasting import stays_apart
from tapetensor.rules.dims import INT, Dim, Dims, Size, differ, product, quotient, written


def check_features(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if the last axis of an input surely has not the size of the layer."""
    if not shape or differ(shape[-1], features):
        raise ShapeError(
            f"{op}: the last axis of the input must have size {features}, got shape "
            f"{written(shape)}"
        )


def batch_norm_1d(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if `BatchNorm1d` does not take a shape."""
    if len(shape) not in (2, 3) or differ(shape[1], channels):
        wanted = f"(B, {channels}) or (B, {channels}, L)"
        raise ShapeError(f"{op}: the input must have shape {wanted}, got {written(shape)}")


def batch_norm_2d(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if `BatchNorm2d` does not take a shape."""
    if len(shape) not in (3, 4) or differ(shape[-3], channels):
        wanted = f"(B, {channels}, H, W) or ({channels}, H, W)"
        raise ShapeError(f"{op}: the input must have shape {wanted}, got {written(shape)}")


def check_variance(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if a training input has one value per channel, which has no variance."""
    if quotient(product(shape), channels).literal in (0, 1):
        raise ShapeError(
            f"{op}: a variance needs two values per channel or more, a training input of shape "
            f"{written(shape)} has fewer; tapetensor.data.batches_exact leaves out a last batch "
            "that is smaller than the others"
        )


def recurrent(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if a recurrent layer does not take a shape."""
    check_features(op, shape, features)
    if len(shape) != 3 or shape[1].literal == 0:
        raise ShapeError(
            f"{op}: the input must have shape (batch, steps, features) with one step or more, got "
            f"{written(shape)}"
        )


def recurrent_cell(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if the cell of a recurrent layer does not take a shape."""
    check_features(op, shape, features)
    if len(shape) != 2:
        raise ShapeError(f"{op}: the input must have shape (batch, features), got {written(shape)}")


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


def check_alike(op: str, shapes: Mapping[str, Dims | None]) -> None:
    """Raise ShapeError if operands, by their names, are not of one shape."""
    (first, shape), *others = shapes.items()
    for name, other in others:
        if _differ(shape, other):
            raise differing(op, (first, name), (shape, other))


def differing(
    op: str, names: tuple[str, str], shapes: tuple[Dims | None, Dims | None]
) -> ShapeError:
    """Return the error that two operands are not of one shape."""
    one, other = [f"{name} of shape {_shape(own)}" for name, own in zip(names, shapes, strict=True)]
    return ShapeError(
        f"{op}: {one} and {other} differ; nothing is broadcast, reshape or broadcast_to one"
    )


def check_labels(
    op: str, name: str, scores: Dims | None, labels: Dims | None, axis: int = -1
) -> None:
    """Raise ShapeError if there is not a label for each row of scores."""
    if scores == ():
        raise ShapeError(f"{op}: {name} of shape () have no axis of classes")
    if scores is None:
        return
    # Classes on axis 1 of what has one axis alone: no label fits.
    fits = -len(scores) <= axis < len(scores)
    place = axis % len(scores)
    wanted = scores[:place] + scores[place + 1 :]
    if not fits or _differ(wanted, labels):
        images = len(scores) > 2 and not _differ(scores[:1] + scores[2:], labels)
        elsewhere = "; for classes on axis 1, as of images, write axis=1" if images else ""
        raise ShapeError(
            f"{op}: {name} of shape {written(scores)} need labels of shape "
            f"{written(wanted) if fits else '(B, *Ds)'}, not {_shape(labels)}{elsewhere}"
        )


def check_signed_pairs(op: str, lhs: Dims | None, rhs: Dims | None, signs: Dims | None) -> None:
    """Raise ShapeError if vectors do not go in pairs, with a sign for each."""
    wanted = lhs[:-1] if lhs else None
    if lhs == () or _differ(lhs, rhs) or _differ(wanted, signs):
        raise ShapeError(
            f"{op}: lhs of shape {_shape(lhs)}, rhs of shape {_shape(rhs)} and signs of shape "
            f"{_shape(signs)} do not fit; (*Ds, N) and (*Ds, N) go with (*Ds), one pair at least"
        )


def _differ(lhs: Dims | None, rhs: Dims | None) -> bool:
    if lhs is None or rhs is None:
        return False
    return len(lhs) != len(rhs) or any(map(_have_no_common, lhs, rhs))


def _have_no_common(lhs: Dim, rhs: Dim) -> bool:
    """Tell whether two dims are not the same, be one a name and the other an `int`."""
    names = [one for one in (lhs, rhs) if isinstance(one, Size) and one.literal is None]
    return differ(lhs, rhs) or (INT in (lhs, rhs) and bool(names))


def _shape(shape: Dims | None) -> str:
    return "(...)" if shape is None else written(shape)
