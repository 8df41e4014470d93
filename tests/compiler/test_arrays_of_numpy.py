"""What numpy's functions and methods give in a compiled function is what they give outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError
from tests.compiler.law.harness import described

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "ravel": np.ravel,
    "flip": np.flip,
    "fliplr": np.fliplr,
    "atleast_1d": np.atleast_1d,
    "atleast_3d": np.atleast_3d,
    "array_split": lambda x: np.array_split(x, 2),
    "hsplit": lambda x: np.hsplit(x, 2),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "rot90": np.rot90,
    "real": np.real,
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "ravel of a transpose": lambda x: x.T.ravel(),
    "reshape in another order": lambda x: np.reshape(x, (2, 6), order="F"),
    "roll": lambda x: np.roll(x, 1),
    "sort": np.sort,
    "a slice": lambda x: x[1:, ::-1],
}


def _rebound(x: Any) -> Any:
    total = (x[0] ** 2).sum()
    before = total
    total += 1
    return total, before


def _scalar_of(x: Any) -> Any:
    y = x * 2
    one = y[0, 0]
    one += 1
    return one, y


_PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a scalar is rebound": _rebound,
    "a scalar is no view": _scalar_of,
    "sum where": lambda x: np.sum(x, axis=0, where=x > 0),
    "max from": lambda x: np.max(x, axis=0, initial=3.0),
    "clip from below": lambda x: np.clip(x, min=2),
    "an axis too far": lambda x: np.sum(x, axis=2),
    "a copy": lambda x: x.copy(),
    "a cast to itself": lambda x: x.astype(x.dtype),
    "the same twice": lambda x: (x * 2, x * 2),
    "one array twice": lambda x: (lambda y: (y, y))(x * 2),
    "a view beside": lambda x: (lambda y: (y, y[1:]))(x * 2),
    "a view of a constant beside": lambda x: (lambda y: (y, y[1:]))(np.ones_like(x)),
    "repeat": lambda x: np.repeat(x, 2),
    "flatten": lambda x: x.flatten(),
    "argmax": lambda x: x.argmax(0),
    "size": lambda x: (x.nbytes, x.itemsize),
    "rows": lambda x: [row * 2 for row in x],
    "len of a scalar": lambda x: len(x.sum()),
    "where without axes": lambda x: np.where(x[0, 0] > 0, x[0, 0], 0),
    "inverse": lambda x: np.linalg.inv(x[:, :3] + 9 * np.eye(3, dtype=np.float32)),
    "weighted": lambda x: np.average(x, weights=np.exp(x)),
    "weighted by columns": lambda x: np.average(x, axis=0, weights=np.exp(x)),
    "sequences": lambda x: np.geomspace(1 + x[0] ** 2, 9.0, 3),
    "singular values": lambda x: np.linalg.svd(x).S,
    "trace of products": lambda x: np.einsum("ii->i", x[:, :3].copy()).sum(),
    "broadcast together": lambda x: np.broadcast_arrays(x, x[0]),
    "diagonal": lambda x: np.diagonal(x * 2),
    "a reshape of a scalar": lambda x: np.reshape(x[0, 0], -1, order="F"),
    "the diagonal of a copy": lambda x: (lambda y: (y, np.diagonal(y)))(np.copy(x)),
    "a view of all beside": lambda x: (lambda y: (y, np.ravel(y)))(x.sum(0)),
    "numpy's copy": lambda x: np.copy(x * 2) * 3,
    "elements of columns": lambda x: x[:, [0, 2]].sum(1),
    "a product of vectors": lambda x: np.vecdot(x[0], x[0]),
    "repeated rows": lambda x: np.broadcast_to(x[0], (3, 4)) * 1.5,
    "the diagonal twice": lambda x: (lambda y: (y, y))(np.diagonal(x * 2)),
    "running sums": lambda x: np.add.accumulate(x, 0),
    "sums of parts": lambda x: np.add.reduceat(x, [0, 2], 1) * 2,
    "all with all": lambda x: np.multiply.outer(x, x[0]),
    "some mantissas": lambda x: np.where(x > 0, np.frexp(x)[0], 0),
    "parts of one element": lambda x: np.modf(x[0, 0]),
    "a sum in another dtype": lambda x: np.add(x, 1, dtype=np.float64),
    **_FUNCTIONS,
}


def _of_a_value(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x * 2)


_PROGRAMS |= {f"{name} of a value": _of_a_value(f) for name, f in _FUNCTIONS.items()}


def _inputs() -> dict[str, Any]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    return {"C": x, "F": np.asfortranarray(x), "steps": np.repeat(x, 2, axis=1)[::-1, ::2]}


def _picture(f: Callable[[Any], Any], given: Any) -> Any:
    """Return all that a caller sees of a call."""
    x = np.asarray(given).copy("K") if given.flags.forc else given.copy()[::-1][::-1]
    try:
        result = f(x)
    except TraceError:
        raise
    except Exception as error:
        return type(error)
    return described(result)


@pytest.mark.parametrize("layout", _inputs())
@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_caller_sees_what_numpy_gives(name: str, layout: str) -> None:
    given, f = _inputs()[layout], _PROGRAMS[name]
    compiled = tt.compile(f)
    wanted = _picture(f, given)
    for _ in range(2):
        assert _picture(compiled, given) == wanted


_DRAWS: dict[str, Callable[[Any], Any]] = {
    "an integer": lambda rng: rng.integers(3),
    "a small integer": lambda rng: rng.integers(3, dtype=np.int8),
    "an integer of Python's": lambda rng: rng.integers(3, dtype=int),
    "a truth": lambda rng: rng.integers(2, dtype=bool),
    "an array without axes": lambda rng: rng.integers(3, size=()),
    "a number": lambda rng: rng.random(),
    "a number of 32 bits": lambda rng: rng.random(dtype=np.float32),
    "a normal number": lambda rng: rng.normal(),
    "a count": lambda rng: rng.poisson(3.0),
    "a choice": lambda rng: rng.choice(3),
    "a choice of numbers": lambda rng: rng.choice([1.5, 2.5]),
    "an array": lambda rng: rng.normal(size=(3, 4)),
    "a row": lambda rng: rng.choice(np.arange(8).reshape(2, 4)),
    "an order": lambda rng: rng.permutation(4),
}


@pytest.mark.parametrize("name", _DRAWS)
def test_a_draw_has_the_type_and_the_dtype_of_numpys(name: str) -> None:
    draw = _DRAWS[name]

    def f(x: Any, rng: Any) -> Any:
        one = draw(rng)
        return x * one, one, np.exp(draw(rng)), isinstance(one, np.generic)

    compiled = tt.compile(f)
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(3):
        wanted = _picture(lambda x: f(x, again), _inputs()["C"])
        assert _picture(lambda x: compiled(x, rng), _inputs()["C"]) == wanted


_REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "print": (print, "the values of a tensor are read"),
    "text": (lambda x: f"{x}", "the values of a tensor are read"),
    "float": (lambda x: float(x.sum()), r"write x.item\(\) for float\(x\)"),
    "round": (lambda x: round(x.sum().item(), 2), "compute it outside"),
    "whole division": (lambda x: x.sum().item() // 2, "compute it outside"),
    "bincount": (lambda x: np.bincount((x[0] > 0) * 1), "depends on the values"),
    "unique": (np.unique, "depends on the values"),
    "where without out": (lambda x: np.sqrt(x, where=x > 0), "write np.where"),
    "elements in the order of memory": (lambda x: np.ravel(x.T, "K"), "in the order 'K'"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_reads_values_is_refused(name: str) -> None:
    f, message = _REFUSED[name]
    with pytest.raises(TraceError, match=message):
        tt.compile(f)(_inputs()["C"])


def test_errors_that_an_errstate_raises_within_the_function_are_refused() -> None:
    @tt.compile
    def f(x: Any) -> Any:
        try:
            with np.errstate(all="raise"):
                return x / 0
        except FloatingPointError:
            return x * 2

    with pytest.raises(TraceError, match=r"np\.errstate"):
        f(_inputs()["C"])


def test_a_result_that_nobody_reads_raises_what_it_raises_in_eager_mode() -> None:
    def run(x: Any) -> Any:
        np.linalg.inv(x * 2.0)
        return x + 1.0

    compiled: Any = tt.compile(run)
    assert compiled(np.eye(2)).tolist() == [[2.0, 1.0], [1.0, 2.0]]
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((2, 2)))


def test_a_fit_is_tried_without_a_complaint_of_lapack(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(tt.compile(np.polyfit)(x, x**2, 1), np.polyfit(x, x**2, 1))

    assert capfd.readouterr() == ("", "")


class _Hundredfold:
    """What computes beside arrays by rules of its own, as numpy's guide writes it."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.ones(3) if one is self else one for one in inputs]
        return getattr(ufunc, method)(*plain, **options) * 100

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return function(*[np.ones(3) if one is self else one for one in args], **options) * 100


