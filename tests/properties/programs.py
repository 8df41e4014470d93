"""Random programs, run on tensors, with a book of what must come back from each backward pass.

A program is drawn step by step: ops on any values so far, however often they were used before, ways
to hand tapes on, and backward passes in between, some of which leave the history as it is. The book
knows nothing of pullbacks: the derivative is that of the same program on arrays, by a tiny
imaginary part in one element of a leaf, which is exact to the last digits (the complex-step method:
Squire & Trapp, 1998). It notes how values hang together: what was recorded or kept, what is a gap,
and what a pass has used up, and so which gradients must arrive, and which must be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

import tapetensor as tt
from tapetensor.tape.history import KEPT_OF_CHOSEN, MOST_KEPT, own
from tests.properties.vocabulary import TANH, UNARY, Op, joining_ops, single_ops

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Kind: TypeAlias = Literal["recorded", "kept", "gap"]

LEAF_SHAPES = [(2, 3), (3,), (3, 2), ()]
# The first are data, the others belong to a model.
_DATA = 2
_STEP_SIZE = 1e-30
_LARGEST_VALUE = 30.0
_LARGEST_SIZE = 40


@dataclass(eq=False)
class Node:
    """How a value was made."""

    key: int
    kind: Kind
    operands: list[Value]
    length: int = 0
    is_used: bool = False


@dataclass(eq=False)
class Value:
    """A tensor, its place in the program on arrays, and what is in the book about it.

    Handles of one tensor have one key. A tape that was put on a value adds the node that it is of.
    """

    tensor: Any
    place: int
    key: int
    nodes: list[Node] = field(default_factory=list)
    is_own: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it belongs to a model, or is computed from such values alone."""
        return self.is_own or (len(self.nodes) == 1 and self.nodes[0].kind == "kept")


