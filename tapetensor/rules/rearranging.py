"""Shapes of ops that keep the elements and change the axes, or put tensors together along one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tapetensor.errors import AxisError, ShapeError
from tapetensor.rules.dims import (
    ONE,
    Atom,
    Dim,
    Dims,
    Size,
    cannot_be_equal,
    differ,
    is_left_over,
    is_negative,
    product,
    quotient,
    total,
    unified,
    written,
)

_HIDDEN: Final = Size.of(-1)


def reshape(op: str, shape: Dims, target: Dims) -> Dims:
    """Return the shape that is asked for, a ``-1`` in it worked out."""
    elements, filled = product(shape), product(dim for dim in target if dim != _HIDDEN)
    hidden = target.count(_HIDDEN)
    # Nothing is certain where dims have names: B * 3 elements fill (2, -1) if B is even.
    rest = quotient(elements, filled)
    are_numbers = elements.literal is not None and filled.literal is not None
    if hidden == 1:
        is_refused = are_numbers and rest.literal is None
    else:
        is_refused = hidden > 1 or cannot_be_equal(elements, filled)
    if is_refused or any(is_negative(dim) and dim != _HIDDEN for dim in target):
        raise ShapeError(
            f"{op}: {written(shape)} holds {elements} elements, which do not fill "
            f"{written(target)}; the product of the dims must stay the same, and at most one of "
            "them may be -1"
        )
    found = tuple(rest if dim == _HIDDEN else dim for dim in target)
    _check_order(op, shape, found)
    return found


def _check_order(op: str, shape: Dims, target: Dims) -> None:
    """Raise ShapeError if a reshape mixes the elements of a dim that keeps its name.

    Elements keep their order, so ``(B, M, 32)`` can become ``(B, M, 4, 8)``. In ``(B, 4, M, 8)``
    four times as many lie before `M`, and no `M` of the old shape is one of the new. Nothing is
    said of a name that stands in several dims, nor where names come in that the shape has not.
    """
    old, new = _places(shape), _places(target)
    names = {atom for dim in shape if isinstance(dim, Size) for atom in dim.atoms}
    for atom in [one for one in old if one in new]:
        lhs, rhs = product(shape[: old[atom]]), product(target[: new[atom]])
        are_known = (
            isinstance(lhs, Size) and isinstance(rhs, Size) and lhs.atoms | rhs.atoms <= names
        )
        if are_known and lhs != rhs:
            raise ShapeError(
                f"{op}: {written(shape)} to {written(target)} mixes the elements of {atom.name}: "
                f"what lies before it is {lhs} in the one and {rhs} in the other; reshape() keeps "
                "elements in their order, permute_dims() puts the dims into another one"
            )


def _places(shape: Dims) -> dict[Atom, int]:
    """Return the places of the dims that are a name, each of which no other dim has."""
    found: dict[Atom, list[int]] = {}
    for place, dim in enumerate(shape):
        for atom in dim.atoms if isinstance(dim, Size) else ():
            found.setdefault(atom, []).append(place)
    alone = {atom: place for atom, (place, *others) in found.items() if not others}
    return {atom: place for atom, place in alone.items() if shape[place] == Size.named(atom)}


def permute_dims(op: str, axes: Sequence[int], order: Sequence[int], shape: Dims) -> Dims:
    """Return the shape with its axes in another order."""
    if sorted(order) != list(range(len(shape))):
        raise AxisError(
            f"{op}: axes {tuple(axes)} must name every axis of shape {written(shape)} exactly once"
        )
    return tuple(shape[axis] for axis in order)


def squeeze(op: str, shape: Dims, axes: Sequence[int]) -> Dims:
    """Return the shape without axes of size 1."""
    for axis in sorted(axes):
        if differ(shape[axis], ONE):
            raise ShapeError(
                f"{op}: axis {axis} of shape {written(shape)} has size {shape[axis]}, not 1"
            )
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def check_widths(op: str, count: int, shape: Sequence[Dim | int]) -> None:
    """Raise ShapeError if there are not as many pairs of widths as axes."""
    if count != len(shape):
        raise ShapeError(f"{op}: {count} pairs of widths for the axes of shape {written(shape)}")


def check_repeated(op: str, mode: str, pair: tuple[int, int], size: int, shape: Dims) -> None:
    """Raise ShapeError if an axis has fewer elements than a mode of padding repeats."""
    longest = {"reflect": size - 1, "replicate": size and max(pair), "circular": size}
    if max(pair) > longest[mode]:
        raise ShapeError(
            f"{op}: widths {pair} are too large for an axis of size {size} of shape "
            f'{written(shape)}; mode "{mode}" repeats at most {max(longest[mode], 0)} of its '
            "elements"
        )


def split(op: str, shape: Dims, axis: int, count: int) -> Dim:
    """Return the size of each of `count` equal parts along an axis."""
    if is_left_over(shape[axis], Size.of(count)):
        raise ShapeError(
            f"{op}: axis {axis} of shape {written(shape)} does not divide into {count} equal "
            "parts; give the sizes of the parts"
        )
    return quotient(shape[axis], Size.of(count))


def check_sections(op: str, shape: Dims, axis: int, sizes: Sequence[int]) -> None:
    """Raise ShapeError if the sizes of parts do not add up to an axis."""
    if shape[axis].literal not in (None, sum(sizes)):
        raise ShapeError(
            f"{op}: sections {tuple(sizes)} add up to {sum(sizes)}, axis {axis} of shape "
            f"{written(shape)} has size {shape[axis]}"
        )


def concat(op: str, shapes: Sequence[Dims], axis: int) -> Dims:
    """Return the shape of operands one after another along an axis, counted from the front."""
    result = _common(op, shapes, axis, "all axes but the concatenated one must have equal sizes")
    result[axis] = total(shape[axis] for shape in shapes)
    return tuple(result)


def stack(op: str, shapes: Sequence[Dims], axis: int, count: Dim) -> Dims:
    """Return the shape of `count` operands along a new axis, counted from the front."""
    result = _common(op, shapes, None, "all shapes must be equal")
    result.insert(axis, count)
    return tuple(result)


def _common(op: str, shapes: Sequence[Dims], apart_from: int | None, cure: str) -> list[Dim]:
    """Return the shape that shapes have in common, apart from an axis."""
    named = " and ".join(map(written, shapes))
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ShapeError(f"{op}: the ranks of shapes {named} differ; {cure}")
        for index, dim in enumerate(shape):
            if index != apart_from and differ(result[index], dim):
                raise ShapeError(
                    f"{op}: shapes {named} differ along axis {index}, {result[index]} != {dim}; "
                    f"{cure}"
                )
            result[index] = unified(result[index], dim)
    return result
