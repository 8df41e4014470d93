"""How long plans live, and what they keep alive: as little, and no longer than they are used."""

from __future__ import annotations

import contextlib
import cProfile
import gc
import inspect
import linecache
import re
import sys
import types
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import MAX_PLANS, Plan, plans
from tapetensor.compiler import compiled as compiled_functions
from tapetensor.compiler.compiled import PlanCache
from tapetensor.compiler.emit.backward import BackwardPlan
from tapetensor.compiler.trace.capture import Capture
from tapetensor.compiler.trace.guards import MISS
from tapetensor.compiler.trace.watching import watched
from tapetensor.errors import TraceError


@pytest.fixture
def without_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _model() -> Any:
    rng = np.random.default_rng(0)
    return nn.Sequential(nn.Linear(16, 64, rng=rng), nn.Linear(64, 4, rng=rng))


def _step() -> Any:
    model = _model()
    optimizer = optim.Adam(model)

    @tt.compile
    def step(x: Any) -> Any:
        loss = (model(x.trace()).tanh() * 2.0).square().mean()
        optimizer.step(loss.backward())
        return loss

    return step


def _with_groups() -> Any:
    return tt.compile(lambda x: ((x * 2.0 + 1.0).tanh() / 3.0).sum())


def _x(rows: int) -> Any:
    return tt.ones((rows, 16))


def _arenas(compiled: Any) -> list[weakref.ref[Any]]:
    """Return references to the plans of a function, and to the memory of these."""
    found: list[weakref.ref[Any]] = []
    for plan in plans(compiled):
        arrays = [one for one in plan._names.values() if isinstance(one, np.ndarray)]
        regions = [one.base for one in arrays if one.base is not None]
        assert regions
        found += map(weakref.ref, [plan, *regions])
    return found


@pytest.mark.parametrize(("make", "rows"), [(_step, 8), (_with_groups, 8), (_with_groups, 20_000)])
def test_a_plan_dies_with_its_function_at_once(
    make: Any, rows: int, without_garbage_collector: None
) -> None:
    compiled = make()
    compiled(_x(rows))
    alive = _arenas(compiled)

    del compiled

    assert [one() for one in alive] == [None] * len(alive)


def test_the_memory_of_a_backward_plan_dies_with_its_function_at_once(
    without_garbage_collector: None,
) -> None:
    before = {id(one) for one in gc.get_objects() if isinstance(one, BackwardPlan)}
    compiled = _with_groups()
    x = _x(8).trace()
    compiled(x).backward()
    made = [one for one in gc.get_objects() if isinstance(one, BackwardPlan)]
    alive = [weakref.ref(one) for one in made if id(one) not in before]
    del made

    del compiled, x

    assert alive
    assert [one() for one in alive] == [None] * len(alive)


def test_capturing_leaves_no_garbage(without_garbage_collector: None) -> None:
    step = _step()
    gc.collect()
    step(_x(8))

    assert gc.collect() == 0


def _raises(held: list[Any], x: Any) -> Any:
    raise ValueError(x * held[0])


def _changes(held: list[Any], x: Any) -> Any:
    held.append(1.0)
    return x


def _reads(held: list[Any], x: Any) -> Any:
    return held[0] if x.sum().item() > 0.0 else x


@pytest.mark.parametrize("function", [_raises, _changes, _reads])
def test_a_capture_that_fails_leaves_no_garbage_and_keeps_nothing_alive(
    function: Any, without_garbage_collector: None
) -> None:
    compiled = tt.compile(function)
    held = [_x(1)]
    alive = weakref.ref(held[0])
    with pytest.raises((tt.TapeTensorError, ValueError)):
        compiled(held, _x(8))
    gc.collect()
    with contextlib.suppress(tt.TapeTensorError, ValueError):
        compiled(held, _x(8))

    del held

    assert alive() is None
    assert gc.collect() == 0


def test_a_capture_leaves_profilers_and_debuggers_as_they_were() -> None:
    seen: list[str] = []

    def profile(frame: object, event: str, argument: object) -> None:
        seen.append(event)

    profiler = cProfile.Profile()
    sys.setprofile(profile)
    try:
        _with_groups()(_x(8))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    with profiler:
        _with_groups()(_x(8))
        _x(8)

    assert any(code.co_name == "_x" for code, *_ in profiler.getstats() if hasattr(code, "co_name"))


