"""What numpy's functions and methods give in a compiled function is what they give outside."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError

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


def _into(target: Any, ufunc: Any, *args: Any, **options: Any) -> Any:
    ufunc(*args, out=target, **options)
    return target


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


def _element_of(x: Any) -> Any:
    y = x * 2
    one = y[0, 0, ...]
    one += 1
    return one, y


def _written(change: Callable[[Any], object]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * -2
        change(y)
        return y

    return f


_PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a scalar is rebound": _rebound,
    "a scalar is no view": _scalar_of,
    "an element with an ellipsis is a view": _element_of,
    "divide where": lambda x: _into(np.zeros_like(x), np.divide, x, x, where=x != 0),
    "sum into": lambda x: _into(np.zeros_like(x[0]), np.sum, x, axis=0),
    "cumsum into": lambda x: _into(np.zeros_like(x), np.cumsum, x, axis=0),
    "clip into": lambda x: _into(np.zeros_like(x), np.clip, x, 0, 1),
    "sum where": lambda x: np.sum(x, axis=0, where=x > 0),
    "max from": lambda x: np.max(x, axis=0, initial=3.0),
    "clip from below": lambda x: np.clip(x, min=2),
    "an axis too far": lambda x: np.sum(x, axis=2),
    "an axis too far to turn": lambda x: np.transpose(x, (0, 3)),
    "an axis too far to swap": lambda x: np.swapaxes(x, 0, 2),
    "an axis twice": lambda x: x.sum(axis=(0, 0)),
    "a copy": lambda x: x.copy(),
    "times one": lambda x: x * 1.0,
    "less nothing": lambda x: x - 0.0,
    "less minus nothing": lambda x: (x * -0.0) - (-0.0),
    "twice negated": lambda x: np.negative(-x),
    "a cast to itself": lambda x: x.astype(x.dtype),
    "the same twice": lambda x: (x * 2, x * 2),
    "one array twice": lambda x: (lambda y: (y, y))(x * 2),
    "a view beside": lambda x: (lambda y: (y, y[1:]))(x * 2),
    "a view of a constant beside": lambda x: (lambda y: (y, y[1:]))(np.ones_like(x)),
    "times True": lambda x: x * True,
    "a mask squared": lambda x: (x > 0) ** 2,
    "repeat": lambda x: np.repeat(x, 2),
    "transpose": lambda x: x.transpose(1, 0),
    "mean": lambda x: x.mean(0),
    "std": lambda x: x.std(axis=0),
    "flatten": lambda x: x.flatten(),
    "argmax": lambda x: x.argmax(0),
    "layout": lambda x: (x.nbytes, x.itemsize, x.strides),
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
    "a copy in F order": lambda x: (lambda y: (y, y > 0, y.sum(0)))(x.copy(order="F")),
    "numpy's copy": lambda x: np.copy(x * 2) * 3,
    "a cast in F order": lambda x: x.astype(np.float64, order="F"),
    "zeros in the order of memory": lambda x: np.zeros_like(x, order="A"),
    "zeros of two orders": lambda x: np.zeros_like(x) + np.array(np.zeros_like(x), order="F"),
    "elements in the order of memory": lambda x: [
        np.ravel(np.exp(x).T * 2, "K"),
        np.reshape(np.exp(x).T, -1, order="A"),
        np.ravel((x.T + np.exp(x.T))[::-1], "K"),
        np.copy(np.exp(x).T, order="A"),
    ],
    "sums beside zeros": lambda x: (np.zeros(x.shape, x.dtype) + x).sum(1),
    "sums of all axes": lambda x: np.stack([x, x * 3]).swapaxes(0, 2).sum(1),
    "in an order by name": lambda x: np.add(x, x, order="F"),
    "elements of columns": lambda x: x[:, [0, 2]].sum(1),
    "a product of vectors": lambda x: np.vecdot(x[0], x[0]),
    "a mask times two": lambda x: _into(x > 0, np.multiply, x > 0, 2),
    "repeated rows": lambda x: np.broadcast_to(x[0], (3, 4)) * 1.5,
    "written by columns": _written(lambda y: y.reshape(-1, order="F").__setitem__(0, 9)),
    "zeros written by columns": lambda x: (
        lambda y: (np.reshape(y, -1, order="F").__setitem__(slice(3), 7), y)[1]
    )(np.zeros_like(x)),
    "the diagonal twice": lambda x: (lambda y: (y, y))(np.diagonal(x * 2)),
    "running sums": lambda x: np.add.accumulate(x, 0),
    "sums of parts": lambda x: np.add.reduceat(x, [0, 2], 1) * 2,
    "all with all": lambda x: np.multiply.outer(x, x[0]),
    "some mantissas": lambda x: np.where(x > 0, np.frexp(x)[0], 0),
    "parts of one element": lambda x: np.modf(x[0, 0]),
    "a sum in another dtype": lambda x: np.add(x, 1, dtype=np.float64),
    "fill": _written(lambda y: y.fill(3)),
    "sort in place": _written(lambda y: y.sort()),
    "put": _written(lambda y: np.put(y, [0], 5)),
    "fill_diagonal": _written(lambda y: np.fill_diagonal(y, 5)),
    "write into a row": _written(lambda y: y.ravel().__setitem__(0, 9)),
    **_FUNCTIONS,
}


def _of_a_value(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x * 2)


def _first(x: Any) -> Any:
    return x[0] if isinstance(x, list | tuple) else x


def _write_through(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * 2
        seen = _first(function(y))
        seen[...] = 7
        return y, seen

    return f


_PROGRAMS |= {f"{name} of a value": _of_a_value(f) for name, f in _FUNCTIONS.items()}
_PROGRAMS |= {f"{name}, written": _write_through(f) for name, f in _FUNCTIONS.items()}


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
    parts = list(result) if isinstance(result, tuple | list) else [result]
    arrays = [x, *[one for one in parts if isinstance(one, np.ndarray)]]
    shared = [[np.may_share_memory(one, other) for other in arrays] for one in arrays]
    values = [(type(one), np.asarray(one).dtype, np.shape(one), np.asarray(one).tobytes())
              for one in (x, *parts)]  # fmt: skip
    steps = [one.strides for one in arrays if 1 not in one.shape]
    return isinstance(result, list), values, shared, steps


@pytest.mark.parametrize("layout", _inputs())
@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_caller_sees_what_numpy_gives(name: str, layout: str) -> None:
    given, f = _inputs()[layout], _PROGRAMS[name]
    compiled = tt.compile(f)
    wanted = _picture(f, given)
    for _ in range(2):
        assert _picture(compiled, given) == wanted


@pytest.mark.parametrize("layout", _inputs())
@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.hsplit(x, [1, 3]),
        lambda x: np.vsplit(x, 3),
        lambda x: [np.flip(x[:1]), np.rot90(x[1:2]), x[2:].T],
        lambda x: [np.atleast_3d(x), np.expand_dims(x[:, :1], 0)],
        lambda x: np.sqrt(np.max(np.stack([x, x]), axis=1, keepdims=True).transpose((2, 1, 0))),
    ],
)
def test_a_view_has_the_strides_of_numpys_along_one_element_too(view: Any, layout: str) -> None:
    x = _inputs()[layout]
    assert [one.strides for one in tt.compile(view)(x)] == [one.strides for one in view(x)]


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("ufunc", [np.exp, np.exp2, np.log2, np.cbrt, np.tanh])
def test_what_is_flipped_as_a_whole_has_the_bits_of_numpys(ufunc: Any, layout: Any) -> None:
    for seed, dtype in enumerate([np.float32, np.float64]):
        x = np.random.default_rng(seed).uniform(0.1, 2.0, (5, 7)).astype(dtype, order=layout)
        views: list[Callable[[Any], Any]] = [
            lambda x: ufunc(np.flip(x)),
            lambda x: ufunc(np.rot90(x, 2)),
            lambda x: ufunc(np.flip(x).T),
            lambda x: ufunc(x[1:]),
        ]
        for f in views:
            assert tt.compile(f)(x).tobytes() == f(x).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "M8[s]"])
@pytest.mark.parametrize("view", [np.diagonal, np.imag, lambda x: np.broadcast_to(x, (2, 3, 4))])
def test_what_is_read_only_is_made_writeable_again_as_numpys(view: Any, dtype: Any) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    made, wanted = tt.compile(view)(x.copy()), view(x.copy())
    assert made.dtype == wanted.dtype
    assert made.flags.writeable == wanted.flags.writeable
    made.flags.writeable = True


_PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "of two equal values": lambda x: (x * 2) @ (x * 2).T,
    "of a value with itself": lambda x: (lambda y: y @ y.T)(x * 2),
    "of parts of equal values": lambda x: (x * 2)[:, :5] @ (x * 2)[:, :5].T,
    "inner": lambda x: np.inner(x * 1, x * 1),
    "dot": lambda x: (x * 2).dot((x * 2).T),
    "over two axes": lambda x: np.tensordot(x * 3, x * 3, ((1,), (1,))),
    "of rows of a copy": lambda x: np.vecdot(x.copy(), x.copy()),
    "of rows times one": lambda x: np.vecdot(x * 1, x * 1),
    "of rows": lambda x: np.vecdot(x, x),
}


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("name", _PRODUCTS)
def test_a_product_has_the_bits_of_numpys_whatever_lies_where(name: str, step: int) -> None:
    f = _PRODUCTS[name]
    compiled: Any = tt.compile(f)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((33, 64 * step), np.float32)[:, ::step]
        assert compiled(x).tobytes() == f(x).tobytes()


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
    "where without out": (lambda x: np.sqrt(x, where=x > 0), "give it out="),
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


def test_many_writes_to_one_array_are_no_deep_recursion() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        for step in range(300):
            y[step % 3] = y[(step + 1) % 3] + 1
        return y

    x = _inputs()["C"]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        np.testing.assert_array_equal(tt.compile(f)(x), f(x))
    finally:
        sys.setrecursionlimit(limit)


def test_sums_in_two_dtypes_are_two_values() -> None:
    x = np.full(4, 0.1, np.float32)

    def run(x: Any) -> Any:
        return x.sum(), np.sum(x, dtype=np.float64), np.sum(x, dtype=np.float32)

    compiled: Any = tt.compile(run)
    for _ in range(2):
        found = compiled(x)
        assert [one.dtype for one in found] == [one.dtype for one in run(x)]
        assert [one.tobytes() for one in found] == [one.tobytes() for one in run(x)]


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
        lambda x: x * np.matrix(np.eye(3)),
        lambda x: np.maximum(x, np.ma.masked_greater([1.0, 2.0, 3.0], 2)),
        lambda x: np.where(x > 0, x, np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])),
    ],
)
def test_what_computes_so_untold_is_refused(run: Any) -> None:
    with pytest.raises(TraceError, match="computes by rules of its own"):
        tt.compile(run)(np.arange(3.0))


def test_a_file_in_memory_is_refused_for_its_copies_are_of_its_class(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "x", "f8", "w+", shape=(2,))
    with pytest.raises(tt.ArgumentTypeError, match="is a memmap"):
        tt.compile(lambda x: x.copy())(mapped)
    assert type(tt.compile(lambda x: x.copy())(np.asarray(mapped))) is np.ndarray
