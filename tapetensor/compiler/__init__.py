"""The compiler: whole training steps, planned, on numpy alone."""

from __future__ import annotations

from tapetensor.compiler.emit.plan import MAX_PLANS as MAX_PLANS
from tapetensor.compiler.emit.plan import Plan as Plan
from tapetensor.compiler.entrance import compile as compile
from tapetensor.compiler.entrance import plans as plans
