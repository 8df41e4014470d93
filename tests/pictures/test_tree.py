"""A graph of ops as text, and as boxes on a page."""

from __future__ import annotations

import io
import sys
from itertools import pairwise

import numpy as np
import pytest

from tapetensor.pictures import Graph, Op, Place, tree
from tapetensor.pictures.layout import HEIGHT, WIDTH, Layout, layout

FLOAT32 = np.dtype(np.float32)


def diamond() -> Graph:
    """Return a residual block: an input, two ops in a row and their sum with what they began at."""
    return Graph(
        "block",
        [
            Op(1, "x", shape=(2, 3), dtype=FLOAT32, is_input=True),
            Op(2, "exp", (1,), (2, 3), FLOAT32, 2e-6, Place("run.py", 7)),
            Op(3, "log", (2,), (2, 3), FLOAT32),
            Op(4, "sqrt", (3,), (2, 3), FLOAT32),
            Op(5, "add", (2, 4), (2, 3), FLOAT32),
        ],
    )


def test_the_longest_chain_runs_down_without_indent_and_what_is_shown_twice_is_named() -> None:
    assert tree(diamond(), ascii=False) == (
        "block: 4 ops, 1 input, 96 B of results, time 2 us\n"
        "#5 add  (2, 3) float32  24 B\n"
        "├─ #2 exp, shown elsewhere\n"
        "#4 sqrt  (2, 3) float32  24 B\n"
        "#3 log  (2, 3) float32  24 B\n"
        "#2 exp  (2, 3) float32  24 B  2 us  run.py:7\n"
        "└─ x  (2, 3) float32"
    )


def test_a_side_branch_is_indented() -> None:
    ops = [Op(1, "x", is_input=True), Op(2, "a", (1,)), Op(3, "b", (2,)), Op(4, "c", (1,))]

    shown = tree(Graph("two", [*ops, Op(5, "mul", (3, 4))]), ascii=True)

    assert shown.splitlines()[1:] == ["#5 mul", "|- #4 c", "|  `- x", "#3 b", "#2 a", "`- x"]


def test_a_chain_of_ten_thousand_ops_is_shown() -> None:
    ops = [Op(0, "x", is_input=True), *[Op(key, "exp", (key - 1,)) for key in range(1, 10_001)]]

    assert len(tree(Graph("deep", ops)).splitlines()) == 10_002


@pytest.mark.parametrize(("encoding", "stroke"), [("utf-8", "└─ "), ("ascii", "`- ")])
def test_a_terminal_without_unicode_gets_plain_characters(
    encoding: str, stroke: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    graph = Graph("größer", [Op(1, "größe", is_input=True), Op(2, "exp", (1,))])

    print(tree(graph))

    terminal.flush()
    shown = terminal.buffer.getvalue().decode(encoding)
    assert shown.splitlines()[-1].startswith(stroke)
    assert ("gr\\xf6\\xdfe" in shown) == (encoding == "ascii")


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
