"""tapetensor, compiled with the backend numba: the steps of the eager contender."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import tapetensor as tt

# It would be imported when it is first used, which is measured.
import tapetensor.compiler
from benchmarks.contenders import Steps
from benchmarks.contenders.tapetensor import COMPUTES, Compute, reading

# It would be imported when it is first used, too; where it is missing, the contender is left out.
import_module("numba")


def _compiled(build: Callable[[Any], Compute]) -> Callable[[Any], Compute]:
    return lambda problem: tt.compile(build(problem), backend="numba")


STEPS: Steps = {workload: reading(_compiled(build)) for workload, build in COMPUTES.items()}
