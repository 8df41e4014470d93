"""Random expressions over tensors of literal shapes: most are right, some are not.

Those that are right run, those that are not raise a TapeTensorError; the test compares with mypy.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

_DIMS = (1, 1, 2, 3, 4, 6)
_REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "logsumexp")

Shape = tuple[int, ...]


class Writer:
    """Writes expressions, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def expression(self) -> str:
        """Return an expression."""
        kinds: list[Callable[[], str]] = [
            self._broadcast,
            self._where,
            self._reshape,
            self._permute,
            self._reduce,
            self._matmul,
            self._index,
            self._concat,
            self._stack,
            self._axes,
            self._einsum,
        ]
        return self._random.choice(kinds)()

    def _happens(self, share: float) -> bool:
        return self._random.random() < share

    def _dim(self) -> int:
        return self._random.choice(_DIMS)

    def _shape(self, low: int = 0, high: int = 4) -> Shape:
        return tuple(self._dim() for _ in range(self._random.randint(low, high)))

    def _tensor(self, shape: Shape) -> str:
        return f"tt.ones({shape!r})" + (".trace()" if self._happens(0.5) else "")

    def _broadcasting(self, shape: Shape) -> Shape:
        """Return a shape that mostly broadcasts against another."""
        dims = [dim if self._happens(0.6) else 1 for dim in shape]
        if self._happens(0.5):
            dims = dims[self._random.randint(0, len(dims)) :]
        if dims and self._happens(0.2):
            dims[self._random.randrange(len(dims))] = self._dim()
        return tuple(dims)

    def _axis(self, rank: int) -> int:
        """Return an axis, mostly one that is there."""
        if rank == 0 or self._happens(0.15):
            return self._random.randint(-rank - 1, rank)
        return self._random.randint(-rank, rank - 1)

    def _broadcast(self) -> str:
        shape = self._shape()
        operands = [self._tensor(shape), self._tensor(self._broadcasting(shape))]
        self._random.shuffle(operands)
        if self._happens(0.2):
            return f"tt.{self._random.choice(('maximum', 'minimum'))}({', '.join(operands)})"
        op = self._random.choice(("+", "-", "*", "/", "**", ">", "==", "<="))
        return f" {op} ".join(operands)

    def _where(self) -> str:
        shape = self._shape()
        mask = f"tt.ones({self._broadcasting(shape)!r}) > 0.0"
        other = "0.0" if self._happens(0.5) else self._tensor(self._broadcasting(shape))
        return f"tt.where({mask}, {self._tensor(shape)}, {other})"

    def _reshape(self) -> str:
        shape = self._shape()
        if self._happens(0.2):
            return f"{self._tensor(shape)}.flatten()"
        rest, target = math.prod(shape), []
        while rest > 1:
            target.append(self._random.choice([d for d in range(2, rest + 1) if rest % d == 0]))
            rest //= target[-1]
        target = target or [1]
        if self._happens(0.5):
            target[self._random.randrange(len(target))] = -1
        if self._happens(0.15):
            target[self._random.randrange(len(target))] = self._random.choice((-1, 2, 5))
        return f"{self._tensor(shape)}.reshape({tuple(target)!r})"

    def _permute(self) -> str:
        shape = self._shape(2)
        order = self._random.sample(range(len(shape)), len(shape))
        if self._happens(0.15):
            order[0] = self._axis(len(shape))
        if self._happens(0.2):
            return f"{self._tensor(shape)}.transpose()"
        return f"{self._tensor(shape)}.permute_dims({tuple(order)!r})"

    def _reduce(self) -> str:
        shape = self._shape(1)
        rank = len(shape)
        several = tuple({self._axis(rank) for _ in range(self._random.randint(0, 2))})
        axis = self._random.choice((None, self._axis(rank), several))
        if self._happens(0.1):
            return f"{self._tensor(shape)}.argmax(axis={self._axis(rank)})"
        keepdims = self._random.choice(("", ", keepdims=True", ", keepdims=False"))
        return f"{self._tensor(shape)}.{self._random.choice(_REDUCTIONS)}(axis={axis!r}{keepdims})"

    def _matmul(self) -> str:
        rows, inner, columns = self._dim(), self._dim(), self._dim()
        leading = self._shape(0, 2)
        left = self._random.choice(((*leading, rows, inner), (inner,)))
        right = self._random.choice(((*self._broadcasting(leading), inner, columns), (inner,)))
        if self._happens(0.15):
            right = self._shape(1)
        return f"{self._tensor(left)} @ {self._tensor(right)}"

    def _index(self) -> str:
        shape = self._shape(1)
        parts = [self._index_part(dim) for dim in shape[: self._random.randint(1, len(shape))]]
        if self._happens(0.2):
            parts.insert(self._random.randint(0, len(parts)), "...")
        if self._happens(0.05):
            parts += ["0"] * 3
        return f"{self._tensor(shape)}[{', '.join(parts)}]"

    def _index_part(self, dim: int) -> str:
        kind = self._random.random()
        if kind < 0.4:
            return str(self._random.randint(-dim, dim - 1) + self._happens(0.1))
        if kind < 0.8:
            bounds = [self._random.choice(("", str(self._random.randint(-5, 6)))) for _ in "se"]
            return ":".join(bounds) + self._random.choice(("", "", ":1", ":2", ":-1", ":-2"))
        return "None" if kind < 0.9 else f"tt.arange({self._dim()}) * 0"

    def _concat(self) -> str:
        shape = self._shape(1)
        axis = self._axis(len(shape))
        parts = []
        for _ in range(self._random.randint(1, 4)):
            dims = list(shape)
            dims[axis % len(shape)] = self._dim()
            if self._happens(0.07):
                dims[self._random.randrange(len(shape))] = self._dim()
            parts.append(self._tensor(tuple(dims)))
        return f"tt.concat(({', '.join(parts)},), axis={axis})"

    def _stack(self) -> str:
        shape = self._shape()
        shapes = [
            shape if self._happens(0.9) else self._shape()
            for _ in range(self._random.randint(1, 3))
        ]
        parts = ", ".join(self._tensor(one) for one in shapes)
        return f"tt.stack(({parts},), axis={self._axis(len(shape) + 1)})"

    def _axes(self) -> str:
        shape = self._shape(1)
        tensor = self._tensor(shape)
        grown = self._shape(0, 1) + tuple(self._dim() if dim == 1 else dim for dim in shape)
        return self._random.choice(
            (
                f"{tensor}.squeeze({self._axis(len(shape))})",
                f"{tensor}.squeeze(({self._axis(len(shape))},))",
                f"{tensor}.expand_dims({self._axis(len(shape) + 1)})",
                f"{tensor}.broadcast_to({grown!r})",
            )
        )

    def _einsum(self) -> str:
        sizes = {letter: self._dim() for letter in "ijkl"}
        leading = self._shape(0, 2)
        dots = self._happens(0.3)
        groups, operands = [], []
        for _ in range(self._random.randint(1, 3)):
            letters = "".join(self._random.sample("ijkl", self._random.randint(0, 3)))
            dotted = dots and self._happens(0.7)
            front = self._broadcasting(leading) if dotted else ()
            shape = (*front, *(sizes[letter] for letter in letters))
            operands.append(self._tensor(shape if self._happens(0.95) else self._shape()))
            groups.append(("..." if dotted else "") + letters)
        used = sorted(set("".join(groups)) - {"."})
        output = "".join(self._random.sample(used, self._random.randint(0, len(used))))
        arrow = "->" + ("..." if dots else "") + output if self._happens(0.6) else ""
        return f"tt.einsum({','.join(groups) + arrow!r}, {', '.join(operands)})"


_WRITER = Writer(20260)
EXPRESSIONS = [_WRITER.expression() for _ in range(250)]
