"""What a compiled function may name is a list: the rest may be handed on, and no more."""

from __future__ import annotations

import importlib.util
import logging
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.compiler import plans
from tapetensor.compiler.trace.closed_list import MODULES
from tapetensor.errors import TraceError

LOCK, LOG, NUMBERS = threading.Lock(), logging.getLogger(__name__), iter([1.0, 2.0])
FIRST = np.ones(3)


def _logged(x: Any) -> Any:
    LOG.info("one")
    return x


# What is refused, with what the error names and the cure.
REFUSED: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a clock": (lambda x: x * time.perf_counter(), "time.perf_counter", "pass the time"),
    "a date": (lambda x: x * datetime.now().hour, "datetime.now", "pass them"),
    "a draw": (lambda x: x * random.random(), "random.random", "np.random.Generator"),
    "numpy's draw": (
        lambda x: x * np.random.rand(),  # noqa: NPY002  # what is refused
        "numpy.random.rand",
        "np.random.Generator",
    ),
    "no seed": (lambda x: x * np.random.default_rng().random(), "without a seed", "pass it"),
    "a file": (
        lambda x: x * len(open(__file__).read()),  # noqa: SIM115  # what is refused
        "open",
        "pass what it holds",
    ),
    "numpy's file": (lambda x: x + np.load("x.npy"), "numpy.load", "pass what it gives"),
    "the process": (lambda x: x * os.getpid(), "os.getpid", "pass what it gives"),
    "arguments": (lambda x: x * len(sys.argv), "sys.argv", "pass what it gives"),
    "a lock": (lambda x: x if LOCK.locked() else -x, "LOCK.locked", "pass what it gives"),
    "a logger": (_logged, "LOG.info", "log it outside"),
    "a warning": (
        lambda x: warnings.warn("one", stacklevel=2) or x,
        "warnings.warn",
        "warn outside",
    ),
    "an iterator": (lambda x: x * next(NUMBERS), "NUMBERS", "pass what it gives"),
    "text that is run": (lambda x: x * eval("2.0"), "eval", "write it out"),
    "names": (lambda x: x * len(globals()), "globals", "write them out"),
    "a dict of names": (lambda x: x * len(LOG.__dict__), "__dict__", "write x.name"),
    "an address": (lambda x: x * id(x), "id is used", "compare with `is`"),
    "a class": (
        lambda x: [type("A", (), {"a": 2.0}), x],
        "three arguments",
        "make it outside",
    ),
    "an import": (_imports := lambda x: x * __import__("time").time(), "__import__", "outside"),
    "files of ours": (lambda x: tt.io.save("x", x), "tapetensor.io", "outside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_on_no_list_is_refused_where_it_is_used(name: str) -> None:
    function, named, cure = REFUSED[name]

    with pytest.raises(TraceError, match=r"test_closed_list.py:\d+: compile: .*; ") as error:
        tt.compile(function)(tt.ones((3,)))

    assert named in str(error.value)
    assert cure in str(error.value)


def test_what_is_on_no_list_may_be_handed_on() -> None:
    def unused(x: Any, _lock: Any, log: Any) -> Any:
        return x * 2.0 if log is not None else x

    compiled: Any = tt.compile(lambda x, log: unused(x, LOCK, log))

    assert compiled(tt.ones((1,)), LOG).item() == 2.0
    assert compiled(tt.ones((1,)), None).item() == 1.0
    assert compiled(tt.ones((1,)), logging.getLogger("another")).item() == 2.0
    assert len(plans(compiled)) == 2


def test_an_import_inside_is_refused_as_one_outside_is() -> None:
    def timed(x: Any) -> Any:
        import time

        return x * time.time()

    with pytest.raises(TraceError, match=r"time is imported inside.*pass the time"):
        tt.compile(timed)(tt.ones((3,)))


WRITES: dict[str, Callable[[Any], Any]] = {
    "an element": lambda x: x.copy().__setitem__(0, 1.0),
    "in place": lambda x: x.copy().__iadd__(1.0),
    "into an out": lambda x: np.exp(x, out=np.zeros_like(x)),
    "a copy": lambda x: np.copyto(np.zeros_like(x), x),
    "at places": lambda x: np.add.at(x.copy(), [0], 1.0),
    "into an array by place": lambda x: np.mean(x, 0, None, np.zeros(())),
    "into an array of a function of C": lambda x: np.dot(x, np.eye(3), np.zeros(3)),
    "into several arrays": lambda x: np.divmod(x, 2.0, np.zeros(3), np.zeros(3)),
    "at the places of a mask": lambda x: np.put(x, [0], 1.0),
    "without a copy": lambda x: np.nan_to_num(x, copy=False),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_into_an_array_is_refused_with_what_to_write_instead(name: str) -> None:
    with pytest.raises(TraceError, match=r"written into .*np\.where\(mask, a, b\)"):
        tt.compile(WRITES[name])(np.ones(3))


@pytest.mark.parametrize(
    "result",
    [
        lambda: {1.0, 2.0}, lambda: len, lambda: range, lambda: LOCK, lambda: np.random,
        lambda: iter([1.0]), lambda: nn.ReLU(),
    ],
)  # fmt: skip
def test_results_are_of_a_few_kinds(result: Callable[[], Any]) -> None:
    with pytest.raises(TraceError, match=r"a result is a .* return tensors, arrays, numbers"):
        tt.compile(lambda x: (x, result()))(tt.ones((3,)))


def test_every_name_on_the_list_is_there() -> None:
    for name, row in MODULES.items():
        if name.partition(".")[0] not in ("numpy", "tapetensor", "typing_extensions"):
            assert row.only is None
            assert importlib.util.find_spec(name) is not None


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return a module of an installed package."""
    folder = tmp_path / "site-packages" / "installed_settings"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "import dataclasses, types\n"
        "class Settings:\n    scale = 1.0\n"
        "@dataclasses.dataclass\nclass Config:\n    scale: float = 1.0\n"
        "BY_DICT, BY_LIST, BY_OBJECT = {'scale': 1.0}, [1.0], types.SimpleNamespace(scale=1.0)\n"
        "BY_DATA, SCALE, HISTORY = Config(), 1.0, []\n"
        "def by_dict(x): return x * BY_DICT['scale']\n"
        "def by_list(x): return x * BY_LIST[0]\n"
        "def by_object(x): return x * BY_OBJECT.scale\n"
        "def by_data(x): return x * BY_DATA.scale\n"
        "def by_class(x): return x * Settings.scale\n"
        "def by_name(x): return x * SCALE\n"
        "def counts(x): HISTORY.append(1); return x\n"
        "def closing(settings):\n    return lambda x: x * settings['scale']\n"
    )
    monkeypatch.syspath_prepend(folder.parent)
    yield importlib.import_module("installed_settings")
    sys.modules.pop("installed_settings", None)


CHANGES: dict[str, Callable[[Any, float], None]] = {
    "by_dict": lambda package, scale: package.BY_DICT.update(scale=scale),
    "by_list": lambda package, scale: package.BY_LIST.__setitem__(0, scale),
    "by_object": lambda package, scale: setattr(package.BY_OBJECT, "scale", scale),
    "by_data": lambda package, scale: setattr(package.BY_DATA, "scale", scale),
    "by_class": lambda package, scale: setattr(package.Settings, "scale", scale),
    "by_name": lambda package, scale: setattr(package, "SCALE", scale),
}


@pytest.mark.parametrize("name", CHANGES)
def test_installed_code_is_watched_as_the_users_is(name: str, package: Any) -> None:
    function = getattr(package, name)
    for compiled in (tt.compile(function), tt.compile(lambda x: function(x) + 0.0)):
        for scale in (1.0, 5.0, 2.0):
            CHANGES[name](package, scale)
            assert compiled(tt.ones((1,))).item() == scale


def test_what_an_installed_function_changes_is_refused(package: Any) -> None:
    with pytest.raises(TraceError, match=r"installed_settings/__init__.py:\d+: .*HISTORY\[0\]"):
        tt.compile(package.counts)(tt.ones((1,)))
    assert package.HISTORY == []


def test_what_an_installed_function_closes_over_is_read_at_every_call(package: Any) -> None:
    settings = {"scale": 1.0}
    compiled = tt.compile(package.closing(settings))
    for settings["scale"] in (1.0, 3.0):
        assert compiled(tt.ones((1,))).item() == settings["scale"]


def test_a_module_that_the_user_trusts_runs_unwatched(package: Any) -> None:
    compiled: Any = tt.compile(lambda x: package.counts(x), trusts=("installed_settings",))

    assert compiled(tt.ones((1,))).item() == 1.0
    assert compiled(tt.ones((1,))).item() == 1.0
    assert package.HISTORY == [1]


def test_other_threads_evaluate_a_model_during_a_first_call() -> None:
    rng = np.random.default_rng(0)
    model: Any = nn.Sequential(
        nn.Linear(4, 8, rng=rng), nn.BatchNorm1d(8), nn.Dropout(0.1, rng=rng)
    )
    optimizer, errors, is_done = tt.optim.Sgd(model, lr=0.1), [], threading.Event()
    counted = 0

    def evaluate() -> None:
        nonlocal counted
        while not is_done.is_set():
            try:
                model.forward(tt.ones((2, 4)))
                counted += 1
            except BaseException as error:
                errors.append(error)

    def step(x: Any) -> Any:
        loss = model.forward(x.trace()).square().mean()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return value

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=evaluate)
    thread.start()
    sys.setswitchinterval(1e-5)
    try:
        for size in range(2, 8):
            tt.compile(step)(tt.ones((size, 4)))
    finally:
        is_done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert not errors
    assert counted
