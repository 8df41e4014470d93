"""tapetensor, eager, in a process that chooses the backend numba (see `ENVIRONMENTS`)."""

from __future__ import annotations

from importlib import import_module

from benchmarks.contenders import Steps
from benchmarks.contenders.tapetensor import STEPS as EAGER

# They would be imported when they are first used, which is measured. Where numba is missing, the
# contender is left out.
import_module("numba")
import_module("tapetensor.native.eager")

STEPS: Steps = EAGER
