"""What the specification of a group says is enough to run it: here, by the simplest executor."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.compiler import plans
from tapetensor.compiler.emit import blocks
from tapetensor.compiler.emit.code import Code
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Kind, Node


class RowByRow:
    """Runs each group on one row after the other, however small it is."""

    def __init__(self, has_products: bool) -> None:
        pass

    def takes(self, node: Node) -> bool:
        """Take every step."""
        return True

    def is_worth_it(self, group: Group) -> bool:
        """Take every group of more than one step."""
        return len(group.nodes) > 1

    def prepared(self, schedule: list[Node]) -> list[Node]:
        """Return the schedule as it is."""
        return schedule

    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is captured whole as it is."""
        return function

    def build(self, group: Group, code: Code) -> None:
        """Write the call of what runs the group."""
        read = [one for node in group.nodes for one in node.parents() if one not in group]
        written = [node for node in group.nodes if node in group.kept]
        nodes = list(dict.fromkeys([*read, *written]))
        run = code.bind(lambda *arrays: _run(group, dict(zip(nodes, arrays, strict=True))))
        call = f"{run}({', '.join([code.operand(node).source for node in nodes])})"
        code.emit(group.nodes[-1], call, "row by row", tuple(group.nodes))


def _run(group: Group, arrays: dict[Node, Any]) -> None:
    for total, start in group.totals.items():
        arrays[total].fill(start)
    for row in range(group.rows):
        values: dict[Node, Any] = {}
        for node in group.nodes:
            operands = []
            for one in node.args:
                known = values[one] if one in values else arrays[one]
                is_cut = group.reads_rows(node, one) and one not in values
                assert not (is_cut and one.shape == ())
                operands.append(known[row : row + 1] if is_cut else known)
            values[node] = _result(node, operands)
            if node in group.totals:
                node.function(arrays[node], values[node], out=arrays[node])
            elif node in arrays:
                arrays[node][row] = values[node][0]


def _result(node: Node, operands: list[Any]) -> Any:
    if node.kind is Kind.VIEW and node.function.name == "reshape":
        return operands[0].reshape(1, *node.shape[1:])
    if node.kind is not Kind.REDUCE:
        return node.function(*operands)
    if node.function is np.vecdot:
        return np.vecdot(*operands)[..., None]
    axes, _ = node.detail
    return node.function.reduce(operands[0], axes, node.dtype, None, True)


