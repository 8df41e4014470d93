"""Writes into arrays inside a compiled function: each value is the one that eager mode has."""

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
from tapetensor.errors import TraceError

# Under a name of one's own, it is not seen that numpy makes an array.
zeros = np.zeros


def copy_of_a_kind(x: Any) -> Any:
    """Convert to the dtype that it has, and write into what that gives."""
    first = np.exp(x)
    second = first.astype(x.dtype)
    second[0] = 0.0
    return first, second


def copy_of_what_was_written(x: Any) -> Any:
    """Write into a copy of what was written into, and into that again."""
    first = np.exp(x)
    first[0] = 1.0
    second = first.copy()
    first[1] = 5.0
    second[2] = 7.0
    return first, second


def neutral_of_what_was_written(x: Any) -> Any:
    """Keep what was written into, times one and minus nothing, before it is written into again."""
    first = np.exp(x)
    first[0] = 1.0
    second, third = first * 1.0, first - 0.0
    first[1] = 5.0
    return first, second, third


def operand_of_what_is_written(x: Any) -> Any:
    """Read an operand of a step that is computed where it is written into."""
    first = np.exp(x)
    second = first + 1.0
    second[0] = 9.0
    return second, np.sin(second) * 2.0, np.cos(x) * 3.0


def part_of_what_is_written(x: Any) -> Any:
    """Copy a part that numpy gives as a view, and write into that."""
    first = np.exp(x)
    second = np.real(first).copy()
    second[0] = 9.0
    return first, second


def fractions_into_integers(x: Any) -> Any:
    """Write what does not fit, which numpy converts."""
    whole = np.floor(x * 10.0).astype(np.int64)
    whole[0] = 2.5
    whole[1:] = x[1:]
    return whole


def constants_between(x: Any) -> Any:
    """Write into an array of numpy's that a step has read."""
    buffer = np.zeros(4)
    values = []
    for place in range(4):
        buffer[place] = place + 1.0
        values.append(x * buffer)
    return values


def index_between(x: Any) -> Any:
    """Write into an index that a step has used."""
    index = np.array([0, 1])
    first = x[index]
    index[0] = 3
    return first, x[index]


def zeros_to_which_they_are_added(x: Any) -> Any:
    """Write into zeros what reads the same zeros."""
    whole = np.zeros_like(x)
    whole[:2] += whole[:2]
    whole[2:] += whole[:2]
    part = np.zeros_like(x)
    part[1:3] = part[1:3] + part[:2]
    return whole, part


def zeros_that_are_copied(x: Any) -> Any:
    """Copy zeros over themselves."""
    whole, other = np.zeros_like(x), np.zeros_like(x)
    np.copyto(whole[:4], whole)
    other[...] += other
    return whole, other


def repeated_values_in_place(x: Any) -> Any:
    """Compute over a part of what is repeated, which nobody reads any more."""
    repeated = np.broadcast_to(np.exp(x), (2, 1, 4))
    whole = np.full_like(repeated, 1.0)
    np.add(whole[:1], repeated[:1] * 0.5, out=whole[:1])
    return (whole,)


def reshaped_copies(x: Any) -> Any:
    """Write into what numpy had to copy to reshape it, and into what it was copied from."""
    table = np.exp(x).reshape(2, 2)
    flat = table.T.reshape(4)
    flat += 1.0
    table[0] = 5.0
    early = table.T.reshape(4)
    table[1] = 7.0
    return table, flat, early


def reshaped_views_of_another_order(x: Any) -> Any:
    """Write into a view of what lies in another order."""
    table = np.exp(x.reshape(2, 2).T)
    flat = table.T.reshape(4)
    flat[1:] = 3.0
    largest = np.maximum.reduce(np.exp(x).reshape(2, 1, 2).T, axis=1)
    row = largest.T.reshape(4)
    row[2:] += 1.0
    return table, flat, largest, row


def reshaped_copies_of_copies(x: Any) -> Any:
    """Write into a view of a copy, which lies in order."""
    copied = x.reshape(2, 2).T.copy()
    flat = copied.reshape(4)
    flat[1:] = 3.0
    summed = np.exp(x).reshape(2, 2)
    np.add(summed.T, summed.T, out=summed)
    row = summed.reshape(4)
    row[0] = 9.0
    return copied, flat, summed, row


def copies_of_copies(x: Any) -> Any:
    """Write into a copy of a copy of what leaves as it was."""
    first = x * 2.0
    np.copyto(first, 2.0)
    second = first.astype(first.dtype)
    second[::-1] = first + x
    third = first.copy().copy()
    third[:2] = 5.0
    return first, second, third


def test_a_check_of_what_is_written_comes_after_what_reads_it_as_it_was() -> None:
    rng = np.random.default_rng(0)
    x, numbers = tt.normal((5, 4), rng=rng), rng.random(5)

    def run(model: Any, optimizer: Any, x: Any, numbers: Any) -> Any:
        labels = np.floor(numbers * 3.0).astype(np.int64)
        labels[0] = 1
        early = labels * 10
        labels[1] = 2
        optimizer.step(model.forward(x.trace()).square().mean().backward(wrt=model))
        return losses.cross_entropy(model.forward(x), tt.from_numpy(labels, (5,))), early

    results = []
    for call in (run, tt.compile(run)):
        model = nn.Linear(4, 3, rng=np.random.default_rng(1))
        results.append(call(model, optim.Sgd(model, lr=0.1), x, numbers))
    (loss, early), (expected_loss, expected) = results

    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-6)
    assert early.tolist() == expected.tolist()


