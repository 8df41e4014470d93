"""What a plan cannot follow around its function is refused by name and line, and left as it was."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from __future__ import annotations

import ctypes
import datetime
import decimal
import functools
import gc
import io
import itertools
import os
import queue
import random
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import timeit
import traceback
import types
import unittest.mock
import uuid
import warnings
import weakref
from collections import Counter, UserDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import TraceError

NOW = time.perf_counter


class Day(datetime.date):
    """A date."""


FOLDER = os.getcwd


def _number(value: float) -> Any:
    return tt.from_numpy([value], shape=(1,))


def test_a_refused_draw_leaves_the_generators_that_all_share_as_they_were() -> None:
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002  # what is refused

    with pytest.raises(TraceError, match="the state of random"):
        tt.compile(lambda x: x * random.random() * np.random.rand())(np.ones(2))  # noqa: NPY002

    assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002


@pytest.mark.parametrize("use", [lambda table: table["a"], lambda table: table[0]["a"]])
def test_an_array_with_fields_is_refused(use: Any) -> None:
    table = np.zeros(3, [("a", "f8"), ("b", "i4")])

    with pytest.raises(TraceError, match="an array with fields cannot be traced"):
        tt.compile(use)(table)


def test_an_iterator_is_refused_that_only_code_of_a_package_reads() -> None:
    package = types.ModuleType("package")
    source = "class Reader:\n    def next(self): return next(self.numbers)"
    exec(compile(source, f"{sysconfig.get_path('purelib')}/package.py", "exec"), vars(package))
    reader: Any = package.Reader()
    reader.numbers = itertools.count(1)

    with pytest.raises(TraceError, match=r"reader\.numbers is an iterator"):
        tt.compile(lambda x: x * reader.next())(np.ones(2))


def test_what_a_package_does_is_refused_with_the_line_that_calls_it() -> None:
    package = types.ModuleType("package")
    file = f"{sysconfig.get_path('purelib')}/package.py"
    exec(compile("def read(x): return float(x[0])", file, "exec"), vars(package))

    with pytest.raises(TraceError, match="call the package outside") as error:
        tt.compile(lambda x: x * package.read(x))(np.ones(2))
    assert str(error.value).startswith(__file__)
    assert f"that is at {file}:1" in str(error.value)
    # Here the package is the user.
    with pytest.raises(TraceError) as error:
        tt.compile(package.read)(np.ones(2))
    assert str(error.value).startswith(f"{file}:1")


def test_a_tensor_that_no_walk_finds_is_refused_with_the_line() -> None:
    hidden = _number(3.0)
    address = id(hidden)
    assert hidden is ctypes.cast(address, ctypes.py_object).value

    with pytest.raises(TraceError, match="finds in a way that a plan cannot follow") as error:
        tt.compile(lambda x: x * ctypes.cast(address, ctypes.py_object).value)(_number(1.0))
    assert str(error.value).startswith(__file__)


_threads = threading.enumerate


def _one(_: object) -> int:
    return 1


def _what_differs_at_every_call() -> dict[str, tuple[Callable[[Any], Any], str]]:
    state = np.random.RandomState(0)
    twister = random.Random(0)
    digits, settings = np.get_printoptions, {"errors": np.geterr}
    return {
        "clock": (lambda x: x * time.time(), "time.time"),
        "clock in a global": (lambda x: x * NOW(), "perf_counter"),
        "date": (lambda x: x * datetime.datetime.now().year, "datetime.now"),
        "unseeded": (lambda x: x * np.random.default_rng().random(), "without a seed"),
        "random state": (lambda x: x * state.rand(), "the state of state"),
        "random generator": (lambda x: x * twister.random(), "the state of twister"),
        "system": (lambda x: x * random.SystemRandom().random(), "without a seed"),
        "context": (lambda x: x * decimal.getcontext().prec, "decimal.getcontext"),
        "errors": (lambda x: x * len(np.geterr()), "geterr is read"),
        # What is tried is numpy's old generator.
        "state of numpy's": (lambda x: x * len(np.random.get_state()), "random.get_state"),  # noqa: NPY002
        "recursion": (lambda x: x * sys.getrecursionlimit(), "sys.getrecursionlimit"),
        "arguments": (lambda x: x * len(sys.argv), "sys.argv"),
        "folder": (lambda x: x * len(os.getcwd()), "os.getcwd"),
        "function of a folder": (lambda x: x * len(FOLDER()), "getcwd"),
        "file": (lambda x: x * os.path.exists(__file__), "path.exists"),
        "text of a file": (lambda x: x * len(open(__file__).read()), "open"),
        "text of a path": (lambda x: x * len(Path(__file__).read_text()), "Path.read_text"),
        "size of a path": (lambda x: x * Path(__file__).stat().st_size, "Path.stat"),
        "file by io": (lambda x: x * len(io.open(__file__).read()), "open"),  # noqa: UP020  # too
        "file by numpy": (lambda x: x * np.loadtxt([__file__][0]), "loadtxt"),
        "date of a class of the user's": (lambda x: x * Day.today().year, "Day.today"),
        "clock of a module of Python's": (lambda x: x * timeit.default_timer(), "perf_counter"),
        "filters": (lambda x: x * len(warnings.filters), "warnings.filters"),
        "collector": (lambda x: x * gc.isenabled(), "gc.isenabled"),
        "who calls": (lambda x: x * len(sys._getframe(1).f_code.co_name), "sys._getframe"),
        "an error": (lambda x: x * len(sys.exc_info()), "sys.exc_info"),
        "a thread": (lambda x: x * len(threading.current_thread().name), "current_thread"),
        "its number": (lambda x: x * threading.get_ident(), "threading.get_ident"),
        "a setting under another name": (lambda x: x * digits()["precision"], "get_printoptions"),
        "a setting in a dict": (lambda x: x * len(settings["errors"]()), "geterr is read"),
        "the threads that there are": (lambda x: x * sum(map(_one, _threads())), "enumerate"),
        "buffers": (lambda x: x * (np.setbufsize(8192) or 1), "setbufsize"),
        "calls that led here": (
            lambda x: x * len(traceback.extract_stack()),
            "traceback.extract_stack",
        ),
        "a profiler": (lambda x: x if sys.getprofile() is None else -x, "sys.getprofile"),
        "another program": (lambda x: x * subprocess.run(["true"]).returncode, "subprocess.run"),
        "the name of the machine": (lambda x: x * len(socket.gethostname()), "socket.gethostname"),
        "a unique number": (lambda x: x * (uuid.uuid1().int % 7), "uuid.uuid1"),
        "space on a disk": (lambda x: x * shutil.disk_usage("/").free, "shutil.disk_usage"),
        "classes below": (lambda x: x * len(Day.__subclasses__()), "__subclasses__"),
    }


@pytest.mark.parametrize("name", list(_what_differs_at_every_call()))
def test_what_differs_at_every_call_is_refused_by_name_and_line(name: str) -> None:
    run, what = _what_differs_at_every_call()[name]

    with pytest.raises(TraceError, match=re.escape(what)) as error:
        tt.compile(run)(_number(1.0))
    line = run.__code__.co_firstlineno
    assert str(error.value).startswith(f"{__file__}:{line}: compile: ")


def test_the_state_of_a_generator_that_drew_is_put_back() -> None:
    state = np.random.RandomState(0)
    with pytest.raises(TraceError):
        tt.compile(lambda x: x * state.rand())(_number(1.0))

    assert state.rand() == np.random.RandomState(0).rand()


def test_a_function_that_catches_what_is_refused_is_refused() -> None:
    def run(x: Any) -> Any:
        try:
            return x * float(x.item())
        except Exception:
            return x

    with pytest.raises(TraceError, match="the value of a number is read"):
        tt.compile(run)(_number(1.0))


def test_a_function_in_python_that_keeps_its_results_keeps_no_stand_ins() -> None:
    @functools.lru_cache
    def double(x: Any) -> Any:
        return x * 2.0

    with pytest.raises(TraceError, match="double keeps what it computes"):
        tt.compile(lambda x: double(x))(_number(1.0))
    assert double.cache_info().currsize == 0


class Fresh:
    """A descriptor that gives another object at every read."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return [1.0]

    def __set__(self, instance: Any, value: Any) -> None:
        raise AssertionError("it is set")


