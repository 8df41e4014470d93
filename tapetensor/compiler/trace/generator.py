"""A random generator that captures its draws."""

from __future__ import annotations

from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import CapturedGenerator
from tapetensor.compiler.trace.node import Keywords, Kind, Node, replaced
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer

_OWN = ("program", "source", "drops", "draws", "undropping")


class GeneratorTracer(np.random.Generator, CapturedGenerator):
    """Stands for a random generator while a function is captured: draws become steps.

    Args:
        program: the program to which it adds nodes.
        source: the node of the generator.
        drops: whether dropout drops with it.
        draws: whether it may draw; a copy that is made inside would draw numbers of its own.
    """

    def __init__(self, program: Program, source: Node, *, drops: bool, draws: bool = True) -> None:
        super().__init__(np.random.PCG64(0))
        self.program = program
        self.source = source
        self.drops = drops
        self.draws = draws

    @override
    def undropping(self) -> GeneratorTracer:
        """Return a stand-in that drops nothing and may not draw."""
        return GeneratorTracer(self.program, self.source, drops=False, draws=False)

    @property  # type: ignore[misc]  # a class is an attribute to mypy
    @override
    def __class__(self) -> type[Any]:
        """The class that it stands for, for programs that ask ``type(rng)``."""
        return np.random.Generator

    @override
    def __getattribute__(self, name: str) -> Any:
        """Return a function that captures a draw, in place of one that draws."""
        if name.startswith("_") or name in _OWN:
            return object.__getattribute__(self, name)
        if not self.draws:
            raise trace_error(
                f"rng.{name} of a model that nn.inference copies inside; make that outside, once"
            )
        method = getattr(np.random.Generator, name, None)
        if not callable(method) or name in ("spawn", "bit_generator", "shuffle"):
            raise trace_error(f"rng.{name} cannot be traced; call it outside, and pass the result")

        def draw(*args: Any, **options: Any) -> ArrayTracer | NumberTracer:
            if options.get("out") is not None:
                raise trace_error(f"rng.{name} writes into an array; use the array that it returns")
            given, named = replaced((args, Keywords(options)), self._known)
            drawn = getattr(np.random.default_rng(0), name)(*given, **named)
            result = np.asarray(drawn)
            if result.dtype.kind not in "biuf":
                raise trace_error(f"rng.{name} gives no numbers; call it outside, and pass them")
            operands = (self.source, given, named)
            node = self.program.add(Kind.RANDOM, name, operands, result.shape, result.dtype)
            array = ArrayTracer.made(self.program, node, drawn)
            is_number = not isinstance(drawn, np.ndarray | np.generic)
            return NumberTracer(array) if is_number else array

        return draw

    def _known(self, value: Any) -> Any:
        if isinstance(value, ArrayTracer | NumberTracer):
            if value.array.node.kind is not Kind.CONSTANT:
                raise trace_error(
                    "a generator draws by what is not known yet; draw by plain numbers, and "
                    "compute with that, as in mean + std * rng.normal(size=n)"
                )
            return value.array.read()
        return self.program.snapshot(value) if isinstance(value, np.ndarray) else value

    def _refuse_a_copy(self, *_: object) -> Never:
        """Refuse: a copy would draw numbers of its own."""
        raise trace_error("a random generator is copied; copy it outside, and pass the copy")

    __copy__ = __deepcopy__ = __reduce__ = _refuse_a_copy
