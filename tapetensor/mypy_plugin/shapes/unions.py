"""Layers and tensors of several sizes in one tuple, which a loop takes one by one.

mypy looks for one type that is all of them. Of two sizes that is `object`, so that `zip` and
`enumerate` would give what has neither a `forward` nor a shape. Here it is a layer of open sizes:
which one it is in this turn, and beside which other, no type says.
"""

from __future__ import annotations

from typing import Final

from mypy.plugin import FunctionContext, MethodContext
from mypy.types import (
    Instance,
    LiteralType,
    ProperType,
    TupleType,
    Type,
    UnionType,
    get_proper_type,
)

from tapetensor.mypy_plugin.kinds import ANYTHING, has_dims, is_endless, members

WALKING: Final = ("builtins.enumerate", "builtins.zip", "builtins.reversed")


def walked(context: FunctionContext | MethodContext) -> Type:
    """Return the result of `zip` or the like with open sizes for what mypy takes for objects."""
    result = get_proper_type(context.default_return_type)
    items = [_items(one) for given in context.arg_types for one in given]
    if not isinstance(result, Instance) or len(result.args) != 1 or not any(items):
        return context.default_return_type
    inner = get_proper_type(result.args[0])
    if not isinstance(inner, TupleType):
        return result.copy_modified(args=[_known(inner, items[0])])
    # What follows is `strict`.
    each = map(_known, map(get_proper_type, inner.items), items)
    return result.copy_modified(args=[inner.copy_modified(items=list(each))])


def summed(context: FunctionContext | MethodContext) -> Type:
    """Return the result of `sum` of tensors: a tensor, where mypy adds the 0 of an empty list."""
    items = [one for one in members(context.default_return_type) if not _is_zero(one)]
    tensors = [one for one in items if has_dims(one)]
    return (
        UnionType.make_union(tensors)
        if items and len(tensors) == len(items)
        else (context.default_return_type)
    )


def _is_zero(found: ProperType) -> bool:
    return isinstance(found, LiteralType) and found.value == 0


def distributed(found: Instance) -> Type:
    """Return a tensor of one shape or another as one tensor or another."""
    shape = get_proper_type(found.args[0])
    if not isinstance(shape, UnionType):
        return found
    tensors = [found.copy_modified(args=[one, *found.args[1:]]) for one in shape.items]
    return UnionType(tensors, found.line, found.column)


def _items(found: Type) -> list[Instance]:
    """Return the layers or tensors in a tuple; nothing where something else is in it."""
    proper = get_proper_type(found)
    if is_endless(found) or not isinstance(proper, TupleType):
        return []
    items = map(get_proper_type, proper.items)
    found_items = [one for one in items if isinstance(one, Instance) and has_dims(one)]
    return found_items if len(found_items) == len(proper.items) else []


def _known(joined: ProperType, items: list[Instance]) -> Type:
    if not isinstance(joined, Instance) or joined.type.fullname != "builtins.object" or not items:
        return joined
    by_class: dict[str, list[Instance]] = {}
    for one in items:
        by_class.setdefault(one.type.fullname, []).append(one)
    return UnionType.make_union([_opened(*several) for several in by_class.values()])


def _opened(first: Instance, *others: Instance) -> Instance:
    """Return a type with open dims, and shapes, where those of one class differ."""
    args = [
        one if all(one == other.args[place] for other in others) else ANYTHING
        for place, one in enumerate(first.args)
    ]
    return first.copy_modified(args=args)
