"""What ordinary functions name, hold and do is no trouble to a checkpoint."""

from __future__ import annotations

import gc
import itertools
import logging
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor import nn
from tests.checkpointing.trials import VALUES, Scale, Trial, outcome


class Strange:
    """An object that refuses to be asked."""

    @override
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"do not ask for {name}")

    @override
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    __hash__ = None  # type: ignore[assignment]  # nor is it a key


def test_what_ordinary_functions_name_is_no_trouble(tmp_path: Any) -> None:
    log = logging.getLogger("checkpointed")
    lock = threading.Lock()
    strange = [Strange()]
    scratch = np.empty(1 << 18)
    with (tmp_path / "log.txt").open("w") as file:

        def f(x: Any) -> Any:
            with lock:
                file.write("run\n")
                log.debug("%s", x.shape)
                np.copyto(scratch[:12], x.detach().numpy().ravel())
            assert len(strange) == 1
            return nn.init.zeros is not None and (x * float(np.sqrt(4.0))).sum()

        trial = Trial(f, lambda: file.write("between\n"))
        assert outcome(trial, is_checkpointed=True) == outcome(trial, is_checkpointed=False)


def test_what_does_not_lead_to_the_result_may_differ() -> None:
    numbers = itertools.count(1)

    def f(x: Any) -> Any:
        twin = x
        for _ in range(next(numbers)):
            twin = twin * 3.0
        return x.exp()

    trial = Trial(f, lambda: None)
    assert outcome(trial, is_checkpointed=True) == outcome(trial, is_checkpointed=False)


_KEPT: Any = None


def test_a_global_is_kept_alive_by_its_name_and_not_by_that_of_an_attribute() -> None:
    global _KEPT
    _KEPT = tt.ones((3,), np.float64)
    kept, holder = weakref.ref(_KEPT), SimpleNamespace(_KEPT=3.0)
    y = tt.checkpoint(lambda x: x * holder._KEPT, tt.from_numpy(VALUES).trace())

    _KEPT = None

    assert kept() is None
    assert y.owns_tape


def test_what_was_found_is_let_go_of_with_the_tape() -> None:
    holder = Scale(Scale(3.0))
    found = weakref.ref(holder.value)
    y = tt.checkpoint(lambda x: x * holder.value.value, tt.from_numpy(VALUES).trace())
    gc.disable()
    try:
        holder.value = None
        assert found() is not None
        y.sum().backward()
        del y
        assert found() is None
    finally:
        gc.enable()