@pytest.fixture
def row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another executor run groups."""
    monkeypatch.setattr(blocks, "BlockLoops", RowByRow)


def _bias_and_activation(x: Any) -> Any:
    hidden = np.maximum(x @ np.ones((5, 5)) * 0.1 + np.arange(5.0), 1.5)
    return hidden * 2.0 - hidden.sum(axis=0, keepdims=True), np.where(hidden > 2.0, x, -1.0)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.maximum.reduce(x, axis=1, keepdims=True))
    p = e / np.add.reduce(e, axis=1, keepdims=True)
    return p, np.add.reduce(np.log(p), axis=None), np.maximum.reduce(p, axis=0)


def _views(x: Any) -> Any:
    y = np.exp(x).reshape(6, 1, 5).transpose((0, 2, 1)) * 3.0
    return y.reshape(6, 5) + x, np.minimum.reduce(y, axis=(0, 1))


def _written_over(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    return np.tanh(np.exp(-np.square(y)) + x) @ np.ones((5, 2))


def _one_row_for_all(x: Any) -> Any:
    return np.exp(x + x[2:3]) * np.square(x), np.exp(x + x[1]) - 1.0


def _as_many_columns_as_rows(x: Any) -> Any:
    return np.exp(x[:5] + x[1]) * x[2], np.square(x[1:] - x[1]) * x[0] + x[0]


def _read_in_another_order(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    reversed_rows, squares = np.exp(y[::-1] * 0.1) - 1.0, np.square(y)
    return reversed_rows @ np.ones((5, 2)), squares @ np.ones((5, 2))


def _read_later(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    squares, later = np.square(y), np.tanh(y) + 1.0
    return squares @ np.ones((5, 2)), later @ np.ones((5, 2))


def _read_as_a_whole(x: Any) -> Any:
    y = x[:5] @ np.ones((5, 5))
    sums, squares = y + np.exp(np.ones((5, 5, 1)) * x[:5, None]), np.square(y)
    return sums @ np.ones((5, 2)), squares @ np.ones((5, 2))


def _views_of_another_group(x: Any) -> Any:
    y = np.exp(x) + 1.0
    products = np.square(y @ np.ones((5, 5))) * 2.0
    return np.sin(y.reshape(6, 1, 5)).reshape(6, 5) + products, np.cos(y[:, 1:3]) * products[:, :2]


def _square_and_transposed(x: Any) -> Any:
    y = np.exp(x @ np.ones((5, 6)) * 0.1) + 1.0
    return np.sin(y.T) * 2.0 + y, np.cos(np.transpose(y.reshape(6, 2, 3), (1, 0, 2))) * 3.0


def _what_waits_for_totals(x: Any) -> Any:
    y = np.exp(x) * 2.0
    sums = y.sum(axis=0, keepdims=True)
    wide = np.exp(x @ np.ones((5, 600)) * 0.1) + 1.0
    return (sums + 1.0) @ np.ones((5, 600)), wide - wide.sum(axis=0, keepdims=True)


def _other_rows_between(x: Any) -> Any:
    y = np.exp(x)
    z = np.exp(x[:4])
    return np.cos(y) * 2.0, np.sin(z) + 1.0


def _totals_of_every_kind(x: Any) -> Any:
    y = np.exp(x) * 2.0
    limited = np.multiply.reduce(y, axis=0, initial=7.0)
    others = np.subtract.reduce(y, axis=0), np.logaddexp.reduce(y, axis=0)
    return limited, *others, np.add.reduce((y * 1j) + y, axis=0), np.add.reduce(y.sum(), axis=None)


@pytest.mark.usefixtures("row_by_row")
@pytest.mark.parametrize(
    "run",
    [
        _bias_and_activation,
        _softmax,
        _views,
        _written_over,
        _one_row_for_all,
        _as_many_columns_as_rows,
        _read_in_another_order,
        _read_later,
        _read_as_a_whole,
        _views_of_another_group,
        _square_and_transposed,
        _what_waits_for_totals,
        _other_rows_between,
        _totals_of_every_kind,
    ],
)
def test_a_group_run_row_by_row_gives_what_numpy_gives(run: Callable[[Any], Any]) -> None:
    compiled = tt.compile(run)
    x = np.random.default_rng(0).standard_normal((6, 5))

    for _ in range(2):
        for found, wanted in zip(compiled(x), run(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert any(step.title == "row by row" for step in plans(compiled)[0].steps)


def _classifier() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(6, 8, rng=rng), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3, rng=rng)
    )
    return model, optim.Adam(model, lr=0.1)


@pytest.mark.usefixtures("row_by_row")
def test_reductions_and_views_of_rows_and_totals_of_them_are_parts_of_a_group() -> None:
    groups = []
    for run in (_softmax, _views):
        compiled = tt.compile(run)
        compiled(np.ones((6, 5)))
        groups += [step.group for step in plans(compiled)[0].steps if step.group]

    assert [" ".join([node.name for node in group]) for group in groups] == [
        "maximum.reduce subtract exp add.reduce divide log add.reduce maximum.reduce",
        "exp reshape transpose multiply reshape add minimum.reduce",
    ]


def test_what_an_executor_does_not_take_is_in_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BlockLoops", RowByRow)
    monkeypatch.setattr(RowByRow, "takes", lambda self, node: node.function is not np.tanh)
    compiled = tt.compile(lambda x: np.tanh(np.exp(x) + 1.0) * 2.0 - 1.0)
    compiled(np.ones((3, 4)))
    groups = [step.group for step in plans(compiled)[0].steps if step.group]

    assert [[node.name for node in group] for group in groups] == [
        ["exp", "add"],
        ["multiply", "subtract"],
    ]


@pytest.mark.usefixtures("row_by_row")
def test_training_with_groups_run_row_by_row_is_eager_training() -> None:
    (eager, its_optimizer), (model, optimizer) = _classifier(), _classifier()
    x = tt.normal((4, 6), rng=np.random.default_rng(1))
    labels = tt.from_numpy(np.array([0, 2, 1, 2]))

    def train(model: Any, optimizer: Any) -> Any:
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(loss.backward(wrt=model))
        return loss

    compiled = tt.compile(train)
    for _ in range(5):
        wanted, found = train(eager, its_optimizer), compiled(model, optimizer)
        np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-4)
    assert sum(step.title == "row by row" for step in plans(compiled)[0].steps) > 3


@pytest.mark.parametrize("rows", [1, 15, 16, 20, 32])
def test_blocks_give_the_totals_of_few_rows_too(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A native group whose arrays no loop can see runs in blocks, however small it is."""
    monkeypatch.setattr(blocks.BlockLoops, "is_worth_it", RowByRow.is_worth_it)
    x = np.linspace(-1.0, 1.0, rows * 5).reshape(rows, 5)

    def run(x: Any) -> Any:
        y = np.exp(x) * 2.0
        return np.add.reduce(y, axis=0), y

    for found, expected in zip(tt.compile(run)(x), run(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
