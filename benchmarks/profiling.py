"""Where the time of a step goes: kernels, tape, optimizer, and the Python around them.

Every kernel and its pullbacks, `apply` and `apply_pair`, the replay of a tape and the optimizer's
step are replaced, wherever the library has imported them, by versions that start and stop a watch.
The watch costs a fraction of a microsecond each time, so the profile is not the measurement.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import tapetensor.kernels
from benchmarks.contenders import SUBJECT
from benchmarks.problems import WORKLOADS
from benchmarks.worker import steps_of, time_steps
from tapetensor.optim import Optimizer
from tapetensor.tape import OwnedTape, Pullbacks
from tapetensor.tensor.apply import apply, apply_pair

Function: TypeAlias = Callable[..., Any]

RECORDING = "tape: apply"
REPLAY = "tape: replay"
OPTIMIZER = "optimizer"
REST = "Python around them"


class Watch:
    """Seconds by part, each without the parts inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._parts = [REST]
        self._since = time.perf_counter()

    def reset(self) -> None:
        """Begin again at zero."""
        self.seconds = {}
        self._since = time.perf_counter()

    def timed(self, part: str, function: Function) -> Function:
        """Return the function, watched as a part of its own."""

        def run(*arguments: Any, **options: Any) -> Any:
            self._charge()
            self._parts.append(part)
            try:
                return function(*arguments, **options)
            finally:
                self._charge()
                self._parts.pop()

        return run

    def timed_kernel(self, kernel: Function) -> Function:
        """Return the kernel, with itself and its pullbacks watched."""
        part = f"kernel {kernel.__name__}"
        forward = self.timed(part, kernel)

        # An op is named after its kernel in error messages.
        @functools.wraps(kernel)
        def run(*arguments: Any, **options: Any) -> tuple[Any, Pullbacks]:
            output, pullbacks = forward(*arguments, **options)
            return output, tuple(
                [one and self.timed(f"{part}, pullback", one) for one in pullbacks]
            )

        return run

    def _charge(self) -> None:
        now = time.perf_counter()
        part = self._parts[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now


def profile(workload: str, seconds: float, *, tiny: bool = False) -> str:
    """Return where the time of one of tapetensor's workloads goes, as a table.

    Args:
        workload: its name.
        seconds: how long to run it.
        tiny: whether to take the sizes of the tests.
    """
    steps = steps_of(SUBJECT)
    if workload not in steps:
        return f"{workload}: {SUBJECT} does not have it"
    watch = Watch()
    with _watched_library(watch):
        step = steps[workload](WORKLOADS[workload].problem(tiny))
        time_steps(step, seconds=0.0)
        watch.reset()
        count = len(time_steps(step, seconds))
    total = sum(watch.seconds.values())
    lines = [
        f"{workload}  {WORKLOADS[workload].title}: {total / count * 1e3:.4f} ms under the watch"
    ]
    by_share = sorted(watch.seconds.items(), key=lambda item: -item[1])
    kernels = sum(time for part, time in by_share if part.startswith("kernel "))
    for part, time_in_it in [("all kernels", kernels), *by_share]:
        lines.append(f"  {part:<44}{time_in_it / count * 1e3:>11.4f} ms{time_in_it / total:>7.1%}")
    return "\n".join(lines)


@contextmanager
def _watched_library(watch: Watch) -> Iterator[None]:
    """Replace the parts of the library, and put them back in the end."""
    replaced: dict[Function, Function] = {
        function: watch.timed(RECORDING, function) for function in (apply, apply_pair)
    }
    for module in pkgutil.iter_modules(tapetensor.kernels.__path__, "tapetensor.kernels."):
        for name, function in vars(importlib.import_module(module.name)).items():
            # What a kernel calls inside counts as the kernel.
            if name.startswith("_"):
                continue
            annotations = getattr(function, "__annotations__", {})
            if annotations.get("return") == "tuple[Array, Pullbacks]":
                replaced[function] = watch.timed_kernel(function)
    places: list[tuple[object, str, Any]] = [
        (module, name, value)
        for module_name, module in list(sys.modules.items())
        if module_name.startswith("tapetensor.")
        for name, value in list(vars(module).items())
        if callable(value) and value.__hash__ is not None and value in replaced
    ]
    for place, name, value in places:
        setattr(place, name, replaced[value])
    methods: list[tuple[type, str, str]] = [
        (OwnedTape, "run_backward", REPLAY),
        (Optimizer, "step", OPTIMIZER),
    ]
    for owner, name, part in methods:
        places.append((owner, name, vars(owner)[name]))
        setattr(owner, name, watch.timed(part, vars(owner)[name]))
    try:
        yield
    finally:
        for place, name, value in places:
            setattr(place, name, value)
