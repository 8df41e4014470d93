"""What a fuzzer of numpy programs found: each is numpy's own answer, or refused with its line."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError
from tests.compiler.law.harness import described


def _outcome(function: Callable[[Any], Any], x: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return described(function(x))
        except Exception as error:
            return type(error), str(error) if isinstance(error, TraceError) else ""


def _caught(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        try:
            run(x)
        except Exception as error:
            return type(error).__name__
        return "nothing"

    return function


def _products_of_complex_scalars(x: Any) -> Any:
    z = x + 1j * x[::-1] / 3
    others = z[2, 1], z[1, 2].astype(np.complex128), 1.7, 3 - 0.1j
    pairs = [(one, other) for one in (z[0, 0], z[1].sum(), z.mean()) for other in others]
    return [(one * other, other * one, abs(one - other)) for one, other in pairs]


def _product_of_equals(x: Any) -> Any:
    return np.matmul(x * 1, x.T), x


def _views_of_what_numpy_made(x: Any) -> Any:
    made = np.full((3,), 2.5)
    return made, made[1:], np.arange(3)[1::-1], x


def _largest_of_nothing(x: Any) -> Any:
    try:
        x[:0].max()
    except ValueError:
        return x + 1
    return x


_AROUND = np.arange(3.0)


def _matched(x: Any) -> Any:
    # Since numpy 2.5 it matches, as that of a list does.
    match x:
        case [first, _, _]:
            return first
        case _:
            return x


# The stubs of numpy know no `...` here.
_ANY: Any = np
_RIGHT: dict[str, Callable[[Any], Any]] = {
    "a sum in integers": lambda x: np.sum(x, dtype=np.int64),
    "a sum in fewer bits": lambda x: np.sum(x * 1e-3, axis=0, dtype=np.float32),
    "a scalar's power": lambda x: np.float32(3.3) ** (np.float32(2) * x[1, 0]),
    "a power of a scalar": lambda x: [x[0, 1] ** 3, x[1, 1] ** 2.5, 1.7 ** x[1, 2], x[0, 1] ** 2],
    "a diagonal of no elements": lambda x: [x[:0].diagonal(), np.diagonal(x[:, :0] * 2)],
    "products of complex scalars": _products_of_complex_scalars,
    "an error of a result that nobody reads": _largest_of_nothing,
    "bounds of other dtypes": lambda x: np.clip(x > 0, 0, x.astype(np.float16)),
    "a copy of what is repeated": lambda x: [x, np.broadcast_to(np.arange(3), (2, 3)).ravel()],
    "an array only if it must": lambda x: np.array(x, copy=None),
    "an argument in a product": _product_of_equals,
    "the imaginary part": lambda x: [x.imag, x[0, 0].imag],
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=0),
    "an element at a place": lambda x: [x.item(5), x.item(1, 2), x.item((2, 1))],
    "one bound of a scalar": lambda x: [x[0, 0].clip(0), x[0, 0].clip(max=1), x.clip(0)],
    "views of what numpy made": _views_of_what_numpy_made,
    "a number by zero": lambda x: x.sum().item() / (x - x).sum().item(),
    "the second axis": lambda x: [np.concatenate((x, x), 1), np.stack((x, x), 1)],
    "bounds that no integer reaches": lambda x: [
        np.clip(x.astype(np.uint8), -1, 300), x.astype(np.int8).clip(-5, 200), np.clip(x, None, 1)
    ],
    "parts in any order": lambda x: [
        np.split(x, [2, 1]), np.array_split(x, 2), np.array_split(x[:1], 3), np.split(x, [-1], 1)
    ],
    "arrays like another": lambda x: [
        np.ones_like(x, None, "K", False), np.zeros_like(x, shape=()), np.full_like(x, x.max()),
        np.full_like(x.T, x[:, 0], int), np.empty_like(x[:0], subok=False),
    ],
    "a copy by the module": lambda x: [copy.copy(x.T), copy.deepcopy(x.T)],
    "what dtypes make": lambda x: [np.result_type(x, np.int8), np.can_cast(x, np.float32)],
    "an out that is none": lambda x: [np.exp(x[0, 0], out=None), x[..., 0]],
    "a number too large": lambda x: x.sum().item() ** 2000,
    "a number where an array may be": lambda x: [
        np.clip(x, x.min().item() + 1, x.max().item() / 2), x.clip(-1, x.max().item()),
        np.clip(x.sum().item(), -1, 1), np.clip((x > 0).sum().item(), 0, 3),
        np.reshape(x.sum().item(), (1, 1)), np.transpose(x.sum().item()), np.sum(x.sum().item()),
    ],
    "diagonals of what is flipped": lambda x: [
        np.diagonal(np.fliplr(x)), np.diag(np.flipud(x), 1), x[:, ::-1].diagonal(-1),
        np.diagonal(np.flip(x.T), 1), np.diagonal(np.fliplr(x * 2)).sum(),
    ],
    "a pattern of a sequence": _matched,
    "a text among numbers": lambda x: x if "a" in x or None in x[0] else -x,
    "a view that a constant turns": lambda x: np.rot90(x, np.ones_like(x, int)[0, 0]),
}  # fmt: skip
_WRONG: dict[str, Callable[[Any], Any]] = {
    "an array without axes has no parts": lambda x: list(x[0, 0, ...]),
    "nothing is in a scalar": lambda x: 1.0 in x[0, 0],
    "a scalar has no parts": lambda x: sum(x[0, 0]),
    "no bounds of truths": lambda x: np.clip(x > 0, None, None),
    "a word as a bound": lambda x: _ANY.clip(x, "a", None),
    "a word as a shape": lambda x: np.reshape(x, _ANY.str_("a")),
    "bounds that are given twice": lambda x: np.clip(x, 0, 1, max=2),
    "a truth as an axis": lambda x: x.sum(True),
    "a product with a number": lambda x: x @ -1,
    "an array as an index of a list": lambda x: [1, 2][x],
}
_REFUSED: dict[str, Callable[[Any], Any]] = {
    "the iterator of elements": lambda x: setattr(x * 2, "flat", 1),
    "another shape": lambda x: setattr(x * 2, "shape", (12,)),
    "pairs with a mask": lambda x: np.add.outer(x, x, where=x[0, 0] > 0),
    "bits of a number": lambda x: (x > 0).sum().item() & 1,
    "an attribute of a number": lambda x: x.sum().item().is_integer(),
    "a number as a key": lambda x: {0.5: 1}.get(x.sum().item()),
    "a number of complex numbers": lambda x: (x + 1j).sum().item(),
    "a number that is too large": lambda x: x.astype(np.uint64).sum().item(),
    "a function that is called in a trial": lambda x: np.apply_along_axis(
        lambda row: row * 2, 0, x
    ),
    "what shows values": lambda x: np.array2string(x),
    "what writes values to a file": lambda x: np.savetxt("/nowhere/at/all", x),
    "values in place of others": lambda x: np.nan_to_num(x * 2, copy=False),
    "an order that is not kept": lambda x: np.median(x * 2, overwrite_input=True),
    "a choice of objects": lambda x: np.where(x > 0, x, None),
    "objects": lambda x: x.astype(object),
    "scalars among objects": lambda x: np.array([x.sum(), None]),
    "as many numbers as a mask lets through": lambda x: (x * 2).__setitem__(x > 0, x[0]),
    "several outs": lambda x: np.modf(x, out=(np.zeros_like(x), np.zeros_like(x))),
    "numbers that may be complex": lambda x: np.linalg.eigvals(x[:, :3]),
    "roots that may be complex": lambda x: np.emath.sqrt(x),
    "a nest of arrays": lambda x: np.histogramdd(x, 2),
    "a complex number": lambda x: x.sum().item() * 1j,
    "a class as a choice": lambda x: _ANY.where(x > 0, np.float64, x),
    "parts between places by value": lambda x: np.split(x, (x[:, 0] > 8).astype(int)),
    "a size along an axis by value": lambda x: np.size(x, (x[0] > 8).sum()),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*_RIGHT, *_WRONG])
def test_a_corner_of_numpy_is_what_it_is_in_eager_mode(name: str, dtype: Any) -> None:
    functions = {**_RIGHT, **{key: _caught(run) for key, run in _WRONG.items()}}
    compiled = tt.compile(functions[name])
    for seed in range(3):
        x = np.random.default_rng(seed).normal(1, 2, (3, 4)).astype(dtype)
        x.flags.writeable = False
        assert _outcome(compiled, x) == _outcome(functions[name], x)


@pytest.mark.parametrize("name", _REFUSED)
def test_what_a_plan_cannot_do_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(TraceError, match=r"test_corners_of_numpy.py:\d+: .*; "):
        tt.compile(_REFUSED[name])(np.ones((3, 4)))


def test_no_call_warns_of_what_the_function_has_numpy_ignore() -> None:
    def run(x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(x)

    compiled = tt.compile(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert compiled(np.zeros(2)).tolist() == [-np.inf, -np.inf]
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        tt.compile(np.log)(np.zeros(2))


_SMALL = np.ones(2, np.int8)
_RAISING: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a number that does not fit": (lambda x: np.full_like(x, 300), _SMALL),
    "fewer places than numbers": (lambda x: np.full_like(x[:1], x), _SMALL),
    "texts as numbers": (lambda x: x.astype(float), np.array(["ab", "c"])),
}


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("name", _RAISING)
def test_what_an_array_cannot_be_made_of_raises_also_where_nobody_reads_it(
    name: str, is_read: bool
) -> None:
    step, x = _RAISING[name]

    def run(x: Any) -> Any:
        made = step(x)
        return made if is_read else x.size

    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError)) as expected:
        run(x)
    with pytest.raises(type(expected.value)) as found:
        tt.compile(run)(x)
    assert not isinstance(found.value, tt.TraceError)
