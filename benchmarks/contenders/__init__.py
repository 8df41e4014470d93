"""One file per contender: `numpy_planned.py` is the contender ``numpy-planned``.

Each has a table `STEPS`: by workload, a function that takes the problem and returns a step. A step
takes nothing and returns the results that are compared: the loss of a training step, or all outputs
and gradients, as arrays or numbers that are there when it returns. A new contender is a new file.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[], tuple[Any, ...]]
Steps: TypeAlias = dict[str, Callable[[Any], Step]]

# The others are compared with the first.
SUBJECT = "tapetensor"

# What the process of a contender finds in its environment.
ENVIRONMENTS: dict[str, dict[str, str]] = {"tapetensor-native": {"TAPETENSOR_BACKEND": "numba"}}


def names() -> list[str]:
    """Return the names of all contenders, the subject first."""
    found = [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda name: (name != SUBJECT, name))