class WithDescriptors:
    fresh = Fresh()
    half = functools.partialmethod(lambda self, factor, x: x * factor * self.value, 0.5)

    def __init__(self) -> None:
        self.value = 2.0


def test_descriptors_and_methods_with_arguments_stay_as_they_were() -> None:
    held, before = WithDescriptors(), dict(vars(WithDescriptors))
    vars(held)["fresh"] = 5.0
    compiled = tt.compile(lambda x: held.half(x) * held.fresh[0])

    assert compiled(_number(3.0)).item() == 3.0
    assert dict(vars(WithDescriptors)) == before
    assert vars(held) == {"value": 2.0, "fresh": 5.0}


@dataclass
class Record:
    items: list[float]
    table: dict[str, float]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda held: held["user dict"].update(b=1), "b"),
        (lambda held: held["counter"].update("a"), "a"),
        (lambda held: held["deque"].rotate(), "deque"),
        (lambda held: held["default"]["missing"], "missing"),
        (lambda held: held["record"].items.append(1.0), "items"),
        (lambda held: held["set"].add(3.0), "3.0"),
        (lambda held: held["queue"].put(1.0), "queue"),
        (lambda held: setattr(held["function"], "calls", 1), "calls"),
        (lambda held: setattr(held["slots"], "one", 1.0), "one"),
        (lambda held: held["array"].fill(0.0), "array"),
    ],
)
def test_a_change_inside_what_is_found_is_refused_and_undone(change: Any, what: str) -> None:
    class Slots:
        __slots__ = ("one", "two")

    slots = Slots()
    slots.two = 2.0  # type: ignore[attr-defined]  # the class has slots

    def function() -> None:
        pass

    held: dict[str, Any] = {
        "user dict": UserDict(a=1),
        "counter": Counter("ab"),
        "deque": deque([1.0, 2.0]),
        "default": defaultdict(list),
        "record": Record([1.0], {}),
        "set": {1.0, 2.0},
        "queue": queue.SimpleQueue(),
        "function": function,
        "slots": slots,
        "array": np.ones(2),
    }

    def shown() -> str:
        rest = [vars(function), held["queue"].qsize(), hasattr(slots, "one"), held["record"].items]
        names = ("user dict", "counter", "deque", "default", "set", "array")
        return repr([*[held[name] for name in names], rest])

    before = shown()

    def run(x: Any) -> Any:
        change(held)
        return x

    with pytest.raises(TraceError, match=what) as error:
        tt.compile(run)(_number(1.0))
    assert str(error.value).startswith(__file__)
    assert shown() == before


