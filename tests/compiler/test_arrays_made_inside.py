"""Arrays that a compiled function has numpy make, and writes into: they are those of eager mode."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import importlib
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler.trace.making import arrays_made_of_tracers
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import TraceError

WEIGHTS = np.array([1.0, 2.0, 4.0])


def rows(x: Any) -> Any:
    """Write row by row."""
    out = np.zeros((3, 3), np.float32)
    for i in range(3):
        out[i] = x * (i + 1)
    return out


def total(x: Any) -> Any:
    """Add in place, from what holds ones and from a copy of an array around the function."""
    acc, sums = np.ones(3), np.copy(WEIGHTS)
    acc += x
    acc *= 2
    sums[:2] -= x[1:]
    return acc, acc.sum(), sums, np.zeros_like(WEIGHTS)


def outs(x: Any) -> Any:
    """Hand arrays to functions as `out`."""
    out, mask = np.empty(3), np.full(3, False)
    np.multiply(x, 2, out=out)
    np.greater(x, 1.0, out=mask)
    np.copyto(out, x, where=mask)
    return out, mask


def views(x: Any) -> Any:
    """Write through views, and into what is one array under two names."""
    out = np.zeros((2, 3))
    same, column = out, out.T[0]
    out[0] += x
    column[1] = 5
    same[1, 1:] = x[:2]
    return out, same, column, out.copy()


def recurrence(x: Any) -> Any:
    """Read at indices that a known array holds, and decide by its values."""
    out, places = np.zeros(5), np.arange(2, 5)
    out[:2] = x[:2]
    for i in places:
        out[i] = out[i - 1] + out[i - 2] * float(places[-1])
    if places[0] == 2 and places.sum() > 3:
        out[0] = len([0] * places[0])
    return out, out[::-1], f"{places[0]}"


def one_hot(x: Any) -> Any:
    """Write ones where indices say so."""
    out = np.zeros((3, 4), np.int8)
    out[np.arange(3), np.clip(x, 0, 3).astype(np.int64)] = 1
    np.add.at(out, (0, [1, 1]), 1)
    return out


def collected(x: Any) -> Any:
    """Make arrays of lists of what is computed."""
    pair = np.array([[x.sum(), 1], [2.5, x[0]]])
    return pair, np.array((x, WEIGHTS)), np.asarray([x.argmax(), 2], np.int32), np.array(x.max())


def reduced(x: Any) -> Any:
    """Reduce lists and tuples of what is computed."""
    rows, numbers = [x, x * 2], (x.sum(), 2, x.max().item())
    lines = np.mean(rows), np.max(rows, axis=0), np.std(rows, 1, keepdims=True), np.any(rows)
    out = np.zeros(3)
    np.sum(rows, axis=0, out=out)
    return *lines, np.mean(numbers), np.median(numbers), np.argmin([*numbers, [3][0]]), out


def refused_by_numpy(x: Any) -> Any:
    """Expect the errors that numpy raises."""
    out, told = np.zeros(3, np.int64), []
    for write in (
        lambda: out.__setitem__(7, x[0]),
        lambda: np.add(out, x, out=out),
    ):
        try:
            write()
        except (ValueError, IndexError, TypeError) as error:
            told.append(f"{type(error).__name__}: {error}")
    out[0] = x[0] * 1.5
    return out, told


def drawn(x: Any) -> Any:
    """Put what is drawn into it, from a known array, too."""
    rng = np.random.default_rng(3)
    out = np.zeros(3)
    out[1:] = x[1:] * rng.choice(np.arange(3.0), 2)
    return out


@pytest.mark.parametrize(
    "run",
    [rows, total, outs, views, recurrence, one_hot, collected, reduced, refused_by_numpy, drawn],
)
def test_what_is_written_into_an_array_that_numpy_makes_is_there(run: Callable[..., Any]) -> None:
    compiled = tt.compile(run)
    makers = np.zeros, np.array, np.arange

    for x in (np.array([1.0, 2.0, -0.5]), np.array([0.5, -3.0, 9.0])):
        found, expected = compiled(x), run(x)
        for one, other in zip(
            np.atleast_1d(found) if run is rows else found, expected, strict=True
        ):
            np.testing.assert_array_equal(one, other)
            assert type(one) is type(other)
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
    assert (np.zeros, np.array, np.arange) == makers


def test_an_array_that_was_made_inside_is_another_at_every_call() -> None:
    def run(x: Any) -> Any:
        out, ones = np.zeros(3), np.ones(2)
        out[0] = x[0]
        return out, out, ones

    compiled = tt.compile(run)
    first = compiled(np.ones(2))
    for one in first:
        one[:] = 7.0
    second = compiled(np.ones(2))

    assert first[0] is first[1]
    assert [one.tolist() for one in second] == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0]]


def test_losses_are_collected_in_an_array_while_a_model_trains() -> None:
    def run(model: Any, optimizer: Any, x: Any) -> Any:
        history = np.zeros(3)
        for i in range(3):
            loss = model.forward(x.trace()).square().mean()
            history[i] = loss.item()
            optimizer.step(loss.backward(wrt=model))
        return history

    x, histories = tt.normal((5, 4), rng=np.random.default_rng(0)), []
    for call in (run, tt.compile(run)):
        model = nn.Linear(4, 3, rng=np.random.default_rng(1))
        optimizer = optim.Sgd(model, lr=0.1)
        histories.append([call(model, optimizer, x) for _ in range(2)])

    np.testing.assert_array_equal(histories[0], histories[1])


def test_an_array_around_the_function_is_still_no_place_for_results() -> None:
    buffer = np.zeros(3)

    def run(x: Any) -> Any:
        buffer[:] = x
        return x.sum()

    with pytest.raises(TraceError, match="make the one that is written into"):
        tt.compile(run)(np.ones(3))
    assert not buffer.any()


def test_numpy_makes_its_own_arrays_again_after_an_error() -> None:
    def run(x: Any) -> Any:
        out = np.zeros(3)
        out[0] = x[0]
        raise KeyError(out.shape)

    zeros = np.zeros
    with pytest.raises(KeyError):
        tt.compile(run)(np.ones(3))
    assert np.zeros is zeros


def test_a_module_that_is_imported_meanwhile_has_numpys_own_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "arange, array, full, mean, zeros"
    (tmp_path / "imported_meanwhile.py").write_text(f"from numpy import {names}\n")
    monkeypatch.syspath_prepend(tmp_path)

    def run(x: Any) -> Any:
        out = np.zeros(3)
        out += x
        importlib.import_module("imported_meanwhile")
        return out

    tt.compile(run)(np.ones(3))
    imported = sys.modules["imported_meanwhile"]
    for name in names.split(", "):
        assert getattr(imported, name) is getattr(np, name)


def test_numpys_functions_are_its_own_for_other_threads_meanwhile() -> None:
    mean, told = np.mean, list[Any]()

    def tell() -> None:
        told.extend([np.mean is mean, pickle.loads(pickle.dumps(mean)) is mean, type(np.zeros(3))])

    with arrays_made_of_tracers(Program()):
        thread = threading.Thread(target=tell)
        thread.start()
        thread.join()
    assert told == [True, True, np.ndarray]


def test_two_threads_make_arrays_at_once_and_leave_numpy_as_it_was() -> None:
    entered, left, told = threading.Event(), threading.Event(), list[Any]()

    def make() -> None:
        with arrays_made_of_tracers(Program()):
            entered.set()
            left.wait()
            told.append(type(np.zeros(3)))

    thread = threading.Thread(target=make)
    with arrays_made_of_tracers(Program()):
        thread.start()
        entered.wait()
        told.append(type(np.zeros(3)))
    told.append(type(np.zeros(3)))
    left.set()
    thread.join()

    assert told == [ArrayTracer, np.ndarray, ArrayTracer]
    assert type(np) is ModuleType


def test_numpys_functions_are_known_where_they_are_not_called() -> None:
    known: dict[Any, str] = {np.mean: "mean", np.zeros: "zeros"}

    def run(x: Any, of: Any = np.mean) -> Any:
        out = np.zeros(3)
        out += x
        return out, of is np.mean, known[np.zeros], [np.sum, np.ones][0] is np.sum

    for found, expected in zip(tt.compile(run)(np.ones(3)), run(np.ones(3)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("text", ["a", b"a", None, np.array("a"), np.array(["a", "b", "c"])])
def test_no_number_equals_a_text_or_nothing(text: Any) -> None:
    def run(x: Any) -> Any:
        return x == text, x != text, x[0] == text, x.sum() != text

    x = np.ones(3)
    for found, expected in zip(tt.compile(run)(x), run(x), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)


def test_a_function_that_gives_a_number_of_pythons_gives_one() -> None:
    def run(x: Any) -> Any:
        same = np.array_equal(x, x)
        return same, same + 1, hasattr(same, "shape"), isinstance(np.allclose(x, 0.0), bool)

    x = np.ones(3)
    assert list(map(repr, tt.compile(run)(x))) == list(map(repr, run(x)))


def test_a_scalar_repeats_a_list_and_a_text() -> None:
    def run(x: Any) -> Any:
        out, count = np.zeros(2), np.arange(4)[3]
        out[0] = x[0]
        return out, [1, 2] * count, count * "ab"

    (_, *found), (_, *expected) = tt.compile(run)(np.ones(2)), run(np.ones(2))
    assert found == expected
    for repeated in (lambda x: [0] * x.argmax(), lambda x: x.argmax() * (1, 2)):
        with pytest.raises(TraceError, match="values of a tensor are read"):
            tt.compile(repeated)(np.ones(2))
    with pytest.raises(TypeError, match="multiply sequence"):
        tt.compile(lambda x: [0] * x[0])(np.ones(2))


def test_parts_of_complex_arrays_lie_in_memory_as_numpys_do() -> None:
    def run(x: Any) -> Any:
        return (x * 1j).imag * 2.0, np.array([x, x]), x == "a", x == None  # noqa: E711

    x = np.ones((3, 4)).T
    found, expected = tt.compile(run)(x), run(x)
    assert [one.strides for one in found] == [one.strides for one in expected]


def test_operands_that_do_not_fit_raise_what_numpy_raises() -> None:
    def run(x: Any, y: Any) -> Any:
        try:
            return x + y
        except ValueError as error:
            return str(error)

    args = np.ones((2, 2)), np.ones(3)
    assert tt.compile(run)(*args) == run(*args)


def test_a_function_that_is_given_other_code_runs_that() -> None:
    def double(x: Any) -> Any:
        return x * 2.0

    def triple(x: Any) -> Any:
        return x * 3.0

    def run(x: Any) -> Any:
        return double(x)

    compiled = tt.compile(run)
    compiled(np.ones(2))
    # So does what reloads a module while it is in use.
    double.__code__ = triple.__code__
    assert compiled(np.ones(2)).tolist() == [3.0, 3.0]


def test_an_array_is_filled_with_what_is_computed() -> None:
    def run(x: Any) -> Any:
        filled = np.full(2, x.var())
        filled[0] += 1.0
        return filled, np.full((2, 3), x[:3], order="F"), np.full((), fill_value=x.sum().item() > 0)

    compiled = tt.compile(run)
    for x in (np.arange(4.0), -np.ones(4, np.float32)):
        for _ in range(2):
            for one, other in zip(compiled(x), run(x), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
                assert one.strides == other.strides
    with pytest.raises(tt.TraceError, match="takes its dtype"):
        tt.compile(lambda x: np.full(2, x.sum(), int))(np.ones(2))


def test_a_draw_by_what_is_computed_is_refused_with_the_way_to_write_it() -> None:
    rng = np.random.default_rng(0)
    for draw in (lambda x: rng.normal(x.mean()), lambda x: rng.choice(2, p=x / x.sum())):
        with pytest.raises(tt.TraceError, match=r"mean \+ std \* rng.normal"):
            tt.compile(draw)(np.ones(2))