def accumulated(x: Any) -> Any:
    """Add to an array of numpy's."""
    total = zeros(4)
    total += x
    return total


def added_at(x: Any) -> Any:
    """Add to places of an array of numpy's."""
    total = zeros(4)
    np.add.at(total, np.array([0, 0]), x[:2])
    return total


def entered(x: Any) -> Any:
    """Write a part of an array of numpy's."""
    total = zeros(4)
    total[1:] = x[1:]
    return total


@pytest.mark.parametrize(
    ("run", "cure"),
    [(accumulated, "total = total"), (added_at, "np.zeros_like"), (entered, "return the tensor")],
)
def test_what_depends_on_arguments_goes_into_no_array_of_numpys(run: Any, cure: str) -> None:
    with pytest.raises(TraceError, match=cure) as error:
        tt.compile(run)(np.ones(4))
    assert str(error.value).startswith(f"{__file__}:{run.__code__.co_firstlineno + 3}")


def test_a_single_number_leaves_as_the_scalar_that_numpy_gives() -> None:
    def run(x: Any, number: Any) -> Any:
        return x.sum(), np.add.reduce(x), x[0], np.max(x) * 2.0, np.exp(number), number

    x, number = np.arange(3.0), np.array(0.5)
    for found, expected in zip(tt.compile(run)(x, number), run(x, number), strict=True):
        assert found == expected
        assert type(found) is type(expected)


@pytest.mark.parametrize(
    "run",
    [
        copy_of_a_kind, copy_of_what_was_written, neutral_of_what_was_written,
        operand_of_what_is_written, part_of_what_is_written, fractions_into_integers,
        constants_between, index_between, zeros_to_which_they_are_added, zeros_that_are_copied,
        repeated_values_in_place, reshaped_copies, reshaped_views_of_another_order,
        reshaped_copies_of_copies, copies_of_copies,
    ],
)  # fmt: skip
def test_what_is_written_is_seen_by_those_who_see_it_in_eager_mode(run: Any) -> None:
    compiled = tt.compile(run)

    for x in (np.arange(4.0), np.arange(4.0) * 0.5):
        for found, expected in zip(compiled(x), run(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_write_into_an_array_of_numpy_names_the_array_to_make_instead() -> None:
    def refused(x: Any) -> Any:
        total = zeros((4, 4))
        total[np.argmax(x, axis=1)] += x
        return total

    def done(x: Any) -> Any:
        total = np.zeros_like(x)
        total[np.argmax(x, axis=1)] += x
        return total

    x = np.random.default_rng(0).normal(size=(4, 4))
    with pytest.raises(TraceError, match=r"np\.zeros_like\(x\)"):
        tt.compile(refused)(x)
    assert np.array_equal(tt.compile(done)(x), done(x))


def test_a_reduction_writes_where_it_is_told() -> None:
    def totals(x: Any) -> Any:
        data = x.numpy()
        written = np.zeros_like(data[0])
        np.sum(data, axis=0, out=written)
        return tt.from_numpy(written)

    x = tt.from_numpy(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(tt.compile(totals)(x).numpy(), totals(x).numpy())


def test_a_cast_of_an_array_that_was_written_to_is_no_copy_that_may_be_left_out() -> None:
    def run(x: Any) -> Any:
        whole = x * 1.5
        whole[0] = 2.5
        return whole.astype(np.int64) * 2

    x = np.arange(4.0)
    compiled = tt.compile(run)
    found = compiled(x)
    assert (found.dtype, found.tolist()) == (np.dtype(np.int64), run(x).tolist())
    # Where a step fails, the function answers in place of its plan, and this raises.
    plans(compiled)[0].profile(x, repeats=1)


VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x[1],
    lambda x: x[1:][0],
    lambda x: x[::-1, 1],
    lambda x: x.T[1],
    lambda x: x.reshape(2, 8)[1],
    lambda x: list(x)[2],
    lambda x: np.split(x, 2)[0],
    lambda x: np.diagonal(x),
]


def through_a_row(x: Any, _: Any) -> None:
    """Write through another view."""
    row = x[1]
    row += 2.0


def through_the_view(_: Any, view: Any) -> None:
    """Write through the view itself, unless it is one axis of four, as numpy's diagonal is."""
    if view.shape != (4,):
        view[...] = 5.0


def whole(x: Any, _: Any) -> None:
    """Write the whole array."""
    x *= 3.0


def place_by_place(x: Any, _: Any) -> None:
    """Write each row, as it comes out of a loop."""
    for row in x:
        row -= row.sum()


@pytest.mark.parametrize("write", [through_a_row, through_the_view, whole, place_by_place])
def test_a_view_that_was_taken_before_a_write_sees_it(write: Callable[[Any, Any], None]) -> None:
    def run(x: Any) -> Any:
        found = []
        for view in VIEWS:
            array = x * 1.5
            taken = view(array)
            before = taken * 1.0
            write(array, taken)
            found += [before, taken * 2.0, array + 1.0]
        return found

    compiled = tt.compile(run)
    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=(4, 4))
        for one, other in zip(compiled(x), run(x), strict=True):
            assert np.array_equal(one, other)