class Plain:
    """An object with attributes."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_call_that_fails_leaves_all_as_it_was(error: type[BaseException]) -> None:
    rng, weight, array = np.random.default_rng(0), _number(1.0), np.ones(1)
    inner = [rng, (weight, array)]
    held = Plain(rng=rng, w=weight, nest=inner, array=array)
    before, nest = dict(vars(held)), list(inner)

    def run(x: Any, h: Any) -> Any:
        h.rng.random(2)
        raise error("stop")

    with pytest.raises(error):
        tt.compile(run)(_number(1.0), held)
    assert all(one is before[name] for name, one in vars(held).items())
    assert all(one is other for one, other in zip(inner, nest, strict=True))
    assert type(weight.array) is np.ndarray
    assert array.flags.writeable
    assert isinstance(vars(tt.tensor.base.TensorBase)["_array"], types.MemberDescriptorType)


def test_what_is_too_deep_to_be_followed_is_refused_with_the_function() -> None:
    @tt.compile
    def turned(x: Any) -> Any:
        for _ in range(1300):
            x = x[::-1]
        return x * 1.0

    with pytest.raises(TraceError, match=r"too deep to be followed; .* copy\(\)") as error:
        turned(np.ones(3))
    assert str(error.value).startswith(__file__)


def test_what_a_method_that_python_writes_decides_by_is_refused_with_the_users_line() -> None:
    @dataclass
    class Held:
        array: Any
        rate: float = 1.0

    @tt.compile
    def equal(x: Any) -> bool:
        return Held(x) == Held(x * 1)

    with pytest.raises(TraceError, match=rf"{__file__}:\d+: .* depends on the values"):
        equal(np.ones(2))


def test_what_only_looks_like_a_model_is_refused_by_name() -> None:
    model = nn.Linear(3, 2, rng=np.random.default_rng(0))
    proxy: Any = weakref.proxy(model)
    mock: Any = unittest.mock.Mock(spec=nn.Module)
    for other, told in ((proxy, "weakref.proxy"), (mock, "mock")):
        run: Any = tt.compile(lambda x, other=other: (other.parameters(), x)[1])
        with pytest.raises(TraceError, match=f"is a {told}"):
            run(tt.ones((2, 3)))
