"""Where the boxes go: apart from each other, below what they read, chains straight."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tapetensor.pictures import Op
from tapetensor.pictures.layout import HEIGHT, WIDTH, Layout, layout


def random_ops(seed: int, count: int) -> list[Op]:
    """Return ops of which each reads up to three of those before."""
    rng = np.random.default_rng(seed)
    ops = [Op(0, "x", is_input=True)]
    for key in range(1, count):
        operands = rng.integers(max(0, key - 12), key, size=rng.integers(0, 4))
        ops.append(Op(key, "op", tuple(operands.tolist()), is_input=operands.size == 0))
    return ops


def layers(placed: Layout) -> list[list[float]]:
    """Return the sorted x of each layer."""
    heights = sorted({y for _, y in placed.centers.values()})
    return [sorted([x for x, at in placed.centers.values() if at == y]) for y in heights]


@pytest.mark.parametrize("seed", range(5))
def test_no_two_boxes_overlap_and_all_are_inside(seed: int) -> None:
    placed = layout(random_ops(seed, 80))

    for layer in layers(placed):
        assert all(right - left >= WIDTH for left, right in pairwise(layer))
    assert min(x for x, _ in placed.centers.values()) >= WIDTH / 2
    assert max(x for x, _ in placed.centers.values()) <= placed.width - WIDTH / 2
    assert max(y for _, y in placed.centers.values()) == placed.height - HEIGHT / 2


@pytest.mark.parametrize("seed", range(5))
def test_every_op_is_below_its_operands_and_every_edge_joins_its_two(seed: int) -> None:
    ops = random_ops(seed, 80)
    placed = layout(ops)

    for op in ops:
        for operand in op.operands:
            assert placed.centers[operand][1] < placed.centers[op.key][1]
    assert {(edge.source, edge.target) for edge in placed.edges} == {
        (operand, op.key) for op in ops for operand in op.operands
    }
    for edge in placed.edges:
        ends = placed.centers[edge.source], placed.centers[edge.target]
        assert (edge.points[0], edge.points[-1]) == ends


def test_an_edge_over_many_layers_is_an_arc_and_a_short_one_has_a_lane() -> None:
    ops = [Op(0, "x", is_input=True), *[Op(key, "exp", (key - 1,)) for key in range(1, 12)]]

    placed = layout([*ops, Op(12, "mul", (11, 1)), Op(13, "mul", (12, 9))])

    by_ends = {(edge.source, edge.target): edge for edge in placed.edges}
    assert by_ends[1, 12].is_arc
    assert not by_ends[9, 13].is_arc
    lanes = by_ends[9, 13].points[1:-1]
    assert len(lanes) == 3
    boxes = placed.centers.values()
    assert all(abs(x - box) > WIDTH / 2 for x, y in lanes for box, at in boxes if at == y)