class Program:
    """A random program as it is being drawn and run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.leafs: list[Array] = [self.rng.uniform(-1.5, 1.5, shape) for shape in LEAF_SHAPES]
        # The program on arrays: functions, and the places that they read.
        self.functions: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        # The program on tensors: functions, and the positions of the values that they take.
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self.log: list[str] = []
        self.passes = 0
        self.refused = 0
        self.values = [
            Value(tensor, place, place, is_own=place >= _DATA)
            for place, tensor in enumerate(tensors_of(self.leafs))
        ]
        self._hand_on(self.values[0], "trace")

    def run(self, steps: int, *, goes_back: bool = True) -> None:
        """Draw and run so many steps, with backward passes among them and at the end."""
        for _ in range(steps):
            draw = self.rng.random()
            if draw < 0.7:
                self._run_op()
            elif draw < 0.9 or not goes_back:
                self._hand_on(self._some())
            else:
                self._go_back()
        if goes_back:
            self._go_back()

    def tensors(self, leafs: list[Any]) -> list[Any]:
        """Return the values of the program on tensors, run again from other leafs."""
        tensors = [*leafs]
        for function, positions in self.steps:
            tensors.append(function(*[tensors[position] for position in positions]))
        return tensors

    def arrays(self, leafs: list[Any]) -> list[Any]:
        """Return the values of the program on arrays."""
        arrays = [*leafs]
        for function, places in self.functions:
            arrays.append(function(*[arrays[place] for place in places]))
        return arrays

    def _run_op(self) -> None:
        x = self._some()
        shape = x.tensor.shape
        options: list[Op] = UNARY
        operands = [x]
        if self.rng.random() < 0.6:
            # Anything so far, x itself too.
            y = self._some() if self.rng.random() < 0.9 else x
            options, operands = joining_ops(shape, y.tensor.shape), [x, y]
        elif shape and self.rng.random() < 0.5:
            options = single_ops(shape)
        if not options:
            return
        op = options[self.rng.integers(len(options))]
        with np.errstate(all="ignore"):
            arrays = [one.tensor.detach().numpy() for one in operands]
            array = np.asarray(op.on_arrays(*arrays))
        is_tame = 0 < array.size <= _LARGEST_SIZE and array.ndim <= 4
        if not is_tame or not (np.abs(array) < _LARGEST_VALUE).all():
            op, operands = TANH, [x]
        self.functions.append((op.on_arrays, tuple([one.place for one in operands])))
        node = self._node_of(op, operands)
        told = f"{node.key} = {op} of {[one.place for one in operands]}: {node.kind}"
        result = self._run(op.on_tensors, operands, told)
        self.values.append(Value(result, node.key, node.key, [node]))
        assert result.owns_tape == (node.kind == "recorded"), self.told(op)

    def _node_of(self, op: Op, operands: list[Value]) -> Node:
        key = self._new_place()
        if any(one.tensor.owns_tape for one in operands):
            return Node(key, "recorded", operands)
        lengths = [one.nodes[0].length for one in operands if one.nodes]
        length = 1 + max(lengths, default=1)
        is_kept = all(one.is_kept for one in operands)
        if is_kept and op.has_data:
            length = max(length, MOST_KEPT + 1 - KEPT_OF_CHOSEN)
        return Node(key, "kept" if is_kept and length <= MOST_KEPT else "gap", operands, length)

    def _hand_on(self, x: Value, way: str = "") -> None:
        """Make a handle of a value, in some way or in one that is given."""
        ways = ["with_empty_tape", "own", "plain", "detach", "split_tape"]
        if not x.tensor.owns_tape:
            ways += ["trace", "trace", "put_tape"]
        way = way or ways[self.rng.integers(len(ways))]
        operands = [x]
        if way == "put_tape":
            owners = [one for one in self.values if one.tensor.owns_tape]
            operands.append(owners[self.rng.integers(len(owners))])
        tensor = self._run(_HANDING_ON[way], operands, f"{way} {[one.place for one in operands]}")
        if way == "detach":
            self.functions.append((_real_part, (x.place,)))
            place = self._new_place()
            is_own = x.is_kept and not x.tensor.owns_tape
            self.values.append(Value(tensor, place, place, is_own=is_own))
            return
        nodes = [node for one in operands for node in one.nodes]
        is_own = x.is_own and not tensor.owns_tape
        self.values.append(Value(tensor, x.place, x.key, nodes, is_own))

    def _run(self, function: Callable[..., Any], operands: list[Value], told: str) -> Any:
        self.log.append(told)
        self.steps.append((function, tuple([self.values.index(one) for one in operands])))
        return function(*[one.tensor for one in operands])

    def _go_back(self) -> None:
        """Run a backward pass from some value, and compare it with the book."""
        traced = [one for one in self.values if one.tensor.owns_tape]
        y = traced[-1 - min(self.rng.integers(len(traced)), self.rng.integers(len(traced)))]
        retain = bool(self.rng.random() < 0.5)
        leafs = range(len(self.leafs))
        asked = [place for place in leafs if self.rng.random() < 0.4]
        wrt = [self.values[place].tensor for place in asked] if self.rng.random() < 0.5 else None
        self.log.append(f"backward of {y.place}, {retain=}, wrt={None if wrt is None else asked}")
        cotangent = self.rng.standard_normal(y.tensor.shape)
        book = Book(y)
        self.passes += 1

        # What a pass has used up is behind its steps all together.
        is_lost = bool(book.lost.intersection(leafs if wrt is None else asked))
        try:
            grads = y.tensor.backward(tt.from_numpy(cotangent), wrt=wrt, retain=retain)
        except tt.TapeUsedError:
            self._check(book.ends_at_used, "nothing was used up")
            self.refused += 1
            return
        except tt.MissingGradientError:
            self._check(wrt is not None and (is_lost or book.is_vague), "nothing is missing")
            self.refused += 1
            return
        self._check(not (is_lost and wrt) and (wrt is not None or not book.ends_at_used), "lost")
        expected = by_complex_steps(self, y.place, cotangent)
        for place in leafs if wrt is None else asked:
            leaf = self.values[place].tensor
            try:
                gradient = grads.get(leaf)
            except tt.MissingGradientError:
                self._check(place in book.lost or book.is_vague, f"{place} lacks nothing")
                self.refused += 1
                continue
            self._check(place not in book.lost, f"{place} lacks a part")
            array = np.zeros(leaf.shape) if gradient is None else gradient.numpy()
            is_right = np.allclose(array, expected[place], rtol=1e-8, atol=1e-8, equal_nan=True)
            # Of a part that was not chosen it may be infinite, and is not asked for here.
            is_right |= not np.isfinite(expected[place]).all()
            self._check(is_right, f"{place} is {array}, and not {expected[place]}")
        if not retain:
            book.use_up()

    def _check(self, holds: bool, otherwise: str) -> None:
        assert holds, self.told(otherwise)

    def told(self, what: object) -> str:
        """Return the program, and what is wrong with it."""
        return "\n".join([*self.log, str(what)])

    def _some(self) -> Value:
        # Mostly a late one, and one with a tape.
        position = min(self.rng.integers(len(self.values)), self.rng.integers(len(self.values)))
        found = self.values[-1 - position]
        if found.tensor.owns_tape or self.rng.random() < 0.4:
            return found
        return self.values[self.rng.integers(len(self.values))]

    def _new_place(self) -> int:
        """Return the place of what the last of the functions gives."""
        return len(self.leafs) + len(self.functions) - 1


# A tape may be split off and put on any number of tensors.
_HANDING_ON: dict[str, Callable[..., Any]] = {
    "trace": lambda x: x.trace(),
    "with_empty_tape": lambda x: x.with_empty_tape(),
    "own": lambda x: x.retaped(tt.OwnedTape),
    "plain": lambda x: x.retaped(tt.NoneTape),
    "detach": lambda x: x.detach(),
    "split_tape": lambda x: x.split_tape()[0],
    "put_tape": lambda x, owner: x.put_tape(owner.split_tape()[1]),
}


def tensors_of(leafs: list[Array]) -> list[Any]:
    """Return tensors of leafs, of which the last belong to a model."""
    tensors = [tt.from_numpy(one) for one in leafs]
    for one in tensors[_DATA:]:
        own(one, is_trained=True)
    return tensors


def _real_part(x: Any) -> Any:
    return x.real.astype(np.complex128)


class Book:
    """What is known of a backward pass from a value before it runs.

    Attributes:
        lost: the keys of all that lies behind gaps and used nodes which a gradient comes to.
        ends_at_used: whether it comes to a used one.
        is_vague: whether one that is used, or will be by the pass, lies behind a gap that it comes
            to: of such it is only known what lies behind all of the pass.
    """

    def __init__(self, y: Value) -> None:
        self._nodes = {
            node.key: node
            for node in _before(y.nodes, lambda node: node.kind != "gap" and not node.is_used)
        }
        self.lost: set[int] = set()
        self.ends_at_used = self.is_vague = False
        reached = {y.key}
        for key in sorted(self._nodes, reverse=True):
            node = self._nodes[key]
            operands = [one.key for one in node.operands]
            if key not in reached:
                continue
            if node.kind != "gap" and not node.is_used:
                reached.update(operands)
                continue
            self.ends_at_used |= node.is_used
            for one in _before([node], lambda node: True):
                self.is_vague |= one.is_used or (one is not node and one.key in self._nodes)
                self.lost.update([operand.key for operand in one.operands])

    def use_up(self) -> None:
        """Note that the pass has used up what is before it."""
        for node in self._nodes.values():
            if node.kind == "kept":
                node.kind = "gap"
            elif node.kind == "recorded":
                node.is_used = True


def _before(nodes: Iterable[Node], goes_on: Callable[[Node], bool]) -> Iterator[Node]:
    seen: set[int] = set()
    left = [*nodes]
    while left:
        node = left.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if goes_on(node):
                left += [one for operand in node.operands for one in operand.nodes]


def by_complex_steps(program: Program, place: int, cotangent: Array) -> list[Array]:
    """Differentiate a program on arrays by one element of a leaf after the other."""
    gradients = [np.zeros(leaf.shape) for leaf in program.leafs]
    for number, leaf in enumerate(program.leafs):
        for index in np.ndindex(leaf.shape):
            leafs = [one.astype(np.complex128) for one in program.leafs]
            leafs[number][index] += 1j * _STEP_SIZE
            result = program.arrays(leafs)[place]
            gradients[number][index] = (cotangent * result).sum().imag / _STEP_SIZE
    return gradients
