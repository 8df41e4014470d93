"""The compiler: whole training steps, planned, on numpy alone."""

from __future__ import annotations

from tapetensor.compiler.compiled import Compiled as Compiled
from tapetensor.compiler.compiled import Plan as Plan
from tapetensor.compiler.compiled import compile as compile
