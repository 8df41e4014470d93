"""What a call does to its arguments, as far as a signature or a body in the same file tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from mypy.nodes import (
    NOT_ABSTRACT,
    CallExpr,
    Context,
    Decorator,
    Expression,
    FuncDef,
    FuncItem,
    IndexExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    RefExpr,
    SuperExpr,
    SymbolNode,
    TupleExpr,
    UnaryExpr,
    Var,
)
from mypy.operators import op_methods
from mypy.types import CallableType

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import class_of
from tapetensor.mypy_plugin.moves.applying import APPLIERS, RUNNERS, applied_by
from tapetensor.mypy_plugin.moves.borrowing import (
    BORROWS,
    MOVERS,
    READS,
    function_in,
    is_borrowed,
    leaves,
    overriding,
)
from tapetensor.mypy_plugin.moves.calls import (
    Callee,
    Calls,
    arguments,
    is_exactly_meant,
)
from tapetensor.mypy_plugin.moves.keys import (
    EACH,
    Key,
    item_of,
    key_of,
    replaced,
    root,
    spelled,
)
from tapetensor.mypy_plugin.moves.known import Known, Part
from tapetensor.mypy_plugin.moves.operands import Operands
from tapetensor.mypy_plugin.moves.owners import (
    accepts_several,
    hands_on,
    is_marked,
    is_tensor,
    may_accept,
    takes,
)
from tapetensor.mypy_plugin.moves.points import Point
from tapetensor.mypy_plugin.moves.results import Results, is_none, surely_moved
from tapetensor.mypy_plugin.moves.statements import names_in
from tapetensor.mypy_plugin.moves.steps import Place, Steps
from tapetensor.mypy_plugin.names import LENT, TAKEN, op_called
from tapetensor.mypy_plugin.symbols import member_of

K = TypeVar("K")
V = TypeVar("V")
# Calls of calls of calls: so many are looked into.
_DEEPEST = 12


class Reader(Operands):
    """Reads what calls do in one function, or at the top level of a module.

    Args:
        checker: that of mypy.
        tree: the file.
        steps: the function; its types may not be known yet.
        known: what is known of the functions of the file.
        outer: what reads the calls in a function that calls this one, if one does.
    """

    def __init__(
        self, checker: Any, tree: MypyFile, steps: Steps, known: Known, outer: Reader | None = None
    ) -> None:
        super().__init__(checker, steps)
        self._tree = tree
        self.depth: int = _DEEPEST if outer is None else outer.depth - 1
        self._known = known
        self.calls = Calls(steps.graph, self.type_of, steps.paths, self.body)
        self.results = Results(self, known)

    def moved_by_builtin(self, call: CallExpr) -> list[Place]:
        """Return what one of the `MOVERS` takes the tape of."""
        is_sum = isinstance(call.callee, RefExpr) and call.callee.fullname == "builtins.sum"
        types = [(one, self.type_of(one)) for one in call.args]
        return self.places(
            part
            for one, found in types
            for part in (self.owning_parts(one, found) if is_sum else [Part(one, found)])
            if part.each or self.owns(part.type)
        )

    def taken(self, call: CallExpr) -> list[Place]:
        """Return what a call takes the tape of, as every function does that may be called."""
        name = self._name_of_callee(call)
        if name in APPLIERS or name in RUNNERS:
            made = applied_by(call, name, self.steps.graph)
            return [] if made is None else [*dict.fromkeys(self.taken(made))]
        found = [self._taken_by(one, call) for one in self.calls.called(call)]
        if not found:
            return []
        others = [{one.key for one in several} for several in found[1:]]
        return [one for one in found[0] if all(one.key in keys for keys in others)]

    def _name_of_callee(self, call: CallExpr) -> str:
        """Return the full name of what is called, of methods too."""
        match call.callee:
            case RefExpr(fullname=name) if name:
                return name
            case MemberExpr(expr=owner, name=name):
                info = class_of(self.type_of(owner))
                method = None if info is None else member_of(info, name)
                return "" if method is None else method.fullname
        return ""

    def used(self, call: CallExpr) -> list[Place]:
        """Return what a call of a method, under another name, refuses when it is spent."""
        return [
            place
            for one in self.calls.called(call)
            if one.tensor and _name(one.node) not in READS
            for place in self.places([Part(one.args[0], None)])
        ]

    def op_of(self, call: CallExpr) -> str:
        """Return the name of what is called, as errors say it."""
        for one in self.calls.called(call):
            if one.tensor:
                return op_called(_name(one.node))
        if isinstance(call.callee, NameExpr | MemberExpr | SuperExpr):
            return call.callee.name
        key = key_of(call.callee)
        return "the call" if key is None else spelled(key)

    def _taken_by(self, callee: Callee, call: CallExpr) -> list[Place]:
        operands = [*callee.args, *call.args]
        fullname = getattr(callee.node, "fullname", "")
        if callee.tensor:
            name = _name(callee.node)
            is_read = name in READS or leaves(name, given=bool(call.args))
            owners = [] if is_read else [one for one in operands if self.owns(self.type_of(one))]
            return self.places(Part(one, None) for one in owners)
        is_several = len(callee.known) > 1 and all(hands_on(one.ret_type) for one in callee.known)
        if fullname in MOVERS or (is_several and fullname.startswith("tapetensor.")):
            # Of an overloaded function it is not worked out which overload is meant.
            return self.owners_in(operands)
        return [] if is_several else self.taken_with(callee, arguments(callee, call), call)

    def taken_with(
        self, callee: Callee, given: list[list[Expression]], call: Context, skip: int = 0
    ) -> list[Place]:
        """Return what a call takes of what it gives to each parameter, and of other variables.

        A parameter that may own a tape does not say that the tape is taken: a function that only
        prints has one too. That a tape comes back, or gradients do, says it.

        Args:
            callee: the function.
            given: what each parameter is given.
            call: the call.
            skip: of how many parameters the body alone tells: of the object before the dot.
        """
        body = callee.function or self.body(callee.node)
        run = None if body is None or self.is_put_off(body, call) else body
        dropped = call in self.steps.graph.dropped
        exact = isinstance(call, CallExpr) and is_exactly_meant(call)
        # A generator runs when it is iterated over.
        is_made_only = getattr(body or callee.node, "is_generator", False)
        is_made_only = is_made_only or self.results.takes_back(callee.node)
        found: list[Place] = []
        for number, expressions in enumerate(given):
            fitting = [one for one in callee.known if may_accept(one, number)]
            is_said = fitting and not is_made_only and number >= skip
            if is_said and all(self.is_moved_by(one, number, callee.node) for one in fitting):
                if not (body and self.may_borrow(body, number, dropped=dropped, exact=exact)):
                    owners = self.owners_in(expressions)
                    found += [one for one in owners if one.key[-1] is not EACH or one not in found]
            elif run is not None:
                found += self.moved_of(run, number, expressions, exact=exact)
        if run is not None:
            found += [*self.defaults_of(run, given), *self.free(run, callee.bound)]
        elif body is None and given and given[0]:
            found += self.moved_elsewhere(callee.node, given[0][0])
        return found

    def is_put_off(self, body: FuncItem, call: Context) -> bool:
        """Tell whether a call makes a coroutine or generator that is not known to run there."""
        graph = self.steps.graph
        if body.is_generator:
            return call not in graph.consumed
        return body.is_coroutine and call not in graph.awaited

    def is_moved_by(self, signature: CallableType, number: int, node: SymbolNode | None) -> bool:
        """Tell whether a signature says that the argument for a parameter is moved.

        A function that is given a container may take one of its items, and leave the others.
        """
        declared = signature.arg_types[number]
        if _name(node) == "_replace":
            # A record is made of what it is given.
            return False
        is_ours = getattr(node, "fullname", "").startswith("tapetensor.")
        is_one = is_tensor(declared) or not accepts_several(declared)
        is_taken = hands_on(signature.ret_type) and (is_one or is_ours)
        return takes(declared) and (is_taken or is_marked(declared, TAKEN))

    def may_borrow(
        self, body: FuncItem, number: int, *, dropped: bool, exact: bool = False
    ) -> bool:
        """Tell whether a function, or what overrides it, only reads an argument.

        Args:
            body: the function.
            number: which argument.
            dropped: whether what the call returns is not looked at.
            exact: whether the call means this very function, as `super()` does.
        """
        several = [body, *([] if exact else self.overriding(body))]
        return any(
            self.is_borrowed(one, number, dropped=dropped) or self._gives_back(one, number)
            for one in several
            if number < len(one.arguments)
        )

    def _gives_back(self, body: FuncItem, number: int) -> bool:
        """Tell whether what a function returns is an argument, or has it among its parts."""
        variable = body.arguments[number].variable
        return any(source == ("name", variable) for _, source in self.results.of(body))

    def overriding(self, body: FuncItem) -> Iterator[FuncDef]:
        """Yield the methods of this file that may be meant where a method is called."""
        yield from filter(None, map(self.body, overriding(self._tree, body)))

    def is_borrowed(self, body: FuncItem, number: int, *, dropped: bool) -> bool:
        """Tell whether a function only reads an argument, or makes a second handle of it."""
        return self.remembered(
            self._known.borrowed,
            (body, number, dropped),
            body,
            False,
            lambda inner: is_borrowed(body, inner.steps.graph, number, inner.lent, dropped=dropped),
        )

    def defaults_of(self, body: FuncItem, given: list[list[Expression]]) -> Iterator[Place]:
        """Yield what a function takes of the values of its default arguments."""
        for argument, expressions in zip(body.arguments, given, strict=False):
            if argument.initializer is None or is_none(argument.initializer) or expressions:
                continue
            me: Key = ("name", argument.variable)
            default: Key = ("name", self.steps.graph.default_of(argument.variable))
            for path in self.moved(body, argument.variable):
                key = replaced(path, me, default)
                if key is not None:
                    yield Place(key, key)

    def moved_of(
        self, body: FuncItem, number: int, expressions: list[Expression], *, exact: bool = False
    ) -> Iterator[Place]:
        """Yield what the body of a function is sure to take of the arguments for a parameter.

        What overrides the function takes it too, unless the call means this very function.
        """
        if number >= len(body.arguments):
            return
        variable = body.arguments[number].variable
        me: Key = ("name", variable)
        others = [] if exact else [*self.overriding(body)]
        is_star = body.arguments[number].kind.is_star()
        for path in () if others or is_star else self.left(body, variable):
            base = replaced(path, me, self.place_of(expressions[0]) or me) if expressions else None
            if base is not None and root(base) is not variable:
                yield Place(base, base, left=True)
        for path in self.moved(body, variable):
            if not all(self._is_moved_too(path, me, one, number) for one in others):
                continue
            for one in expressions:
                if path == item_of(me, EACH) and is_star:
                    # ``*args`` and ``**options`` have what is given as their items.
                    yield from self.places(self.owning_parts(one, self.type_of(one)))
                    continue
                if isinstance(one, ListExpr | TupleExpr) and path != me:
                    yield from self.places(self.parts_at(one, path, me))
                    continue
                if path == me:
                    yield from self.places(self.owning_parts(one, self.type_of(one)))
                else:
                    yield from self.place_at(path, me, one)

    def moved_elsewhere(self, node: SymbolNode | None, owner: Expression) -> Iterator[Place]:
        """Yield which attributes of its object a method of another file leaves spent."""
        me: Key = ("name", Var(""))
        if isinstance(node, FuncDef) and node.info and not [*overriding(self._tree, node)]:
            for path in node.info.metadata.get(TAKEN, {}).get(node.name, []):
                key = me
                for kind, index in path:
                    key = (kind, key, EACH if index is None else index)
                yield from self.place_at(key, me, owner)

    def moved_by_getter(self, getter: SymbolNode | None, owner: Expression) -> list[Place]:
        """Return what reading a property takes of the object that has it."""
        is_property = isinstance(getter, Decorator) and getter.var.is_property
        body = getter.func if isinstance(getter, Decorator) and is_property else None
        is_here = body is not None and body.info.module_name == self._tree.fullname
        return [*self.moved_of(body, 0, [owner])] if body is not None and is_here else []

    def _is_moved_too(self, path: Key, me: Key, body: FuncItem, number: int) -> bool:
        """Tell whether a function takes of a parameter of its own what another one does."""
        if number >= len(body.arguments):
            return False
        variable = body.arguments[number].variable
        return replaced(path, me, ("name", variable)) in self.moved(body, variable)

    def free(self, body: FuncItem, bound: Mapping[Var, Key] = MappingProxyType({})) -> list[Place]:
        """Return what a function takes of the variables around it, those of the module too.

        Args:
            body: the function.
            bound: the variables of the call that made it, with their keys here.
        """
        around = self.steps.graph.fragments[0].bound.difference(
            one.variable for one in body.arguments
        )
        found = [key for key in self.moved_by(body) if root(key) in around or root(key) in bound]
        inner = self._known.steps[body].graph if found else self.steps.graph
        # What gives the variable another value leaves nothing behind that is spent.
        renewed = {root(key) for point in inner.points for key in point.stores}
        here: dict[Key, Key] = {("name", one): key for one, key in bound.items()}
        return [
            Place(key, replaced(key, start, here.get(start, start)) or key, body)
            for key in found
            if (start := ("name", root(key)))[1] not in renewed
        ]

    def lent(self, call: CallExpr) -> Iterator[Expression]:
        """Yield the arguments that a call only reads, whatever function is called."""
        found = [[*self._lent_to(one, call)] for one in self.calls.called(call)]
        for one in found[0] if found else ():
            if all(one in others for others in found):
                yield one

    def _lent_to(self, callee: Callee, call: CallExpr) -> Iterator[Expression]:
        body = callee.function or self.body(callee.node)
        dropped = call in self.steps.graph.dropped
        for number, expressions in enumerate([] if callee.tensor else arguments(callee, call)):
            [signature] = callee.known
            declared = signature.arg_types[number]
            if body is not None:
                is_read = self.depth > 0 and self.is_borrowed(body, number, dropped=dropped)
            else:
                is_read = is_marked(declared, LENT) or (
                    is_tensor(declared) and not hands_on(signature.ret_type)
                )
            if is_read:
                yield from expressions

    def body(self, node: SymbolNode | None) -> FuncDef | None:
        """Return the body of a function of this file; of an abstract one that of the only other."""
        found = function_in(self._tree, node)
        inner = node.func if isinstance(node, Decorator) else node
        if found is None and isinstance(inner, FuncDef) and inner.abstract_status != NOT_ABSTRACT:
            others = [*self.overriding(inner)]
            return others[0] if len(others) == 1 else None
        return found

    def moved(self, body: FuncItem, variable: Var) -> list[Key]:
        """Return what a function is sure to take of a parameter: it, its items, its attributes."""
        return [key for key in self.moved_by(body) if root(key) is variable]

    def left(self, body: FuncItem, variable: Var) -> list[Key]:
        """Return the attributes and items of a parameter that a function is sure to leave spent."""
        return [key for key in self._moved_and_left(body)[1] if root(key) is variable]

    def moved_by(self, body: FuncItem) -> list[Key]:
        """Return what a function is sure to have taken the tape of when it returns.

        A key starts from a parameter, or from a variable of the code around the function.
        """
        return self._moved_and_left(body)[0]

    def _moved_and_left(self, body: FuncItem) -> tuple[list[Key], list[Key]]:
        if body.is_async_generator:
            return [], []
        return self.remembered(self._known.moved, body, body, ([], []), surely_moved)

    def remembered(
        self,
        known: dict[K, tuple[V, bool]],
        which: K,
        body: FuncItem,
        unknown: V,
        read: Callable[[Reader], V],
    ) -> V:
        """Return what is found in a function, which is read again once mypy knows its types.

        Args:
            known: what was found before, and whether mypy had checked the function by then.
            which: what is asked for.
            body: the function.
            unknown: what holds while the function is read, which may call itself.
            read: what looks into it.
        """
        if which not in known or (not known[which][1] and self.is_checked(body)):
            inner = self.within(body)
            if inner is None:
                return unknown
            known[which] = unknown, True
            known[which] = read(inner), self.is_checked(body)
        return known[which][0]

    def is_checked(self, body: FuncItem) -> bool:
        """Tell whether mypy has come through a function."""
        nodes = self._known.steps[body].graph.of_node
        # The targets of a loop have no type of their own.
        typed = [one for one in nodes if isinstance(one, Expression) and type(one) is not TupleExpr]
        last = typed[-1] if typed else None
        return last is not None and flow.type_of(self._checker, last) is not None

    def within(self, function: FuncItem) -> Reader | None:
        """Return what reads the calls in another function."""
        if self.depth == 0:
            return None
        if function not in self._known.steps:
            self._known.steps[function] = Steps(self._checker, function)
        steps = self._known.steps[function]
        return Reader(self._checker, self._tree, steps, self._known, self)

    def is_called_here(self, name: str) -> bool:
        """Tell whether the file speaks of a function, beside its definition."""
        if not self._known.named:
            self._known.named.update(names_in(self._tree))
        return name in self._known.named

    def own_moves(self) -> Iterator[tuple[Key, Point]]:
        """Yield the keys that this function takes the tape of, with the points where it does."""
        graph = self.steps.graph
        for node in [*graph.of_node]:
            spent: list[Place] = []
            if isinstance(node, CallExpr):
                self.results.look_at(node)
                spent = self.results.spent(node)
            for step in self.steps.made(node, "", [*self._of_node(node), *spent], ()):
                for one in (step, *self.steps.followed_on(step)):
                    for value in one.values:
                        if not value.by and (not value.loop or one is not step):
                            yield value.key, one.point

    def _of_node(self, node: Node) -> list[Place]:
        match node:
            case CallExpr(callee=RefExpr(fullname=name)) if name in MOVERS:
                return self.moved_by_builtin(node)
            case CallExpr():
                return self.taken(node)
            case MemberExpr(expr=owner, name=name):
                info = class_of(self.type_of(owner))
                getter = None if info is None else member_of(info, name)
                return self.moved_by_getter(getter, owner)
            case OpExpr(op=op, left=left, right=right) if op in op_methods:
                operands = [left, right] if op_methods[op] not in BORROWS else []
            case OperatorAssignmentStmt(lvalue=left, rvalue=right):
                operands = [left, right]
            case UnaryExpr(op="-", expr=inner) | IndexExpr(base=inner):
                operands = [inner]
            case _:
                return []
        found = [Part(one, None) for one in operands if self.owns(self.type_of(one))]
        is_op = any(is_tensor(self.type_of(one)) for one in operands)
        return self.places(found) if is_op else []


def _name(node: SymbolNode | None) -> str:
    return "" if node is None else node.name
