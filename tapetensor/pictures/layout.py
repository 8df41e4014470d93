"""Where the boxes of a graph go: in layers, operands above, with few crossings and short edges.

After Sugiyama, Tagawa and Toda (1981), "Methods for visual understanding of hierarchical system
structures": layers by the longest path, orders by barycenters. Within its order a layer is placed
by least squares (isotonic regression), as near as it gets to what it is connected with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tapetensor.pictures.graph import Op

WIDTH, HEIGHT = 176, 44
_BESIDE, _BELOW = 20, 40
# The room that an edge takes on its way through a layer.
_LANE = 14
# An edge through more layers than that is drawn as one arc at the side: with a place in every layer
# between, the tensors that a backward pass reads again would push everything else apart.
_ROUTED = 6
_SWEEPS = 8
# How much an input counts against an op where both want the same place: ops form straight chains,
# and their weights stand beside them.
_PULL_OF_INPUT = 0.02

Point = tuple[float, float]


@dataclass(frozen=True)
class Edge:
    """A line from an operand to the op that reads it, and where it goes through."""

    source: int
    target: int
    points: tuple[Point, ...]
    is_arc: bool


@dataclass(frozen=True)
class Layout:
    """The centers of the boxes by key, the edges, and the size of it all."""

    centers: dict[int, Point]
    edges: list[Edge]
    width: float
    height: float


@dataclass(eq=False, slots=True)
class _Item:
    """A box, or the place of an edge in a layer that it passes."""

    layer: int
    room: float
    pull: float = 1.0
    x: float = 0.0
    above: list[_Item] = field(default_factory=list)
    below: list[_Item] = field(default_factory=list)


def layout(ops: Sequence[Op]) -> Layout:
    """Return where everything goes; `ops` come after their operands."""
    layer_of = _layers(ops)
    items = {}
    for op in ops:
        pull = _PULL_OF_INPUT if op.is_input else 1.0
        items[op.key] = _Item(layer_of[op.key], WIDTH + _BESIDE, pull)
    all_items = list(items.values())
    routes: list[tuple[int, int, list[_Item]]] = []
    for op in ops:
        for operand in dict.fromkeys(op.operands):
            first, last = items[operand], items[op.key]
            way = [first, last]
            if last.layer - first.layer <= _ROUTED:
                lanes = [_Item(layer, _LANE) for layer in range(first.layer + 1, last.layer)]
                all_items += lanes
                way = [first, *lanes, last]
                for upper, lower in pairwise(way):
                    upper.below.append(lower)
                    lower.above.append(upper)
            routes.append((operand, op.key, way))
    layers: list[list[_Item]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for item in all_items:
        layers[item.layer].append(item)
    _order(layers)
    _place(layers)
    left = min([item.x - item.room / 2 for item in all_items], default=0.0)
    right = max([item.x + item.room / 2 for item in all_items], default=0.0)

    def center(item: _Item) -> Point:
        return round(item.x - left, 1), item.layer * (HEIGHT + _BELOW) + HEIGHT / 2

    edges = []
    for source, target, way in routes:
        is_arc = way[1].layer - way[0].layer > _ROUTED
        edges.append(Edge(source, target, tuple([center(one) for one in way]), is_arc))
    height = len(layers) * (HEIGHT + _BELOW) - _BELOW
    centers = {key: center(item) for key, item in items.items()}
    return Layout(centers, edges, right - left, max(0, height))


def _layers(ops: Sequence[Op]) -> dict[int, int]:
    """Return the layer of every op: below its operands, and inputs just above their first use."""
    layer_of: dict[int, int] = {}
    for op in ops:
        layer_of[op.key] = 1 + max([layer_of[operand] for operand in op.operands], default=0)
    first_use: dict[int, int] = {}
    for op in ops:
        for operand in op.operands:
            first_use[operand] = min(first_use.get(operand, layer_of[op.key]), layer_of[op.key])
    for op in ops:
        if not op.operands:
            layer_of[op.key] = first_use.get(op.key, 1) - 1
    top = min(layer_of.values(), default=0)
    return {key: layer - top for key, layer in layer_of.items()}


def _order(layers: list[list[_Item]]) -> None:
    """Sort every layer by the mean position of the neighbours, downwards and upwards in turn."""
    for layer in layers:
        _number(layer)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            layer.sort(key=_mean_above if downwards else _mean_below)
            _number(layer)


def _number(layer: list[_Item]) -> None:
    for position, item in enumerate(layer):
        item.x = position - len(layer) / 2


def _mean_above(item: _Item) -> float:
    return _mean(item.above, item.x)


def _mean_below(item: _Item) -> float:
    return _mean(item.below, item.x)


def _mean(others: list[_Item], default: float) -> float:
    if not others:
        return default
    total = sum([other.pull for other in others])
    return sum([other.pull * other.x for other in others]) / total


def _place(layers: list[list[_Item]]) -> None:
    """Give every item its x, in the order of its layer."""
    for layer in layers:
        _near(layer, lambda _: 0.0)
    for sweep in range(_SWEEPS):
        wanted = _mean_above if sweep % 2 == 0 else _mean_below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _near(layer, wanted)
    for layer in layers:
        _near(layer, lambda item: _mean(item.above + item.below, item.x))


def _near(layer: list[_Item], wanted: Callable[[_Item], float]) -> None:
    """Put a layer where the squares of the distances from the wanted places sum to the least."""
    offsets = []
    end = 0.0
    for item in layer:
        offsets.append(end + item.room / 2)
        end += item.room
    # Pool adjacent violators: blocks of neighbours that touch share their mean.
    blocks: list[tuple[float, float, int]] = []
    for item, offset in zip(layer, offsets, strict=True):
        mean, pull, count = wanted(item) - offset, item.pull, 1
        while blocks and blocks[-1][0] > mean:
            earlier, its_pull, size = blocks.pop()
            mean = (mean * pull + earlier * its_pull) / (pull + its_pull)
            pull, count = pull + its_pull, count + size
        blocks.append((mean, pull, count))
    starts = [mean for mean, _, count in blocks for _ in range(count)]
    for item, offset, start in zip(layer, offsets, starts, strict=True):
        item.x = start + offset
