"""The verdict on each use of a tensor: whether a move before it took the tape."""

from __future__ import annotations

from typing import Any, NamedTuple

from mypy.nodes import Context, Expression, FuncItem, MypyFile, Node, OpExpr

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import TAPE_MOVED
from tapetensor.mypy_plugin.moves.aliases import Aliases
from tapetensor.mypy_plugin.moves.effects import Effects
from tapetensor.mypy_plugin.moves.graph import Point
from tapetensor.mypy_plugin.moves.keys import Key, root, spelled
from tapetensor.mypy_plugin.moves.paths import Paths
from tapetensor.mypy_plugin.moves.statements import graph_of

_CURES = {
    "backward": "a tape is replayed once: keep the Gradients that it returned, "
    "or run the forward pass again",
    "compute_gradients": "a tape is replayed once: keep the Gradients that it returned, "
    "or run the forward pass again",
    "traced": "go on with what it returned, or write {name}.trace(), which leaves {name} as it is",
    "split_tape": "go on with the two parts that it returned",
    "put_tape": "go on with what it returned; a tape has exactly one owner",
}
_CURE = "go on with its result, or take a second handle first: twin = {name}.with_empty_tape()"


class Step(NamedTuple):
    """The effect of a call or operator on one tensor or tape.

    Attributes:
        op: the name of the call or operator, as errors say it.
        node: where it is executed.
        point: the same in the graph, where it may be more than once (as `finally` blocks are).
        key: the tensor or tape, as spelled.
        value: the key under which it is followed; see `Aliases`.
        moves: whether its tape is taken, or it is only refused when spent.
    """

    op: str
    node: Node
    point: Point
    key: Key
    value: Key
    moves: bool


class Judge:
    """Collects the steps of an outermost function as mypy checks it, and reports.

    mypy may check a call several times, in the order of the text; every pair of a move and a use is
    judged when the later of the two is met, and reported once.
    """

    def __init__(self, checker: Any, unit: FuncItem | MypyFile) -> None:
        self.unit = unit
        self.checker = checker
        self.graph = graph_of(unit)
        self._aliases = Aliases(self.graph)
        self._paths = Paths(self.graph, Effects(checker, self.graph))
        self._steps: dict[Node, list[Step]] = {}
        self._by_value: dict[Key, list[Step]] = {}
        self._returns = [
            Step("return", one.node, one, key, self._aliases.value(key, one), moves=False)
            for key, points in self.graph.returns.items()
            for one in points
            if one.node is not None
        ]
        self._told: dict[tuple[Node, Key], str] = {}
        # The keys that were reported at a node since mypy came to it last: once is enough.
        self._reported: dict[Node, set[Key]] = {}

    def add(self, where: Context, op: str, moves: list[Key], uses: list[Key]) -> None:
        """Take a call or operator into account, in the place of what was known of it before.

        Args:
            where: the call or operator.
            op: its name.
            moves: what it takes the tape of.
            uses: what it refuses when spent; what it moves may be among that or not.
        """
        node = self._node(where)
        if node is None:
            return
        self._reported.pop(node, None)
        for step in self._steps.pop(node, ()):
            self._by_value[step.value].remove(step)
        spelled_once = dict.fromkeys([*moves, *uses])
        steps = [
            Step(op, node, point, key, self._aliases.value(key, point), key in moves)
            for point in self.graph.of_node[node]
            for key in spelled_once
        ]
        self._tell_what_is_given_twice(steps, moves)
        self._steps[node] = steps
        for step in steps:
            self._by_value.setdefault(step.value, []).append(step)
        for step in steps:
            for other in [*self._by_value[step.value]]:
                if self._is_current(other, node):
                    self._compare(other, step)
                    if other.node is not node:
                        self._compare(step, other)
            if step.moves:
                self._judge_returns(step)

    def _node(self, where: Context) -> Node | None:
        if isinstance(where, Node) and where in self.graph.of_node:
            return where
        if isinstance(where, OpExpr):
            return self.graph.augmented.get(where.right)
        return None

    def _is_current(self, step: Step, now: Node) -> bool:
        """Tell whether a step was met in this pass of mypy, which may be one of several."""
        if step.node is now or not isinstance(step.node, Expression):
            return True
        return flow.type_of(self.checker, step.node) is not None

    def _compare(self, move: Step, use: Step) -> None:
        """Report a use of what another step has moved."""
        is_repeated = any(one.loop for one in move.point.regions)
        if not move.moves or (move.point is use.point and not is_repeated):
            return
        if use.key in self._reported.get(use.node, ()):
            return
        at = self._seen_from(use.point, move.point, use.value)
        if at is not None and self._paths.leads(move.point, at, use.value):
            self._tell(move, use, at)

    def _seen_from(self, use: Point, move: Point, value: Key) -> Point | None:
        """Return where, in the code of the move, the use takes place, or its closure is made."""
        at = use
        while at.fragment is not move.fragment:
            outer = at.fragment.outer
            if outer is None or root(value) in at.fragment.bound:
                return None
            at = outer
            # The closure may be called after the variable has got a new value.
            if self._paths.is_rebound_after(at, value) or root(value).name in self.graph.shared:
                return None
        return at

    def _judge_returns(self, move: Step) -> None:
        """Report `return x` where x was moved on every way."""
        for end in self._returns:
            if (
                end.value == move.value
                and end.point.fragment is move.point.fragment
                and self._paths.leads(move.point, end.point, end.value)
                and self._is_certain(end.point, end.value)
            ):
                self._tell(move, end, end.point)

    def _is_certain(self, at: Point, value: Key) -> bool:
        moves = [one.point for one in self._by_value[value] if one.moves]
        return self._paths.is_certain(at, value, moves)

    def _tell(self, move: Step, use: Step, at: Point) -> None:
        """Report a use after a move, in the words that were found for it first."""
        if (use.node, use.key) not in self._told:
            name = spelled(use.key)
            was = "was" if self._is_certain(at, use.value) else "may have been"
            cure = _CURES.get(move.op, _CURE).format(name=name)
            line = move.node.line
            text = f'{use.op}: "{name}" {was} moved by "{move.op}" on line {line}; {cure}'
            if move.point.index >= at.index:
                text = text.replace(";", " in an earlier pass of the loop;", 1)
            self._told[use.node, use.key] = text
        self._reported.setdefault(use.node, set()).add(use.key)
        self._report(self._told[use.node, use.key], use.node)

    def _tell_what_is_given_twice(self, steps: list[Step], moves: list[Key]) -> None:
        seen: set[Key] = set()
        for step in steps:
            if step.moves and step.point is steps[0].point:
                if step.value in seen or moves.count(step.key) > 1:
                    name = spelled(step.key)
                    self._report(
                        f'{step.op}: "{name}" is given twice and owns one tape, which the first '
                        f"use takes; write {name}.with_empty_tape() for one of the two",
                        step.node,
                    )
                seen.add(step.value)

    def _report(self, text: str, node: Node) -> None:
        flow.report(self.checker, text, node, TAPE_MOVED)


# The judges of the module that is being checked, and of a function in it.
_current: dict[bool, Judge | None] = {True: None, False: None}


def judge_of(checker: Any, context: Context) -> Judge | None:
    """Return the judge of the code that is being checked; None if nothing can be said of it."""
    if not flow.is_heard(checker):
        return None
    unit = flow.unit(checker)
    is_module = isinstance(unit, MypyFile)
    judge = _current[is_module]
    if judge is None or judge.unit is not unit or judge.checker is not checker:
        if not flow.is_supported(checker, context):
            return None
        judge = _current[is_module] = Judge(checker, unit)
    return judge
