"""PyTorch, compiled: the steps of the eager contender, each in `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contenders import Step, Steps
from benchmarks.contenders.torch import STEPS as EAGER


def _compiled(build: Callable[[Any], Step]) -> Callable[[Any], Step]:
    return lambda problem: torch.compile(build(problem))


# Not the chain and the scan: unrolled, they take minutes to compile.
STEPS: Steps = {name: _compiled(build) for name, build in EAGER.items() if name not in ("W7", "W8")}