class _Percent(float):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*[one / 100 if one is self else one for one in inputs])


class _Names(list[float]):
    __array_priority__ = 1000

    def __radd__(self, other: Any) -> str:
        return "names"


_HUNDREDFOLD, _PERCENT, _NAMES = _Hundredfold(), _Percent(50.0), _Names([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + _HUNDREDFOLD,
        lambda x: np.multiply(x, _HUNDREDFOLD),
        lambda x: np.where(x > 0, _HUNDREDFOLD, x),
        lambda x: x * 2 > _HUNDREDFOLD,
        lambda x: x * _PERCENT,
    ],
)
def test_what_computes_by_rules_of_its_own_beside_arrays_does_so(run: Any) -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(tt.compile(run)(x), run(x), strict=True)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + _NAMES,
        lambda x: np.maximum(x, np.ma.masked_greater([1.0, 2.0, 3.0], 2)),
        lambda x: np.where(x > 0, x, np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])),
    ],
)
def test_what_computes_so_untold_is_refused(run: Any) -> None:
    with pytest.raises(TraceError, match=r"computes by rules of its own|numpy\.ma"):
        tt.compile(run)(np.arange(3.0))


def test_a_file_in_memory_is_refused_for_its_copies_are_of_its_class(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "x", "f8", "w+", shape=(2,))
    with pytest.raises(tt.ArgumentTypeError, match="is a memmap"):
        tt.compile(lambda x: x.copy())(mapped)
    assert type(tt.compile(lambda x: x.copy())(np.asarray(mapped))) is np.ndarray
