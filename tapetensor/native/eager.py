"""Kernels of eager mode as machine code: each is captured once per kind of call, and planned.

A kernel says its formula to the compiler's stand-ins as it does inside a compiled function, and so
do its pullbacks. What comes of it are two plans, whose groups numba compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import StandIn
from tapetensor.compiler.emit.backward import BackwardPlan, node_of
from tapetensor.compiler.emit.steps import chosen_backend
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.program import Program, errors_raise
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import TraceError
from tapetensor.kernels.numerics.decorators import MACHINE_CODE
from tapetensor.native.kernels import loop_of, native_kernel
from tapetensor.native.loading import pullbacks_of
from tapetensor.optim.group import Group, Options
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel

# So many kinds of calls of one kernel get plans. Further ones run on numpy.
MAX_KINDS = 64
_F4, _F8 = np.dtype(np.float32), np.dtype(np.float64)


class NativeKernel:
    """A kernel whose calls on arrays of numpy's run as machine code, others as they are."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        # What runs each kind of call: the kernel itself where there is no loop.
        self._kinds: dict[Any, Kernel] = {}

    def __call__(self, *args: Any) -> tuple[Array, Pullbacks]:
        """Run the kernel."""
        key = _key_of(args)
        if key is None or errors_raise():
            return self._kernel(*args)
        try:
            kind = self._kinds[key]
        except KeyError:
            if len(self._kinds) >= MAX_KINDS:
                return self._kernel(*args)
            kind = self._kinds[key] = _captured(self._kernel, args)
        return kind(*args)


def chosen(kernel: Kernel) -> Kernel:
    """Return what runs a kernel, or a step of one, on the backend that the environment names."""
    if chosen_backend(None) != "numba":
        return kernel
    by_hand = native_kernel(kernel)
    if by_hand is kernel:
        return NativeKernel(kernel)
    return lambda *args: kernel(*args) if errors_raise() else by_hand(*args)


def update_loop(group: Group, options: Options) -> Callable[..., None] | None:
    """Return the loop that updates the parameters of a group; None where numpy does."""
    if chosen_backend(None) != "numba" or errors_raise():
        return None
    return loop_of(group, options)


def run_kernels() -> None:
    """Tell the kernels, on floors below, that machine code of them is made here."""
    MACHINE_CODE.kernel = chosen
    MACHINE_CODE.update = update_loop


def _captured(kernel: Kernel, args: tuple[Any, ...]) -> Kernel:
    """Return what runs a kernel by two plans on such operands; itself if it cannot be planned."""
    program = Program("numba")
    inputs: dict[int, Node] = {}
    operands: list[Any] = []
    observed: list[Any] = []
    for position, one in enumerate(args):
        if type(one) is np.ndarray:
            node = program.add(Kind.INPUT, None, (), one.shape, one.dtype, detail=one.strides)
            inputs[position] = node
            operands.append(ArrayTracer(program, node))
        else:
            operands.append((lambda *told: observed.extend(told)) if callable(one) else one)
    try:
        y, pullbacks = kernel(*operands)
        outputs = [node_of(program, one) for one in (y, *observed)]
        forward = len(program.nodes)
        cotangent = program.add(Kind.INPUT, None, (), y.shape, y.dtype, label="cotangent")
        g: Any = ArrayTracer(program, cotangent)
        gradients = [None if one is None else node_of(program, one(g)) for one in pullbacks]
    except TraceError:
        return kernel
    places = tuple([one is not None for one in pullbacks])
    backward = BackwardPlan(cotangent, gradients, forward, "numba")
    # A forward pass leads from its operands to what leaves as a backward pass does.
    computed = [*outputs, *backward.residuals]
    first, *_ = inputs.values()
    plan = BackwardPlan(first, computed, 0, "numba")
    positions = {node: position for position, node in inputs.items()}
    others = [positions[node] for node in plan.residuals]
    first_place, all_needed, count = positions[first], (True,) * len(computed), len(outputs) - 1

    def run(*args: Any) -> tuple[Array, Pullbacks]:
        residuals = tuple([args[position] for position in others])
        y, *rest = plan.run(residuals, all_needed, args[first_place])
        if count:
            observe = next(one for one in args if callable(one))
            observe(*rest[:count])
        cotangents = partial(backward.run, tuple(rest[count:]))
        return y, pullbacks_of(kernel, args, y, places, cotangents)

    return run


def _key_of(args: tuple[Any, ...]) -> Any:
    """Return the kind of a call; None for one that numpy runs."""
    key: list[Any] = []
    for one in args:
        cls = type(one)
        if cls is np.ndarray:
            dtype = one.dtype
            is_index = dtype.kind in "ib" and dtype.isnative
            is_known = is_index or dtype is _F4 or dtype is _F8
            if not is_known or not one.size or not one.flags.c_contiguous:
                return None
            key += one.shape, dtype.char
        elif one is None or isinstance(one, int | float | tuple | str):
            # Of numbers, 0.0 and -0.0 are equal, and so are 1 and True.
            key += cls, one or repr(one)
        elif isinstance(one, StandIn) or not callable(one):
            return None
        else:
            key.append("observer")
    return tuple(key)
