"""The names of one value: after ``y = x``, or ``pair = x, y``, a move of either spends both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mypy.types import TupleType

from tapetensor.mypy_plugin.moves.effects import Effects
from tapetensor.mypy_plugin.moves.graph import Graph
from tapetensor.mypy_plugin.moves.keys import (
    EACH,
    Fields,
    Key,
    is_constant,
    item_of,
    prefixes,
    replaced,
    root,
    taken_from,
)
from tapetensor.mypy_plugin.moves.lasting import attribute, is_carried, item
from tapetensor.mypy_plugin.moves.owners import is_container
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.points import Link, Pass, Point

# So many names of one value are followed.
_MOST = 24


class Value(NamedTuple):
    """A key that names the value at a point.

    Attributes:
        key: the key.
        by: the link through which it does so by some ways to the point only; None if by all.
        loop: the loop, if it does so in one of the passes, and it is not said in which.
    """

    key: Key
    by: Link | None = None
    loop: Pass | None = None


class Aliases:
    """The keys of a function that stand for one value at a point."""

    def __init__(self, graph: Graph, paths: Paths, effects: Effects) -> None:
        self._graph = graph
        self._paths = paths
        self._effects = effects
        # mypy comes to know more, so only what holds is kept.
        self._held: set[tuple[Link, Point]] = set()

    def values(self, key: Key, at: Point) -> list[Value]:
        """Return the keys that name, at a point, what one key names there, that one first."""
        self._look_at_taken_out()
        found = {key: Value(key)}
        pending = [found[key]]
        while pending and len(found) < _MOST:
            value = pending.pop(0)
            for other in self._others(value, at):
                is_surer = other.key in found and found[other.key].by and not other.by
                if other.key not in found or is_surer:
                    found[other.key] = other
                    pending.append(other)
        return sorted(found.values(), key=lambda one: one.by is not None)

    def _look_at_taken_out(self) -> None:
        """Note the other names of what is taken out of containers: only they will name it."""
        pending, self._graph.taken_out = self._graph.taken_out, []
        for link in pending:
            source = self.canonical(link.source)
            if source is None:
                # mypy has not come to the container.
                self._graph.taken_out.append(link)
                continue
            self._graph.links += [
                Link(link.target, one.key, link.point, link.node, one.by)
                for one in self.values(source, link.point)
                if one.key != source
                and root(one.key) is not link.node
                and (one.by is None or self._is_put_before(one.by, link.point))
            ]

    def _is_put_before(self, put: Link, at: Point) -> bool:
        """Tell whether a link puts a value into a container, and no decision leads on from there.

        That of a loop may do so, of which it was the last pass.
        """
        is_put = put.point in self._graph.put_at.get(put.target, ())
        return is_put and all(one.loop or one in at.regions for one in put.point.regions)

    def _others(self, value: Value, at: Point) -> Iterator[Value]:
        """Yield the keys that one link away name the same, or what is in it."""
        for link in self._graph.links:
            if isinstance(link.source[-1], Fields):
                yield from self._of_other_record(value, link, at)
                continue
            target, source = self.canonical(link.target), self.canonical(link.source)
            if target is None or source is None:
                continue
            for part, by in ((target, source), (source, target)):
                key = replaced(value.key, part, by)
                if key is not None and len([*prefixes(key)]) <= len([*prefixes(value.key)]) + 2:
                    yield from self._linked(value, key, link, at)
            if value.key[0] == target[0] == source[0] == "item" and target[2] is source[2] is EACH:
                # A copy of a container has the same items in the same order.
                for base, other in ((target[1], source[1]), (source[1], target[1])):
                    if value.key[1] == base:
                        yield from self._linked(value, item_of(other, value.key[2]), link, at)
            if value.key[0] == "item" and value.key[2] is EACH:
                base = value.key[1]
                if target[0] == "item" and target[1] == base:
                    yield from self._linked(value, source, link, at)

    def _of_other_record(self, value: Value, link: Link, at: Point) -> Iterator[Value]:
        """Yield the field of a record that a changed copy has, or the other way round."""
        for one, other in ((link.target, link.source), (link.source, link.target)):
            key = self._carried(value.key, one, other)
            if key is not None:
                yield from self._linked(value, key, link, at)

    def _carried(self, key: Key, one: Key, other: Key) -> Key | None:
        """Return the key of what another record, or container, has of what a key names."""
        if key[0] == "name":
            return None
        base, new = self.canonical(one[1]), self.canonical(other[1])
        if base is None or new is None:
            return None
        kind, owner, field = key
        if owner == base:
            owned, meant = self._effects.type_at(base), one[2]
            # A field of a named tuple is an item.
            if one[0] == "member" and (kind == "member" or isinstance(owned, TupleType)):
                return (kind, new, field) if is_carried(owned, field, meant.others) else None
            if kind == one[0]:
                return (kind, new, field) if meant.have(field) and is_container(owned) else None
        inner = self._carried(owner, one, other)
        return None if inner is None else (kind, inner, field)

    def renamed(self, key: Key, link: Link) -> tuple[Key, Key] | None:
        """Return what of the value of a key has another name by a link, and that name."""
        if isinstance(link.source[-1], Fields):
            found = self._carried(key, link.source, link.target)
            return None if found is None else (key, found)
        new, same = (taken_from(key, link.source, one) for one in (link.target, link.source))
        return None if new is None or same is None else (same, new)

    def _linked(self, value: Value, key: Key, link: Link, at: Point) -> Iterator[Value]:
        is_of_result = link.node is not None and root(link.source) is link.node
        is_put = any(link.point in points for points in self._graph.changed_at.values())
        if self._graph.kills(link.point, link.source) and not is_of_result and not is_put:
            # In `a, b = b, a` the values have the other names afterwards.
            return
        if link.after is None and self._holds(link, at):
            yield Value(key, value.by)
        elif (
            (value.by is None or value.by.point is link.point)
            and at.fragment is link.point.fragment
            and self._paths.leads(link.point, at, link.target, link.source)
        ):
            yield Value(key, value.by or link)

    def holds_one_twice(self, container: Key, at: Point) -> bool:
        """Tell whether two items of a container are one tensor."""
        sources: dict[Key, list[Key]] = {}
        for link in self._graph.links:
            if link.target[:2] == ("item", container) and self._holds(link, at):
                is_within = link.source[:2] == ("item", container) and link.source[2] is not EACH
                # What is counted from the end may be the same item, and has its own index, too.
                if is_within and _is_from_end(link.target) == _is_from_end(link.source):
                    return True
                sources.setdefault(link.source, []).append(link.target)
        return any(
            sum(not _is_from_end(one) for one in targets) > 1 for targets in sources.values()
        )

    def canonical(self, key: Key) -> Key | None:
        """Return the key of what a key of the text names; None if it may change unseen."""
        if key[0] == "name":
            return key
        base = self.canonical(key[1])
        if base is None:
            return None
        owner = self._effects.type_at(base)
        return (item if key[0] == "item" else attribute)(base, owner, key[2])

    def _holds(self, link: Link, at: Point) -> bool:
        if (link, at) in self._held:
            return True
        point = at
        while point.fragment is not link.point.fragment:
            outer = point.fragment.outer
            if outer is None or any(
                self._paths.is_rebound_after(outer, key) or not self._effects.is_fixed(key, outer)
                for key in (link.target, link.source)
            ):
                return False
            point = outer
        held = self._paths.holds(link, point)
        if held:
            self._held.add((link, at))
        return held


def _is_from_end(item: Key) -> bool:
    """Tell whether the key of an item counts from the end of its container."""
    return item[0] == "item" and isinstance(item[2], int) and item[2] < 0


def common(one: Key, other: Key) -> Key | None:
    """Return the key of what two keys both name: the same, or an item of all; None if nothing."""
    if one == other:
        return one if is_constant(one) else None
    if one[0] == "name" or one[0] != other[0]:
        return None
    base = one[1] if one[1] == other[1] else common(one[1], other[1])
    if base is None:
        return None
    if one[2] == other[2]:
        return (one[0], base, one[2])
    if one[0] == "item" and EACH in (one[2], other[2]):
        return item_of(base, other[2] if one[2] is EACH else one[2])
    return None
