"""Where numpy is faster than a loop of numbers: it has vector instructions that LLVM has not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.native.formulas import formula_of

# In float64 these are calls of the C library, number by number, which take 3 to 15 times as long
# as numpy. So many other steps have to gain by the loop what one of them loses.
_LOST: dict[Any, int] = {np.exp: 16, np.log: 16, np.tanh: 60, np.log1p: 80}


def gains(group: Group) -> bool:
    """Tell whether the steps of a group gain more by a loop than its functions lose."""
    balance = 0
    for node in group.nodes:
        if node.kind is Kind.VIEW:
            continue
        size = max([one.size for one in (node, *node.parents())])
        for function in _functions(node):
            lost = _LOST.get(function, 0) if node.dtype == np.float64 else 0
            balance += size * (1 - lost)
    return balance >= 0


def _functions(node: Node) -> list[Any]:
    """Return the functions that a step is made of."""
    if node.kind is Kind.ELEMENTWISE and not isinstance(node.function, np.ufunc):
        parts = formula_of(node.function, len(node.args), node.dtype)
        if parts is not None:
            return [part.function for part in parts[len(node.args) :]]
    return [node.function]
