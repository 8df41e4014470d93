"""What a compiled function reads around itself is never stale, or is refused by name and line."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import types
from collections import ChainMap, Counter, UserDict, UserList, defaultdict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.compiler import plans

FACTOR = 1.0
VARIABLE: ContextVar[float] = ContextVar("VARIABLE", default=1.0)


def _number(value: float) -> Any:
    return tt.from_numpy([value], shape=(1,))


class Plain:
    """An object with attributes."""

    offset = 0.0

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


class Heir(Plain):
    """One that inherits them."""


class ListOf(list[float]):
    scale = 1.0


class FloatWith(float):
    scale: float


class Operators:
    """Everything in it reads a global where no name of a method is in the code."""

    def __add__(self, other: Any) -> Any:
        return other * FACTOR

    def __getitem__(self, key: str) -> Any:
        return FACTOR

    def __getattr__(self, name: str) -> Any:
        return FACTOR

    def __call__(self, x: Any) -> Any:
        return x * FACTOR

    def __enter__(self) -> float:
        return FACTOR

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[float]:
        yield FACTOR

    @property
    def factor(self) -> float:
        return FACTOR


@contextlib.contextmanager
def _factor() -> Iterator[float]:
    yield FACTOR


def _scaled_by_factor(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(x: Any) -> Any:
        return function(x) * FACTOR

    return run


def _in_context(x: Any) -> Any:
    with Operators() as factor:
        return x * factor


def _in_generator_context(x: Any) -> Any:
    with _factor() as factor:
        return x * factor


def _in_loop(x: Any) -> Any:
    for factor in Operators():
        x = x * factor
    return x


_READERS: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: Operators() + x,
    "item": lambda x: x * Operators()["a"],
    "attribute": lambda x: x * Operators().anything,
    "call": lambda x: Operators()(x),
    "context manager": _in_context,
    "generator as context manager": _in_generator_context,
    "loop": _in_loop,
    "property": lambda x: x * Operators().factor,
    "decorator": _scaled_by_factor(lambda x: x),
    "key": lambda x: x * max([0.0, 1.0], key=lambda _: FACTOR) + x * FACTOR,
}


@pytest.mark.parametrize("name", list(_READERS))
def test_a_global_is_read_wherever_code_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tt.compile(_READERS[name])
    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert compiled(_number(5.0)).item() == _READERS[name](_number(5.0)).item()
    assert len(plans(compiled)) == 2


def _models() -> dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any, Any], None]]]:
    """Return objects that hold something, how it is read, and how it is replaced."""

    def put(name: str) -> Callable[[Any, Any], None]:
        return lambda held, value: setattr(held, name, value)

    def enter(held: Any, value: Any) -> None:
        held["w"] = value

    def with_scale(value: Any) -> Any:
        value.scale = 1.0
        return value

    by_name = lambda held: held.w  # noqa: E731
    by_key = lambda held: held["w"]  # noqa: E731
    wrapped = functools.partial(lambda w: w, w=1.0)
    function: Any = lambda: None  # noqa: E731
    function.w = 1.0
    return {
        "namespace": (types.SimpleNamespace(w=1.0), by_name, put("w")),
        "arguments": (argparse.Namespace(w=1.0), by_name, put("w")),
        "object": (Plain(w=1.0), by_name, put("w")),
        "class of a base": (
            Heir(), lambda held: held.offset + 1.0, lambda _, w: setattr(Plain, "offset", w)
        ),
        "shadowed attribute": (
            Heir(), lambda held: held.offset + 1.0, lambda _, w: setattr(Heir, "offset", w)
        ),
        "function": (function, by_name, put("w")),
        "user dict": (UserDict(w=1.0), by_key, enter),
        "user list": (UserList([1.0]), lambda held: held[0], lambda h, w: h.__setitem__(0, w)),
        "chain": (ChainMap({}, {"w": 1.0}), by_key, enter),
        "counter": (Counter(w=1), by_key, enter),
        "default dict": (defaultdict(float, w=1.0), by_key, enter),
        "partial": (wrapped, lambda held: held(), lambda h, w: h.keywords.__setitem__("w", w)),
        "list with attributes": (with_scale(ListOf([1.0])), lambda h: h.scale, put("scale")),
        "number with attributes": (
            with_scale(FloatWith(1.0)), lambda held: held * held.scale, put("scale")
        ),
        "names in a list": (
            (["offset"], Plain()), lambda held: sum(getattr(held[1], n) for n in held[0]) + 1.0,
            lambda _, w: setattr(Plain, "offset", w),
        ),
        "key": (
            ({(key := Plain(w=1.0)): 0}, key), lambda held: sum(one.w for one in held[0]),
            lambda held, w: setattr(held[1], "w", w),
        ),
        "method of a dict": (
            ((other := {"w": 1.0}).get, other), lambda held: held[0]("w"),
            lambda held, w: held[1].__setitem__("w", w),
        ),
        "nest": (
            [{"a": (types.SimpleNamespace(w=1.0),)}],
            lambda held: held[0]["a"][0].w,
            lambda held, w: setattr(held[0]["a"][0], "w", w),
        ),
        "attribute by its text": (
            Plain(), lambda held: getattr(held, "w", 1.0), put("w")
        ),
        "attribute of a class by its text": (
            Heir(), lambda held: getattr(Heir, "later", 1.0),
            lambda _, w: setattr(Heir, "later", w),
        ),
    }  # fmt: skip


@pytest.fixture
def _classes_as_they_were() -> Iterator[None]:
    yield
    Plain.offset = 0.0
    for cls in (Heir, Plain):
        for name in ("offset", "later"):
            if name in vars(cls) and (cls, name) != (Plain, "offset"):
                delattr(cls, name)
    VARIABLE.set(1.0)


@pytest.mark.parametrize("way", ["closure", "argument"])
@pytest.mark.parametrize("name", list(_models()))
@pytest.mark.usefixtures("_classes_as_they_were")
def test_what_an_object_holds_is_never_stale(name: str, way: str) -> None:
    held, read, replace = _models()[name]
    run: Any = (lambda x: x * read(held)) if way == "closure" else (lambda x, h: x * read(h))
    rest = () if way == "closure" else (held,)
    compiled = tt.compile(run)
    for value in (None, 3.0, 2.0, 2):
        if value is not None:
            replace(held, value)
        expected = run(_number(5.0).numpy().copy(), *rest)
        np.testing.assert_array_equal(compiled(_number(5.0), *rest).numpy(), expected)


def test_a_function_of_a_module_that_is_being_imported_reads_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tt_script.py").write_text(
        "import tapetensor as tt\n"
        "SCALE, W = 2.0, tt.ones((3,))\n"
        "@tt.compile\n"
        "def run(x):\n"
        "    return x * W * SCALE\n"
        "first = run(W)\n"
        "SCALE = 5.0\n"
        "second = run(W)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    script: Any = importlib.import_module("tt_script")

    assert script.first.tolist() == [2.0, 2.0, 2.0]
    assert script.second.tolist() == [5.0, 5.0, 5.0]
    script.SCALE = 7.0
    assert script.run(script.W).tolist() == [7.0, 7.0, 7.0]


@pytest.mark.parametrize("kind", [types.SimpleNamespace, Plain, dict])
def test_what_is_written_into_an_array_around_is_seen(kind: Any) -> None:
    array = np.array([1.0])
    held = kind(w=array)
    compiled = tt.compile(lambda x: x * float((held["w"] if kind is dict else held.w)[0]))
    for value in (1.0, 2.0, -0.0, 0.0):
        array[0] = value
        found = compiled(_number(1.0)).numpy()
        assert found.tobytes() == np.array([value], np.float32).tobytes()


@pytest.mark.parametrize("kind", [types.SimpleNamespace, argparse.Namespace, Plain])
def test_a_model_in_a_namespace_sees_training(kind: Any) -> None:
    holder = kind(w=_number(1.0))
    compiled = tt.compile(lambda x: x * holder.w)
    compiled(_number(1.0))
    holder.w = _number(7.0)

    assert compiled(_number(1.0)).item() == 7.0


def test_what_was_kept_of_plain_values_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.lru_cache
    def scale(count: int) -> Any:
        return count * Plain.offset + 1.0

    compiled = tt.compile(lambda x: x * scale(3))
    for _ in range(3):
        assert compiled(_number(2.0)).item() == 2.0
    assert len(plans(compiled)) == 1
    monkeypatch.setattr(Plain, "offset", 1.0)
    scale.cache_clear()

    assert compiled(_number(2.0)).item() == 8.0


@pytest.mark.parametrize("kind", ["method", "partial", "lambda", "object", "bound in object"])
def test_another_object_of_the_same_kind_in_each_call_makes_no_other_plan(kind: str) -> None:
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))
    compiled = tt.compile(lambda f, x: f(x) if callable(f) else f.w * x)
    for value in (1.0, 2.0, 3.0):
        weight = _number(value)
        made: dict[str, Any] = {
            "method": model.forward,
            "partial": functools.partial(lambda w, x: w * x, weight),
            "lambda": lambda x, w=weight: x * w,
            "object": Plain(w=weight),
            "bound in object": types.MethodType(lambda self, x: self.w * x, Plain(w=weight)),
        }
        x: Any = tt.ones((1, 1))
        expected = made[kind](x) if callable(made[kind]) else weight * x
        np.testing.assert_array_equal(compiled(made[kind], x).numpy(), expected.numpy())
    assert len(plans(compiled)) == 1


def test_tensors_and_objects_may_be_keys() -> None:
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))
    factors = {model.weight: 2.0, Plain(w=1.0): 3.0, (model.bias, 1): 4.0}
    compiled = tt.compile(lambda x: model.forward(x) * sum(factors.values()))
    x: Any = tt.ones((1, 1))

    assert compiled(x).item() == (model.forward(x) * 9.0).item()


def test_what_a_cached_function_gives_again_is_read_at_every_call() -> None:
    class Held:
        scale = 2.0

    @functools.lru_cache
    def weight() -> Any:
        return tt.from_numpy([3.0], shape=(1,))

    @functools.cache
    def array() -> Any:
        return np.ones(1, np.float32)

    @functools.lru_cache
    def held() -> Any:
        return Held()

    function: Any = tt.compile(lambda x: x * weight().numpy() * array() * held().scale)
    x = np.ones(1, np.float32)
    weight(), array(), held()
    found = []
    for change in (
        lambda: None,
        lambda: array().fill(5.0),
        lambda: setattr(held(), "scale", 7.0),
        weight.cache_clear,
        array.cache_clear,
    ):
        change()
        found.append(function(x).item())
        weight(), array()

    assert found == [6.0, 30.0, 105.0, 105.0, 21.0]


SCALE = 2.0


def _scaled_kernel(x: Any) -> Any:
    return x * 1, (lambda g: g * x.dtype.type(SCALE),)


def _scaled(x: Any) -> Any:
    return x * SCALE


@pytest.mark.parametrize(
    "op",
    [
        lambda x: tt.custom_op(_scaled_kernel, x, shape=x.shape),
        lambda x: tt.checkpoint(_scaled, x),
    ],
)
def test_a_global_that_the_users_pullback_reads_makes_another_plan(
    op: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: Any = tt.compile(lambda x: (op(x.trace()) * 3.0).sum().backward()[x])
    assert compiled(tt.ones((1,))).item() == 6.0

    monkeypatch.setitem(globals(), "SCALE", 7.0)

    assert compiled(tt.ones((1,))).item() == 21.0
