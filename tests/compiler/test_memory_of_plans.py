"""Where the values of plans lie, and which are computed again or never written to memory."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import mmap
import platform
import re
import sys
from typing import Any
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.arrays.array import untouched
from tapetensor.compiler import plans
from tapetensor.compiler.emit import blocks
from tapetensor.compiler.emit.steps import planned
from tapetensor.compiler.plan.memory import Arena
from tapetensor.compiler.trace.node import Kind, Node, View
from tapetensor.compiler.trace.operations import write_all
from tapetensor.compiler.trace.program import Program
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.along_axes import row_products
from tests.compiler.test_plans import _titles


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have groups form of small arrays."""
    monkeypatch.setattr(blocks, "BLOCK", 1 << 9)
    monkeypatch.setattr(blocks, "_SMALLEST", 1)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="nothing is advised here")
def test_large_memory_is_had_where_the_system_has_no_huge_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Region(mmap.mmap):
        """Memory of such a system."""

        advised = 0

        @override
        def madvise(self, *_: object) -> None:
            Region.advised += 1
            raise OSError("Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Region)

    zeros = untouched((1 << 10, 1 << 10), np.dtype(np.float32))

    assert Region.advised == 1
    assert zeros.shape == (1 << 10, 1 << 10)
    assert not zeros.any()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is set aside")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="not known there")
def test_memory_that_nobody_writes_to_may_be_more_than_there_is() -> None:
    # The bound of a plan is several times what it needs, and is reserved as a whole.
    zeros = untouched((1 << 42,), np.dtype(np.uint8))
    zeros[-1] = 1
    assert zeros[-1] == 1


class OneWeight(nn.Module):
    """A weight alone."""

    weight: tt.Tensor2D[L[3], L[6]]


def _checked(run: Any, *args: Any) -> Any:
    """Return `run` compiled, after two calls that give what numpy gives."""
    compiled = tt.compile(run)
    for scale in (1.0, 0.5):
        scaled = [arg * scale for arg in args]
        for found, expected in zip(compiled(*scaled), run(*scaled), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            assert found.dtype == expected.dtype
    return compiled


def _random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


def two_groups_with_a_square(x: Any, weight: Any) -> Any:
    """Read a square, and what is squared, before a product and after it."""
    x = x + 1.0
    squares = np.square(x)
    early = np.tanh(squares) * x
    product = early @ weight
    return (np.exp(-squares) * x + product,)


@pytest.mark.usefixtures("small_blocks")
def test_a_cheap_value_is_computed_again_in_each_group_that_reads_its_operands() -> None:
    compiled = _checked(two_groups_with_a_square, _random(64, 32), _random(32, 32))
    groups = [title for title in _titles(compiled) if title.startswith("group of")]

    assert [title.count("square") for title in groups] == [1, 1]
    # What is kept is x + 1, what is multiplied, and the product.
    assert plans(compiled)[0].arena_bytes < 3 * 64 * 32 * 8 + 2 * 4 * 512 * 8 + 1024


@pytest.mark.usefixtures("small_blocks")
def test_a_value_that_leaves_is_computed_once() -> None:
    def run(x: Any, weight: Any) -> Any:
        squares = np.square(x)
        return squares, ((np.tanh(squares) * x) @ weight) + np.exp(-squares) * x

    compiled = _checked(run, _random(64, 32), _random(32, 32))

    assert sum(title.count("square") for title in _titles(compiled)) == 1


@pytest.mark.usefixtures("small_blocks")
def test_a_group_writes_over_an_operand_that_nobody_reads_after_it() -> None:
    def run(x: Any, weight: Any) -> Any:
        hidden = x @ weight
        return ((np.tanh(hidden * 2.0 + 1.0) * hidden) @ weight,)

    compiled = _checked(run, _random(512, 64), _random(64, 64))

    # One value, and scratch for a block.
    assert plans(compiled)[0].arena_bytes == (512 * 64 + 512) * 8


@pytest.mark.usefixtures("small_blocks")
def test_a_group_keeps_an_operand_of_which_a_later_row_is_read() -> None:
    def run(x: Any, weight: Any) -> Any:
        hidden = x @ weight
        first = np.tanh(hidden[:64] * 2.0) + hidden[64:]
        repeated = np.exp(hidden) + hidden[-1]
        return first @ weight, repeated @ weight

    _checked(run, _random(128, 64), _random(64, 64) * 0.1)


def test_a_step_works_in_place_on_what_was_reshaped() -> None:
    def run(x: Any, weight: Any) -> Any:
        return (np.tanh((x @ weight).reshape(64, 16, 8)).sum(),)

    compiled = _checked(run, _random(64, 32), _random(32, 128))

    assert plans(compiled)[0].arena_bytes <= 64 * 128 * 8 + 64 * 16 * 8 + 64


def test_the_gradients_of_the_parts_of_a_parameter_are_computed_in_place() -> None:
    def run(model: Any, optimizer: Any, x: Any) -> Any:
        first, second = model.weight.retaped(tt.OwnedTape).split([2, 4], 1)
        hidden = (x @ first).tanh() @ tt.ones((2, 4))
        optimizer.step((hidden * (x @ second)).sum().backward(wrt=model))

    weights, x = [], tt.from_numpy(_random(5, 3).astype(np.float32))
    compiled = tt.compile(run)
    for call in (run, compiled):
        model = OneWeight(weight=tt.normal((3, 6), rng=np.random.default_rng(1)))
        optimizer = optim.Sgd(model, lr=0.1)
        for _ in range(3):
            call(model, optimizer, x)
        weights.append(model.weight.numpy())

    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-5)
    assert not {"cast", "write_all"} & {*_titles(compiled)}


@pytest.mark.parametrize("shape", [(64,), (9, 64), (3, 5, 64)])
def test_a_sum_of_products_along_rows_is_taken_at_once(shape: tuple[int, ...]) -> None:
    def run(x: Any, y: Any) -> Any:
        return np.vecdot(x, y) * 2.0, row_products(x, x)

    compiled = _checked(run, _random(*shape), _random(*shape) + 1.0)

    assert sorted(_titles(compiled)) == ["allocate", "allocate", "multiply", "vecdot", "vecdot"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("has_product", [True, False])
def test_threads_run_only_where_no_product_is(
    has_product: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_SMALLEST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "count", lambda: 2)

    def run(x: Any) -> Any:
        y = np.tanh(x * 2.0 + 1.0) / 3.0
        return (y @ y.T if has_product else y,)

    # The last block has fewer rows than the others, and each about as many.
    compiled = _checked(run, _random(33, 64))
    (group,) = [step for step in plans(compiled)[0].steps if step.title.startswith("group of")]
    names = plans(compiled)[0]._names

    assert (names.get(group.line.split("(")[0]) is threads.run_together) is not has_product


@pytest.mark.usefixtures("small_blocks")
def test_what_a_group_has_not_at_hand_is_not_computed_again() -> None:
    def run(x: Any, y: Any, z: Any, weight: Any) -> Any:
        scaled = x * y
        first = np.exp(scaled) + 1.0
        return np.matmul(first, weight), np.cos(np.matmul(first, weight) * scaled) + z

    square = _random(64, 64)
    compiled = _checked(run, square, square + 1.0, square - 1.0, square * 0.1)
    groups = [title for title in _titles(compiled) if title.startswith("group")]

    assert sum(title.count("multiply") for title in groups) == 2


@pytest.mark.usefixtures("small_blocks")
def test_a_group_keeps_an_operand_that_every_block_reads_as_a_whole() -> None:
    def run(x: Any, weight: Any, cube: Any) -> Any:
        product = np.matmul(x, weight)
        spread = np.cos(cube * product)
        first = product + 1.0
        return spread.sum(axis=-1), np.matmul(first, weight)

    _checked(run, _random(16, 16), _random(16, 16), _random(16, 16, 16))


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_about_as_large_as_each_other() -> None:
    compiled = _checked(lambda x: (np.exp(np.cos(x)) * x,), _random(9, 64))
    source = plans(compiled)[0].source
    (step,) = [one for one in plans(compiled)[0].steps if one.group]

    # Eight rows fit into a block; five and four are better than eight and one.
    assert re.findall(r"_(\d+)\(", step.line) == ["0", "5"]
    assert source.count("for start, stop") == 2


def test_views_of_views_may_be_as_many_as_a_program_has() -> None:
    program = Program()
    x = program.add(Kind.INPUT, None, (), (3, 2), np.dtype(np.float32))
    whole = program.elementwise(np.add, (x, x), x.dtype)
    turned = View("index", (slice(None, None, -1),))

    def chain() -> Node:
        node = whole
        # More than there may be calls within each other, and an odd number.
        for _ in range(1101):
            node = program.add(Kind.VIEW, turned, (node,), (3, 2), x.dtype, object())
        return node

    written = program.add(Kind.WRITE, write_all, (whole, chain(), 1.0), (3, 2), x.dtype)
    seen = program.add(Kind.VIEW, turned, (written,), (3, 2), x.dtype)
    planner = planned(program, {x: "x"}, [seen])
    assert len(planner.leaving_expressions()) == 1


def test_parts_of_an_arena_that_are_never_kept_together_lie_in_one_place() -> None:
    arena, size = Arena(1 << 24), 1 << 20
    first = arena.take((size // 2,), np.dtype(np.uint8))
    second = arena.take((size,), np.dtype(np.uint8))
    arena.give_back(first)
    third = arena.take((size,), np.dtype(np.uint8))
    arena.give_back(second)
    fourth = arena.take((size // 2,), np.dtype(np.uint8))
    for one in (third, fourth):
        arena.give_back(one)
    assert arena.nbytes == 2 * size + size // 2
    places = arena.better_places()
    assert places is not None
    # The fourth takes the place of the second, and the first that of the third.
    assert places[1] == places[3]
    assert places[0] == places[2]
    assert max(places) + size == 2 * size


def test_arrays_lie_where_their_part_of_an_arena_has_been_moved_to() -> None:
    arena, elsewhere = Arena(1 << 16), np.zeros((2, 3))
    first, second = arena.take((8,), np.dtype(np.int32)), arena.take((2, 3), np.dtype(np.float64))
    arena.move([256, 0])
    assert arena.nbytes == 256 + 64

    arena.moved(second)[...] = np.arange(6.0).reshape(2, 3)
    # The second lies where the first was, and both are seen in many ways.
    np.testing.assert_array_equal(first.view(np.float64)[:3], (0.0, 1.0, 2.0))
    views = [second.T[::-1], np.broadcast_to(second[1:], (2, 2, 3)), second.reshape(3, 2)[1:, 0]]
    ((number, *moved, other),) = arena.moved([(0, *views, elsewhere)])
    assert number == 0
    assert other is elsewhere
    assert [one.strides for one in moved] == [one.strides for one in views]
    expected: list[Any] = [[[2, 5], [1, 4], [0, 3]], [[[3, 4, 5]], [[3, 4, 5]]], [2, 4]]
    for seen, values in zip(moved, expected, strict=True):
        np.testing.assert_array_equal(seen, np.broadcast_to(values, seen.shape))
