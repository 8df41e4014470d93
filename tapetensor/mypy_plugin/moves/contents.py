"""What containers and objects hold: which parts of a value are other names of which values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from mypy.nodes import (
    ARG_STAR2,
    AwaitExpr,
    CallExpr,
    DictExpr,
    Expression,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    RefExpr,
    SliceExpr,
    StarExpr,
    StrExpr,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
)
from mypy.patterns import (
    AsPattern,
    ClassPattern,
    MappingPattern,
    Pattern,
    SequencePattern,
    StarredPattern,
)

from tapetensor.mypy_plugin.moves.keys import (
    EACH,
    Chosen,
    Fields,
    Key,
    Passed,
    index_of,
    item_of,
    key_of,
    place,
    prefixes,
)
from tapetensor.mypy_plugin.moves.records import fields_of, names_of_fields

# Builtins whose result has the items of their argument.
_KEEPERS: Final = frozenset(
    {f"builtins.{name}" for name in ("list", "tuple", "reversed", "iter", "set", "sorted")}
    | {"copy.copy"}
)
# Classes and functions whose result has them in the same order.
_COPIERS: Final = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.dict", "copy.copy"}
    | {"collections.deque", "collections.OrderedDict"}
)
# Methods of containers that return an item.
_GETTERS: Final = frozenset({"get", "get_nowait", "pop", "popleft"})
# Functions that return an item of their first argument.
_CHOOSERS: Final = frozenset(
    {"builtins.max", "builtins.min", "builtins.next", "heapq.heappop", "_heapq.heappop"}
)
# So many items of a slice without an end are followed.
_MOST: Final = 4


class Loop(NamedTuple):
    """What a loop gives one of its targets.

    Attributes:
        base: the container.
        item: the target that is given an item of it.
        number: the target that is given the index of the item.
        whole: whether the loop comes to every item.
        first: the index of the item with which it begins; None if that is not known.
        most: how many items it comes to at most, if a number says that.
    """

    base: Expression
    item: Expression | None
    number: Expression | None = None
    whole: bool = True
    first: int | None = 0
    most: int | None = None


def parts_of(target: Key, value: Expression) -> Iterator[tuple[Key, Key]]:
    """Yield the keys that are other names of values after an assignment, with those of the values.

    Args:
        target: what is assigned to.
        value: what it is assigned.
    """
    source = key_of(value)
    if source is not None:
        yield target, source
        return
    result: Key = ("name", value)
    match value:
        case TupleExpr(items=items) | ListExpr(items=items):
            yield from _items(target, items)
        case OpExpr(op="*", left=ListExpr(items=[item]), right=IntExpr(value=number)):
            yield from _items(target, [item] * min(number, 2))
        case OpExpr(op="+", left=left, right=right):
            yield from _joined(target, left, 1)
            yield from _joined(target, right, -1)
        case DictExpr() | OpExpr(op="|"):
            yield from merged(target, _entries(value))
        case CallExpr(callee=RefExpr(fullname="builtins.dict")) if ARG_STAR2 in value.arg_kinds or (
            len(value.args) > 1
        ):
            yield from merged(target, given_entries(value))
        case CallExpr(callee=RefExpr(fullname=name), args=[inner, *_]) if name in _COPIERS:
            yield from parts_of(target, inner) if place(inner) is None else _copied(target, inner)
        case CallExpr(callee=MemberExpr(expr=inner, name="copy"), args=[]) if key_of(inner):
            yield from _copied(target, inner)
        case (
            CallExpr(callee=RefExpr(fullname="dataclasses.replace"), args=[inner, *_])
            | CallExpr(callee=MemberExpr(expr=inner, name="_replace"))
        ):
            if result != target:
                yield target, result
            yield from _replaced(target, inner, value)
        case CallExpr(callee=RefExpr(node=TypeInfo() as info)):
            if result != target and info.module_name != "builtins":
                yield target, result
            for path, item in fields_of(info, value):
                yield from parts_of((path[0], target, path[1]), item)
        case AwaitExpr(expr=inner):
            yield from parts_of(target, inner)
        case CallExpr() if result != target:
            # What it returns is looked into where it is called.
            yield target, result
        case CallExpr(callee=MemberExpr(expr=inner, name=name), args=args) if name in _GETTERS:
            held, which = place(inner), _got(name, args)
            if held is not None and which is not None:
                yield target, item_of(held, which)
        case CallExpr(callee=RefExpr(fullname=name), args=[inner, *_]) if name in _CHOOSERS:
            several = place(inner)
            if several is not None and value.arg_names[1:] in ([], ["key"]):
                yield target, item_of(several, Chosen())
        case CallExpr(callee=RefExpr(fullname="builtins.sorted"), args=[inner, *_]):
            if (several := place(inner)) is not None:
                yield item_of(target, Passed()), item_of(several, EACH)
        case IndexExpr(base=inner, index=SliceExpr(begin_index=None, end_index=None, stride=None)):
            yield from _copied(target, inner)
        case IndexExpr(base=inner, index=SliceExpr(begin_index=None, end_index=None)):
            if (several := place(inner)) is not None:
                yield item_of(target, Passed()), item_of(several, EACH)
        case IndexExpr(base=inner, index=SliceExpr() as cut) if place(inner) is not None:
            for position, number in enumerate(cut_out(cut)):
                source = place(inner)
                if source is not None:
                    yield item_of(target, position), item_of(source, number)


_Entry: TypeAlias = tuple[Expression | str | None, Expression]


def _entries(value: Expression) -> list[_Entry]:
    """Return what is in a dict, in the order in which it gets there.

    What has no name is a dict whose entries are among them.
    """
    match value:
        case DictExpr(items=pairs):
            return [*pairs]
        case OpExpr(op="|", left=left, right=right):
            return [*_entries(left), *_entries(right)]
    return [(None, value)]


def given_entries(call: CallExpr) -> list[_Entry]:
    """Return what a call of `dict` or `update` is given."""
    given = zip(call.args, call.arg_names, strict=True)
    return [one for arg, name in given for one in ([(name, arg)] if name else _entries(arg))]


def merged(target: Key, entries: list[_Entry]) -> Iterator[tuple[Key, Key]]:
    """Yield the parts of a dict that is made of others: the last one of a name is in it."""
    others: set[str | int] = set()
    for name, item in reversed(entries):
        index = name.value if isinstance(name, StrExpr | IntExpr) else name
        if isinstance(index, str | int):
            if index not in others:
                yield from parts_of(item_of(target, index), item)
            others.add(index)
            continue
        source = place(item)
        if name is None and source is not None:
            every = Fields(frozenset(others))
            yield item_of(target, every), item_of(source, every)
        # It may have any names, which say that others are not in the result.
        return


def _joined(target: Key, several: Expression, side: int) -> Iterator[tuple[Key, Key]]:
    """Yield the items of a list that it has of one of two, as counted from the side of that."""
    source = place(several)
    if source is not None:
        yield item_of(target, Fields(side=side)), item_of(source, Fields(side=side))
        yield item_of(target, Passed()), item_of(source, EACH)
    elif isinstance(several, ListExpr):
        for key, item in _items(target, several.items):
            if any(one[:2] == ("item", target) and _counts(one[2], side) for one in prefixes(key)):
                yield key, item


def _counts(index: object, side: int) -> bool:
    return not isinstance(index, int) or (index < 0) == (side < 0)


def _replaced(target: Key, source: Expression, call: CallExpr) -> Iterator[tuple[Key, Key]]:
    """Yield what a changed copy of a record has of the record, and what is new in it."""
    new = {name: value for name, value in zip(call.arg_names, call.args, strict=True) if name}
    base = place(source)
    if base is not None and ARG_STAR2 not in call.arg_kinds:
        every = Fields(frozenset(new))
        yield ("member", target, every), ("member", base, every)
    for name, value in new.items():
        yield from parts_of(("member", target, name), value)


def _got(name: str, args: list[Expression]) -> object:
    """Return the index of the item that a method of a container returns; None if not known."""
    match args:
        case []:
            return {"pop": -1, "popleft": 0, "get": 0, "get_nowait": 0}.get(name)
        case [at] | [at, NameExpr(fullname="builtins.None")] if name != "popleft":
            return index_of(at)
    return None


def _has_all(cut: Expression) -> bool:
    """Tell whether a slice has all items, in whatever order."""
    match cut:
        case SliceExpr(begin_index=None, end_index=None, stride=stride):
            return stride is None or index_of(stride) in (1, -1)
    return False


def cut_out(cut: SliceExpr) -> range:
    """Return the indices of the items of a slice, of one without an end those of the first few.

    One that ends before the last item has at least one. Of one that has all items, and of one with
    other bounds than numbers, it returns none.
    """
    match cut:
        case SliceExpr(begin_index=None, end_index=None):
            return range(0)
        case SliceExpr(
            begin_index=UnaryExpr(op="-", expr=IntExpr(value=count)), end_index=None, stride=None
        ):
            return range(-min(count, _MOST), 0)
        case SliceExpr(begin_index=None | IntExpr(), end_index=None | IntExpr(), stride=None):
            first = cut.begin_index.value if isinstance(cut.begin_index, IntExpr) else 0
            end = cut.end_index.value if isinstance(cut.end_index, IntExpr) else first + _MOST
            return range(first, end)
        case SliceExpr(
            begin_index=None | IntExpr(), end_index=UnaryExpr(op="-", expr=IntExpr()), stride=None
        ):
            first = cut.begin_index.value if isinstance(cut.begin_index, IntExpr) else 0
            return range(first, first + 1)
    return range(0)


def _copied(target: Key, container: Expression) -> Iterator[tuple[Key, Key]]:
    """Yield what says that a new container has the items of another one."""
    source = place(container)
    if source is not None:
        yield item_of(target, EACH), item_of(source, EACH)


def _items(target: Key, items: list[Expression]) -> Iterator[tuple[Key, Key]]:
    """Yield the parts of a display, as counted from the start and from the end."""
    for position, item in enumerate(items):
        if isinstance(item, StarExpr):
            break
        yield from parts_of(item_of(target, position), item)
    for position, item in enumerate(items):
        source = place(item.expr) if isinstance(item, StarExpr) else None
        if source is not None:
            yield item_of(target, Passed()), item_of(source, EACH)
            for side, is_at_end in ((1, item is items[0]), (-1, position == len(items) - 1)):
                if is_at_end:
                    every = Fields(side=side)
                    yield item_of(target, every), item_of(source, every)
    for position, item in enumerate(reversed(items), 1):
        if isinstance(item, StarExpr):
            break
        yield from parts_of(item_of(target, -position), item)


def unpacked(target: TupleExpr | ListExpr, base: Key) -> Iterator[tuple[Expression, Key]]:
    """Yield the parts of a target with the items that they are given: ``a, b = pair``."""
    for position, part in enumerate(target.items):
        if isinstance(part, StarExpr):
            break
        yield part, item_of(base, position)
    else:
        return
    for position, part in enumerate(reversed(target.items), 1):
        if isinstance(part, StarExpr):
            break
        yield part, item_of(base, -position)


def rest_of(target: TupleExpr | ListExpr, base: Key) -> Iterator[tuple[Key, Key]]:
    """Yield the first items of the list that is given what is left: ``first, *rest = items``."""
    for position, part in enumerate(target.items):
        rest = key_of(part.expr) if isinstance(part, StarExpr) else None
        if rest is not None:
            for number in range(_MOST):
                yield item_of(rest, number), item_of(base, position + number)


def loops_over(target: Expression, items: Expression) -> Iterator[Loop]:
    """Yield what the targets of a loop are given."""
    match items, target:
        case CallExpr(callee=MemberExpr(expr=owner, name="values"), args=[]), _:
            yield Loop(owner, target, first=None)
        case CallExpr(callee=MemberExpr(expr=owner, name="keys"), args=[]), _:
            yield Loop(owner, None, target, first=None)
        case (
            CallExpr(callee=MemberExpr(expr=owner, name="items"), args=[]),
            TupleExpr(items=[name, value]),
        ):
            yield Loop(owner, value, name, first=None)
        case (
            CallExpr(callee=RefExpr(fullname="builtins.enumerate"), args=[inner]),
            TupleExpr(items=[number, value]),
        ):
            for one in loops_over(value, inner):
                yield one._replace(number=number)
        case (
            CallExpr(callee=RefExpr(fullname="builtins.enumerate"), args=[inner, *_]),
            TupleExpr(items=[_, value]),
        ):
            yield from loops_over(value, inner)
        case CallExpr(callee=RefExpr(fullname="itertools.islice"), args=[inner, _]), _:
            several = items.args[1]
            count = several.value if isinstance(several, IntExpr) else None
            for one in loops_over(target, inner):
                yield one._replace(whole=one.whole and count is not None, most=count)
        case (
            CallExpr(callee=RefExpr(fullname="builtins.reversed"), args=[inner])
            | IndexExpr(
                base=inner,
                index=SliceExpr(
                    begin_index=None,
                    end_index=None,
                    stride=UnaryExpr(op="-", expr=IntExpr(value=1)),
                ),
            ),
            _,
        ):
            for one in loops_over(target, inner):
                yield one._replace(first=None if one.first is None else -1 - one.first)
        case (
            CallExpr(callee=RefExpr(fullname="builtins.sorted"), args=[inner, *_])
            | IndexExpr(base=inner, index=SliceExpr(begin_index=None, end_index=None)),
            _,
        ):
            for one in loops_over(target, inner):
                yield one._replace(first=None, whole=one.whole and isinstance(items, CallExpr))
        case (
            CallExpr(callee=RefExpr(fullname="builtins.list" | "builtins.tuple"), args=[inner]),
            _,
        ):
            yield from loops_over(target, inner)
        case CallExpr(callee=RefExpr(fullname="builtins.zip"), args=several), TupleExpr(
            items=items_of_target
        ) if len(several) <= len(items_of_target) + 1:
            # The shortest one decides where a `zip` ends: it comes to the first item of each.
            for inner, part in zip(several, items_of_target, strict=False):
                for one in loops_over(part, inner):
                    is_cut = not _is_strict(items)
                    yield (
                        one._replace(most=1, whole=one.whole and one.first == 0) if is_cut else one
                    )
        case CallExpr(callee=RefExpr(fullname="builtins.range"), args=[count]), _:
            match count:
                case CallExpr(callee=RefExpr(fullname="builtins.len"), args=[inner]):
                    yield Loop(inner, None, target)
        case _:
            # Of a list it is given the items, of a dict the keys.
            yield Loop(items, target, target)


def is_of_neighbours(items: Expression) -> bool:
    """Tell whether a loop is given each two neighbours of a list, as by ``zip(x, x[1:])``."""
    match items:
        case CallExpr(callee=RefExpr(fullname="itertools.pairwise")):
            return True
        case CallExpr(
            callee=RefExpr(fullname="builtins.zip"),
            args=[
                first,
                IndexExpr(base=rest, index=SliceExpr(begin_index=IntExpr(value=1), stride=None)),
                *_,
            ],
        ):
            match first:
                case IndexExpr(base=most, index=SliceExpr(begin_index=None, stride=None)):
                    first = most
            return place(rest) is not None and place(first) == place(rest)
    return False


def _is_strict(call: CallExpr) -> bool:
    given = zip(call.arg_names, call.args, strict=True)
    return any(
        name == "strict" and isinstance(value, NameExpr) and value.name == "True"
        for name, value in given
    )


def wholes(expression: Expression) -> Iterator[Expression]:
    """Yield the containers whose items are all in the value of an expression."""
    if isinstance(expression, StarExpr):
        expression = expression.expr
    if key_of(expression) is not None:
        yield expression
        return
    match expression:
        case CallExpr(callee=RefExpr(fullname=name), args=[inner, *_]) if name in _KEEPERS:
            yield from wholes(inner)
        case CallExpr(callee=MemberExpr(expr=owner, name="values" | "copy"), args=[]):
            yield from wholes(owner)
        case OpExpr(op="+", left=left, right=right):
            yield from wholes(left)
            yield from wholes(right)
        case IndexExpr(base=inner, index=SliceExpr() as cut) if _has_all(cut):
            yield from wholes(inner)
        case ListComprehension(generator=GeneratorExpr() as inner) | (GeneratorExpr() as inner):
            match inner:
                case GeneratorExpr(
                    left_expr=NameExpr(node=item),
                    indices=[NameExpr(node=index)],
                    sequences=[sequence],
                    condlists=[[]],
                ) if item is index:
                    yield from wholes(sequence)
        case CallExpr():
            yield expression


def captured(pattern: Pattern, subject: Expression | Key) -> Iterator[tuple[NameExpr, Key]]:
    """Yield the names that a pattern binds, with the part of the subject that each is."""
    key = subject if isinstance(subject, tuple) else place(subject)
    match pattern:
        case AsPattern(pattern=inner, name=name):
            if name is not None and key is not None:
                yield name, key
            if inner is not None:
                yield from captured(inner, subject)
        case SequencePattern(patterns=patterns):
            for position, one in enumerate(patterns):
                if isinstance(one, StarredPattern):
                    break
                displayed = subject.items if isinstance(subject, TupleExpr | ListExpr) else []
                is_plain = not any(isinstance(item, StarExpr) for item in displayed)
                if position < len(displayed) and is_plain:
                    yield from captured(one, displayed[position])
                elif key is not None:
                    yield from captured(one, item_of(key, position))
        case MappingPattern(keys=names, values=values):
            shown = subject.items if isinstance(subject, DictExpr) else []
            held = {name.value: item for name, item in shown if isinstance(name, StrExpr | IntExpr)}
            for text, one in zip(names, values, strict=True):
                if isinstance(text, StrExpr | IntExpr) and text.value in held:
                    yield from captured(one, held[text.value])
                elif isinstance(text, StrExpr | IntExpr) and key is not None:
                    yield from captured(one, item_of(key, text.value))
        case ClassPattern(keyword_keys=names, keyword_values=values) if key is not None:
            for field, one in zip(names, values, strict=True):
                yield from captured(one, ("member", key, field))
            declared = pattern.class_ref.node
            known = names_of_fields(declared)
            for field, one in zip(known, pattern.positionals, strict=False):
                yield from captured(one, ("member", key, field))
