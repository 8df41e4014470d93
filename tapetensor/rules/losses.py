"""Shapes of predictions and targets, which nothing broadcasts; None for one that is open."""

from __future__ import annotations

from collections.abc import Mapping

from tapetensor.errors import ShapeError
from tapetensor.rules.dims import INT, Dim, Dims, Size, differ, written


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
