"""The verdict on each use of a tensor: whether a move before it took the tape."""

from __future__ import annotations

from itertools import product
from typing import Any

from mypy.nodes import CallExpr, Context, Expression, FuncItem, MypyFile, Node, OpExpr, TupleExpr

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import TAPE_MOVED
from tapetensor.mypy_plugin.moves.aliases import Value, common
from tapetensor.mypy_plugin.moves.keys import EACH, Key, Root, prefixes, root, root_name, spelled
from tapetensor.mypy_plugin.moves.known import Known
from tapetensor.mypy_plugin.moves.lending import is_lent_at, look_at_file, taken_anyway
from tapetensor.mypy_plugin.moves.points import Link, Point
from tapetensor.mypy_plugin.moves.steps import Place, Step, Steps
from tapetensor.mypy_plugin.moves.summaries import Reader

_CURES = {
    "backward": "a tape is replayed once: keep the Gradients that it returned, "
    "or run the forward pass again",
    "compute_gradients": "a tape is replayed once: keep the Gradients that it returned, "
    "or run the forward pass again",
    "traced": "go on with what it returned, or write {name}.trace(), which leaves {name} as it is",
    "split_tape": "go on with the two parts that it returned",
    "put_tape": "go on with what it returned; a tape has exactly one owner",
}
_CURE = "go on with its result, or take a second handle first: twin = {name}.share()"