@pytest.mark.parametrize("begin", [Capture.overlaid, watched])
def test_ctrl_c_where_a_capture_begins_to_watch_leaves_nothing_behind(begin: Any) -> None:
    code = inspect.unwrap(begin).__code__
    begun, count = False, 0
    while not begun:
        count += 1
        before = count

        def interrupt(frame: Any, event: str, argument: object) -> Any:
            nonlocal begun, before
            if frame.f_code is code and event == "line" and not begun:
                before -= 1
                # From here on the function runs.
                begun = linecache.getline(code.co_filename, frame.f_lineno).strip() == "yield"
                if not before:
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                _with_groups()(_x(8))
        finally:
            sys.settrace(None)
            left = sys.getprofile()
            sys.setprofile(None)
        assert left is None
        assert isinstance(vars(tt.tensor.base.TensorBase)["_array"], types.MemberDescriptorType)


def test_kinds_beyond_the_limit_run_as_the_function_does_and_one_warning_says_so() -> None:
    compiled: Any = tt.compile(lambda x: (x * 2.0).sum())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in range(1, MAX_PLANS + 11):
            assert compiled(_x(rows)).item() == 32 * rows

    (warning,) = caught
    assert warning.filename == __file__
    assert "more than 16 kinds (this call differs from the last one in argument 0); " in str(
        warning.message
    )
    assert "padded" in str(warning.message)
    assert len(plans(compiled)) == MAX_PLANS


class _Stage:
    def __init__(self) -> None:
        self.beta = 0.0
        self.notes: dict[str, Any] = {"rate": [0.0]}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda one, call: setattr(one, "beta", call), "argument 0.beta"),
        (lambda one, call: one.notes["rate"].append(call), "argument 0.notes['rate']"),
        (lambda one, call: setattr(one, f"beta{call}", call), "argument 0"),
    ],
)
def test_the_warning_of_many_kinds_says_what_differs(change: Any, where: str) -> None:
    one = _Stage()
    compiled: Any = tt.compile(lambda one, x: x * one.beta * len(one.notes["rate"]))
    for call in range(MAX_PLANS):
        change(one, call)
        compiled(one, np.ones(1))
    change(one, MAX_PLANS)

    with pytest.warns(UserWarning, match=re.escape(f"differs from the last one in {where});")):
        compiled(one, np.ones(1))


def test_any_name_of_an_attribute_and_any_key_can_stand_in_a_source() -> None:
    one: Any = _Stage()
    one.notes = {"\n\0\udc80 # ": 2.0}
    vars(one)["a\n\0\udc80"] = 3.0
    compiled: Any = tt.compile(lambda x: x * sum(getattr(one, "a\n\0\udc80") for _ in one.notes))

    for _ in range(2):
        assert compiled(np.ones(1)).tolist() == [3.0]


@pytest.mark.filterwarnings("ignore:compile")
def test_a_program_that_stays_with_new_kinds_after_the_limit_gets_plans_for_them() -> None:
    compiled: Any = tt.compile(lambda x, count: (x * 2.0).sum() + count)
    for count in range(20):
        compiled(_x(1), count)
    for _ in range(MAX_PLANS):
        compiled(_x(1), 0.5)
    before = plans(compiled)

    compiled(_x(1), 0.5)

    assert plans(compiled) == before
    assert "0.5" in repr(before[0]._names.values())


@pytest.mark.filterwarnings("ignore:compile")
def test_ever_new_kinds_are_traced_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(compiled_functions, "Plan", _counted(made))
    compiled: Any = tt.compile(lambda x, count: (x * 2.0).sum() + count)

    for count in range(1000):
        compiled(_x(1), count)

    assert len(made) == MAX_PLANS + 6


def _counted(made: list[int]) -> Any:
    class CountedPlan(Plan):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            made.append(1)
            super().__init__(*args, **kwargs)

    return CountedPlan


def test_a_call_that_does_not_fit_its_own_plan_is_an_error_with_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PlanCache, "replay", lambda *_: MISS)
    compiled: Any = tt.compile(lambda x: x * 2.0)

    with pytest.raises(TraceError, match=r"test_life_of_plans.py:\d+: .* does not fit the plan"):
        compiled(_x(1))


def test_what_freed_memory_holds_keeps_no_index_from_being_planned() -> None:
    @tt.compile
    def rows(table: Any, ids: Any) -> Any:
        return table[ids.astype(int) % 5]

    table = np.arange(10.0).reshape(5, 2)
    ids = np.asfortranarray(np.arange(16.0).reshape(4, 1, 4))
    for _ in range(3):
        # Arrays of so many bytes are given again.
        del [np.full(ids.size, 10**9) for _ in range(40)][:]
        np.testing.assert_array_equal(rows(table, ids), table[ids.astype(int) % 5])

    assert len(plans(rows)) == 1