class Judge:
    """Collects the steps of an outermost function as mypy checks it, and reports.

    mypy may check a call several times, in the order of the text; every pair of a move and a use is
    judged when the later of the two is met, and reported once.
    """

    def __init__(self, checker: Any, unit: FuncItem | MypyFile, known: Known) -> None:
        self.unit = unit
        self.checker = checker
        self.steps = Steps(checker, unit)
        self.graph = self.steps.graph
        self.reader = Reader(checker, flow.tree(checker), self.steps, known)
        self._paths = self.steps.paths
        self._steps: dict[Node, list[Step]] = {}
        self._by_root: dict[Root, list[Step]] = {}
        self._told: dict[tuple[Node, Key], str] = {}
        # The keys that were reported at a node since mypy came to it last: once is enough.
        self._reported: dict[Node, set[Key]] = {}

    def add(self, where: Context, op: str, moves: list[Place], uses: list[Place]) -> None:
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
        if isinstance(node, CallExpr):
            self.reader.results.look_at(node)
            left = self.reader.results.spent(node)
            self.graph.indices += [one.key[2] for one in left if one.key[0] == "item"]
            moves = [*moves, *left]
            if node in self.graph.handed:
                target, at = self.graph.handed[node]
                self.add(target, op, self.reader.results.taken_back(node, target, at), [])
        self._reported.pop(node, None)
        for step in self._steps.pop(node, ()):
            for variable in _roots(step):
                self._by_root[variable].remove(step)
        steps = self.steps.made(node, op, moves, uses)
        self._tell_what_is_given_twice(steps, moves)
        steps += [later for step in steps for later in self.steps.followed_on(step)]
        self._steps[node] = steps
        for step in steps:
            for variable in _roots(step):
                self._by_root.setdefault(variable, []).append(step)
        for step in steps:
            for other in self._related(step):
                if self._is_current(other, node):
                    self._compare(other, step)
                    if other.node is not node:
                        self._compare(step, other)
            if step.moves and not step.renamed:
                self._judge_returns(step)
                if is_lent_at(self.steps, step.key, step.point):
                    self._report(taken_anyway(step.op, step.key), step.node)

    def _related(self, step: Step) -> list[Step]:
        """Return the steps that may be of the same value."""
        found = [one for variable in _roots(step) for one in self._by_root[variable]]
        return list({id(one): one for one in found}.values())

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
        if isinstance(step.node, TupleExpr):
            # The targets of a loop, which have no type of their own.
            return True
        return flow.type_of(self.checker, step.node) is not None

    def _compare(self, move: Step, use: Step) -> None:
        """Report a use of what another step has moved."""
        is_repeated = any(one.loop for one in move.point.regions)
        if not move.moves or use.renamed or (move.point is use.point and not is_repeated):
            return
        told = {root(key) for key in self._reported.get(use.node, ())}
        if root(use.key) in told or self._is_told_within(use):
            return
        pairs = product(move.values, use.values)
        names = [use.key, *[one.key for one in use.values]]
        # What is one tensor by every way makes for the surer words.
        for taken, wanted in sorted(pairs, key=lambda pair: any(one.by for one in pair)):
            key = common(taken.key, wanted.key)
            if key is None or (
                self.steps.is_doubtful(taken, move.point)
                and self.steps.is_doubtful(wanted, use.point)
            ):
                continue
            if wanted.loop and self.steps.loops.is_within(move.point, wanted.loop):
                continue
            at = self._seen_from(use.point, move.point, key)
            if at is None or self._is_put_later(wanted.key, taken.key, move.point, at):
                continue
            # Where all items are spent, it does not matter in which order they are.
            spent = [key, taken.key] if taken.key[-1] is EACH else [key]
            if any(
                self._paths.leads(move.point, at, one, since=move.since, names=names)
                and self._is_by_way_of(taken.by, move.point, at, one)
                and self._is_by_way_of(wanted.by, move.point, at, one, named=True)
                for one in spent
            ):
                certain = not (taken.by or wanted.by) and self._is_certain(at, key)
                self._tell(move, use, at, certain=certain)
                return

    def _is_put_later(self, wanted: Key, taken: Key, move: Point, use: Point) -> bool:
        """Tell whether what is used is put into a container after all that it held was moved."""
        put = [self.graph.put_at[one] for one in prefixes(wanted) if one in self.graph.put_at]
        is_every = any(part[0] == "item" and part[2] is EACH for part in prefixes(taken))
        return is_every and any(
            not any(self._paths.comes_to(one, use, at) for one in move.next) for at in put
        )

    def _is_told_within(self, use: Step) -> bool:
        """Tell whether the use was reported where it stands, in a function defined in this one."""
        if use.within is None:
            return False
        lines = range(use.within.line, (use.within.end_line or use.within.line) + 1)
        return any(node.line in lines and key == use.key for node, key in self._told)

    def _is_by_way_of(
        self, link: Link | None, move: Point, use: Point, key: Key, *, named: bool = False
    ) -> bool:
        """Tell whether the way from a move to a use may be one that a link is on.

        Where it is the use that goes by the name that the link gives, it has that name till then.
        """
        if link is None:
            return True
        leads = self._paths.leads
        # Execution went from the link before to this one.
        comes_first = link.after is not None and not leads(link.point, move, key)
        if comes_first and not self._is_by_way_of(link.after, move, link.point, key, named=True):
            return False
        if link.point is use:
            return True
        lasting = [key, link.target, link.source] if named else [key]
        return leads(link.point, use, key) and (
            (leads(link.point, move, key) and leads(move, use, *lasting))
            or leads(move, link.point, key)
        )

    def _seen_from(self, use: Point, move: Point, value: Key) -> Point | None:
        """Return where, in the code of the move, the use takes place, or its closure is made."""
        at = use
        while at.fragment is not move.fragment:
            outer = at.fragment.outer
            if outer is None or root(value) in at.fragment.bound:
                return None
            at = outer
            # The closure may be called after the variable has got a new value.
            if self._paths.is_rebound_after(at, value) or root_name(value) in self.graph.shared:
                return None
        return at

    def _judge_returns(self, move: Step) -> None:
        """Report `return x` where x was moved on every way, unless the callers are in sight."""
        for spelled_key, points in self.graph.returns.items():
            for end in points:
                if (
                    end.fragment is not move.point.fragment
                    or end.node is None
                    or self.reader.is_called_here(end.fragment.name)
                ):
                    continue
                values = self.steps.aliases.values(spelled_key, end)
                use = Step("return", end.node, end, spelled_key, values, moves=False)
                for key in {one.key for one in move.values} & {one.key for one in values}:
                    if self._paths.leads(move.point, end, key) and self._is_certain(end, key):
                        self._tell(move, use, end, certain=True)
                        break

    def _is_certain(self, at: Point, value: Key) -> bool:
        moves = [
            one.point
            for one in self._by_root.get(root(value), ())
            if one.moves and any(common(value, each.key) for each in one.values if not each.by)
        ]
        return self._paths.is_certain(at, value, moves)

    def _tell(self, move: Step, use: Step, at: Point, *, certain: bool) -> None:
        """Report a use after a move, in the words that were found for it first."""
        if (use.node, use.key) not in self._told:
            name = spelled(use.key)
            was = "was" if certain else "may have been"
            cure = _CURES.get(move.op, _CURE).format(name=name)
            line = move.node.line
            text = f'{use.op}: "{name}" {was} moved by "{move.op}" on line {line}; {cure}'
            if move.point.index >= at.index:
                text = text.replace(";", " in an earlier pass of the loop;", 1)
            self._told[use.node, use.key] = text
        self._reported.setdefault(use.node, set()).add(use.key)
        self._report(self._told[use.node, use.key], use.node)

    def _tell_what_is_given_twice(self, steps: list[Step], moves: list[Place]) -> None:
        """Report a call that takes the tape of one tensor twice."""
        given: list[Step] = []
        for step in steps:
            if not step.moves or step.renamed or step.point is not steps[0].point:
                continue
            named = [one.key for one in step.values if not one.by]
            if (
                any(self._are_one(one, step) for one in given)
                or sum(one.spelled == step.key for one in moves) > 1
                or any(
                    self.steps.aliases.holds_one_twice(key[1], step.point)
                    for key in named
                    if key[0] == "item" and key[2] is EACH
                )
            ):
                name = spelled(step.key)
                self._reported.setdefault(step.node, set()).add(step.key)
                self._report(
                    f'{step.op}: "{name}" is given twice and owns one tape, which the first '
                    f"use takes; write {name}.share() for one of the two",
                    step.node,
                )
            given.append(step)

    def _are_one(self, first: Step, second: Step) -> bool:
        """Tell whether two operands are one tensor, at least where execution came by a link."""
        return any(
            common(one.key, other.key)
            and not (one.by and other.by)
            and self._is_named_at(one, first)
            and self._is_named_at(other, second)
            for one in first.values
            for other in second.values
        )

    def _is_named_at(self, value: Value, step: Step) -> bool:
        """Tell whether execution may come from where a step's value got its name to the step."""
        own = step.values[0].key
        return value.by is None or self._paths.leads(value.by.point, step.point, own, value.key)

    def _report(self, text: str, node: Node) -> None:
        flow.report(self.checker, text, node, TAPE_MOVED)


def _roots(step: Step) -> list[Root]:
    return [*dict.fromkeys(root(one.key) for one in step.values)]


# The judges of the module that is being checked, and of a function in it.
_current: dict[bool, Judge | None] = {True: None, False: None}
# The check of a file in which it was looked at last, and what is known of its functions.
_looked_at: list[tuple[object, Known]] = [(None, Known())]


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
        last, known = _looked_at[-1]
        if flow.run_of(checker) is not last:
            known = Known()
            _looked_at[:] = [(flow.run_of(checker), known)]
            look_at_file(checker, flow.tree(checker))
        judge = _current[is_module] = Judge(checker, unit, known)
    return judge
